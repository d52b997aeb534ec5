"""Scores of classifiers, in plain NumPy: the official ones of GLUE (Wang et al. 2018).

Every metric is a function of (labels, predictions), both class numbers [examples], and
is found by its name: `scores`. A further one is a further function in `METRICS`.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike


def _pair(labels: ArrayLike, predictions: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    if labels.shape != predictions.shape or labels.ndim != 1:
        raise ValueError(
            "labels and predictions must be one number for each example, got shapes "
            f"{labels.shape} and {predictions.shape}"
        )
    if not labels.size:
        raise ValueError("there are no examples to score")
    return labels, predictions


def accuracy(labels: ArrayLike, predictions: ArrayLike) -> float:
    """Share of examples whose prediction is the label."""
    labels, predictions = _pair(labels, predictions)
    return float(np.mean(labels == predictions))


def f1(labels: ArrayLike, predictions: ArrayLike) -> float:
    """Harmonic mean of precision and recall of class 1, the positive one of two.

    0 where precision or recall is undefined.
    """
    labels, predictions = _pair(labels, predictions)
    hits = np.sum((labels == 1) & (predictions == 1))
    found_and_wanted = np.sum(labels == 1) + np.sum(predictions == 1)
    return float(2 * hits / found_and_wanted) if found_and_wanted else 0.0


METRICS = {"accuracy": accuracy, "f1": f1}


def scores(
    names: Iterable[str], labels: ArrayLike, predictions: ArrayLike
) -> dict[str, float]:
    """Name → score, for names that are keys of `METRICS`.

    Raises:
        ValueError: no examples, or shapes that do not agree.
    """
    return {name: METRICS[name](labels, predictions) for name in names}
