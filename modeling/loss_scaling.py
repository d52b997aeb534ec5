"""Dynamic loss scaling, which keeps small gradients from vanishing in float16.

Micikevicius et al. 2018, "Mixed Precision Training", section 3.2: the loss is
multiplied by a factor before its gradients are computed, and these are divided by it
after. The factor grows until gradients overflow; then it shrinks, and the update is
skipped.
"""

import tensorflow as tf

_START = 2.0**15
_LARGEST = 2.0**127  # The next power of two is not finite in float32.
_GOOD_STEPS = 2000  # The paper's N, after which a larger scale is tried.


class LossScale(tf.Module):
    """The factor, always a power of two: scaling rounds nothing off.

    Must be constructed under the strategy's scope. The methods are for the replica
    context.
    """

    def __init__(self):
        super().__init__(name="loss_scale")

        def variable(value, name):
            # All replicas assign the same.
            first = tf.VariableAggregation.ONLY_FIRST_REPLICA
            return tf.Variable(value, trainable=False, name=name, aggregation=first)

        self.value = variable(_START, "loss_scale")
        self.good_steps = variable(0, "good_steps")

    def slots(self):
        """dict of the checkpoint's name → tf.Variable: float32 and int32 scalars."""
        return {"loss_scale": self.value, "loss_scale/good_steps": self.good_steps}

    def scale(self, loss):
        """The loss whose gradients to compute; float32 scalar."""
        return loss * self.value

    def unscale(self, gradients):
        """The gradients of the loss itself.

        Args:
            gradients: list of those of `scale(loss)`, dense float32 tensors, or None
                for a weight that the loss does not reach.
        """
        return [None if g is None else g / self.value for g in gradients]

    def update(self, finite):
        """Halves the scale, or doubles it after 2000 good updates in a row.

        Args:
            finite: bool scalar tensor, the same on all replicas: whether the gradients
                of this update, summed over replicas, were finite.
        """
        good_steps = self.good_steps + 1
        grow = tf.logical_and(finite, good_steps >= _GOOD_STEPS)
        good = tf.where(grow, tf.minimum(2 * self.value, _LARGEST), self.value)
        bad = tf.maximum(self.value / 2, 1.0)
        kept = tf.logical_and(finite, tf.logical_not(grow))
        self.value.assign(tf.where(finite, good, bad))
        self.good_steps.assign(tf.where(kept, good_steps, 0))
