"""Counts the words of a corpus, as the tokenizer cuts them, in bounded memory.

A vocabulary is learnt from words and their counts. Where there are too many different
words the rarest are dropped, as in lossy counting (Manku and Motwani 2002): how much
can be missed is known, and is little beside the counts that decide on a vocabulary.
"""

import collections
import dataclasses
from collections.abc import Callable, Iterable

from data import tokenization

# What stands between two spaces is counted as it is and cut into words once: a text
# repeats itself. These bound what waits for that.
_MAX_CHUNKS = 1 << 17
_MAX_WAITING_CHARS = 1 << 23


@dataclasses.dataclass
class WordCounts:
    """Words and how often they occur.

    Attributes:
        counts: word to count.
        num_dropped: entries that were dropped; the same word may be dropped repeatedly.
        max_missed: how much too low a count may be, and how often a word may occur
            that is not in `counts`. 0 if nothing was dropped.

    Words of more than `tokenization.MAX_CHARS_PER_WORD` characters, which are [UNK] in
    any vocabulary, are not in `counts` and have no part in the other two.
    """

    counts: collections.Counter
    num_dropped: int = 0
    max_missed: int = 0


def count_words(
    lines: Iterable[str],
    tokenizer: tokenization.BasicTokenizer,
    max_words: int,
    on_drop: Callable[[list[tuple[str, int]]], None],
) -> WordCounts:
    """Counts the words of all lines.

    Args:
        lines: text; a word never reaches from one into the next.
        tokenizer: cuts the text into words.
        max_words: so many different words are kept at most. When there are more, the
            rarest are dropped until at most half as many are left.
        on_drop: called with the words that are dropped, or too long, and their counts.
            Together with `counts` these are all words of the text, so that sums can be
            exact.
    """
    found = WordCounts(collections.Counter())
    chunks, waiting = collections.Counter(), 0

    def cut_chunks():
        for chunk, count in chunks.items():
            for word in tokenizer.split_words(chunk):
                if len(word) <= tokenization.MAX_CHARS_PER_WORD:
                    found.counts[word] += count
                else:  # of any length, so that a few would fill the memory
                    on_drop([(word, count)])
            if len(found.counts) > max_words:
                on_drop(_drop_rarest(found, max_words // 2))
        chunks.clear()

    for line in lines:
        chunks.update(line.replace("\n", " ").split(" "))
        waiting += len(line)
        if len(chunks) > _MAX_CHUNKS or waiting > _MAX_WAITING_CHARS:
            cut_chunks()
            waiting = 0
    cut_chunks()
    return found


def _drop_rarest(found: WordCounts, num_left: int) -> list[tuple[str, int]]:
    """Drops all words up to the lowest count that leaves at most `num_left`."""
    words_with = collections.Counter(found.counts.values())
    threshold, left = 0, len(found.counts)
    for count in sorted(words_with):
        if left <= num_left:
            break
        threshold, left = count, left - words_with[count]
    dropped = [item for item in found.counts.items() if item[1] <= threshold]
    for word, _ in dropped:
        del found.counts[word]
    found.num_dropped += len(dropped)
    found.max_missed += threshold
    return dropped
