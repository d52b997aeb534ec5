"""BertForQuestionAnswering: the numbers of the original and of transformers."""

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

from data import record_reading, records
from modeling import checkpoint, huggingface, losses, models
from modeling import config as config_lib
from tests.small_models import close

INPUTS = ("input_ids", "input_mask", "segment_ids")
OUTPUTS = ("start_logits", "end_logits")


def load(path, config):
    model = models.BertForQuestionAnswering(config)
    report = checkpoint.load(model, str(path))
    assert report.mismatched == report.unused == []
    # It plays no part; models of transformers lack it, those of the original have it.
    assert all(name.startswith("bert/pooler/") for name in report.fresh)
    return model


def outputs_of(model, batch):
    batch = {name: tf.constant(batch[name], tf.int32) for name in INPUTS}
    return model(batch)


@pytest.fixture
def theirs(golden):
    """Folder of a model of transformers, and its inputs and outputs."""
    path = golden / "hf_tiny" / "question_answering"
    return path, np.load(path / "expected.npz")


def test_logits_of_transformers(theirs):
    path, expected = theirs
    outputs = outputs_of(load(path, checkpoint.read_config(path)), expected)
    for name in OUTPUTS:
        close(outputs[name], expected[name], 2e-5)


def test_written_for_transformers_and_read_again(theirs, tmp_path):
    path, expected = theirs
    model = load(path, checkpoint.read_config(path))
    weights = {n: v.numpy() for n, v in checkpoint.weight_names(model).items()}
    huggingface.write(tmp_path, weights, model.config)
    source, written = (
        safetensors.numpy.load_file(folder / "model.safetensors")
        for folder in (path, tmp_path)
    )
    more = {"bert.pooler.dense.weight", "bert.pooler.dense.bias"}
    assert written.keys() == source.keys() | more
    for name, tensor in source.items():
        np.testing.assert_array_equal(written[name], tensor, strict=True)
    outputs = outputs_of(load(tmp_path, checkpoint.read_config(tmp_path)), expected)
    for name in OUTPUTS:
        close(outputs[name], expected[name], 2e-5)


@pytest.mark.parametrize(
    "run, records_file, is_training",
    [("squad_v1", "eval", False), ("squad_v2", "train", True)],
)
def test_logits_and_loss_of_the_original(golden, run, records_file, is_training):
    folder = golden / "tiny_tf1_runs" / run
    config = config_lib.BertConfig.from_json_file(golden / "tiny_tf1/bert_config.json")
    model = load(folder, config)
    spec = records.squad_spec(64, is_training)
    rows = record_reading.read_all([str(folder / f"{records_file}.tf_record")], spec)
    batch = {name: tf.constant(values[:40]) for name, values in rows.items()}
    outputs = model(batch)
    expected = np.load(folder / "expected_first40.npz")
    np.testing.assert_array_equal(batch["unique_ids"], expected["unique_ids"])
    for name in OUTPUTS:
        close(outputs[name], expected[name], 2e-5)
    if is_training:
        numerator = losses.SPAN.numerators(outputs, batch)["loss"]
        loss = numerator / losses.SPAN.denominators(batch)["loss"]
        close(loss, expected["loss"], 2e-5)


def test_the_loss_of_no_answer_falls_as_position_0_rises():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 3, 7)).astype(np.float32)
    batch = {
        name: np.zeros(3, np.int32) for name in ("start_positions", "end_positions")
    }

    def loss(change):
        start, end = logits + change * (np.arange(7) == 0)
        outputs = {"start_logits": start, "end_logits": end}
        return losses.span_losses(outputs, batch).numpy()

    assert np.all(loss(1.0) < loss(0.0))
    assert np.all(loss(0.0) < loss(-1.0))
    # By hand: the mean of the two cross-entropies over all positions.
    exponentials = np.exp(logits.astype(float))
    each = -np.log(exponentials[..., 0] / exponentials.sum(-1))
    np.testing.assert_allclose(loss(0.0), each.mean(0), rtol=1e-5)
