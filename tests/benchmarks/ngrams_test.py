"""The counting baselines, against probabilities added up by hand."""

import math

import numpy as np
import pytest

from benchmarks import ngrams

TEXT = [np.array([1, 2, 3, 1, 2, 4]), np.array([1, 2, 3]), np.array([2])]
V = 6


def frequency(context, word):
    """Relative frequency of `word` where `context` (offset → token) holds."""
    found = [
        row[i]
        for row in TEXT
        for i in range(len(row))
        if all(0 <= i + o < len(row) and row[i + o] == t for o, t in context.items())
    ]
    return found.count(word) / len(found) if found else 0.0


def test_frequencies_are_those_counted_by_hand():
    counts = ngrams.count(TEXT, V)
    left, right = np.array([1, 1, 5, 2, 3]), np.array([3, 4, 1, 5, 2])
    words = np.array([2, 2, 2, 3, 1])
    found = ngrams._components(counts, left, right, words)
    for row, a, b, w in zip(found, left, right, words, strict=True):
        assert row == pytest.approx(
            [
                frequency({-1: a, 1: b}, w),
                frequency({-1: a}, w),
                frequency({1: b}, w),
                frequency({}, w),
                1 / V,
            ]
        )


def test_the_mixture_finds_what_the_text_follows():
    """A text where the left neighbour decides: token + 1, with some noise."""
    rng = np.random.default_rng(0)
    size = 20

    def walk(length):
        row = [int(rng.integers(size))]
        while len(row) < length:
            follows = (row[-1] + 1) % size
            row.append(follows if rng.random() < 0.8 else int(rng.integers(size)))
        return np.array(row)

    counts = ngrams.count([walk(5000)], size)
    test = walk(4000)
    scores = ngrams.scores(counts, test[:-2], test[2:], test[1:-1])
    assert scores["unigram_accuracy"] < 0.12
    assert scores["unigram_perplexity"] == pytest.approx(size, rel=0.05)
    # Left and right agree on the token in 0.8 ** 2 of the cases; either alone in 0.8.
    assert 0.8 < scores["ngram_accuracy"] < 0.95
    entropy = -(0.81 * math.log(0.81) + 0.19 * math.log(0.01))
    assert scores["ngram_perplexity"] < math.exp(entropy)


def test_weights_sum_to_one_and_prefer_what_explains():
    components = np.array([[0.9, 0.1, 0.2, 0.1, 0.1]] * 10 + [[0, 0, 0, 0, 0.1]])
    weights = ngrams._fit(components)
    assert weights.sum() == pytest.approx(1)
    assert weights[0] > 0.8
    assert weights[4] > 0.05
