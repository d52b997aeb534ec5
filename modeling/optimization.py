"""BERT's optimizer and schedule (Devlin et al. 2018, appendix A.2; original code).

Adam with decoupled weight decay (Loshchilov and Hutter 2019). By default there is no
bias correction, as in the original; its warm-up hides that.
"""

import re
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from modeling import layers

# Matched anywhere in the checkpoint's name of a weight: these are not decayed.
NO_DECAY = re.compile("LayerNorm|layer_norm|bias")
CLIP_NORM = 1.0  # of all gradients together, as in the original


def warmup_then_decay(learning_rate, num_train_steps, num_warmup_steps):
    """The rate of the original: linear warm-up, then linear decay to 0.

    The decay runs from step 0, so the rate drops by num_warmup_steps / num_train_steps
    where the warm-up ends. Kept: published results were made with it.

    Args:
        learning_rate: float, the peak.
        num_train_steps: int, all updates.
        num_warmup_steps: int, updates of warm-up; 0 for none.
    Returns:
        function of the number of finished updates, int64, giving the rate of the next
        one, float32.
    """

    def schedule(step):
        step = tf.cast(step, tf.float32)
        done = tf.minimum(step, float(num_train_steps)) / max(num_train_steps, 1)
        rate = learning_rate * (1 - done)
        if num_warmup_steps:
            warm = learning_rate * step / num_warmup_steps
            rate = tf.where(step < num_warmup_steps, warm, rate)
        return rate

    return schedule


def clip_scale(gradients):
    """What all gradients are to be multiplied by, for a norm of at most `CLIP_NORM`.

    Args:
        gradients: list of float32 tensors or None. Sparse ones must be made dense
            before: the norm of unmerged rows is another number.
    Returns:
        that factor, float32 scalar, and the norm now. Where that is not finite, the
        factor is of no use: see `finite` of `AdamWeightDecay.apply`.
    """
    length = tf.linalg.global_norm(gradients)
    scale = CLIP_NORM / tf.maximum(length, CLIP_NORM)
    return tf.where(tf.math.is_finite(length), scale, float("nan")), length


def layer_rates(names, decay, num_layers):
    """Smaller learning rates for lower layers; `rates` of `AdamWeightDecay`.

    A layer learns `decay` times as fast as the one above: the discriminative
    fine-tuning of ULMFiT (Howard and Ruder 2018, section 3.2), for BERT in Sun et al.
    2019 ("How to Fine-Tune BERT for Text Classification?"; 0.95 did best there). Heads
    and pooler count as the layer above the encoder and have the rate itself; the
    embeddings are the layer below it.

    Args:
        names: names of weights in the checkpoint.
        decay: float; 1 for equal rates.
        num_layers: int, of the encoder.
    Returns:
        dict of name → factor of the learning rate.
    """

    def depth(name):
        layer = re.match(r"bert/encoder/layer_(\d+)/", name)
        if layer:
            return num_layers - int(layer[1])
        return num_layers + 1 if name.startswith("bert/embeddings/") else 0

    return {name: decay ** depth(name) for name in names}


class Step(NamedTuple):
    """The numbers of an update of one weight; scalars.

    Attributes:
        scale: what the gradient is to be multiplied by.
        rate: learning rate.
        correction: what m is to be multiplied by.
        epsilon: what is added to the root of v.
        decay: float, weight decay; None for those of `NO_DECAY`.
    """

    scale: tf.Tensor
    rate: tf.Tensor
    correction: tf.Tensor
    epsilon: tf.Tensor
    decay: float | None


