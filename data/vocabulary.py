"""Learns a WordPiece vocabulary from words and their counts.

The pieces start as the single characters. Then the two neighbouring pieces that occur
together most often, in all words, become a piece of their own, again and again, until
the vocabulary has the size that was asked for (Sennrich et al. 2016, "Neural Machine
Translation of Rare Words with Subword Units"; the trainer of the released vocabularies
was never published). Every character has its own pieces, so a word whose characters
are all covered is never [UNK].

Only the counts decide, and of equally frequent pairs the one whose parts came first:
the same words give the same vocabulary, in whatever order they come.
"""

import collections
import dataclasses
import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping

from data import tokenization

# The released vocabularies have [UNK] at 100, with 99 entries to spare before it.
_UNUSED_BEFORE_UNK = 99


def special_tokens(num_unused: int) -> list[str]:
    """The first entries, in the order of the released vocabularies.

    Args:
        num_unused: entries to spare, for words that are added later. With 99 or more,
            [UNK], [CLS], [SEP] and [MASK] have the ids of the released vocabularies,
            100 to 103.
    """
    unused = [f"[unused{number}]" for number in range(num_unused)]
    before, after = unused[:_UNUSED_BEFORE_UNK], unused[_UNUSED_BEFORE_UNK:]
    pad, *others = tokenization.SPECIAL_TOKENS
    return [pad, *before, *others, *after]


def count_characters(
    totals: collections.Counter, words: Iterable[tuple[str, int]]
) -> None:
    """Adds the characters of words that occur so often to `totals`."""
    for word, count in words:
        for char in word:
            totals[char] += count


def choose_characters(totals: Mapping[str, int], coverage: float) -> list[str]:
    """The most frequent characters that together make up a share of the text.

    ASCII characters come first, however rare: a text may have few digits, but what is
    done with the vocabulary later will have some.

    Args:
        totals: character to count.
        coverage: the share; 1 takes all characters.

    Returns:
        Characters by code point.
    """
    missing, chosen = coverage * sum(totals.values()), []
    for char in sorted(totals, key=lambda c: (not c.isascii(), -totals[c], c)):
        if missing <= 0 and not char.isascii():
            break
        missing -= totals[char]
        chosen.append(char)
    return sorted(chosen)


def character_pieces(
    characters: Iterable[str], tokenizer: tokenization.BasicTokenizer
) -> list[str]:
    """The pieces that cover characters: each as it is, then those that continue a word.

    Punctuation and ideographs are words of their own and never continue one.
    """
    characters = list(characters)
    continuing = [c for c in characters if len(tokenizer.split_words(f"a{c}a")) == 1]
    return characters + ["##" + char for char in continuing]


class _Pairs:
    """Words as they are cut now, and how often which pieces are neighbours.

    A piece is a character, the one with its id as code point. So a word is a str, a
    pair is a str of two characters, and joining a pair is `str.replace`.
    """

    def __init__(self, words: list[str], counts: list[int]):
        self._words = words
        self._word_counts = counts
        self._counts = collections.defaultdict(int)  # pair → occurrences
        self._places = collections.defaultdict(list)  # pair → words that had it once
        for place, (word, count) in enumerate(zip(words, counts, strict=True)):
            for pair in map("".join, itertools.pairwise(word)):
                self._counts[pair] += count
                self._places[pair].append(place)
        # May hold outdated counts of a pair, but always its present one.
        self._heap = [(-count, pair) for pair, count in self._counts.items()]
        heapq.heapify(self._heap)

    def pop_most_frequent(self) -> tuple[str, int]:
        """The most frequent pair and its count, ("", 0) if there is none."""
        while self._heap:
            negative_count, pair = heapq.heappop(self._heap)
            if self._counts.get(pair, 0) == -negative_count:
                return pair, -negative_count
        return "", 0

    def join(self, pair: str, piece: str) -> None:
        """Makes one piece of the pair wherever it stands."""
        changes = collections.defaultdict(int)
        for place in set(self._places.pop(pair)):
            before = self._words[place]
            after = self._words[place] = before.replace(pair, piece)
            if len(after) == len(before):
                continue  # a join of another pair took it apart
            count = self._word_counts[place]
            for other in map("".join, itertools.pairwise(before)):
                changes[other] -= count
            for other in map("".join, itertools.pairwise(after)):
                changes[other] += count
                if piece in other:
                    self._places[other].append(place)
        for other, change in changes.items():
            if not change:
                continue
            self._counts[other] += change
            if self._counts[other]:
                heapq.heappush(self._heap, (-self._counts[other], other))
            else:
                del self._counts[other]
                self._places.pop(other, None)


