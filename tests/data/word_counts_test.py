"""Counting words against counting them one by one, with and without a limit."""

import collections
import random

import hypothesis
import pytest
from hypothesis import strategies

from benchmarks import plain_tokenizer
from data import tokenization, word_counts

# One-letter words of very different frequencies.
LINES = strategies.lists(strategies.sampled_from("aaaaaabbbbcccddefghijklmn"))


def count(lines, max_words=1000, lower=True):
    """The result of `count_words` and what was dropped."""
    dropped = collections.Counter()
    tokenizer = tokenization.BasicTokenizer(lower)

    def on_drop(words):
        for word, number in words:
            dropped[word] += number

    return word_counts.count_words(lines, tokenizer, max_words, on_drop), dropped


@pytest.mark.parametrize("lower", [True, False], ids=["uncased", "cased"])
def test_words_are_those_of_the_tokenizer(lower):
    for seed in range(200):
        rng = random.Random(seed)
        lines = [plain_tokenizer.odd_text(rng) for _ in range(5)]
        lines += [f"{line}\n" for line in lines[:2]]
        expected = collections.Counter()
        for line in lines:
            expected.update(plain_tokenizer.words(line, lower))
        too_long = {word: n for word, n in expected.items() if len(word) > 200}
        found, dropped = count(lines, lower=lower)
        assert dropped == too_long
        assert found == word_counts.WordCounts(expected - dropped, 0, 0)


def test_too_long_words_are_not_kept():
    lengths = (200, 201, 2**20)
    lines = [" ".join("x" * length for length in lengths)] * 3
    found, dropped = count(lines)
    assert found == word_counts.WordCounts({"x" * 200: 3})
    assert dropped == {"x" * length: 3 for length in lengths[1:]}


def test_what_waits_to_be_cut_is_bounded(monkeypatch):
    lines = ["the cat, the dog", "the cat 数学", "a  dog's life"] * 3
    expected, _ = count(lines)
    for name, limit in [("_MAX_CHUNKS", 2), ("_MAX_WAITING_CHARS", 5)]:
        with monkeypatch.context() as patch:
            patch.setattr(word_counts, name, limit)
            assert count(lines)[0] == expected


@pytest.mark.usefixtures("few_chunks")
@hypothesis.given(LINES, strategies.integers(2, 8))
def test_a_limit_loses_no_more_than_it_says(lines, max_words):
    true = collections.Counter(" ".join(lines).split())
    found, dropped = count(lines, max_words)
    assert len(found.counts) <= max_words
    assert found.counts + dropped == true
    assert (found.num_dropped > 0) == bool(dropped)
    for word, number in true.items():
        assert number - found.max_missed <= found.counts[word] <= number
    hypothesis.event(f"dropped: {bool(dropped)}")


@pytest.fixture(scope="module")
def few_chunks():
    """Makes a limit bite after every few words, as it does in a large corpus."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_counts, "_MAX_CHUNKS", 2)
        yield


def test_the_rarest_are_dropped():
    # Five words where four may be kept: two of one occurrence and one of two go, since
    # dropping the former alone leaves three, which is more than half of the limit.
    found, dropped = count(["a a a a b b b c c d e"], max_words=4)
    assert found.counts == {"a": 4, "b": 3}
    assert dropped == {"c": 2, "d": 1, "e": 1}
    assert (found.num_dropped, found.max_missed) == (3, 2)
