"""The small layers everything is made of: linear maps, layer norm, GELU.

They replace their Keras namesakes for reasons that were measured: a product over
flattened tokens and a layer norm of few passes over the memory are faster on CPUs.
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


def _sum_of_rows(x):
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
        return dx, dkernel, _sum_of_rows(dy)

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


def _mean(x):
    return tf.reduce_mean(x, axis=-1, keepdims=True)


def _layer_norm(x, gamma, beta, epsilon):
    wide = tf.cast(x, tf.float32)
    centered = wide - _mean(wide)
    scale = tf.math.rsqrt(_mean(tf.square(centered)) + epsilon)
    return tf.cast(centered * scale * gamma + beta, x.dtype)


_MANY = 2**17  # elements, of which on `_norm_at_once` is faster


def _layer_norm_without_gradients(x, gamma, beta, epsilon):
    """Layer norm in a fourth of the time where x is large, in half of it if narrow."""
    wide = tf.cast(tf.reshape(x, [-1, gamma.shape[0]]), tf.float32)
    ways = [
        functools.partial(norm, wide, gamma, beta, epsilon)
        for norm in (_norm_at_once, _layer_norm)
    ]
    y = tf.cond(tf.size(x) >= _MANY, *ways)
    return tf.reshape(tf.cast(y, x.dtype), dims(x))


def _norm_at_once(x, gamma, beta, epsilon):
    """Layer norm, told so that TensorFlow recognizes it, and has oneDNN do it.

    That takes one pass over the memory, in place of eight; but it is prepared anew for
    every call, which takes 0.1 ms. It would take narrow types, but round gamma and beta
    to them.

    Args:
        x: float32, [rows, size].
    """
    rows, size = dims(x)
    none = tf.zeros([0])
    y = tf.raw_ops.FusedBatchNormV3(
        x=tf.reshape(x, [1, rows, size, 1]),  # each row has the place of a channel
        scale=tf.fill([rows], 1.0),
        offset=tf.fill([rows], 0.0),
        mean=none,
        variance=none,
        epsilon=epsilon,
        data_format="NCHW",
        is_training=True,
    ).y
    return tf.reshape(y, [rows, size]) * gamma + beta


def _layer_norm_in_training(x, gamma, beta, epsilon):
    """Layer norm that keeps x and two numbers a row for its gradient.

    Value and gradient take half of the time that operations by themselves take (4096
    rows of 384, and 1024 of 768, on two cores).
    """
    if len(x.shape) > 2:
        flat = tf.reshape(x, [-1, gamma.shape[0]])
        return tf.reshape(_layer_norm_in_training(flat, gamma, beta, epsilon), dims(x))

    @tf.custom_gradient
    def norm(x, gamma, beta):
        wide = tf.cast(x, tf.float32)
        mean = _mean(wide)
        variance = _mean(tf.math.squared_difference(wide, mean))
        scale = tf.math.rsqrt(variance + epsilon)

        def gradient(dy):
            wide_dy = tf.cast(dy, tf.float32)
            product = _normed_times(x, mean, scale, dy)
            along = [_weighted_mean(y, gamma) for y in (wide_dy, product)]
            dx = _gradient_of_norm(x, mean, scale, dy, gamma, *along)
            # In float32, which products are not on GPUs and TPUs.
            exact = functools.partial(tf.reduce_sum, axis=0)
            total = _sum_of_rows if makes_loops() else exact
            return dx, total(product), total(wide_dy)

        return _norm(x, mean, scale, gamma, beta), gradient

    return norm(x, gamma, beta)


def _weighted_mean(x, weights):
    """Means of x * weights over the last axis, [rows, 1]."""
    if not makes_loops():  # see `_layer_norm_in_training`
        return _mean(x * weights)
    return x @ tf.expand_dims(weights / weights.shape[0], 1)  # faster on CPUs


def _normed(x, mean, scale):
    return (tf.cast(x, tf.float32) - mean) * scale


@one_loop
def _norm(x, mean, scale, gamma, beta):
    return tf.cast(_normed(x, mean, scale) * gamma + beta, x.dtype)


@one_loop
def _normed_times(x, mean, scale, dy):
    return _normed(x, mean, scale) * tf.cast(dy, tf.float32)


@one_loop
def _gradient_of_norm(x, mean, scale, dy, gamma, along_one, along_normed):
    """dy * gamma without its parts along 1 and `normed`, which x cannot change."""
    part = along_one + _normed(x, mean, scale) * along_normed
    return tf.cast((tf.cast(dy, tf.float32) * gamma - part) * scale, x.dtype)


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
        # In float32 under any policy.
        options = {"shape": input_shape[-1:], "dtype": "float32", "autocast": False}
        self.gamma = self.add_weight(name="gamma", initializer="ones", **options)
        self.beta = self.add_weight(name="beta", initializer="zeros", **options)

    def call(self, x, training=False):
        gamma, beta = (tf.convert_to_tensor(w) for w in (self.gamma, self.beta))
        if training:
            return _layer_norm_in_training(x, gamma, beta, self.epsilon)
        if has_gradients() or not makes_loops() or x.dtype == tf.float64:
            return _layer_norm(x, gamma, beta, self.epsilon)
        return _layer_norm_without_gradients(x, gamma, beta, self.epsilon)
