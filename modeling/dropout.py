"""Dropout that is repeatable: its masks depend on a seed, and on the kind of device.

A training that is killed and goes on must draw the masks it would have drawn, which
Keras's layer of that name does not promise.
"""

import contextlib
import copy
import math
import threading
from typing import NamedTuple

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


class Mask(NamedTuple):
    """Which elements are dropped, told by what it is computed from wherever needed.

    Attributes:
        keys: uint32, [2], from the seed.
        limit: uint32, []; an element is dropped if its 32 random bits are below.
        scale: float32, [], of the others, which keeps the expectation; rounded to the
            type of what it multiplies.
    """

    keys: tf.Tensor
    limit: tf.Tensor
    scale: tf.Tensor


def masked(x, mask):
    """What is left of a tensor: x * scale where the mask keeps, 0 elsewhere.

    It is its own gradient: masked(dy, mask) is that of x.

    Args:
        x: float, any shape, whose size must be below 2³¹.
        mask: Mask, or None to drop nothing.
    """
    if mask is None:
        return x
    keep = _random_bits(layers.dims(x), mask.keys) >= mask.limit
    return tf.where(keep, x * tf.cast(mask.scale, x.dtype), tf.zeros((), x.dtype))


drop = layers.one_loop(masked)


def _random_bits(shape, keys):
    """32 bits for each element, uint32; the same for the same keys."""
    if not layers.makes_loops():
        # One kernel draws them, where what follows here would be a dozen.
        seed = tf.bitcast(keys, tf.int32)
        return tf.random.stateless_uniform(shape, seed, None, None, tf.uint32)
    # The number of the element, with its bits well mixed: "triple32" (C. Wellons,
    # "Prospecting for hash functions", 2018). Good enough for masks (the tests look at
    # every bit), and made within the loop that uses it. TensorFlow's random numbers
    # take a twentieth of a training step on CPU.
    places = tf.range(math.prod(shape), dtype=tf.int32)
    bits = tf.bitcast(tf.reshape(places, shape), tf.uint32) + keys[0]
    bits = _shifted(bits, 17) * tf.constant(0xED5AD4BB, tf.uint32)
    # Under way, or masks of other keys would be shifted ones.
    bits = tf.bitwise.bitwise_xor(bits, keys[1])
    bits = _shifted(bits, 11) * tf.constant(0xAC4C1B51, tf.uint32)
    return _shifted(_shifted(bits, 15) * tf.constant(0x31848BAB, tf.uint32), 14)


def _shifted(bits, places):
    """The bits, xor those that many places above them."""
    above = tf.bitwise.right_shift(bits, tf.constant(places, tf.uint32))
    return tf.bitwise.bitwise_xor(bits, above)


class Dropout(keras.layers.Layer):
    """Inverted dropout whose mask depends on `dropout_seed`.

    And on whether there are CPUs only (`layers.makes_loops`), on nothing else.

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
        mask = self.mask() if training else None
        if mask is None:
            return x

        @tf.custom_gradient
        def dropped(x):
            return drop(x, mask), lambda dy: drop(dy, mask)

        return dropped(x)

    def mask(self):
        """The next Mask, None at a rate of 0."""
        if not self.rate:
            return None
        state = getattr(_dropout, "state", None)
        if state is None:
            raise ValueError(
                "a model with dropout is called with training=True outside "
                "modeling.dropout.dropout_seed(seed); wrap the call in it"
            )
        seed = state["seed"] + tf.constant([0, state["calls"]])
        state["calls"] += 1
        dropped = min(round(self.rate * 2**32), 2**32 - 1)
        return Mask(
            tf.random.stateless_uniform([2], seed, None, None, tf.uint32),
            tf.constant(dropped, tf.uint32),
            tf.constant(2**32 / (2**32 - dropped), tf.float32),
        )
