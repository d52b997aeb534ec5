"""Dropout that is repeatable: its masks depend on a seed and on nothing else.

A training that is killed and goes on must draw the masks it would have drawn, which
Keras's layer of that name does not promise.
"""

import contextlib
import copy
import math
import threading

import keras
import tensorflow as tf

from modeling import layers

# Every replica of a mirrored model is traced in a thread of its own.
_dropout = threading.local()


@contextlib.contextmanager
def _dropout_state(state):
    outer = getattr(_dropout, "state", None)
    _dropout.state = state
    try:
        yield
    finally:
        _dropout.state = outer


def dropout_seed(seed):
    """Context that fixes the masks of all `Dropout` layers called under it.

    Args:
        seed: int32, [2]. The n-th call of a dropout layer under it uses (seed, n), so
            equal seeds give equal masks and no two calls share one.
    """
    return _dropout_state({"seed": tf.convert_to_tensor(seed, tf.int32), "calls": 0})


def recompute(function, x):
    """function(x), whose inner values are made again for the gradient, not kept.

    Chen et al. 2016, "Training deep nets with sublinear memory cost". Values and
    gradients are those of function(x): dropout draws the same masks both times.

    Args:
        function: of a float tensor, giving a float tensor; it may use weights.
        x: float, any shape.
    """
    state = getattr(_dropout, "state", None)
    start = copy.copy(state)

    def run(x):
        again = copy.copy(start)
        with _dropout_state(again):
            y = function(x)
        if state:
            state["calls"] = max(state["calls"], again["calls"])
        return y

    return tf.recompute_grad(run)(x)


class Dropout(keras.layers.Layer):
    """Inverted dropout whose mask depends on `dropout_seed` and on nothing else.

    The rate is rounded to 1/65536, at most to 255/256, and survivors are scaled by the
    rounded rate, so the expectation is exact.

    Args:
        rate: float in [0, 1), share of elements set to 0 in training.
    Call arguments:
        x: float, any shape.
    Raises:
        ValueError: called in training outside `dropout_seed`.
    """

    def __init__(self, rate, **kwargs):
        super().__init__(**kwargs)
        self.rate = rate

    def call(self, x, training=False):
        if not training or not self.rate:
            return x
        return x * self.mask(layers.dims(x), x.dtype)

    def mask(self, shape, dtype):
        """What to multiply a tensor of some shape by: 0 or the scale for each element.

        Args:
            shape: list as from `dims`, of one size or more.
            dtype: of the result, floating.
        """
        if not self.rate:
            return tf.ones((), dtype)
        state = getattr(_dropout, "state", None)
        if state is None:
            raise ValueError(
                "a model with dropout is called with training=True outside "
                "modeling.dropout.dropout_seed(seed); wrap the call in it"
            )
        seed = state["seed"] + tf.constant([0, state["calls"]])
        state["calls"] += 1
        # An element is dropped if 16 random bits are below 65536 times the rate. The
        # upper 8 are its own, the lower 8 those of its row: drawing numbers costs a
        # twentieth of a training step on CPU, and as floats three times that.
        dropped = min(round(self.rate * 65536), 255 * 256)
        upper, lower = divmod(dropped, 256)
        rows = math.prod(shape[:-1])
        size = rows * shape[-1]
        words = tf.random.stateless_uniform(
            [(size + rows + 3) // 4], seed, minval=None, maxval=None, dtype=tf.int32
        )
        bits = tf.reshape(tf.bitcast(words, tf.uint8), [-1])
        of_rows = tf.reshape(bits[size : size + rows], [*shape[:-1], 1])
        limits = upper + tf.cast(of_rows < lower, tf.uint8)
        keep = tf.reshape(bits[:size], shape) >= limits
        return tf.cast(keep, dtype) * tf.cast(65536 / (65536 - dropped), dtype)