class AdamWeightDecay(tf.Module):
    """Updates weights in place; keeps two moments of each and the number of updates.

    For gradient g, weight w and rate lr: m = beta_1 m + (1 - beta_1) g;
    v = beta_2 v + (1 - beta_2) g²; w -= lr (m / (sqrt(v) + epsilon) + weight_decay w).
    Must be constructed under the strategy's scope.

    Args:
        weights: dict of the checkpoint's name → trainable keras.Variable.
        schedule: function of the number of finished updates, giving the rate.
        weight_decay: float, not applied to names that match `NO_DECAY`.
        betas: decay rates of the two moments.
        epsilon: float, outside the root.
        bias_correction: bool, divide m by 1 - beta_1^t and v by 1 - beta_2^t (Kingma
            and Ba 2015); t counts from 1, skipped updates too.
        rates: dict of the checkpoint's name → factor of the learning rate, 1 where it
            says nothing. A weight whose factor is 0 is left out: it stays as it is and
            has no moments.
    Raises:
        ValueError: `rates` names something else than a weight.
    """

    prefix = "adam"  # of the names of the moments in a checkpoint

    def __init__(
        self,
        weights,
        schedule,
        weight_decay=0.01,
        betas=(0.9, 0.999),
        epsilon=1e-6,
        bias_correction=False,
        rates=None,
    ):
        super().__init__(name="adam_weight_decay")
        rates = rates or {}
        for name in rates:
            if name not in weights:
                raise ValueError(
                    f"there is a learning rate for {name!r}, but no such weight; give "
                    f"names of the checkpoint such as {next(iter(weights), None)!r}"
                )
        self.schedule, self.weight_decay = schedule, weight_decay
        self.betas, self.epsilon = betas, epsilon
        self.bias_correction = bias_correction
        self.names = [name for name in weights if rates.get(name, 1.0)]
        self.factors = [rates.get(name, 1.0) for name in self.names]
        self.weights = [weights[name].value for name in self.names]
        self.m, self.v = ([self._slot(w) for w in self.weights] for _ in range(2))
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False, name="global_step")

    @staticmethod
    def _slot(weight):
        return tf.Variable(tf.zeros(weight.shape, weight.dtype), trainable=False)

    def slots(self):
        """dict of the checkpoint's name → tf.Variable: moments and `global_step`."""
        slots = {"global_step": self.step}
        for name, m, v in zip(self.names, self.m, self.v, strict=True):
            slots[f"{name}/{self.prefix}_m"] = m
            slots[f"{name}/{self.prefix}_v"] = v
        return slots

    def apply(self, gradients, finite=None, scale=1.0):
        """One update, called in the replica context with the same values everywhere.

        Args:
            gradients: list of dense float32 tensors in the order of `self.weights`,
                summed over replicas; None for a weight that the loss does not reach,
                which then stays as it is.
            finite: bool scalar tensor; where it is False, weights and moments stay as
                they are, and only the number of updates grows. Default: True.
            scale: float32 scalar, of all gradients, see `clip_scale`.
        Returns:
            the learning rate of the update, float32 scalar.
        """
        context = tf.distribute.get_replica_context()
        return context.merge_call(self._apply, args=(gradients, finite, scale))

    def _apply(self, strategy, gradients, finite, scale):
        rate = self.schedule(self.step)
        correction, epsilon = self._corrected()

        def update_all():
            columns = self.names, self.factors, self.weights, self.m, self.v, gradients
            for name, factor, weight, m, v, gradient in zip(*columns, strict=True):
                if gradient is None:
                    continue
                decay = None if NO_DECAY.search(name) else self.weight_decay
                step = Step(scale, rate * factor, correction, epsilon, decay)
                arguments = (m, v, gradient, step)
                strategy.extended.update(weight, self._update, args=arguments)

        if finite is None:
            update_all()
        else:
            # One branch around everything, outside the replicas: no pass over the
            # memory, and no collectives in it.
            finite = strategy.experimental_local_results(finite)[0]
            tf.cond(finite, update_all, lambda: None)
        strategy.extended.update(self.step, lambda step: step.assign_add(1))
        return rate

    def _corrected(self):
        """`correction` and `epsilon` of a Step."""
        first, second = self.betas
        # It takes 1 - beta_2 in float32, which is off by 1.3e-5; the v it keeps is as
        # much too small, which these factors make good.
        size = float(1 - np.float32(second)) / (1 - second)
        if not self.bias_correction:
            return tf.constant(size**0.5), self.epsilon * tf.constant(size**0.5)
        time = tf.cast(self.step.read_value() + 1, tf.float64)
        root = tf.sqrt(size * (1 - second**time))
        correction = tf.cast(root / (1 - first**time), tf.float32)
        return correction, self.epsilon * tf.cast(root, tf.float32)

    def _update(self, weight, m, v, gradient, step):
        """Moves a weight and its moments by a Step; here as Adam does."""
        move = _adam_in_one_loop if layers.makes_loops() else _adam_by_kernel
        handles = [x.handle for x in (weight, m, v)]
        rate = step.rate * step.correction
        decay = step.rate * step.decay if step.decay else None
        move(handles, gradient, step.scale, rate, step.epsilon, decay, self.betas)


@layers.one_loop
def _adam_in_one_loop(handles, gradient, scale, rate, epsilon, decay, betas):
    """Moves a weight, m and v, given by their handles, in one pass over the memory."""
    # As handles, for tf.function takes variables of replicas for one another.
    weight, m, v = (
        tf.raw_ops.ReadVariableOp(resource=h, dtype="float32") for h in handles
    )
    gradient *= scale
    m = betas[0] * m + (1 - betas[0]) * gradient
    # As imprecise as the kernel's below, which `_corrected` is for.
    v += (1 - np.float32(betas[1])) * (tf.square(gradient) - v)
    change = rate * m / (tf.sqrt(v) + epsilon)
    weight -= change if decay is None else change + decay * weight
    for handle, value in zip(handles, (weight, m, v), strict=True):
        tf.raw_ops.AssignVariableOp(resource=handle, value=value)


def _adam_by_kernel(handles, gradient, scale, rate, epsilon, decay, betas):
    """The same on GPUs and TPUs, where Adam itself is one pass over the memory."""
    if decay is not None:
        weight = tf.raw_ops.ReadVariableOp(resource=handles[0], dtype="float32")
        tf.raw_ops.AssignSubVariableOp(resource=handles[0], value=decay * weight)
    # Powers of 0: the correction is done outside, because the kernel's own leaves
    # epsilon as it is.
    tf.raw_ops.ResourceApplyAdam(
        var=handles[0],
        m=handles[1],
        v=handles[2],
        beta1_power=0.0,
        beta2_power=0.0,
        lr=rate,
        beta1=betas[0],
        beta2=betas[1],
        epsilon=epsilon,
        grad=gradient * scale,
    )
