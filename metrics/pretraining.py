"""Scores of masked LM and next sentence prediction (Devlin et al. 2018, 3.1)."""

import math
from collections.abc import Iterable

import numpy as np


def perplexity(loss: float) -> float:
    """exp of a mean loss in nats a token, of losses of at most 700: never infinite."""
    return math.exp(min(loss, 700))


def scores(batches: Iterable[dict[str, np.ndarray]]) -> dict[str, float]:
    """Adds up what was measured on each example.

    Args:
        batches: dicts of arrays [batch]: masked_lm_loss, masked_lm_correct and
            masked_lm_weight (sums over the predictions of an example), and, if it was
            trained, next_sentence_loss and next_sentence_correct.
    Returns:
        masked_lm_accuracy and masked_lm_loss over all predictions,
        next_sentence_accuracy and next_sentence_loss over all pairs, if measured, and
        loss, the mean over batches of the training loss: the names of the original.
    Raises:
        ValueError: there is no batch.
    """
    batches = list(batches)
    if not batches:
        raise ValueError("there is nothing to evaluate: the data set is empty")
    total = {
        key: np.concatenate([batch[key] for batch in batches]).astype(np.float64)
        for key in batches[0]
    }
    predictions = total["masked_lm_weight"].sum() + 1e-5
    losses = [
        batch["masked_lm_loss"].sum() / (batch["masked_lm_weight"].sum() + 1e-5)
        for batch in batches
    ]
    results = {
        "masked_lm_accuracy": float(total["masked_lm_correct"].sum() / predictions),
        "masked_lm_loss": float(total["masked_lm_loss"].sum() / predictions),
    }
    if "next_sentence_loss" in total:
        losses = [
            loss + batch["next_sentence_loss"].mean()
            for loss, batch in zip(losses, batches, strict=True)
        ]
        results |= {
            "next_sentence_accuracy": float(total["next_sentence_correct"].mean()),
            "next_sentence_loss": float(total["next_sentence_loss"].mean()),
        }
    return {"loss": float(np.mean(losses)), **results}
