"""BERT's optimizer and schedule (Devlin et al. 2018, appendix A.2; original code).

Adam with decoupled weight decay (Loshchilov and Hutter 2019). By default there is no
bias correction, as in the original; its warm-up hides that.
"""

import re

import numpy as np
import tensorflow as tf

# Matched anywhere in the checkpoint's name of a weight: these are not decayed.
NO_DECAY = re.compile("LayerNorm|layer_norm|bias")


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


def clip(gradients, norm=1.0):
    """Scales all gradients together so that their norm is at most `norm`.

    Args:
        gradients: list of float32 tensors. Sparse ones must be made dense before: the
            norm of unmerged rows is another number.
    Returns:
        the list, and the norm before, float32 scalar.
    """
    return tf.clip_by_global_norm(gradients, norm)


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
            and Ba 2015); t counts from 1.
    """

    def __init__(
        self,
        weights,
        schedule,
        weight_decay=0.01,
        betas=(0.9, 0.999),
        epsilon=1e-6,
        bias_correction=False,
    ):
        super().__init__(name="adam_weight_decay")
        self.schedule, self.weight_decay = schedule, weight_decay
        self.betas, self.epsilon = betas, epsilon
        self.bias_correction = bias_correction
        self.names = list(weights)
        self.weights = [weight.value for weight in weights.values()]
        self.m, self.v = ([self._slot(w) for w in self.weights] for _ in range(2))
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False, name="global_step")

    @staticmethod
    def _slot(weight):
        return tf.Variable(tf.zeros(weight.shape, weight.dtype), trainable=False)

    def slots(self):
        """dict of the checkpoint's name → tf.Variable: moments and `global_step`."""
        slots = {"global_step": self.step}
        for name, m, v in zip(self.names, self.m, self.v, strict=True):
            slots[f"{name}/adam_m"], slots[f"{name}/adam_v"] = m, v
        return slots

    def apply(self, gradients):
        """One update, called in the replica context with the same values everywhere.

        Args:
            gradients: list of dense float32 tensors in the order of the weights, summed
                over replicas and clipped; None for a weight that the loss does not
                reach, which then stays as it is.
        Returns:
            the learning rate that was used, float32 scalar.
        """
        rate = self.schedule(self.step)
        context = tf.distribute.get_replica_context()
        context.merge_call(self._apply, args=(gradients, rate))
        return rate

    def _apply(self, strategy, gradients, rate):
        update = strategy.extended.update
        rows = zip(self.names, self.weights, self.m, self.v, gradients, strict=True)
        correction = self._correction()
        for name, weight, m, v, gradient in rows:
            if gradient is None:
                continue
            decay = 0.0 if NO_DECAY.search(name) else self.weight_decay
            update(weight, self._update, args=(m, v, gradient, rate, correction, decay))
        update(self.step, lambda step: step.assign_add(1))

    def _correction(self):
        """Factors of the rate and of epsilon that the fused update needs."""
        first, second = self.betas
        # The kernel takes 1 - beta_2 in float32, which is off by 1.3e-5; the v it keeps
        # is as much too small, which these factors make good.
        size = float(1 - np.float32(second)) / (1 - second)
        if not self.bias_correction:
            return tf.constant(size**0.5), tf.constant(size**0.5)
        time = tf.cast(self.step.read_value() + 1, tf.float64)
        root = tf.sqrt(size * (1 - second**time))
        return tf.cast(root / (1 - first**time), tf.float32), tf.cast(root, tf.float32)

    def _update(self, weight, m, v, gradient, rate, correction, decay):
        if decay:
            weight.assign_sub(rate * decay * weight)
        # One pass over the memory instead of ten. Powers of 0: the correction is done
        # here, because the kernel's own leaves epsilon as it is.
        tf.raw_ops.ResourceApplyAdam(
            var=weight.handle,
            m=m.handle,
            v=v.handle,
            beta1_power=0.0,
            beta2_power=0.0,
            lr=rate * correction[0],
            beta1=self.betas[0],
            beta2=self.betas[1],
            epsilon=self.epsilon * correction[1],
            grad=gradient,
        )
