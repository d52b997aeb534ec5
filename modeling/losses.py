"""Objectives: sums of weighted losses and what to divide them by.

The two parts of an objective are apart because a global batch may be cut into replicas
and micro-batches with unequal weights: the loss is (sum of the numerators of all parts)
/ (sum of the denominators of all parts), whatever the cut.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf


class Objective(NamedTuple):
    """A loss that is a sum of weighted means.

    Attributes:
        denominators: function of a batch; dict of name → scalar, float32. It must not
            depend on the model.
        numerators: function of (model outputs, batch); dict with the same names →
            scalar, float32. The loss is the sum over names of numerator / denominator.
    """

    denominators: Callable
    numerators: Callable


def cross_entropy(logits, labels):
    """-log softmax(logits)[labels].

    Args:
        logits: float32, [..., classes].
        labels: int32, [...].
    Returns:
        float32, [...].
    """
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def softmax(logits):
    """Class probabilities of logits, float32, [..., classes]."""
    return tf.nn.softmax(logits)


def sigmoid(logits):
    """Probabilities of each label by itself, float32, [..., labels]."""
    return tf.sigmoid(logits)


def example_weights(batch):
    """1 for real examples, 0 for rows that only fill up a batch; float32, [batch]."""
    if "is_real_example" in batch:
        return tf.cast(batch["is_real_example"], tf.float32)
    return tf.ones(tf.shape(batch["input_ids"])[:1])


def masked_lm_losses(outputs, batch):
    """Loss of each prediction; float32, [batch, max_predictions_per_seq]."""
    return cross_entropy(outputs["masked_lm_logits"], batch["masked_lm_ids"])


def next_sentence_losses(outputs, batch):
    """Loss of each pair; float32, [batch]."""
    labels = batch["next_sentence_labels"][:, 0]
    return cross_entropy(outputs["next_sentence_logits"], labels)


def _masked_lm_denominators(batch):
    # 1e-5 as in the original: a batch without any prediction has loss 0.
    return {"masked_lm_loss": tf.reduce_sum(batch["masked_lm_weights"]) + 1e-5}


def _masked_lm_numerators(outputs, batch):
    losses = masked_lm_losses(outputs, batch) * batch["masked_lm_weights"]
    return {"masked_lm_loss": tf.reduce_sum(losses)}


# The mean over all predictions of the batch: "No NSP" of section 5.1.
MASKED_LM = Objective(_masked_lm_denominators, _masked_lm_numerators)


def _next_sentence_numerator(outputs, batch):
    return tf.reduce_sum(next_sentence_losses(outputs, batch) * example_weights(batch))


# Devlin et al. 2018, section 3.1: the sum of the mean masked LM loss over all
# predictions of the batch and the mean next sentence loss.
PRETRAINING = Objective(
    denominators=lambda batch: {
        **_masked_lm_denominators(batch),
        "next_sentence_loss": tf.reduce_sum(example_weights(batch)),
    },
    numerators=lambda outputs, batch: {
        **_masked_lm_numerators(outputs, batch),
        "next_sentence_loss": _next_sentence_numerator(outputs, batch),
    },
)


def _mean_over_examples(losses):
    """Objective: the mean over the real examples.

    Args:
        losses: function of (model outputs, batch); float32, [batch].
    """
    return Objective(
        denominators=lambda batch: {"loss": tf.reduce_sum(example_weights(batch))},
        numerators=lambda outputs, batch: {
            "loss": tf.reduce_sum(losses(outputs, batch) * example_weights(batch))
        },
    )


def classification_losses(outputs, batch):
    """Loss of each example; float32, [batch]."""
    return cross_entropy(outputs["logits"], batch["label_ids"])


CLASSIFICATION = _mean_over_examples(classification_losses)


def span_losses(outputs, batch):
    """Mean of the losses of start and end, over all positions; float32, [batch]."""
    start = cross_entropy(outputs["start_logits"], batch["start_positions"])
    end = cross_entropy(outputs["end_logits"], batch["end_positions"])
    return (start + end) / 2


SPAN = _mean_over_examples(span_losses)


def token_losses(outputs, batch):
    """Loss of each token, 0 where `label_mask` is 0; float32, [batch, seq_length]."""
    losses = cross_entropy(outputs["logits"], batch["label_ids"])
    return losses * tf.cast(batch["label_mask"], tf.float32)


# The mean over the labelled tokens of the batch. 1e-5: a batch without any has loss 0.
TOKENS = Objective(
    denominators=lambda batch: {
        "loss": tf.reduce_sum(tf.cast(batch["label_mask"], tf.float32)) + 1e-5
    },
    numerators=lambda outputs, batch: {
        "loss": tf.reduce_sum(token_losses(outputs, batch))
    },
)


def weighted_classification(class_weights):
    """CLASSIFICATION where examples of some classes weigh more than others.

    Args:
        class_weights: [classes], of the loss of an example by its label.
    """
    class_weights = tf.constant(class_weights, tf.float32)

    def weights(batch):
        of_labels = tf.gather(class_weights, batch["label_ids"])
        return of_labels * example_weights(batch)

    return Objective(
        # 1e-5: a batch of classes without weight has loss 0.
        denominators=lambda batch: {"loss": tf.reduce_sum(weights(batch)) + 1e-5},
        numerators=lambda outputs, batch: {
            "loss": tf.reduce_sum(
                classification_losses(outputs, batch) * weights(batch)
            )
        },
    )


def multi_label_losses(outputs, batch):
    """Mean over the labels of the losses of yes or no to each; float32, [batch]."""
    labels = tf.cast(batch["label_ids"], tf.float32)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, outputs["logits"])
    return tf.reduce_mean(losses, axis=-1)


MULTI_LABEL = _mean_over_examples(multi_label_losses)


def regression_losses(outputs, batch):
    """Squared error of each example; float32, [batch]."""
    return tf.square(outputs["logits"][:, 0] - batch["label_ids"])


REGRESSION = _mean_over_examples(regression_losses)


def _is_best(logits, labels):
    best = tf.argmax(logits, axis=-1, output_type=tf.int32)
    return tf.cast(tf.equal(best, labels), tf.float32)


def masked_lm_measures(outputs, batch):
    """What metrics.pretraining adds up: dict of name → float32, [batch]."""
    weights = batch["masked_lm_weights"]
    correct = _is_best(outputs["masked_lm_logits"], batch["masked_lm_ids"])
    return {
        "masked_lm_loss": tf.reduce_sum(masked_lm_losses(outputs, batch) * weights, 1),
        "masked_lm_correct": tf.reduce_sum(correct * weights, 1),
        "masked_lm_weight": tf.reduce_sum(weights, 1),
    }


def pretraining_measures(outputs, batch):
    """The same, with those of next sentence prediction."""
    labels = batch["next_sentence_labels"][:, 0]
    return {
        **masked_lm_measures(outputs, batch),
        "next_sentence_loss": next_sentence_losses(outputs, batch),
        "next_sentence_correct": _is_best(outputs["next_sentence_logits"], labels),
    }
