"""The small layers everything is made of: linear maps and GELU; and loops on CPUs.

They replace their Keras namesakes for a reason that was measured: a product over
flattened tokens, and GELU in one loop, are faster on CPUs.
"""

import contextlib
import contextvars
import functools
import math

import keras
import tensorflow as tf

_has_gradients = contextvars.ContextVar("has_gradients", default=True)


@contextlib.contextmanager
def without_gradients():
    """Context, or decorator, in which models answer faster, but have no gradient."""
    token = _has_gradients.set(False)
    try:
        yield
    finally:
        _has_gradients.reset(token)


def has_gradients():
    """Whether what is called here must have a gradient; see `without_gradients`."""
    return _has_gradients.get()


def initializer(stddev):
    """Truncated normal, redrawn outside two standard deviations (BERT's for all)."""
    return keras.initializers.TruncatedNormal(stddev=stddev)


_GELU_LINEAR = math.sqrt(2 / math.pi)
_GELU_CUBIC = 0.044715 * math.sqrt(2 / math.pi)


def gelu(x):
    """GELU in the tanh form (Hendrycks and Gimpel 2016), which BERT uses."""
    square = x * x
    if x.dtype == tf.float16:  # where 256² is infinite; beyond 10 the tanh is 1
        square = tf.minimum(square, tf.constant(100, x.dtype))
    return x * (0.5 + 0.5 * tf.tanh(x * (_GELU_LINEAR + _GELU_CUBIC * square)))


def _gelu_in_inference(x):
    """The same in the operations that CPUs fuse with the product before them."""
    return gelu(x) if x.dtype == tf.float16 else tf.nn.gelu(x, approximate=True)


def gelu_exact(x):
    """GELU by the error function; Hugging Face's "gelu"."""
    # tf.math.erf, not tf.nn.gelu: its Erfc has no ONNX counterpart.
    return 0.5 * x * (1 + tf.math.erf(x * math.sqrt(0.5)))


def makes_loops():
    """Whether `one_loop` compiles: where there are CPUs only.

    GPUs may lack what XLA needs; TPUs have XLA around it all.
    """
    return all(x.device_type == "CPU" for x in tf.config.list_logical_devices())


def one_loop(function):
    """Decorator that has XLA make a single loop over the elements, on CPUs.

    TensorFlow's operations would make one each, through the memory.

    Args:
        function: of tensors, giving tensors, or of handles of variables, which it
            assigns to; each element of these depends on the elements in the same place,
            or on rows or columns that are broadcast.
    """
    compiled = tf.function(function, autograph=False, jit_compile=True)

    @functools.wraps(function)
    def in_one_loop(*args):
        return (compiled if makes_loops() else function)(*args)

    return in_one_loop


def _in_training(function):
    """The function for training: at least in float32, and it keeps x for its gradient.

    In one loop GELU takes a third of the time: 3 to 5 % of a training step.
    """

    def value(x):
        wide = tf.float64 if x.dtype == tf.float64 else tf.float32
        return tf.cast(function(tf.cast(x, wide)), x.dtype)

    @one_loop
    def gradient(x, dy):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = value(x)
        return tape.gradient(y, x, dy)

    in_one_loop = one_loop(value)

    @tf.custom_gradient
    def in_training(x):
        return in_one_loop(x), lambda dy: gradient(x, dy)

    return in_training


_IN_INFERENCE = {
    "gelu": _gelu_in_inference,
    "gelu_exact": gelu_exact,
    "relu": tf.nn.relu,
    "tanh": tf.tanh,
    "linear": lambda x: x,
}
_IN_TRAINING = {
    **_IN_INFERENCE,
    "gelu": _in_training(gelu),
    "gelu_exact": _in_training(gelu_exact),
}


def activation(name, training=False):
    """The function behind a config's `hidden_act`, in the form that is fastest."""
    return (_IN_TRAINING if training else _IN_INFERENCE)[name]


def dims(x):
    """Shape of `x` as a list: ints where it is static, scalar tensors elsewhere."""
    dynamic = tf.shape(x)
    return [
        dynamic[i] if size is None else size for i, size in enumerate(x.shape.as_list())
    ]


def sum_of_rows(x):
    """Sum over the first axis; as a product with ones, which is faster on CPUs."""
    return tf.squeeze(tf.ones([1, dims(x)[0]], x.dtype) @ x, axis=0)


@tf.custom_gradient
def _linear_in_training(x, kernel, bias):
    """x W + b of flat tokens, with a gradient that takes less time on CPUs."""

    def gradient(dy):
        width, units = kernel.shape
        if units > width and kernel.dtype == tf.float32:
            # Faster than a product with a matrix that is to be transposed. The order is
            # one that Grappler cannot see, or it would put the two together again.
            order = tf.raw_ops.PlaceholderWithDefault(input=[1, 0], shape=[2])
            transposed = tf.transpose(kernel, order)
            transposed.set_shape([units, width])
            dx = tf.matmul(dy, transposed)
        else:
            dx = tf.matmul(dy, kernel, transpose_b=True)
        dkernel = tf.matmul(x, dy, transpose_a=True)
        return dx, dkernel, sum_of_rows(dy)

    return tf.nn.bias_add(tf.matmul(x, kernel), bias), gradient


def linear(x, kernel, bias, training=False, function=None):
    """x W + b over the last axis; see `Linear`, which owns the weights.

    Args:
        x: float, [..., in].
        kernel: [in, units], and bias: [units], in the type of `x`.
        training: bool.
        function: of each element, applied to the result, or None.
    Returns:
        float, [..., units].
    """
    if len(x.shape) > 2:
        # One flat product: 8 % of a training step on CPU against a batched one. With
        # the function: behind a reshape, TensorFlow would not fuse it.
        *outer, width = dims(x)
        y = linear(tf.reshape(x, [-1, width]), kernel, bias, training, function)
        return tf.reshape(y, [*outer, kernel.shape[-1]])
    if training:
        y = _linear_in_training(x, kernel, bias)
    else:
        y = tf.nn.bias_add(tf.matmul(x, kernel), bias)
    return function(y) if function else y


class Linear(keras.layers.Layer):
    """x W + b over the last axis.

    Args:
        units: int, size of the last axis of the result.
        stddev: float, of the truncated normal that W starts from.
    Call arguments:
        x: float, [..., in].
        function: of each element, applied to the result, or None.
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

    def call(self, x, training=False, function=None):
        kernel, bias = (tf.convert_to_tensor(w) for w in (self.kernel, self.bias))
        return linear(x, kernel, bias, training, function)
