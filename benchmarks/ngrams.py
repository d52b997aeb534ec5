"""What counting gives in place of a masked LM: unigrams, and n-grams of both sides.

The baseline of a token between the neighbours l and r is

    a T(w | l, r) + b L(w | l) + c R(w | r) + d U(w) + e / V

with relative frequencies of the training text and weights that expectation maximisation
finds on some of the masked tokens (Jelinek and Mercer 1980). A neighbour that is masked
itself counts as the token [MASK], which no text has, and so gives nothing.
"""

import dataclasses

import numpy as np
from scipy import sparse


@dataclasses.dataclass(frozen=True)
class Counts:
    """Relative frequencies of a text; a row of a matrix is a distribution over w.

    Attributes:
        unigrams: float64 [V].
        after, before: CSR [V, V], row l (r) for the neighbour on the left (right).
        between: CSR [pairs, V].
        pairs: int64, sorted keys l * V + r of the rows of `between`.
    """

    unigrams: np.ndarray
    after: sparse.csr_matrix
    before: sparse.csr_matrix
    between: sparse.csr_matrix
    pairs: np.ndarray


def count(rows: list[np.ndarray], vocab_size: int) -> Counts:
    """Counts over texts.

    Args:
        rows: int arrays of token ids, each a text of its own.
        vocab_size: V.
    """
    left = np.concatenate([row[:-1] for row in rows]).astype(np.int64)
    right = np.concatenate([row[1:] for row in rows]).astype(np.int64)
    inner = [row for row in rows if len(row) > 2]
    first, word, last = (
        np.concatenate([row[i : len(row) - 2 + i] for row in inner]).astype(np.int64)
        for i in range(3)
    )
    pairs, row = np.unique(first * vocab_size + last, return_inverse=True)
    unigrams = np.bincount(np.concatenate(rows), minlength=vocab_size)
    square = (vocab_size, vocab_size)
    return Counts(
        unigrams / unigrams.sum(),
        _frequencies(left, right, square),
        _frequencies(right, left, square),
        _frequencies(row, word, (len(pairs), vocab_size)),
        pairs,
    )


def _frequencies(row: np.ndarray, column: np.ndarray, shape: tuple[int, int]):
    ones = np.ones(len(row))
    counts = sparse.csr_matrix((ones, (row, column)), shape)
    totals = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1)
    return sparse.diags(1 / totals) @ counts


def scores(
    counts: Counts, left: np.ndarray, right: np.ndarray, words: np.ndarray
) -> dict[str, float]:
    """Accuracy and perplexity of both baselines on masked tokens.

    Every second token is for finding the weights, the others are scored.

    Args:
        counts: of the training text.
        left, right: neighbours of each masked token, [tokens].
        words: the masked tokens, [tokens].
    Returns:
        unigram_accuracy, unigram_perplexity, ngram_accuracy, ngram_perplexity.
    """
    fit, score = slice(0, None, 2), slice(1, None, 2)
    weights = _fit(_components(counts, left[fit], right[fit], words[fit]))
    components = _components(counts, left[score], right[score], words[score])
    words, left, right = words[score], left[score], right[score]
    vocab_size = len(counts.unigrams)
    smoothed = 0.999 * counts.unigrams[words] + 0.001 / vocab_size
    return {
        "unigram_accuracy": float(np.mean(words == counts.unigrams.argmax())),
        "unigram_perplexity": float(np.exp(-np.mean(np.log(smoothed)))),
        "ngram_accuracy": _accuracy(counts, weights, left, right, words),
        "ngram_perplexity": float(np.exp(-np.mean(np.log(components @ weights)))),
    }


def _components(
    counts: Counts, left: np.ndarray, right: np.ndarray, words: np.ndarray
) -> np.ndarray:
    """The five probabilities of each token, [tokens, 5]."""
    rows, known = _find_pairs(counts, left, right)
    trigram = np.where(known, np.asarray(counts.between[rows, words]).ravel(), 0.0)
    vocab_size = len(counts.unigrams)
    return np.stack(
        [
            trigram,
            np.asarray(counts.after[left, words]).ravel(),
            np.asarray(counts.before[right, words]).ravel(),
            counts.unigrams[words],
            np.full(len(words), 1 / vocab_size),
        ],
        axis=1,
    )


def _find_pairs(
    counts: Counts, left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Row of `between` for each pair of neighbours, and whether there is one."""
    keys = left.astype(np.int64) * len(counts.unigrams) + right
    rows = np.minimum(np.searchsorted(counts.pairs, keys), len(counts.pairs) - 1)
    return rows, counts.pairs[rows] == keys


def _fit(components: np.ndarray, rounds: int = 50) -> np.ndarray:
    """Weights of the mixture that make the tokens most likely."""
    weights = np.full(components.shape[1], 1 / components.shape[1])
    for _ in range(rounds):
        shares = components * weights
        weights = np.mean(shares / shares.sum(axis=1, keepdims=True), axis=0)
    return weights


def _accuracy(
    counts: Counts,
    weights: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    words: np.ndarray,
) -> float:
    """Share of the tokens that the mixture finds most likely."""
    rows, known = _find_pairs(counts, left, right)
    hits = 0
    for first in range(0, len(words), 256):
        part = slice(first, first + 256)
        scored = (
            weights[0] * sparse.diags(known[part] * 1.0) @ counts.between[rows[part]]
        )
        scored = scored + weights[1] * counts.after[left[part]]
        scored = scored + weights[2] * counts.before[right[part]]
        best = (scored.toarray() + weights[3] * counts.unigrams).argmax(axis=1)
        hits += int(np.sum(best == words[part]))
    return hits / len(words)
