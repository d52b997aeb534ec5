"""Losses against the NumPy reference, whole batches and batches cut into parts."""

import numpy as np
import pytest
import tensorflow as tf

from modeling import losses, models
from tests import numpy_bert, small_models
from tests.small_models import close


def total(objective, outputs, batch):
    denominators = objective.denominators(batch)
    numerators = objective.numerators(outputs, batch)
    assert denominators.keys() == numerators.keys()
    return {name: numerators[name] / denominators[name] for name in numerators}


def random_outputs(seed, batch_size=3):
    rng = np.random.default_rng(seed)
    return {
        "masked_lm_logits": rng.normal(0, 3, (batch_size, 4, 29)).astype(np.float32),
        "next_sentence_logits": rng.normal(0, 3, (batch_size, 2)).astype(np.float32),
        "logits": rng.normal(0, 3, (batch_size, 2)).astype(np.float32),
    }


def part(values, rows):
    return {name: tf.constant(value[rows]) for name, value in values.items()}


@pytest.mark.parametrize("seed", range(5))
def test_pretraining_loss(seed):
    config = small_models.config()
    batch, outputs = small_models.batch(config, seed), random_outputs(seed)
    actual = total(losses.PRETRAINING, outputs, small_models.tensors(batch))
    weights = batch["masked_lm_weights"]
    per_word = numpy_bert.cross_entropy(
        outputs["masked_lm_logits"], batch["masked_lm_ids"]
    )
    expected = (per_word * weights).sum() / (weights.sum() + 1e-5)
    close(actual["masked_lm_loss"], expected)
    labels = batch["next_sentence_labels"][:, 0]
    per_pair = numpy_bert.cross_entropy(outputs["next_sentence_logits"], labels)
    close(actual["next_sentence_loss"], per_pair.mean())
    alone = total(losses.MASKED_LM, outputs, small_models.tensors(batch))
    assert alone == {"masked_lm_loss": actual["masked_lm_loss"]}


def test_without_next_sentence_loss_its_head_has_no_gradient():
    model = models.BertForPretraining(small_models.config())
    small_models.randomize(model, 0)
    batch = small_models.tensors(small_models.batch(model.config, 0))
    weights = small_models.variables(model)
    gradients = {}
    for objective in (losses.MASKED_LM, losses.PRETRAINING):
        with tf.GradientTape() as tape:
            parts = total(objective, model(batch), batch)
            loss = tf.add_n(list(parts.values()))
        gradients[objective] = dict(
            zip(weights, tape.gradient(loss, list(weights.values())), strict=True)
        )
    reached = {n for n, g in gradients[losses.MASKED_LM].items() if g is not None}
    head = {n for n in weights if "seq_relationship" in n or "pooler" in n}
    assert len(head) == 4 and reached == weights.keys() - head
    assert all(tf.reduce_any(gradients[losses.PRETRAINING][n] != 0) for n in head)


def test_a_batch_without_predictions_has_no_masked_lm_loss():
    batch, outputs = small_models.batch(small_models.config(), 0), random_outputs(0)
    batch["masked_lm_weights"][:] = 0
    actual = total(losses.PRETRAINING, outputs, small_models.tensors(batch))
    assert actual["masked_lm_loss"] == 0
    assert actual["next_sentence_loss"] > 0


@pytest.mark.parametrize("seed", range(5))
def test_classification_loss_counts_real_examples_only(seed):
    batch = small_models.batch(small_models.config(), seed, batch_size=5)
    outputs = random_outputs(seed, 5)
    per_example = numpy_bert.cross_entropy(outputs["logits"], batch["label_ids"])
    close(losses.classification_losses(outputs, batch), per_example)
    actual = total(losses.CLASSIFICATION, outputs, small_models.tensors(batch))
    close(actual["loss"], per_example.mean())
    batch["is_real_example"] = np.array([1, 1, 0, 1, 0], np.int32)
    actual = total(losses.CLASSIFICATION, outputs, small_models.tensors(batch))
    close(actual["loss"], per_example[[0, 1, 3]].mean())


@pytest.mark.parametrize("shape", [[2], [2, 3], [2, 3, 5]])
def test_every_example_weighs_one_where_none_fills_up(shape):
    weights = losses.example_weights({"input_ids": tf.zeros(shape, tf.int32)})
    assert weights.dtype == tf.float32 and weights.numpy().tolist() == [1, 1]


