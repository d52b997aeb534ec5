"""The small layers against plain NumPy."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context  # has no public name
from tensorflow.python.framework import test_util  # nor has this

from modeling import config as config_lib
from modeling import layers
from tests import numpy_bert
from tests.small_models import close

pytestmark = pytest.mark.usefixtures("on_all_devices")


@pytest.mark.parametrize("name", config_lib.ACTIVATIONS)
def test_activations(name):
    x = np.linspace(-8, 8, 1001)
    expected = numpy_bert.ACTIVATIONS[name](x)
    close(layers.activation(name)(tf.constant(x, tf.float32)), expected, 1e-6)


def test_the_two_forms_of_gelu():
    x = np.linspace(-4, 4, 1001)
    difference = np.abs(numpy_bert.gelu(x) - numpy_bert.gelu_exact(x)).max()
    assert 4e-4 < difference < 6e-4  # close, but not the same
    # x Φ(x) at 1: the normal distribution's well-known 0.841344746.
    assert float(layers.gelu_exact(tf.constant(1.0))) == pytest.approx(0.841344746)
    tanh = math.tanh(math.sqrt(2 / math.pi) * 1.044715)
    assert float(layers.gelu(tf.constant(1.0))) == pytest.approx(0.5 * (1 + tanh))


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 5), (2, 1, 3, 5)])
def test_linear(shape):
    layer = layers.Linear(4, 0.02)
    layer.build(shape)
    rng = np.random.default_rng(0)
    kernel, bias, x = (
        rng.normal(size=(5, 4)),
        rng.normal(size=4),
        rng.normal(size=shape),
    )
    layer.kernel.assign(kernel)
    layer.bias.assign(bias)
    actual = layer(tf.constant(x, tf.float32))
    close(actual, x @ kernel + bias)
    assert actual.shape == (*shape[:-1], 4)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 1.0])
@pytest.mark.parametrize(("offset", "scale"), [(0, 1), (100, 1), (0, 1e-3), (-3, 50)])
def test_layer_norm(epsilon, offset, scale):
    layer = layers.LayerNorm(epsilon)
    layer.build((None, 64))
    rng = np.random.default_rng(0)
    gamma, beta = rng.normal(size=64), rng.normal(size=64)
    layer.gamma.assign(gamma)
    layer.beta.assign(beta)
    x = (offset + scale * rng.normal(size=(10, 64))).astype(np.float32)
    weights = {"x/LayerNorm/gamma": gamma, "x/LayerNorm/beta": beta}
    expected = numpy_bert.layer_norm(weights, "x", x.astype(np.float64), epsilon)
    close(layer(x), expected, 1e-5 if not offset else 1e-4)


def test_layer_norm_of_equal_numbers_is_finite():
    layer = layers.LayerNorm(1e-12)
    layer.build((None, 8))
    close(layer(tf.fill([1, 8], 3.0)), np.zeros((1, 8)))


def answering_layer_norm(size, rank, dtype):
    """One with random gamma and beta, and it as models have it that only answer."""
    layer = layers.LayerNorm(1e-12, dtype=dtype.name)
    layer.build((None, size))
    rng = np.random.default_rng(size)
    for weight in (layer.gamma, layer.beta):
        weight.assign(rng.normal(size=size))
    spec = tf.TensorSpec([*[None] * (rank - 1), size], dtype)
    ask = layers.without_gradients()(layer)
    return layer, tf.function(ask, input_signature=[spec], autograph=False)


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16, tf.float16])
@pytest.mark.parametrize("offset", [0, 100])
@pytest.mark.parametrize(
    "shape", [(1, 64), (500, 384), (2, 3, 64), (3, 200, 256), (9000, 16)]
)
def test_layer_norm_without_gradients(shape, offset, dtype):
    layer, ask = answering_layer_norm(shape[-1], len(shape), dtype)
    x = np.random.default_rng(0).normal(size=shape) + offset
    x = tf.cast(x, dtype)
    wide = tf.cast(x, tf.float64).numpy()
    gamma, beta = (w.numpy().astype(np.float64) for w in (layer.gamma, layer.beta))
    weights = {"x/LayerNorm/gamma": gamma, "x/LayerNorm/beta": beta}
    expected = numpy_bert.layer_norm(weights, "x", wide, 1e-12)
    found = ask(x)
    assert found.dtype == dtype
    assert found.shape == shape
    if dtype == tf.float32:
        close(found, expected, 1e-5 if not offset else 1e-4)
        return
    # The result alone is rounded, by half of its last place.
    rounding = {tf.bfloat16: 2.0**-8, tf.float16: 2.0**-11}[dtype]
    bound = 1.01 * rounding * np.abs(expected) + 1e-5
    assert (np.abs(tf.cast(found, tf.float64) - expected) < bound).all()


@pytest.mark.skipif(not test_util.IsMklEnabled(), reason="TensorFlow without oneDNN")
@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
def test_onednn_does_layer_norm_of_many_rows(dtype):
    """If TensorFlow did not recognize it, it would be slower than that of few."""
    _, ask = answering_layer_norm(384, 2, dtype)
    context.enable_run_metadata()
    try:
        ask(tf.ones([500, 384], dtype))
        graphs = context.context().export_run_metadata().partition_graphs
    finally:
        context.disable_run_metadata()
    operations = {node.op for graph in graphs for node in graph.node}
    assert ("_MklLayerNorm" in operations) == layers.makes_loops()


@pytest.mark.parametrize("name", config_lib.ACTIVATIONS)
def test_activations_of_every_number_in_float16(name):
    """The cube in GELU overflows from 41 on; values and slopes must not mind."""
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    x = x[np.isfinite(x)]
    tensor = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        y = layers.activation(name)(tensor)
    slope = tape.gradient(y, tensor).numpy().astype(np.float64)
    wide = x.astype(np.float64)
    expected = numpy_bert.ACTIVATIONS[name](wide)
    np.testing.assert_allclose(y.numpy(), expected, rtol=2e-3, atol=2e-3)
    h = 1e-3
    expected = numpy_bert.ACTIVATIONS[name](np.stack([wide - h, wide + h]))
    expected = (expected[1] - expected[0]) / (2 * h)
    smooth = np.abs(wide) > h  # relu has no slope at 0
    np.testing.assert_allclose(slope[smooth], expected[smooth], atol=4e-3)


def numeric_gradient(function, x, dy):
    """Of sum(function(x) * dy), by central differences in float64."""
    gradient, step = np.zeros_like(x), 1e-5
    for i in np.ndindex(*x.shape):
        high, low = x.copy(), x.copy()
        high[i] += step
        low[i] -= step
        gradient[i] = np.sum((function(high) - function(low)) * dy) / (2 * step)
    return gradient


def gradients(function, inputs, dy):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = function(*inputs)
    return y, tape.gradient(y, inputs, dy)


@pytest.mark.parametrize("name", ["gelu", "gelu_exact"])
def test_gradient_of_gelu_in_training(name):
    reference = getattr(numpy_bert, name)
    x = np.linspace(-8, 8, 1001)
    expected = (reference(x + 1e-6) - reference(x - 1e-6)) / 2e-6
    in_training = layers.activation(name, training=True)
    y, (dx,) = gradients(in_training, [tf.constant(x)], tf.ones(x.shape, tf.float64))
    close(y, reference(x), 1e-12)
    close(dx, expected, 1e-8)
    for dtype in (tf.float32, tf.bfloat16, tf.float16):
        inputs = [tf.cast(tf.constant(x), dtype)]
        wide = tf.cast(inputs[0], tf.float64).numpy()
        exact = (reference(wide + 1e-6) - reference(wide - 1e-6)) / 2e-6
        errors = []
        for function in (in_training, layers.activation(name)):
            y, (dx,) = gradients(function, inputs, tf.ones_like(inputs[0]))
            assert dx.dtype == y.dtype == dtype
            errors.append(np.std(tf.cast(dx, tf.float64) - exact))
        # Rounding does about what it does to the automatic gradient.
        assert 0 < errors[0] < 2 * errors[1], dtype


def test_gelu_in_training_of_numbers_whose_square_overflows():
    x = tf.constant([-6e4, -300.0, -11.0, 11.0, 300.0, 6e4], tf.float16)
    y, (dx,) = gradients(layers.activation("gelu", training=True), [x], tf.ones_like(x))
    assert np.array_equal(y, np.maximum(x, 0))
    assert dx.numpy().tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 5)])
def test_gradients_of_linear_in_training(shape):
    layer = layers.Linear(4, 1.0)
    layer.build(shape)
    rng = np.random.default_rng(0)
    x, dy = rng.normal(size=shape), rng.normal(size=(*shape[:-1], 4))

    @tf.function(input_signature=[tf.TensorSpec([None] * (len(shape) - 1) + [5])])
    def graph(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, training=True)
        weights = [layer.kernel.value, layer.bias.value]
        return tape.gradient(y, [x, *weights], tf.constant(dy, tf.float32))

    dx, dkernel, dbias = graph(tf.constant(x, tf.float32))
    close(dx, dy @ layer.kernel.numpy().T)
    close(dkernel, x.reshape(-1, 5).T @ dy.reshape(-1, 4))
    close(dbias, dy.reshape(-1, 4).sum(axis=0))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 5)])
def test_gradients_of_layer_norm_in_training(seed, shape):
    rng = np.random.default_rng(seed)
    layer = layers.LayerNorm([1e-12, 1e-3, 1.0][seed])
    layer.build((None, 5))
    x, dy, gamma, beta = (
        rng.normal(size=n).astype(np.float32) for n in (shape, shape, 5, 5)
    )
    layer.gamma.assign(gamma)
    layer.beta.assign(beta)
    weights = [layer.gamma.value, layer.beta.value]

    def expected(x=x, gamma=gamma, beta=beta):
        named = {"x/LayerNorm/gamma": gamma, "x/LayerNorm/beta": beta}
        return numpy_bert.layer_norm(named, "x", x, layer.epsilon)

    @tf.function(input_signature=[tf.TensorSpec([None] * len(shape)) for _ in range(2)])
    def graph(x, dy):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, training=True)
        return y, tape.gradient(y, [x, *weights], dy)

    y, (dx, dgamma, dbeta) = graph(x, dy)
    close(y, layer(tf.constant(x)), 1e-6)
    wide, wide_gamma, wide_beta = (a.astype(np.float64) for a in (x, gamma, beta))
    close(dx, numeric_gradient(expected, wide, dy), 1e-4)
    close(dgamma, numeric_gradient(lambda g: expected(gamma=g), wide_gamma, dy), 1e-4)
    close(dbeta, numeric_gradient(lambda b: expected(beta=b), wide_beta, dy), 1e-4)


@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.float16])
def test_layer_norm_in_training_in_narrow_types(dtype):
    layer = layers.LayerNorm(1e-12, dtype=keras.DTypePolicy(f"mixed_{dtype.name}"))
    layer.build((None, 64))
    rng = np.random.default_rng(0)
    x, dy = (tf.cast(rng.normal(size=(10, 64)), dtype) for _ in range(2))
    _, (dx,) = gradients(lambda x: layer(x, training=True), [x], dy)
    wide = [tf.cast(x, tf.float32)]
    _, (exact,) = gradients(layer, wide, tf.cast(dy, tf.float32))
    assert dx.dtype == dtype
    # The last operation rounds to 8 or 11 bits; before, all is float32.
    close(
        tf.cast(dx, tf.float32), exact, {tf.bfloat16: 8e-3, tf.float16: 1e-3}[dtype] * 2
    )
