"""The loop against the original's training, and against itself on two devices."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import training
from data import batching, records
from modeling import checkpoint, losses, models, optimization
from modeling import config as config_lib
from tests import scripts


def without_dropout(path):
    """The config in a file, with both rates of dropout at 0."""
    config = config_lib.BertConfig.from_json_file(path)
    return dataclasses.replace(
        config, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )


def test_the_loop_repeats_the_originals_training(golden):
    folder = golden / "tiny_tf1"
    inputs = np.load(folder / "expected.npz")
    trace = np.load(folder / "training_trace.npz")
    strategy = training.make_strategy()
    model = models.BertForPretraining(without_dropout(folder / "bert_config.json"))
    checkpoint.load(model, folder / "bert_model.ckpt")
    schedule = optimization.warmup_then_decay(
        float(trace["init_lr"]),
        int(trace["num_train_steps"]),
        int(trace["num_warmup_steps"]),
    )
    optimizer = training.make_optimizer(strategy, model, schedule)
    trainer = training.Trainer(strategy, model, optimizer, losses.PRETRAINING, 0)
    names = records.pretraining_spec(1, 1).keys()
    batch = {name: tf.constant(inputs[name]) for name in names}
    iterator = iter(tf.data.Dataset.from_tensors(batch).repeat())
    for expected in trace["losses_before_each_step"]:
        results = trainer.update(iterator)
        parts = [results[n] for n in ("loss", "masked_lm_loss", "next_sentence_loss")]
        np.testing.assert_allclose(parts, expected, atol=1e-4)
        assert int(results["tokens"]) == inputs["input_mask"].sum()
    for name, weight in checkpoint.weight_names(model).items():
        # The key's bias has no gradient but rounding, divided by itself in Adam.
        if not name.endswith("key/bias"):
            np.testing.assert_allclose(
                weight.numpy(), trace[f"param/{name}"], atol=1e-4, err_msg=name
            )


# Logical devices must be made before anything touches a device: a process of its own.
TWO_DEVICES = """
import sys
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
half = tf.config.LogicalDeviceConfiguration()
tf.config.set_logical_device_configuration(cpu, [half, half])

import pathlib
import training
from tests import training_test

golden, folder = map(pathlib.Path, sys.argv[1:])
for name, strategy in (
    ("one", training.make_strategy()),
    ("two", tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])),
):
    np.savez(folder / f"{name}.npz", **training_test.train_ten_steps(golden, strategy))
"""


def train_ten_steps(golden, strategy):
    """Weights after ten updates whose predictions lie unevenly over the batch."""
    config = without_dropout(golden / "tiny_tf1/bert_config.json")
    with strategy.scope():
        model = models.BertForPretraining(config)
    checkpoint.load(model, golden / "tiny_tf1/bert_model.ckpt")
    optimizer = training.make_optimizer(
        strategy, model, optimization.warmup_then_decay(1e-3, 20, 3)
    )
    trainer = training.Trainer(strategy, model, optimizer, losses.PRETRAINING, 1)
    file = str(golden / "tiny_tf1_runs/pretraining/a.tfrecord")

    def uneven(batch):
        weights = batch["masked_lm_weights"]
        drawn = tf.random.stateless_uniform(tf.shape(weights), [1, 2])
        first_half = tf.cast(tf.range(8) < 4, tf.float32)[:, tf.newaxis]
        kept = tf.cast(drawn > 0.6 * first_half, tf.float32)
        return batch | {"masked_lm_weights": weights * kept}

    batches = batching.FileBatches(
        [file], records.pretraining_spec(64, 10), 8, 1, uneven
    )
    batches = strategy.experimental_distribute_dataset(batches.starting_at(0))
    iterator = iter(batches)
    for _ in range(10):
        trainer.update(iterator)
    names = checkpoint.weight_names(model)
    return {name.replace("/", "|"): weight.numpy() for name, weight in names.items()}


def test_two_devices_train_as_one(golden, tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", TWO_DEVICES, golden, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        cwd=scripts.ROOT,
    )
    assert result.returncode == 0, result.stderr
    one, two = (np.load(tmp_path / f"{name}.npz") for name in ("one", "two"))
    for name in one.files:
        if not name.endswith("key|bias"):
            np.testing.assert_allclose(two[name], one[name], atol=2e-6, err_msg=name)


def test_without_a_tpu_one_sentence():
    with pytest.raises(ValueError, match="--use_tpu: no TPU answers as 'local'"):
        training.make_strategy(use_tpu=True)
