"""The small layers against plain NumPy."""

import math

import numpy as np
import pytest
import tensorflow as tf

from modeling import config as config_lib
from modeling import layers
from tests import numpy_bert
from tests.small_models import close, gradients

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
