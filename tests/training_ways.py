"""Trains a tiny BERT for ten updates in one of several ways that must come out equal.

    python -m tests.training_ways GOLDEN OUTPUT WAY...

Run as a process of its own: devices are divided, and clusters joined, before anything
else. Writes OUTPUT/WAY.npz with the weights, and the losses before each update.
"""

import dataclasses
import os
import pathlib
import sys

import numpy as np
import tensorflow as tf

import strategies
import trainer as trainer_lib
import training
from data import batching, records
from modeling import checkpoint, losses, models, optimization
from modeling import config as config_lib

# Name → flags of the strategy, and of the execution.
ONE_DEVICE = {
    "one": {},
    "four_parts": {"gradient_accumulation_steps": 4},
    "jit": {"jit_compile": True},
    "jit_two_parts": {"jit_compile": True, "gradient_accumulation_steps": 2},
}
TWO_DEVICES = {
    "two": {},
    "two_in_two_parts": {"gradient_accumulation_steps": 2},
    "two_jit": {"jit_compile": True},
}
WORKERS = {"workers": {}, "workers_in_two_parts": {"gradient_accumulation_steps": 2}}


def without_dropout(path):
    """The config in a file, with both rates of dropout at 0."""
    config = config_lib.BertConfig.from_json_file(path)
    return dataclasses.replace(
        config, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )


def uneven(batch):
    """The batch with predictions that lie unevenly over the examples."""
    weights = batch["masked_lm_weights"]
    drawn = tf.random.stateless_uniform(tf.shape(weights), [1, 2])
    first_half = tf.cast(tf.range(8) < 4, tf.float32)[:, tf.newaxis]
    kept = tf.cast(drawn > 0.6 * first_half, tf.float32)
    return batch | {"masked_lm_weights": weights * kept}


def _train(golden, strategy, execution, schedule, batches, updates):
    config = without_dropout(golden / "tiny_tf1/bert_config.json")
    with strategy.scope():
        model = models.BertForPretraining(config)
    checkpoint.load(model, golden / "tiny_tf1/bert_model.ckpt")
    optimizer = training.make_optimizer(strategy, model, schedule)
    trainer = trainer_lib.Trainer(
        strategy,
        model,
        optimizer,
        losses.PRETRAINING,
        1,
        trainer_lib.Execution(**execution),
    )
    iterator = iter(strategy.experimental_distribute_dataset(batches))
    results = [trainer.update(iterator) for _ in range(updates)]
    names = ("loss", "masked_lm_loss", "next_sentence_loss")
    weights = checkpoint.weight_names(model)
    return {
        "losses": np.array([[r[name] for name in names] for r in results]),
        **{name.replace("/", "|"): w.numpy() for name, w in weights.items()},
    }


def train_unevenly(golden, strategy, execution):
    """Ten updates on records whose predictions lie unevenly over the batch."""
    file = str(golden / "tiny_tf1_runs/pretraining/a.tfrecord")
    batches = batching.FileBatches(
        [file], records.pretraining_spec(64, 10), 8, 1, transform=uneven
    )
    schedule = optimization.warmup_then_decay(1e-3, 20, 3)
    return _train(golden, strategy, execution, schedule, batches.starting_at(0), 10)


def train_as_the_original(golden, strategy, execution):
    """The updates of golden/tiny_tf1/training_trace.npz."""
    inputs = np.load(golden / "tiny_tf1/expected.npz")
    trace = np.load(golden / "tiny_tf1/training_trace.npz")
    schedule = optimization.warmup_then_decay(
        float(trace["init_lr"]),
        int(trace["num_train_steps"]),
        int(trace["num_warmup_steps"]),
    )
    names = records.pretraining_spec(1, 1).keys()
    batch = {name: tf.constant(inputs[name]) for name in names}
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.DATA
    )
    batches = tf.data.Dataset.from_tensors(batch).repeat().with_options(options)
    updates = len(trace["losses_before_each_step"])
    return _train(golden, strategy, execution, schedule, batches, updates)


def main():
    golden, output, *ways = sys.argv[1:]
    golden, output = pathlib.Path(golden), pathlib.Path(output)
    if ways[0] in WORKERS:
        strategy = strategies.make("multi_worker")
    elif ways[0] in TWO_DEVICES:
        strategy = strategies.make("mirrored", num_devices=2)
    else:
        strategy = strategies.make()
    for way in ways:
        execution = {**ONE_DEVICE, **TWO_DEVICES, **WORKERS}[way]
        uneven_run = train_unevenly(golden, strategy, execution)
        traced_run = train_as_the_original(golden, strategy, execution)
        suffix = f"-{os.getpid()}" if way in WORKERS else ""
        np.savez(output / f"{way}{suffix}.npz", **uneven_run)
        np.savez(output / f"{way}{suffix}.trace.npz", **traced_run)


if __name__ == "__main__":
    main()
