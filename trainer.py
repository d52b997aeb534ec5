"""One update of a model's weights, over all devices and in parts, and its state.

An update is what one device with the whole batch would do, however many replicas and
micro-batches there are: losses are divided by the weights of the global batch,
gradients are summed over all parts and then clipped. (The original clipped before it
summed.) Only the masks of dropout differ: each part has its own.
"""

import dataclasses
import os

import numpy as np
import tensorflow as tf
from absl import logging

import run_directory
import strategies
import trained_weights
from modeling import (
    checkpoint,
    checkpoint_state,
    dropout,
    layers,
    loss_scaling,
    optimization,
)


@dataclasses.dataclass(frozen=True)
class Execution:
    """How updates are computed; but for the masks of dropout they come out the same.

    Attributes:
        gradient_accumulation_steps: int, micro-batches that a replica takes one after
            the other: less memory for the same batch.
        jit_compile: bool, compile the gradients with XLA.
    """

    gradient_accumulation_steps: int = 1
    jit_compile: bool = False


class Trainer:
    """A model, its optimizer and the compiled update.

    Args:
        strategy: tf.distribute strategy under whose scope the others were made.
        model: keras.Model, called as `model(batch, training=True)`.
        optimizer: optimization.AdamWeightDecay of the model's weights.
        objective: losses.Objective.
        seed: int, of the dropout masks.
        execution: Execution.
        keep_checkpoint_max: int, of the checkpoints in a folder the last so many stay;
            0: all of them.
    Attributes:
        is_saved: bool, whether a folder has the state of the start, or a later one.
    """

    is_saved = False

    def __init__(
        self,
        strategy,
        model,
        optimizer,
        objective,
        seed,
        execution=Execution(),
        keep_checkpoint_max=0,
    ):
        self.strategy, self.model, self.optimizer = strategy, model, optimizer
        self.objective, self.seed = objective, seed
        self.keep_checkpoint_max = keep_checkpoint_max
        self.micro_batches = execution.gradient_accumulation_steps
        self.loss_scale = None
        if model.compute_dtype == "float16":
            with strategy.scope():
                self.loss_scale = loss_scaling.LossScale()
        self._gradients = self._compute_gradients
        if execution.jit_compile:
            self._gradients = tf.function(
                self._compute_gradients, jit_compile=True, autograph=False
            )

    @property
    def step(self):
        """int, finished updates."""
        return int(self.optimizer.step.numpy())

    def _compute_gradients(self, batch, denominators, seed):
        """Loss parts and gradients of a part of the batch; None where there is none."""
        with dropout.dropout_seed(seed), tf.GradientTape() as tape:
            outputs = self.model(batch, training=True)
            numerators = self.objective.numerators(outputs, batch)
            losses = {name: n / denominators[name] for name, n in numerators.items()}
            loss = tf.add_n(list(losses.values()))
            scaled = self.loss_scale.scale(loss) if self.loss_scale else loss
        gradients = tape.gradient(scaled, self.optimizer.weights)
        # Dense: the rows of an embedding's gradient must be added up before squaring.
        gradients = [None if g is None else tf.convert_to_tensor(g) for g in gradients]
        return {"loss": loss, **losses}, gradients

    def _accumulate_gradients(self, batch, denominators, seed):
        """The same for several micro-batches, one after the other."""
        parts = {
            name: tf.reshape(x, [self.micro_batches, -1, *layers.dims(x)[1:]])
            for name, x in batch.items()
        }
        reached = []

        def add(i, losses, sums):
            part = {name: x[i] for name, x in parts.items()}
            more, gradients = self._gradients(part, denominators, _fold(seed, i))
            reached[:] = [g is not None for g in gradients]
            losses = {name: value + more[name] for name, value in losses.items()}
            pairs = zip(sums, gradients, strict=True)
            return i + 1, losses, [s if g is None else s + g for s, g in pairs]

        nothing = {name: tf.constant(0.0) for name in ("loss", *denominators)}
        zeros = [tf.zeros(w.shape) for w in self.optimizer.weights]
        _, losses, sums = tf.while_loop(
            lambda i, *_: i < self.micro_batches,
            add,
            (tf.constant(0), nothing, zeros),
            parallel_iterations=1,
        )
        return losses, [
            s if has else None for s, has in zip(sums, reached, strict=True)
        ]

    def _replica_step(self, batch, interrupted):
        context = tf.distribute.get_replica_context()

        def total(values):
            return context.all_reduce(tf.distribute.ReduceOp.SUM, values)

        seed = tf.constant([self.seed, 0])
        for number in (self.optimizer.step, context.replica_id_in_sync_group):
            seed = _fold(seed, number)
        denominators = total(self.objective.denominators(batch))
        compute = (
            self._gradients if self.micro_batches == 1 else self._accumulate_gradients
        )
        losses, gradients = compute(batch, denominators, seed)
        counted = {
            "tokens": tf.reduce_sum(batch["input_mask"]),
            "positions": tf.size(batch["input_mask"]),
            "sequences": tf.size(batch["input_mask"][..., 0]),
            "interrupted": interrupted,
        }
        # Floats: integers may be in the host's memory, where they are not summed.
        counted = {name: tf.cast(n, tf.float32) for name, n in counted.items()}
        reached = [g for g in gradients if g is not None]
        summed = total({"gradients": reached, "losses": losses, **counted})
        rest = iter(summed.pop("gradients"))
        gradients = [None if g is None else next(rest) for g in gradients]
        if self.loss_scale:
            gradients = self.loss_scale.unscale(gradients)
        clipping, norm = optimization.clip_scale(gradients)
        losses = summed.pop("losses")
        finite = tf.math.is_finite(norm) & tf.math.is_finite(losses["loss"])
        results = {**losses, **summed, "gradient_norm": norm, "finite": finite}
        if self.loss_scale:
            results["loss_scale"] = self.loss_scale.value.read_value()
            self.loss_scale.update(finite)
        results["learning_rate"] = self.optimizer.apply(gradients, finite, clipping)
        return results

    # No autograph, which would take a third of the time to trace: nothing needs it.
    @tf.function(reduce_retracing=True, autograph=False)
    def update(self, iterator, interrupted=0):
        """One update with the next global batch, without effect if it is not finite.

        Args:
            iterator: of a distributed dataset.
            interrupted: int32 scalar, whether this process was asked to end.
        Returns:
            dict of name → scalar tensor, the same on all workers: loss and its parts,
            learning_rate, gradient_norm, finite (bool), tokens (real ones), positions
            (with padding), sequences, interrupted (larger than 0 if any worker was),
            and with float16 loss_scale.
        """
        interrupted = tf.convert_to_tensor(interrupted)
        results = self.strategy.run(
            self._replica_step, args=(next(iterator), interrupted)
        )
        # Every replica holds the same numbers already.
        return {
            n: self.strategy.experimental_local_results(v)[0]
            for n, v in results.items()
        }

    def _variables(self):
        weights = checkpoint.weight_names(self.model)
        return {n: w.value for n, w in weights.items()} | self.optimizer.slots()

    def _optional_variables(self):
        """What a checkpoint of another precision lacks."""
        return self.loss_scale.slots() if self.loss_scale else {}

    def save(self, output_dir):
        """Writes model.ckpt-STEP with weights, moments and global_step.

        It is a checkpoint in the original's format: `--init_checkpoint` of any script,
        the original's too, takes it. Of several workers only the first writes it.
        """
        if not run_directory.is_first():
            return
        prefix = os.path.join(output_dir, f"model.ckpt-{self.step}")
        variables = self._variables() | self._optional_variables()
        values = {name: v.numpy() for name, v in variables.items()}
        checkpoint.write_tf1(prefix, values, max_to_keep=self.keep_checkpoint_max)
        self.is_saved = True

    def restore(self, output_dir):
        """Takes up the latest checkpoint in the folder.

        Raises:
            ValueError: the checkpoint is of another model or optimizer.
        """
        prefix = checkpoint_state.latest(output_dir)
        values = checkpoint.read(prefix, with_slots=True)
        for name, variable in self._variables().items():
            if name not in values or values[name].shape != variable.shape:
                there = values[name].shape if name in values else "missing"
                raise ValueError(
                    f"training cannot go on from {prefix}: {name} is {there} there, "
                    f"expected {tuple(variable.shape)}; train with the --optimizer and "
                    "the flags of before, or give it as --init_checkpoint with another "
                    "--output_dir"
                )
            variable.assign(values[name])
        for name, variable in self._optional_variables().items():
            variable.assign(values.get(name, variable.numpy()))
        self.is_saved = True
        logging.info("resuming from %s at step %d", prefix, self.step)

    def start(self, output_dir, init_checkpoint, skip_mismatched_heads=False):
        """Resumes from the folder's latest checkpoint, or loads the initial one.

        See `trained_weights.load` about labels in another order.

        Raises:
            ValueError: the checkpoint does not fit, or workers found different ones.
        """
        newest = checkpoint_state.latest(output_dir)
        # One without an update holds nothing but other initial weights.
        if newest and (checkpoint.global_step(newest) or not init_checkpoint):
            self.restore(output_dir)
            if init_checkpoint:
                logging.info("--init_checkpoint=%s is not used", init_checkpoint)
        elif init_checkpoint:
            trained_weights.load(
                self.model, init_checkpoint, skip_mismatched_heads, output_dir
            )
        if strategies.is_cluster(self.strategy):
            self._check_agreement(output_dir)

    def _check_agreement(self, output_dir):
        """Refuses workers that would go on from different states."""
        sums = [tf.constant(self.step, tf.float64)]
        for variable in self._variables().values():
            flat = tf.cast(tf.reshape(variable, [-1]), tf.float64)
            # Each place has a weight of its own, so that rows in another order show.
            places = tf.range(tf.size(flat, tf.int64))
            sums.append(tf.reduce_sum(flat * tf.cos(tf.cast(places, tf.float64))))
        mine = tf.stack(sums)
        mean = strategies.mean(self.strategy, mine)
        if not np.allclose(mine, mean, rtol=1e-9, atol=1e-12, equal_nan=True):
            raise ValueError(
                f"this worker starts from update {self.step} of {output_dir}, others "
                "from other weights; --output_dir and --init_checkpoint must be "
                "folders that all workers share"
            )


def _fold(seed, number):
    return tf.random.experimental.stateless_fold_in(seed, tf.cast(number, tf.int32))
