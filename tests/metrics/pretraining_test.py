"""Pre-training scores, against sums written out."""

import numpy as np
import pytest

from metrics import pretraining


def test_predictions_are_weighted_alike_and_batches_too():
    # Two batches of unequal size, examples with unequal numbers of predictions.
    batches = [
        {
            "masked_lm_loss": np.array([3.0, 1.0]),
            "masked_lm_correct": np.array([1.0, 0.0]),
            "masked_lm_weight": np.array([3.0, 1.0]),
            "next_sentence_loss": np.array([0.5, 1.5]),
            "next_sentence_correct": np.array([1.0, 0.0]),
        },
        {
            "masked_lm_loss": np.array([8.0]),
            "masked_lm_correct": np.array([2.0]),
            "masked_lm_weight": np.array([4.0]),
            "next_sentence_loss": np.array([4.0]),
            "next_sentence_correct": np.array([1.0]),
        },
    ]
    scores = pretraining.scores(iter(batches))
    assert scores == pytest.approx(
        {
            "masked_lm_loss": 12 / 8,
            "masked_lm_accuracy": 3 / 8,
            "next_sentence_loss": 6 / 3,
            "next_sentence_accuracy": 2 / 3,
            "loss": ((4 / 4 + 1) + (8 / 4 + 4)) / 2,
        },
        rel=1e-5,
    )


def test_without_next_sentences():
    batches = [
        {
            "masked_lm_loss": np.array(losses),
            "masked_lm_correct": np.array(correct),
            "masked_lm_weight": np.array(weights),
        }
        for losses, correct, weights in (
            ([3.0, 1.0], [1.0, 0.0], [3.0, 1.0]),
            ([8.0], [2.0], [4.0]),
        )
    ]
    assert pretraining.scores(batches) == pytest.approx(
        {
            "masked_lm_loss": 12 / 8,
            "masked_lm_accuracy": 3 / 8,
            "loss": (4 / 4 + 8 / 4) / 2,
        },
        rel=1e-5,
    )


def test_nothing_to_evaluate():
    with pytest.raises(ValueError, match="empty"):
        pretraining.scores([])


def test_perplexity_is_finite():
    assert pretraining.perplexity(np.log(7.0)) == pytest.approx(7)
    assert pretraining.perplexity(1e9) < float("inf")