def join_pieces(
    word_counts: Mapping[str, int], characters: list[str], min_frequency: int
) -> Iterator[str]:
    """Yields longer and longer pieces, the most useful first, as long as there are any.

    Args:
        word_counts: word to count. A word that has other characters than those covered,
            or more than the tokenizer takes, is passed over.
        characters: what `character_pieces` gives.
        min_frequency: pieces that occur together less often are not joined.
    """
    pieces = list(characters)
    known = {piece: chr(index) for index, piece in enumerate(pieces)}
    words, counts = [], []
    for word, count in word_counts.items():
        parts = [known.get(word[0])] + [known.get("##" + char) for char in word[1:]]
        if None not in parts and len(word) <= tokenization.MAX_CHARS_PER_WORD:
            words.append("".join(parts))
            counts.append(count)
    pairs = _Pairs(words, counts)
    while True:
        pair, count = pairs.pop_most_frequent()
        if count < max(1, min_frequency):
            return
        left, right = (pieces[ord(char)] for char in pair)
        joined = left + right.removeprefix("##")
        is_new = joined not in known  # ab + c may give what a + bc gave before
        if is_new:
            known[joined] = chr(len(pieces))
            pieces.append(joined)
        pairs.join(pair, known[joined])
        if is_new:
            yield joined


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a vocabulary should be like.

    Attributes:
        vocab_size: number of entries, special tokens included.
        coverage: share of the characters of the text that must be covered.
        num_unused: entries to spare, see `special_tokens`.
        min_frequency: pieces that occur together less often are not joined.
    """

    vocab_size: int
    coverage: float = 1.0
    num_unused: int = 0
    min_frequency: int = 1


def learn(
    word_counts: Mapping[str, int],
    character_counts: Mapping[str, int],
    tokenizer: tokenization.BasicTokenizer,
    settings: Settings,
) -> Iterator[str]:
    """Yields exactly `settings.vocab_size` entries, in order, all different.

    Args:
        word_counts: of the words that `tokenizer` makes of the text.
        character_counts: of all words, also of those that were too rare to be kept.
        tokenizer: which made them.

    Raises:
        ValueError: the characters do not fit into the size, or there are not enough
            pieces in the words. Nothing, or the largest possible vocabulary, has been
            yielded then.
    """
    special = special_tokens(settings.num_unused)
    chosen = choose_characters(character_counts, settings.coverage)
    characters = character_pieces(chosen, tokenizer)
    fixed = special + characters
    if len(fixed) > settings.vocab_size:
        raise ValueError(
            f"a vocabulary of {settings.vocab_size:,} entries has no room for the "
            f"{len(special):,} special and unused tokens and the {len(characters):,} "
            f"pieces of {len(chosen):,} characters; raise --vocab_size to "
            f"{len(fixed):,} or more, or lower --character_coverage"
        )
    yield from fixed
    size = len(fixed)
    if size == settings.vocab_size:
        return
    for piece in join_pieces(word_counts, characters, settings.min_frequency):
        yield piece
        size += 1
        if size == settings.vocab_size:
            return
    raise ValueError(
        f"the text gives a vocabulary of at most {size:,} entries, but "
        f"{settings.vocab_size:,} are asked for; lower --vocab_size, or give more text"
        f"{' or a lower --min_frequency' if settings.min_frequency > 1 else ''}"
    )
