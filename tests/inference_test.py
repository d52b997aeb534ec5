"""Running over a data set: order, padding rows, which checkpoint is taken."""

import numpy as np
import pytest
import tensorflow as tf

import inference
import training
from data import batching
from modeling import checkpoint, models
from modeling import config as config_lib

CONFIG = config_lib.BertConfig(
    vocab_size=20,
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=16,
)


@pytest.mark.parametrize("rows, batch_size", [(1, 4), (4, 4), (5, 4), (11, 3)])
def test_every_row_once_in_order(rows, batch_size):
    model = models.BertForSequenceClassification(CONFIG, 2)
    rng = np.random.default_rng(rows)
    ids = rng.integers(0, 20, (rows, 6)).astype(np.int32)
    data = {"input_ids": ids, "input_mask": np.ones_like(ids)}
    batches = batching.in_memory_evaluation_batches(data, batch_size)

    def measure(outputs, batch):
        return {"logits": outputs["logits"], "first": batch["input_ids"][:, 0]}

    found = list(
        inference.rows(training.make_strategy(), model, batches, measure, "testing")
    )
    assert len(found) == -(-rows // batch_size)
    first = np.concatenate([row["first"] for row in found])
    np.testing.assert_array_equal(first, ids[:, 0])
    logits = np.concatenate([row["logits"] for row in found])
    expected = model({"input_ids": tf.constant(ids)})["logits"]
    np.testing.assert_allclose(logits, expected, atol=1e-6)


def write(prefix, value):
    """A checkpoint of the model whose weights are all `value`."""
    model = models.BertForSequenceClassification(CONFIG, 2)
    names = checkpoint.weight_names(model)
    weights = {n: np.full(w.shape, value, np.float32) for n, w in names.items()}
    weights["global_step"] = np.int64(value)
    checkpoint.write_tf1(str(prefix), weights)


def test_the_best_checkpoint_comes_before_the_latest_and_the_initial(tmp_path):
    model = models.BertForSequenceClassification(CONFIG, 2)
    out = tmp_path / "out"
    with pytest.raises(ValueError, match="no checkpoint in .* and no --init_checkpo"):
        inference.load_trained(model, str(out))
    write(tmp_path / "initial.ckpt", 3)
    initial = str(tmp_path / "initial.ckpt")
    assert inference.load_trained(model, str(out), initial) == 3
    for step in (5, 7):
        write(out / f"model.ckpt-{step}", step)
    assert inference.load_trained(model, str(out), initial) == 7
    write(out / "best/model.ckpt-5", 5)
    assert inference.load_trained(model, str(out), initial) == 5
    for weight in model.weights:
        assert (weight.numpy() == 5).all()


def test_an_untrained_head_is_said(tmp_path, caplog):
    model = models.BertForSequenceClassification(CONFIG, 2)
    names = checkpoint.weight_names(model)
    weights = {n: w.numpy() for n, w in names.items() if n.startswith("bert/")}
    checkpoint.write_tf1(str(tmp_path / "encoder.ckpt"), weights)
    with caplog.at_level("WARNING", logger="absl"):
        inference.load_trained(
            model, str(tmp_path / "out"), str(tmp_path / "encoder.ckpt")
        )
    (message,) = [record.getMessage() for record in caplog.records]
    assert "output_weights" in message and "untrained head" in message


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
