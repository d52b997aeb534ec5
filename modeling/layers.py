"""The small layers everything is made of: linear maps, layer norm, dropout, GELU.

They replace their Keras namesakes for reasons that were measured: a product over
flattened tokens and a layer norm of plain operations are faster on CPUs, and dropout
must be repeatable after a restart.
"""

import contextlib
import math
import threading

import keras
import tensorflow as tf


def initializer(stddev):
    """Truncated normal, redrawn outside two standard deviations (BERT's for all)."""
    return keras.initializers.TruncatedNormal(stddev=stddev)


def gelu(x):
    """GELU in the tanh form (Hendrycks and Gimpel 2016), which BERT uses."""
    # Beyond 10 the tanh is 1 in every type. In float16 the cube overflows from 113 on,
    # and its gradient is not a number from 1200 on.
    y = tf.clip_by_value(x, -10, 10) if x.dtype == tf.float16 else x
    return 0.5 * x * (1 + tf.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y * y * y)))


def gelu_exact(x):
    """GELU by the error function; Hugging Face's "gelu"."""
    # tf.math.erf, not tf.nn.gelu: its Erfc has no ONNX counterpart.
    return 0.5 * x * (1 + tf.math.erf(x * math.sqrt(0.5)))


_ACTIVATIONS = {
    "gelu": gelu,
    "gelu_exact": gelu_exact,
    "relu": tf.nn.relu,
    "tanh": tf.tanh,
    "linear": lambda x: x,
}


def activation(name):
    """The function behind a config's `hidden_act`."""
    return _ACTIVATIONS[name]


def dims(x):
    """Shape of `x` as a list: ints where it is static, scalar tensors elsewhere."""
    dynamic = tf.shape(x)
    return [
        dynamic[i] if size is None else size for i, size in enumerate(x.shape.as_list())
    ]


class Linear(keras.layers.Layer):
    """x W + b over the last axis.

    Args:
        units: int, size of the last axis of the result.
        stddev: float, of the truncated normal that W starts from.
    Call arguments:
        x: float, [..., in].
    Returns:
        float, [..., units].
    """

    def __init__(self, units, stddev, **kwargs):
        super().__init__(**kwargs)
        self.units, self.stddev = units, stddev

    def build(self, input_shape):
        self.kernel = self.add_weight(
            name="kernel",
            shape=(input_shape[-1], self.units),
            initializer=initializer(self.stddev),
        )
        self.bias = self.add_weight(
            name="bias", shape=(self.units,), initializer="zeros"
        )

    def call(self, x):
        *outer, width = dims(x)
        # One flat product: 8 % of a training step on CPU against a batched one.
        y = tf.matmul(tf.reshape(x, [-1, width]), tf.convert_to_tensor(self.kernel))
        y = tf.nn.bias_add(y, tf.convert_to_tensor(self.bias))
        return tf.reshape(y, [*outer, self.units])


class LayerNorm(keras.layers.Layer):
    """Layer normalization over the last axis (Ba et al. 2016), always in float32.

    Args:
        epsilon: float, added to the biased variance.
    Call arguments:
        x: float, [..., size].
    Returns:
        float, [..., size], in the type of `x`.
    """

    def __init__(self, epsilon, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape):
        size = input_shape[-1:]
        self.gamma = self.add_weight(
            name="gamma", shape=size, initializer="ones", autocast=False
        )
        self.beta = self.add_weight(
            name="beta", shape=size, initializer="zeros", autocast=False
        )

    def call(self, x):
        wide = tf.cast(x, tf.float32)
        centered = wide - tf.reduce_mean(wide, axis=-1, keepdims=True)
        variance = tf.reduce_mean(tf.square(centered), axis=-1, keepdims=True)
        normed = centered * tf.math.rsqrt(variance + self.epsilon)
        gamma, beta = (tf.convert_to_tensor(w) for w in (self.gamma, self.beta))
        return tf.cast(normed * gamma + beta, x.dtype)


# Every replica of a mirrored model is traced in a thread of its own.
_dropout = threading.local()


@contextlib.contextmanager
def dropout_seed(seed):
    """Fixes the masks of all `Dropout` layers called under it.

    Args:
        seed: int32, [2]. The n-th call of a dropout layer under it uses (seed, n), so
            equal seeds give equal masks and no two calls share one.
    """
    outer = getattr(_dropout, "state", None)
    _dropout.state = {"seed": tf.convert_to_tensor(seed, tf.int32), "calls": 0}
    try:
        yield
    finally:
        _dropout.state = outer


class Dropout(keras.layers.Layer):
    """Inverted dropout whose mask depends on `dropout_seed` and on nothing else.

    The rate is rounded to 1/65536, and survivors are scaled by the rounded rate, so the
    expectation is exact.

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
        state = getattr(_dropout, "state", None)
        if state is None:
            raise ValueError(
                "a model with dropout is called with training=True outside "
                "modeling.layers.dropout_seed(seed); wrap the call in it"
            )
        seed = state["seed"] + tf.constant([0, state["calls"]])
        state["calls"] += 1
        # 16 random bits an element, two elements a word: drawing floats instead costs
        # a tenth of a training step on CPU.
        size = tf.size(x)
        words = tf.random.stateless_uniform(
            [(size + 1) // 2], seed, minval=None, maxval=None, dtype=tf.int32
        )
        bits = tf.reshape(tf.bitcast(words, tf.uint16), [-1])[:size]
        dropped = min(round(self.rate * 65536), 65535)
        keep = tf.cast(bits >= tf.constant(dropped, tf.uint16), x.dtype)
        scale = 65536 / (65536 - dropped)
        return x * (tf.reshape(keep, tf.shape(x)) * tf.cast(scale, x.dtype))
