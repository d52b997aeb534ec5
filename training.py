"""The one training loop, and what the flags make for it: model, optimizer, trainer.

A run that is killed and started again ends with the same bits: the order of the data
and the dropout masks are functions of the step, and a checkpoint holds the rest.
"""

import contextlib
import dataclasses
import math
import re
import sys

import keras
import tensorflow as tf
from absl import logging

import interruptions
import non_finite
import run_directory
import trainer as trainer_lib
import training_log
import workload
from modeling import checkpoint, cost, lamb, optimization

# What --precision may be, and Keras's name for it.
PRECISIONS = {
    "float32": "float32",
    "bfloat16": "mixed_bfloat16",
    "float16": "mixed_float16",
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """How to train: the values of flags that all the scripts have."""

    output_dir: str
    init_checkpoint: str | None
    max_seq_length: int
    train_batch_size: int
    learning_rate: float
    optimizer: str
    bias_correction: bool
    gradient_accumulation_steps: int
    jit_compile: bool
    recompute: bool
    non_finite: str
    save_checkpoints_steps: int
    keep_checkpoint_max: int
    seed: int

    @classmethod
    def from_values(cls, values):
        """Picks the settings out of a dict of flag name → value.

        Raises:
            ValueError: two of them contradict each other.
        """
        if values["optimizer"] == "lamb" and values["bias_correction"]:
            raise ValueError(
                "--bias_correction is for --optimizer=adamw, as LAMB always corrects; "
                "leave it out"
            )
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: values[name] for name in names})


def set_seed(seed):
    """Seeds the fresh weights of the models that are made next."""
    keras.utils.set_random_seed(seed)


def set_precision(precision):
    """Sets what the models made next compute in; of `PRECISIONS`.

    Weights, layer norms, softmax, small heads, losses, moments and updates stay in
    float32.
    """
    keras.config.set_dtype_policy(PRECISIONS[precision])


@contextlib.contextmanager
def new_model(strategy, seed, precision):
    """The model to train is made within this `with` block.

    Args:
        strategy: tf.distribute strategy.
        seed: int, of its fresh weights.
        precision: str, of `PRECISIONS`.
    """
    with strategy.scope():
        set_seed(seed)
        set_precision(precision)
        yield


def make_optimizer(
    strategy, model, schedule, kind="adamw", bias_correction=False, rates=None
):
    """The optimizer of a model's weights, under the strategy.

    Args:
        strategy: tf.distribute strategy under whose scope the model was made.
        model: keras.Model.
        schedule: see optimization.AdamWeightDecay.
        kind: str, "adamw" or "lamb".
        bias_correction: bool, of "adamw"; LAMB always does it.
        rates: dict, see `learning_rates`. Default: all alike.
    """
    weights = checkpoint.weight_names(model)
    with strategy.scope():
        if kind == "lamb":
            return lamb.Lamb(weights, schedule, rates=rates)
        return optimization.AdamWeightDecay(
            weights, schedule, bias_correction=bias_correction, rates=rates
        )


def learning_rates(model, frozen_layers=-1, decay=1.0):
    """Factors of the learning rate by weight.

    Args:
        model: keras.Model with a `config`.
        frozen_layers: int, the embeddings and so many encoder layers stay as they are;
            -1: none of them.
        decay: float, from one layer to the one below, see `optimization.layer_rates`.
    Returns:
        dict of the checkpoint's name of a weight → float.
    """
    names, num_layers = checkpoint.weight_names(model), model.config.num_hidden_layers
    rates = optimization.layer_rates(names, decay, num_layers)
    if frozen_layers >= 0:
        layers = "|".join(["embeddings", *(f"layer_{i}" for i in range(frozen_layers))])
        frozen = re.compile(f"bert/(encoder/)?({layers})/")
        rates |= dict.fromkeys(filter(frozen.match, names), 0.0)
    return rates


def make_trainer(strategy, model, objective, schedule, settings, rates=None):
    """The Trainer that settings ask for.

    Args:
        strategy: tf.distribute strategy under whose scope the model was made.
        model: keras.Model.
        objective: losses.Objective.
        schedule: see optimization.AdamWeightDecay.
        settings: Settings.
        rates: dict, see `learning_rates`.
    """
    if settings.recompute:
        model.bert.recompute = True
    optimizer = make_optimizer(
        strategy, model, schedule, settings.optimizer, settings.bias_correction, rates
    )
    execution = trainer_lib.Execution(
        settings.gradient_accumulation_steps, settings.jit_compile
    )
    keep = settings.keep_checkpoint_max
    return trainer_lib.Trainer(
        strategy, model, optimizer, objective, settings.seed, execution, keep
    )


