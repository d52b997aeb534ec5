"""How well a vocabulary fits a text: what it cannot say, and what it cuts to pieces."""

import collections
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from data import tokenization

# Share of the tokens of a text that tells of a vocabulary for another language or case.
MUCH_UNKNOWN = 0.1


class Audit:
    """Adds up what becomes of words. Everything is weighted by how often they occur.

    Args:
        vocab: the entries.
    """

    def __init__(self, vocab: Iterable[str]):
        entries = frozenset(vocab)
        self._tokenizer = tokenization.WordpieceTokenizer(entries)
        texts = entries.difference(tokenization.SPECIAL_TOKENS)
        self._covered = {char for text in texts for char in text}
        self._num_entries = len(entries)
        self._used = set()
        self._totals = collections.Counter()
        self._uncovered = collections.Counter()

    def add(self, words: Iterable[tuple[str, int]]) -> None:
        """Takes words and their counts into account; the same word may come again."""
        totals = self._totals
        for word, count in words:
            pieces = self._tokenizer.tokenize_word(word)
            self._used.update(pieces)
            totals["words"] += count
            totals["characters"] += count * len(word)
            totals["pieces"] += count * len(pieces)
            if pieces == [self._tokenizer.unk_token]:
                totals["unknown_words"] += count
                totals["unknown_characters"] += count * len(word)
                for char in word:
                    if char not in self._covered:
                        self._uncovered[char] += count
            elif len(pieces) == 1:
                totals["whole_words"] += count

    def report(self, counts: Mapping[str, int], num_examples: int) -> dict[str, Any]:
        """What was found, as JSON values.

        Args:
            counts: word to count, among which to look for examples.
            num_examples: entries of each list at most, the most frequent first.

        Returns:
            words, characters, pieces: numbers of the text; an unknown word is one
                piece, [UNK].
            pieces_per_word: their ratio.
            whole_words, whole_word_share: words that are an entry.
            unknown_words, unknown_word_share: words that become [UNK].
            unknown_characters, unknown_character_share: the characters of these words.
            uncovered_characters: how many characters of the text no entry holds.
            entries, entries_used: of the vocabulary, and those the text needs.
            fragmented: words of several pieces, with counts and pieces.
            unknown: words that become [UNK], with counts.
            uncovered: characters that no entry holds, with counts and names.

        Raises:
            ValueError: there was no word.
        """
        totals = self._totals
        if not totals["words"]:
            raise ValueError("there are no words in the text")
        values = {name: totals[name] for name in ("words", "characters", "pieces")}
        values["pieces_per_word"] = totals["pieces"] / totals["words"]
        for part, whole in (
            ("whole_word", "words"),
            ("unknown_word", "words"),
            ("unknown_character", "characters"),
        ):
            values[f"{part}s"] = totals[f"{part}s"]
            values[f"{part}_share"] = totals[f"{part}s"] / totals[whole]
        values["uncovered_characters"] = len(self._uncovered)
        values["entries"] = self._num_entries
        values["entries_used"] = len(self._used)
        return values | self._examples(counts, num_examples)

    def _examples(
        self, counts: Mapping[str, int], num_examples: int
    ) -> dict[str, list[dict[str, Any]]]:
        """The three lists of a report."""
        fragmented, unknown = [], []
        for word, count in by_frequency(counts):
            pieces = self._tokenizer.tokenize_word(word)
            if pieces == [self._tokenizer.unk_token]:
                unknown.append({"word": word, "count": count})
            elif len(pieces) > 1:
                fragmented.append({"word": word, "count": count, "pieces": pieces})
            if min(len(fragmented), len(unknown)) >= num_examples:
                break
        uncovered = [
            {"character": char, "count": count, "name": _name(char)}
            for char, count in by_frequency(self._uncovered)
        ]
        return {
            "fragmented": fragmented[:num_examples],
            "unknown": unknown[:num_examples],
            "uncovered": uncovered[:num_examples],
        }


def by_frequency(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Items, the most frequent first, equally frequent ones by text."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _name(char: str) -> str:
    """U+0041 LATIN CAPITAL LETTER A."""
    return f"U+{ord(char):04X} {unicodedata.name(char, '')}".rstrip()


def figures(report: Mapping[str, Any]) -> dict[str, str]:
    """How well the vocabulary fits: title to text."""
    return {
        "pieces per word": f"{report['pieces_per_word']:.3f}",
        "whole words": f"{100 * report['whole_word_share']:.2f} %",
        "unknown words": f"{100 * report['unknown_word_share']:.3f} %",
    }


def table(report: Mapping[str, Any]) -> str:
    """A report as text for the screen."""
    fit = [f"{title:<20} {text}" for title, text in figures(report).items()]
    lines = [
        f"words                {report['words']:,}",
        *fit[:-1],
        f"{fit[-1]}, {report['unknown_words']:,}",
        f"unknown characters   {100 * report['unknown_character_share']:.3f} %, "
        f"{report['unknown_characters']:,}",
        f"entries that occur   {report['entries_used']:,} of {report['entries']:,}",
    ]
    examples = [
        f"{row['word']} ({row['count']:,}: {' '.join(row['pieces'])})"
        for row in report["fragmented"]
    ]
    lines += _wrapped("fragmented", examples)
    examples = [f"{row['word']} ({row['count']:,})" for row in report["unknown"]]
    lines += _wrapped("unknown", examples)
    examples = [
        f"{row['character']} ({row['count']:,}: {row['name']})"
        for row in report["uncovered"]
    ]
    lines += _wrapped("uncovered", examples)
    return "\n".join(lines)


def _wrapped(title: str, examples: list[str]) -> list[str]:
    """One line an example, the title before the first."""
    titles = [title] + [""] * len(examples)
    return [f"{t:<20} {e}" for t, e in zip(titles, examples, strict=False)]
