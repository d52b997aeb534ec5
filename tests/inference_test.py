"""Running models over data sets: every row once, in order."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import inference
import strategies
import training
from data import batching
from modeling import models
from tests.small_models import SMALLEST as CONFIG


@pytest.mark.parametrize("rows, batch_size", [(1, 4), (4, 4), (5, 4), (11, 3)])
def test_every_row_once_in_order(rows, batch_size):
    model = models.BertForSequenceClassification(CONFIG, 2)
    rng = np.random.default_rng(rows)
    ids = rng.integers(0, 20, (rows, 6)).astype(np.int32)
    data = {"input_ids": ids, "input_mask": np.ones_like(ids)}
    batches = batching.in_memory_evaluation_batches(data, batch_size)

    def measure(outputs, batch):
        return {"logits": outputs["logits"], "first": batch["input_ids"][:, 0]}

    found = list(inference.rows(strategies.make(), model, batches, measure, "testing"))
    assert len(found) == -(-rows // batch_size)
    first = np.concatenate([row["first"] for row in found])
    np.testing.assert_array_equal(first, ids[:, 0])
    logits = np.concatenate([row["logits"] for row in found])
    expected = model({"input_ids": tf.constant(ids)})["logits"]
    np.testing.assert_allclose(logits, expected, atol=1e-6)


@pytest.mark.parametrize("batch_size", [1, 2, 5])
def test_sequences_in_their_order_without_padding_to_a_maximum(batch_size):
    shapes = []

    def forward(batch):
        ids = batch["input_ids"]
        tf.py_function(lambda ids: shapes.append(tuple(ids.shape)), [ids], [])
        return tf.where(batch["input_mask"] > 0, ids, -1)

    lengths = [3, 1, 4, 1, 5]
    rows = [([i] * n, [0] * n) for i, n in enumerate(lengths)]
    results = inference.Sequences(forward, batch_size)(rows)
    for number, (length, result) in enumerate(zip(lengths, results, strict=True)):
        assert result.tolist() == [number] * length + [-1] * (len(result) - length)
    in_order = {
        1: [(1, 1), (1, 1), (1, 3), (1, 4), (1, 5)],
        2: [(2, 1), (2, 4), (1, 5)],
        5: [(5, 5)],
    }
    assert shapes == in_order[batch_size]
    assert inference.Sequences(forward, batch_size)([]) == []


def test_models_of_finished_runs_compute_in_float32():
    policy = keras.config.dtype_policy()
    training.set_precision("bfloat16")
    try:
        with inference.models_in("float32"):
            model = models.BertForSequenceClassification(CONFIG, 2)
        assert keras.config.dtype_policy().name == "mixed_bfloat16"
    finally:
        keras.config.set_dtype_policy(policy)
    outputs = model({"input_ids": tf.constant([[1, 2]])})
    assert outputs["sequence_output"].dtype == tf.float32
