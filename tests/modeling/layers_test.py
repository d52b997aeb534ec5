"""The small layers against plain NumPy, and dropout against its own laws."""

import math

import numpy as np
import pytest
import tensorflow as tf

from modeling import config as config_lib
from modeling import layers
from tests import numpy_bert
from tests.small_models import close


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


def dropped(rate, seed, shape=(300, 333), calls=1):
    layer = layers.Dropout(rate)
    with layers.dropout_seed(seed):
        results = [layer(tf.ones(shape), training=True).numpy() for _ in range(calls)]
    return results if calls > 1 else results[0]


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_share_and_scale_of_what_dropout_keeps(rate):
    kept = dropped(rate, [7, 7])
    spread = math.sqrt(rate * (1 - rate) / kept.size)
    assert (kept == 0).mean() == pytest.approx(rate, abs=5 * spread)
    # The rate is a multiple of 1/65536, so the scale is near 1 / (1 - rate).
    assert len(np.unique(kept)) == 2
    assert kept.max() == pytest.approx(1 / (1 - rate), rel=1e-4)
    assert kept.mean() == pytest.approx(1, abs=5 * spread / (1 - rate) + 1e-4)
    # Each row and each column is dropped alike: the masks have no pattern.
    for axis in (0, 1):
        share = (kept == 0).mean(axis=axis)
        spread = math.sqrt(rate * (1 - rate) / kept.shape[axis])
        assert np.abs(share - rate).max() < 5 * spread


def test_dropout_multiplies():
    x = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    layer = layers.Dropout(0.4)
    with layers.dropout_seed([1, 1]):
        actual = layer(tf.constant(x), training=True)
    with layers.dropout_seed([1, 1]):
        mask = layer(tf.ones((4, 5)), training=True)
    close(actual, x * mask, 1e-6)


@pytest.mark.parametrize("shape", [(1,), (3,), (1, 1, 1), (5, 3)])
def test_dropout_of_odd_sizes(shape):
    assert dropped(0.5, [0, 0], shape).shape == shape


def correlation(first, second):
    return np.corrcoef(first.ravel() == 0, second.ravel() == 0)[0, 1]


def test_masks_depend_on_the_seed_alone_and_differ_from_call_to_call():
    first, second, third = dropped(0.5, [1, 2], calls=3)
    assert np.array_equal(first, dropped(0.5, [1, 2]))
    limit = 5 / math.sqrt(first.size)
    others = [second, third, dropped(0.5, [2, 2]), dropped(0.5, [1, 5])]
    for other in others:
        assert abs(correlation(first, other)) < limit
    # Neighbours within a mask come from one random word.
    for step in (1, 2, 333):
        flat = first.ravel()
        assert abs(correlation(flat[step:], flat[:-step])) < limit


def test_dropout_off():
    x = tf.ones((2, 3))
    assert np.array_equal(layers.Dropout(0.5)(x), x)
    assert np.array_equal(layers.Dropout(0.5)(x, training=False), x)
    assert np.array_equal(layers.Dropout(0.0)(x, training=True), x)


def test_dropout_needs_a_seed():
    with pytest.raises(ValueError, match=r"outside modeling.layers.dropout_seed"):
        layers.Dropout(0.5)(tf.ones((2, 3)), training=True)


def test_seeds_nest():
    layer = layers.Dropout(0.5)
    x = tf.ones((20, 20))
    with layers.dropout_seed([1, 1]):
        outer = [layer(x, training=True).numpy()]
        with layers.dropout_seed([2, 2]):
            inner = layer(x, training=True).numpy()
        outer.append(layer(x, training=True).numpy())
    assert np.array_equal(inner, dropped(0.5, [2, 2], (20, 20)))
    expected = dropped(0.5, [1, 1], (20, 20), calls=2)
    assert all(map(np.array_equal, outer, expected))


def test_gradients_pass_where_dropout_kept():
    x = tf.ones((50, 50))
    with layers.dropout_seed([3, 3]), tf.GradientTape() as tape:
        tape.watch(x)
        y = layers.Dropout(0.3)(x, training=True)
    close(tape.gradient(y, x), y, 1e-6)


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
