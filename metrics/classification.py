"""Scores of classifiers, in plain NumPy: the official ones of GLUE (Wang et al. 2018).

Every metric is a function of (labels, predictions), both class numbers [examples].
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
    batches: Iterable[dict[str, np.ndarray]], names: Iterable[str]
) -> dict[str, float]:
    """What eval_results.txt says of a data set.

    Args:
        batches: dicts of arrays: logits [batch, labels], label_ids [batch] and losses
            [batch], of real examples only.
        names: keys of `METRICS`.
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
    predictions = np.argmax(logits, axis=-1)
    return {
        **{f"eval_{name}": METRICS[name](label_ids, predictions) for name in names},
        "eval_loss": float(np.mean(losses, dtype=np.float64)),
        "loss": float(np.mean([np.mean(batch["losses"]) for batch in batches])),
    }
