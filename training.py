"""The one training loop.

An update is what one device with the whole batch would do, however many devices there
are: losses are divided by the weights of the global batch, gradients are summed over
replicas and then clipped. (The original clipped before it summed.)

A run that is killed and started again ends with the same bits: the order of the data
and the dropout masks are functions of the step, and a checkpoint holds the rest.
"""

import dataclasses
import math
import os
import re

import keras
import tensorflow as tf
from absl import logging

import inference
import run_directory
from modeling import checkpoint, layers, optimization

CHECKPOINTS_KEPT = 5  # as in the original


def make_strategy(use_tpu=False, tpu_name=None, tpu_zone=None, gcp_project=None):
    """The tf.distribute strategy to build and train a model under.

    Raises:
        ValueError: `use_tpu`, and there is no TPU.
    """
    if not use_tpu:
        return tf.distribute.get_strategy()  # one device: the GPU if there is one
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu_name or "local", zone=tpu_zone, project=gcp_project
        )
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except Exception as error:
        raise ValueError(
            f"--use_tpu: no TPU answers as {tpu_name or 'local'!r}; on a TPU machine "
            "install tensorflow-tpu and give --tpu_name, elsewhere drop --use_tpu"
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def set_seed(seed):
    """Seeds the fresh weights of the models that are made next."""
    keras.utils.set_random_seed(seed)


# What --precision may be, and Keras's name for it.
PRECISIONS = {"float32": "float32", "bfloat16": "mixed_bfloat16"}


def set_precision(precision):
    """Sets what the models made next compute in; of `PRECISIONS`.

    Weights, layer norms, softmax, small heads, losses, moments and updates stay in
    float32.
    """
    keras.config.set_dtype_policy(PRECISIONS[precision])


def make_optimizer(
    strategy, model, schedule, bias_correction=False, frozen=re.compile("(?!)")
):
    """AdamWeightDecay of a model's weights, under the strategy.

    Args:
        frozen: re.Pattern; weights whose name in the checkpoint it matches from the
            start stay as they are. Default: none.
    """
    weights = checkpoint.weight_names(model)
    trained = {name: w for name, w in weights.items() if not frozen.match(name)}
    with strategy.scope():
        return optimization.AdamWeightDecay(
            trained, schedule, bias_correction=bias_correction
        )


def frozen_layers(count):
    """Pattern of the embeddings and the first `count` encoder layers; none below 0."""
    if count < 0:
        return re.compile("(?!)")
    layers_ = "|".join(f"encoder/layer_{i}/" for i in range(count))
    return re.compile(f"bert/(embeddings/{'|' + layers_ if layers_ else ''})")


class Trainer:
    """A model, its optimizer and the compiled update.

    Args:
        strategy: tf.distribute strategy under whose scope the others were made.
        model: keras.Model, called as `model(batch, training=True)`.
        optimizer: optimization.AdamWeightDecay of the model's weights.
        objective: losses.Objective.
        seed: int, of the dropout masks.
    """

    def __init__(self, strategy, model, optimizer, objective, seed):
        self.strategy, self.model, self.optimizer = strategy, model, optimizer
        self.objective, self.seed = objective, seed

    @property
    def step(self):
        """int, finished updates."""
        return int(self.optimizer.step.numpy())

    def _gradients(self, batch, denominators, seed):
        """Loss parts and gradients of this replica's share of the batch."""
        with layers.dropout_seed(seed), tf.GradientTape() as tape:
            outputs = self.model(batch, training=True)
            numerators = self.objective.numerators(outputs, batch)
            losses = {name: n / denominators[name] for name, n in numerators.items()}
            loss = tf.add_n(list(losses.values()))
        gradients = tape.gradient(loss, self.optimizer.weights)
        # Dense: the rows of an embedding's gradient must be added up before squaring.
        gradients = [None if g is None else tf.convert_to_tensor(g) for g in gradients]
        return {"loss": loss, **losses}, gradients

    def _replica_step(self, batch):
        context = tf.distribute.get_replica_context()

        def total(values):
            return context.all_reduce(tf.distribute.ReduceOp.SUM, values)

        seed = tf.constant([self.seed, 0])
        for number in (self.optimizer.step, context.replica_id_in_sync_group):
            seed = tf.random.experimental.stateless_fold_in(
                seed, tf.cast(number, tf.int32)
            )
        denominators = total(self.objective.denominators(batch))
        losses, gradients = self._gradients(batch, denominators, seed)
        summed = iter(total([g for g in gradients if g is not None]))
        gradients = [None if g is None else next(summed) for g in gradients]
        gradients, norm = optimization.clip(gradients)
        rate = self.optimizer.apply(gradients)
        losses = total(losses)
        tokens = total(tf.reduce_sum(batch["input_mask"]))
        return {
            **losses,
            "learning_rate": rate,
            "gradient_norm": norm,
            "tokens": tokens,
        }

    @tf.function(reduce_retracing=True)
    def update(self, iterator):
        """One update with the next global batch; dict of name → scalar tensor."""
        results = self.strategy.run(self._replica_step, args=(next(iterator),))
        # Every replica holds the same numbers already.
        return {
            n: self.strategy.experimental_local_results(v)[0]
            for n, v in results.items()
        }

    def _variables(self):
        weights = checkpoint.weight_names(self.model)
        return {n: w.value for n, w in weights.items()} | self.optimizer.slots()

    def save(self, output_dir):
        """Writes model.ckpt-STEP with weights, moments and global_step.

        It is a checkpoint in the original's format: `--init_checkpoint` of any script,
        the original's too, takes it.
        """
        prefix = os.path.join(output_dir, f"model.ckpt-{self.step}")
        values = {name: v.numpy() for name, v in self._variables().items()}
        checkpoint.write_tf1(prefix, values, max_to_keep=CHECKPOINTS_KEPT)

    def restore(self, output_dir):
        """Takes up the latest checkpoint in the folder, if there is one.

        Returns:
            bool, whether there was one.
        Raises:
            ValueError: the checkpoint is of another model or optimizer.
        """
        prefix = checkpoint.latest(output_dir)
        if prefix is None:
            return False
        values = checkpoint.read(prefix, with_slots=True)
        for name, variable in self._variables().items():
            if name not in values or values[name].shape != variable.shape:
                there = values[name].shape if name in values else "missing"
                raise ValueError(
                    f"training cannot go on from {prefix}: {name} is {there} there, "
                    f"expected {tuple(variable.shape)}; give it as --init_checkpoint "
                    "with another --output_dir"
                )
            variable.assign(values[name])
        logging.info("resuming from %s at step %d", prefix, self.step)
        return True

    def start(self, output_dir, init_checkpoint, skip_mismatched_heads=False):
        """Resumes from the folder's latest checkpoint, or loads the initial one.

        See `inference.load` about labels in another order.
        """
        if self.restore(output_dir):
            if init_checkpoint:
                logging.info("--init_checkpoint=%s is not used", init_checkpoint)
        elif init_checkpoint:
            inference.load(
                self.model, init_checkpoint, skip_mismatched_heads, output_dir
            )


@dataclasses.dataclass(frozen=True)
class Plan:
    """How long to train and how often to save and to log, in updates."""

    num_train_steps: int
    save_checkpoints_steps: int
    batch_size: int

    @property
    def log_steps(self):
        """Every 100 updates as in the original, and at least 20 times a run."""
        return max(1, min(100, self.num_train_steps // 20))


def train(trainer, batches, plan, output_dir, validation=None):
    """Trains until `plan.num_train_steps` updates are done, from wherever it stands.

    Checkpoints are written at the start, every `save_checkpoints_steps` and at the end.

    Args:
        trainer: Trainer, restored or fresh.
        batches: data.batching.Batches: `starting_at(step)` is a tf.data.Dataset of the
            global batches that follow so many updates, without end; `describe(step)`
            names the records of the first of them.
        plan: Plan.
        output_dir: str.
        validation: validation.Validation, asked after every checkpoint, may end it.
    Raises:
        ValueError: the loss is not finite; names the step.
    """
    step, target = trainer.step, plan.num_train_steps
    if target < 1:
        raise ValueError(
            "there is not one update to do: fewer examples than --train_batch_size, or "
            "--num_train_epochs too small"
        )
    if checkpoint.latest(output_dir) is None:
        trainer.save(output_dir)
    elif step and validation and validation.after_checkpoint(trainer):
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
    log = run_directory.TrainingLog(output_dir, step, target)
    dataset = trainer.strategy.experimental_distribute_dataset(
        batches.starting_at(step)
    )
    iterator, results = iter(dataset), []
    while step < target:
        results.append(trainer.update(iterator))
        step += 1
        save = step == target or step % plan.save_checkpoints_steps == 0
        if save or step % plan.log_steps == 0:
            _write(log, step, results, plan)
            results = []
        if save:
            trainer.save(output_dir)
            if validation and validation.after_checkpoint(trainer):
                return


def _write(log, step, results, plan):
    """Logs the means since the last line; stops when the loss is not finite."""
    values = {
        name: sum(float(r[name]) for r in results) / len(results) for name in results[0]
    }
    if not all(math.isfinite(value) for value in values.values()):
        raise ValueError(
            f"the loss is {values['loss']}, the gradient's norm "
            f"{values.get('gradient_norm')} between updates {step - len(results) + 1} "
            f"and {step}; lower --learning_rate or look at the data there (the last "
            "checkpoint before it is kept)"
        )
    tokens = values.pop("tokens") * len(results)
    log.write(step, values, len(results) * plan.batch_size, tokens)