WEIGHTED = losses.weighted_classification([0.25, 3.0])
REAL = np.array([1, 1, 0, 1, 0], np.int32)


@pytest.mark.parametrize("seed", range(5))
def test_class_weights(seed):
    batch = small_models.batch(small_models.config(), seed, batch_size=5)
    outputs = random_outputs(seed, 5)
    batch["label_ids"][:2] = 0, 1
    batch["is_real_example"] = REAL
    per_example = numpy_bert.cross_entropy(outputs["logits"], batch["label_ids"])
    weights = np.where(batch["label_ids"] == 1, 3.0, 0.25)
    actual = total(WEIGHTED, outputs, small_models.tensors(batch))
    expected = np.average(per_example, weights=weights * REAL)
    close(actual["loss"], expected, 1e-4)
    # Equal weights are no weights, and what weighs nothing does not count.
    plain = total(losses.CLASSIFICATION, outputs, small_models.tensors(batch))
    equal = losses.weighted_classification([2.0, 2.0])
    actual = total(equal, outputs, small_models.tensors(batch))
    close(actual["loss"], plain["loss"], 1e-4)
    nothing = losses.weighted_classification([0.0, 0.0])
    assert total(nothing, outputs, small_models.tensors(batch))["loss"] == 0


@pytest.mark.parametrize("seed", range(5))
def test_loss_of_several_labels(seed):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 3, (5, 4)).astype(np.float32)
    labels = rng.integers(0, 2, (5, 4)).astype(np.int32)
    batch = small_models.batch(small_models.config(), seed, batch_size=5)
    batch |= {"label_ids": labels, "is_real_example": REAL}
    probabilities = 1 / (1 + np.exp(-logits.astype(np.float64)))
    close(losses.sigmoid(tf.constant(logits)), probabilities)
    right = np.where(labels == 1, probabilities, 1 - probabilities)
    per_example = -np.log(right).mean(axis=1)
    close(
        losses.multi_label_losses({"logits": tf.constant(logits)}, batch), per_example
    )
    actual = total(losses.MULTI_LABEL, {"logits": logits}, small_models.tensors(batch))
    close(actual["loss"], per_example[REAL == 1].mean())


@pytest.mark.parametrize("seed", range(5))
def test_regression_loss(seed):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 3, (5, 1)).astype(np.float32)
    labels = rng.normal(0, 3, 5).astype(np.float32)
    batch = small_models.batch(small_models.config(), seed, batch_size=5)
    batch |= {"label_ids": labels, "is_real_example": REAL}
    per_example = (logits[:, 0].astype(np.float64) - labels) ** 2
    close(losses.regression_losses({"logits": logits}, batch), per_example, 1e-4)
    actual = total(losses.REGRESSION, {"logits": logits}, small_models.tensors(batch))
    close(actual["loss"], per_example[REAL == 1].mean(), 1e-4)


OBJECTIVES = {
    "pretraining": losses.PRETRAINING,
    "classification": losses.CLASSIFICATION,
    "weighted": WEIGHTED,
    "several labels": losses.MULTI_LABEL,
    "regression": losses.REGRESSION,
}


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_parts_of_a_batch_add_up(kind):
    """Parts with unequal weights, as micro-batches and replicas have."""
    objective = OBJECTIVES[kind]
    batch = small_models.batch(small_models.config(), 0, batch_size=6)
    if kind == "several labels":
        batch["label_ids"] = np.eye(2, dtype=np.int32)[batch["label_ids"]]
    if kind == "regression":
        batch["label_ids"] = batch["label_ids"].astype(np.float32)
    batch["masked_lm_weights"][:2] = 0
    batch["is_real_example"] = np.array([1, 1, 1, 1, 1, 0], np.int32)
    outputs = random_outputs(0, 6)
    whole = total(objective, part(outputs, slice(6)), part(batch, slice(6)))
    parts = [slice(0, 2), slice(2, 3), slice(3, 6)]
    for name, expected in whole.items():
        top = sum(
            objective.numerators(part(outputs, rows), part(batch, rows))[name]
            for rows in parts
        )
        # The 1e-5 of the masked LM is added once a part.
        bottom = sum(objective.denominators(part(batch, rows))[name] for rows in parts)
        close(top / bottom, expected, 1e-4)
