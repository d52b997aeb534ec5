"""The NumPy reference equals the original; only then may it judge others."""

import json
import types

import numpy as np
import pytest
import tensorflow as tf

from tests import numpy_bert


def read(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    names = reader.get_variable_to_shape_map()
    return {name: reader.get_tensor(name).astype(np.float64) for name in names}


@pytest.fixture(scope="module")
def config(golden):
    values = json.loads((golden / "tiny_tf1" / "bert_config.json").read_text())
    return types.SimpleNamespace(**values, layer_norm_eps=1e-12)


@pytest.fixture(scope="module")
def weights(golden):
    return read(golden / "tiny_tf1" / "bert_model.ckpt")


@pytest.fixture(scope="module")
def expected(golden):
    return dict(np.load(golden / "tiny_tf1" / "expected.npz"))


def close(actual, expected, tolerance=1e-5):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


def test_encoder(weights, config, expected):
    actual = numpy_bert.encode(weights, config, expected)
    close(actual["encoder_outputs"][0], expected["embedding_output"])
    close(actual["encoder_outputs"][1], expected["encoder_layer_0"])
    close(actual["encoder_outputs"][2], expected["encoder_layer_1"])
    close(actual["sequence_output"], expected["sequence_output"])
    close(actual["pooled_output"], expected["pooled_output"])


def test_default_mask_and_segments(weights, config, expected):
    batch = {"input_ids": expected["input_ids"]}
    actual = numpy_bert.encode(weights, config, batch)
    names = ("sequence_output", "pooled_output")
    for name in names:
        close(actual[name], expected[f"{name}_without_mask_and_segments"])


def test_a_mask_of_zeros(weights, config, expected):
    batch = {name: expected[name][:1] for name in ("input_ids", "segment_ids")}
    batch["input_mask"] = np.zeros_like(batch["input_ids"])
    actual = numpy_bert.encode(weights, config, batch)["sequence_output"]
    # Adding -10000 costs the original's float32 about 1e-3 in the scores.
    close(actual, expected["sequence_output_all_zero_mask_row0"], 2e-3)


def test_pretraining_heads_and_losses(weights, config, expected):
    actual = numpy_bert.pretraining(weights, config, expected)
    log_probs = numpy_bert.log_softmax(actual["masked_lm_logits"]).reshape(20, 100)
    close(log_probs, expected["masked_lm_log_probs"], 2e-5)
    log_probs = numpy_bert.log_softmax(actual["next_sentence_logits"])
    close(log_probs, expected["next_sentence_log_probs"])
    close(actual["masked_lm_losses"].ravel(), expected["masked_lm_example_loss"], 2e-5)
    close(actual["next_sentence_losses"], expected["next_sentence_example_loss"])
    close(actual["masked_lm_loss"], expected["masked_lm_loss"])
    close(actual["next_sentence_loss"], expected["next_sentence_loss"])
    close(actual["loss"], expected["total_loss"])


def test_classifier(golden, config):
    folder = golden / "tiny_tf1_runs" / "classifier_mrpc"
    records = [
        tf.train.Example.FromString(record.numpy()).features.feature
        for record in tf.data.TFRecordDataset(str(folder / "eval.tf_record"))
    ]
    batch = {
        name: np.array([record[name].int64_list.value for record in records])
        for name in ("input_ids", "input_mask", "segment_ids", "label_ids")
    }
    batch["label_ids"] = batch["label_ids"][:, 0]
    actual = numpy_bert.classify(read(folder / "model.ckpt-12"), config, batch)
    expected = np.load(folder / "expected_eval.npz")
    close(actual["logits"], expected["logits"])
    close(numpy_bert.softmax(actual["logits"]), expected["probabilities"])
    close(actual["losses"], expected["per_example_loss"])
    close(actual["loss"], expected["loss"])


def test_learning_rates(golden):
    rows = json.loads((golden / "optimizer.json").read_text())["learning_rate"]
    assert len(rows) == 8
    for row in rows:
        for step, expected in zip(row["steps"], row["learning_rates"], strict=True):
            actual = numpy_bert.learning_rate(
                step, row["init_lr"], row["num_train_steps"], row["num_warmup_steps"]
            )
            # Near the end, the original subtracts two equal float32 numbers.
            assert actual == pytest.approx(expected, abs=1e-6 * row["init_lr"])


@pytest.mark.parametrize("index", [0, 1])
def test_optimizer_steps(golden, index):
    run = json.loads((golden / "optimizer.json").read_text())["runs"][index]
    adam = numpy_bert.Adam(run["initial_params"])
    assert len(run["steps"]) == 5
    for step in run["steps"]:
        rate = numpy_bert.learning_rate(
            step["step_before"],
            run["init_lr"],
            run["num_train_steps"],
            run["num_warmup_steps"],
        )
        assert rate == pytest.approx(step["learning_rate"], rel=1e-6)
        gradients = {name: np.array(g) for name, g in step["grads"].items()}
        gradients, norm = numpy_bert.clip(gradients)
        assert norm == pytest.approx(step["global_norm"], rel=1e-6)
        adam.apply(gradients, rate)
        for kind in ("params", "adam_m", "adam_v"):
            actual = {"params": adam.weights, "adam_m": adam.m, "adam_v": adam.v}[kind]
            assert actual.keys() == step[kind].keys()
            for name, values in step[kind].items():
                close(actual[name], values, 1e-6)


def test_adam_alone(golden):
    run = json.loads((golden / "optimizer.json").read_text())[
        "bare_adam_no_decay_lr_0.2"
    ]
    adam = numpy_bert.Adam({"w": run["initial"]}, weight_decay=0)
    trace = {row["after_steps"]: row["w"] for row in run["trace"]}
    for step in range(1, 101):
        difference = adam.weights["w"] - run["target"]
        adam.apply({"w": 2 * difference / len(difference)}, 0.2)
        if step in trace:
            # A hundred steps of this size sum up the original's float32 rounding.
            close(adam.weights["w"], trace[step], 1e-6 if step < 10 else 1e-5)
