"""Layer norm against plain NumPy, in its three ways."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context  # has no public name
from tensorflow.python.framework import test_util  # nor has this

from modeling import layer_norm, layers
from tests import numpy_bert
from tests.small_models import close, gradients

pytestmark = pytest.mark.usefixtures("on_all_devices")


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 1.0])
@pytest.mark.parametrize(("offset", "scale"), [(0, 1), (100, 1), (0, 1e-3), (-3, 50)])
def test_layer_norm(epsilon, offset, scale):
    layer = layer_norm.LayerNorm(epsilon)
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
    layer = layer_norm.LayerNorm(1e-12)
    layer.build((None, 8))
    close(layer(tf.fill([1, 8], 3.0)), np.zeros((1, 8)))


def answering_layer_norm(size, rank, dtype):
    """One with random gamma and beta, and it as models have it that only answer."""
    layer = layer_norm.LayerNorm(1e-12, dtype=dtype.name)
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


def numeric_gradient(function, x, dy):
    """Of sum(function(x) * dy), by central differences in float64."""
    gradient, step = np.zeros_like(x), 1e-5
    for i in np.ndindex(*x.shape):
        high, low = x.copy(), x.copy()
        high[i] += step
        low[i] -= step
        gradient[i] = np.sum((function(high) - function(low)) * dy) / (2 * step)
    return gradient


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 5)])
def test_gradients_of_layer_norm_in_training(seed, shape):
    rng = np.random.default_rng(seed)
    layer = layer_norm.LayerNorm([1e-12, 1e-3, 1.0][seed])
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
    layer = layer_norm.LayerNorm(1e-12, dtype=keras.DTypePolicy(f"mixed_{dtype.name}"))
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
