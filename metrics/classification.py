"""Scores of classifiers, in plain NumPy: the official ones of GLUE (Wang et al. 2018).

Every metric is a function of (labels, predictions), two arrays of the same shape: class
numbers or plain numbers [examples], or 0 and 1 [examples, labels] where an example may
have several labels. It is 0 where its formula divides by 0.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def _pair(
    labels: ArrayLike, predictions: ArrayLike, max_rank: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    if not (labels.size or predictions.size):
        raise ValueError("there are no examples to score")
    if labels.shape != predictions.shape or not 1 <= labels.ndim <= max_rank:
        expected = "one number" + (" or one row" if max_rank > 1 else "")
        raise ValueError(
            f"labels and predictions must be {expected} for each example, got shapes "
            f"{labels.shape} and {predictions.shape}"
        )
    return labels, predictions


def majority_share(labels: Iterable[Any]) -> float:
    """The accuracy of always giving the most frequent of some labels."""
    counts = Counter(labels)
    return max(counts.values()) / counts.total()


def accuracy(labels: ArrayLike, predictions: ArrayLike) -> float:
    """Share of examples whose prediction is the label, or the whole set of labels."""
    labels, predictions = _pair(labels, predictions, max_rank=2)
    right = (labels == predictions).reshape(len(labels), -1)
    return float(np.mean(right.all(axis=1)))


def f1(labels: ArrayLike, predictions: ArrayLike) -> float:
    """Harmonic mean of precision and recall of class 1, the positive one of two."""
    labels, predictions = _pair(labels, predictions)
    return float(_f1_of_each(labels == 1, predictions == 1))


def f1_micro(labels: ArrayLike, predictions: ArrayLike) -> float:
    """F1 of all decisions about all labels taken together."""
    labels, predictions = _one_column_a_class(*_pair(labels, predictions, max_rank=2))
    return float(_f1_of_each(labels.ravel(), predictions.ravel()))


def f1_macro(labels: ArrayLike, predictions: ArrayLike) -> float:
    """Mean of the F1 of each label, or of each class that occurs on either side."""
    labels, predictions = _one_column_a_class(*_pair(labels, predictions, max_rank=2))
    return float(np.mean(_f1_of_each(labels, predictions)))


def _one_column_a_class(
    labels: np.ndarray, predictions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Booleans [examples, labels]."""
    if labels.ndim == 2:
        return labels == 1, predictions == 1
    classes = np.union1d(labels, predictions)
    return labels[:, None] == classes, predictions[:, None] == classes


def _f1_of_each(labels: np.ndarray, predictions: np.ndarray) -> np.ndarray:
    """F1 of each column of booleans."""
    hits = np.sum(labels & predictions, axis=0)
    found_and_wanted = np.sum(labels, axis=0) + np.sum(predictions, axis=0)
    return 2 * hits / np.maximum(found_and_wanted, 1)


def matthews_correlation(labels: ArrayLike, predictions: ArrayLike) -> float:
    """Correlation of the classes, of any number (Matthews 1975; Gorodkin 2004)."""
    labels, predictions = _one_column_a_class(*_pair(labels, predictions))
    # Means of the columns away, so that the sums of products are covariances.
    labels, predictions = (x - x.mean(axis=0) for x in (labels, predictions))
    return _cosine(labels, predictions)


def pearson(labels: ArrayLike, predictions: ArrayLike) -> float:
    """Linear correlation; 0 where one side is the same number throughout."""
    labels, predictions = (x.astype(np.float64) for x in _pair(labels, predictions))
    # Asked before rounding errors make up differences from the mean.
    if not (np.ptp(labels) and np.ptp(predictions)):
        return 0.0
    return _cosine(labels - labels.mean(), predictions - predictions.mean())


def spearmanr(labels: ArrayLike, predictions: ArrayLike) -> float:
    """Correlation of the ranks; equal numbers share the mean of their ranks."""
    labels, predictions = _pair(labels, predictions)
    return pearson(_ranks(labels), _ranks(predictions))


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    # Each by its own largest entry, or the squares of tiny numbers would vanish.
    scales = np.abs(a).max(), np.abs(b).max()
    if not all(scales):
        return 0.0
    a, b = a / scales[0], b / scales[1]
    return float(np.sum(a * b) / np.sqrt(np.sum(a * a) * np.sum(b * b)))


def _ranks(values: np.ndarray) -> np.ndarray:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[places]


METRICS = {
    function.__name__: function
    for function in (
        accuracy,
        f1,
        f1_micro,
        f1_macro,
        matthews_correlation,
        pearson,
        spearmanr,
    )
}


def best_class(logits: np.ndarray) -> np.ndarray:
    """Class numbers [examples] of logits [examples, classes]."""
    return np.argmax(logits, axis=-1)


def likely_labels(logits: np.ndarray) -> np.ndarray:
    """1 where a label's own probability is 0.5 or more; [examples, labels]."""
    return (logits >= 0).astype(np.int32)


def number(logits: np.ndarray) -> np.ndarray:
    """Numbers [examples] of a regression's logits [examples, 1]."""
    return logits[:, 0]


def scores(
    batches: Iterable[dict[str, np.ndarray]],
    names: Iterable[str],
    decide: Callable[[np.ndarray], np.ndarray] = best_class,
) -> dict[str, float]:
    """What eval_results.txt says of a data set.

    Args:
        batches: dicts of arrays: logits [batch, labels], label_ids [batch] or [batch,
            labels] and losses [batch], of real examples only.
        names: keys of `METRICS`.
        decide: what turns logits into predictions, such as `best_class`.
    Returns:
        eval_<name> for every name; eval_loss, the mean over all examples; loss, the
        mean over batches of their means: the names of the original.
    Raises:
        ValueError: there is no example.
    """
    batches = list(batches)
    if not batches:
        raise ValueError("there is nothing to evaluate: the data set is empty")
    logits, label_ids, losses = (
        np.concatenate([batch[key] for batch in batches])
        for key in ("logits", "label_ids", "losses")
    )
    predictions = decide(logits)
    return {
        **{f"eval_{name}": METRICS[name](label_ids, predictions) for name in names},
        "eval_loss": float(np.mean(losses, dtype=np.float64)),
        "loss": float(np.mean([np.mean(batch["losses"]) for batch in batches])),
    }