@dataclasses.dataclass(frozen=True)
class Plan:
    """How long to train and how often to save and to log, in updates.

    Attributes:
        max_seq_length: int, of batches without a fixed length.
        skip_non_finite: bool, leave out updates whose loss or gradients are not finite
            and go on, instead of ending.
    """

    num_train_steps: int
    save_checkpoints_steps: int
    batch_size: int
    max_seq_length: int | None = None
    skip_non_finite: bool = False

    @property
    def log_steps(self):
        """Every 100 updates as in the original, and at least 20 times a run."""
        return max(1, min(100, self.num_train_steps // 20))

    @classmethod
    def from_settings(cls, num_train_steps, settings):
        """So many updates, and the rest as in a Settings."""
        return cls(
            num_train_steps,
            settings.save_checkpoints_steps,
            settings.train_batch_size,
            settings.max_seq_length,
            settings.non_finite == "skip",
        )

    def saves_after(self, step):
        """Whether a checkpoint belongs there."""
        return step == self.num_train_steps or step % self.save_checkpoints_steps == 0


def train(trainer, batches, plan, output_dir, validation=None):
    """Trains until `plan.num_train_steps` updates are done, from wherever it stands.

    Checkpoints are written at the start, every `save_checkpoints_steps` and at the end,
    and when the process is asked to end (SIGTERM, Ctrl-C), which it then does.

    Args:
        trainer: trainer.Trainer, restored or fresh.
        batches: data.batching.Batches: `starting_at(step)` is a tf.data.Dataset of the
            global batches that follow so many updates, without end; `describe(step)`
            names the records of the first of them.
        plan: Plan.
        output_dir: str.
        validation: validation.Validation, asked after every checkpoint, may end it.
    Raises:
        ValueError: an update is not finite (names it and its records).
    """
    step, target = trainer.step, plan.num_train_steps
    if target < 1:
        raise ValueError(
            "there is not one update to do: fewer examples than --train_batch_size, or "
            "--num_train_epochs too small"
        )
    if not trainer.is_saved:
        trainer.save(output_dir)
    elif (
        step
        and plan.saves_after(step)
        and validation
        and validation.after_checkpoint(trainer)
    ):
        return
    if step >= target:
        logging.info(
            "%s is trained already: %d of %d updates; nothing to do",
            output_dir,
            step,
            target,
        )
        return
    run_directory.begin_training(output_dir)
    with interruptions.noticed() as interruption:
        _loop(trainer, batches, plan, output_dir, validation, interruption)
        if interruption.signal:  # it came in the last update, or after it
            sys.exit(interruption.status)


def _loop(trainer, batches, plan, output_dir, validation, interruption):
    step = trainer.step
    dataset = batches.starting_at(step)
    work = workload.find(trainer, dataset, plan.max_seq_length)
    utilization = None
    if work:
        sequences = batches.num_records * (work.batch_size // plan.batch_size)
        logging.info("%s", cost.describe(work, plan.num_train_steps, sequences))
        utilization = workload.find_utilization(trainer.strategy, work)
    log = training_log.TrainingLog(output_dir, step, plan.num_train_steps, utilization)
    guard = non_finite.Guard(trainer, batches, plan.skip_non_finite, output_dir)
    iterator = iter(trainer.strategy.experimental_distribute_dataset(dataset))
    results = []
    while step < plan.num_train_steps:
        asked = tf.constant(int(interruption.signal != 0))
        with workload.memory_explained(work):
            results.append(trainer.update(iterator, asked))
        guard.check(step, results[-1])
        step += 1
        interrupted = int(results[-1]["interrupted"]) > 0
        save = interrupted or plan.saves_after(step)
        if save or step % plan.log_steps == 0:
            _write(log, step, results, plan)
            results = []
        if save:
            trainer.save(output_dir)
        if interrupted:
            logging.info("asked to end: saved at step %d, to go on from there", step)
            sys.exit(interruption.status)
        if save and validation and validation.after_checkpoint(trainer):
            return
        if save:
            log.restart_clock()


_COUNTED = ("tokens", "positions", "sequences")  # added up, where others are averaged


def _write(log, step, results, plan):
    """Logs the means of the updates since the last line, and what they add up to."""
    results = [{n: v.numpy() for n, v in r.items()} for r in results]
    done = [r for r in results if r["finite"]]
    counted = {n: sum(int(r[n]) for r in results) for n in _COUNTED}
    counted["skipped"] = len(results) - len(done)
    names = results[0].keys() - {*_COUNTED, "finite", "interrupted"}
    means = {
        name: sum(float(r[name]) for r in done) / len(done) if done else math.nan
        for name in sorted(names)
    }
    log.write(step, means, len(results) * plan.batch_size, counted)
