"""Dropout: shares, scales, and that masks depend on the seed alone."""

import math

import numpy as np
import pytest
import tensorflow as tf

from modeling import dropout, layers
from tests.small_models import close

pytestmark = pytest.mark.usefixtures("on_all_devices")


def dropped(rate, seed, shape=(300, 333), calls=1):
    layer = dropout.Dropout(rate)
    with dropout.dropout_seed(seed):
        results = [layer(tf.ones(shape), training=True).numpy() for _ in range(calls)]
    return results if calls > 1 else results[0]


def correlation(first, second):
    return np.corrcoef(first.ravel() == 0, second.ravel() == 0)[0, 1]


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_share_and_scale_of_what_dropout_keeps(rate):
    kept = dropped(rate, [7, 7])
    spread = math.sqrt(rate * (1 - rate) / kept.size)
    assert (kept == 0).mean() == pytest.approx(rate, abs=5 * spread)
    assert len(np.unique(kept)) == 2
    assert kept.max() == pytest.approx(1 / (1 - rate), rel=1e-6)
    # Each row and each column is dropped alike: the masks have no pattern.
    for axis in (0, 1):
        share = (kept == 0).mean(axis=axis)
        spread = math.sqrt(rate * (1 - rate) / kept.shape[axis])
        assert np.abs(share - rate).max() < 5 * spread


def test_dropout_multiplies():
    x = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    layer = dropout.Dropout(0.4)
    with dropout.dropout_seed([1, 1]):
        actual = layer(tf.constant(x), training=True)
    with dropout.dropout_seed([1, 1]):
        mask = layer(tf.ones((4, 5)), training=True)
    close(actual, x * mask, 1e-6)


@pytest.mark.parametrize("shape", [(1,), (3,), (1, 1, 1), (5, 3)])
def test_dropout_of_odd_sizes(shape):
    assert dropped(0.5, [0, 0], shape).shape == shape


def test_masks_depend_on_the_seed_alone_and_differ_from_call_to_call():
    first, second, third = dropped(0.5, [1, 2], calls=3)
    assert np.array_equal(first, dropped(0.5, [1, 2]))
    limit = 5 / math.sqrt(first.size)
    others = [second, third, dropped(0.5, [2, 2]), dropped(0.5, [1, 5])]
    for other in others:
        assert abs(correlation(first, other)) < limit
    # Neighbours have numbers that differ in a bit or two.
    for step in (1, 2, 333):
        flat = first.ravel()
        assert abs(correlation(flat[step:], flat[:-step])) < limit


def test_dropout_off():
    x = tf.ones((2, 3))
    assert np.array_equal(dropout.Dropout(0.5)(x), x)
    assert np.array_equal(dropout.Dropout(0.5)(x, training=False), x)
    assert np.array_equal(dropout.Dropout(0.0)(x, training=True), x)


def test_dropout_needs_a_seed():
    with pytest.raises(ValueError, match=r"outside modeling.dropout.dropout_seed"):
        dropout.Dropout(0.5)(tf.ones((2, 3)), training=True)


def test_seeds_nest():
    layer = dropout.Dropout(0.5)
    x = tf.ones((20, 20))
    with dropout.dropout_seed([1, 1]):
        outer = [layer(x, training=True).numpy()]
        with dropout.dropout_seed([2, 2]):
            inner = layer(x, training=True).numpy()
        outer.append(layer(x, training=True).numpy())
    assert np.array_equal(inner, dropped(0.5, [2, 2], (20, 20)))
    expected = dropped(0.5, [1, 1], (20, 20), calls=2)
    assert all(map(np.array_equal, outer, expected))


def test_gradients_pass_where_dropout_kept():
    x = tf.ones((50, 50))
    with dropout.dropout_seed([3, 3]), tf.GradientTape() as tape:
        tape.watch(x)
        y = dropout.Dropout(0.3)(x, training=True)
    close(tape.gradient(y, x), y, 1e-6)


@pytest.mark.parametrize("rate", [1e-4, 0.1, 1 - 1e-4])
def test_the_elements_are_dropped_independently(rate):
    """The numbers dropped in a row are binomial, in mean and in variance."""
    shares = (dropped(rate, [11, 3], shape=(40_000, 60)) == 0).mean(axis=1)
    variance = rate * (1 - rate) / 60
    assert shares.mean() == pytest.approx(rate, abs=5 * math.sqrt(variance) / 200)
    # The fourth moment of such a share, for the spread of its variance.
    fourth = 3 * variance**2 + variance / 3600 * (1 - 6 * rate * (1 - rate))
    spread = math.sqrt((fourth - variance**2) / 40_000)
    assert shares.var() == pytest.approx(variance, abs=5 * spread)


def test_every_bit_is_random_and_independent_of_the_others_and_of_neighbours():
    """By the numbers themselves, which a mask compares with one limit only."""
    words = dropout._random_bits([2**16], dropout_keys([3, 4])).numpy()
    assert len(np.unique(words)) == len(words)
    bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 32).astype(float) - 0.5
    limit = 6 / math.sqrt(len(words))
    for distance in (0, 1, 2, 64, 128, 512):
        products = bits[distance:].T @ bits[: len(bits) - distance] / len(bits) * 4
        if distance == 0:
            np.fill_diagonal(products, 0)
        assert np.abs(products).max() < limit
    assert np.abs(bits.mean(axis=0)).max() < limit


def triple32(place, keys):
    """C. Wellons's "triple32" of 2018, in integers, with two keys on the way."""

    def shifted(x, places):
        return x ^ x >> places

    x = (place + keys[0]) % 2**32
    x = shifted(x, 17) * 0xED5AD4BB % 2**32 ^ keys[1]
    x = shifted(x, 11) * 0xAC4C1B51 % 2**32
    x = shifted(x, 15) * 0x31848BAB % 2**32
    return shifted(x, 14)


def test_the_bits_on_cpus_are_those_of_a_published_function(monkeypatch):
    monkeypatch.setattr(layers, "makes_loops", lambda: True)
    for keys in ((0, 0), (5, 17), (2**32 - 50, 0xDEADBEEF)):
        words = dropout._random_bits([10, 10], tf.constant(keys, tf.uint32)).numpy()
        expected = [triple32(place, keys) for place in range(100)]
        assert words.ravel().tolist() == expected


def test_masks_of_neighbouring_keys_are_not_shifted_ones():
    """As they would be if place and first key were all that is mixed."""
    first, second = (
        dropout._random_bits([2**14], tf.constant(keys, tf.uint32)).numpy()
        for keys in ([5, 17], [6, 1234567])
    )
    assert len(np.intersect1d(first, second)) <= 2  # 0.06 by chance
    bits = [np.unpackbits(w.view(np.uint8)) for w in (first[1:], second[:-1])]
    assert abs(np.corrcoef(*bits)[0, 1]) < 5 / math.sqrt(bits[0].size)


def dropout_keys(seed):
    with dropout.dropout_seed(seed):
        return dropout.Dropout(0.5).mask().keys


def test_recompute_drops_the_same_elements_and_goes_on_after_them():
    layer = dropout.Dropout(0.5)

    def function(x):
        return layer(layer(x, training=True) + 1, training=True) ** 2

    def run(call):
        x = tf.ones((20, 20))
        with dropout.dropout_seed([5, 5]), tf.GradientTape() as tape:
            tape.watch(x)
            y = call(function, x)
            more = layer(x, training=True)
        gradient = tape.gradient(y, x)  # outside dropout_seed, as in training
        return y, gradient, more

    expected = run(lambda function, x: function(x))
    for eager in (True, False):
        call = dropout.recompute
        actual = run(call) if eager else tf.function(run)(call)
        assert all(map(np.array_equal, actual, expected))


def test_masks_do_not_repeat_after_the_gradient_of_recompute():
    """Micro-batches: a gradient is taken before the next forward pass."""
    layer = dropout.Dropout(0.5)
    x = tf.ones((30, 30))
    masks = []
    with dropout.dropout_seed([5, 5]):
        layer(x, training=True)
        for _ in range(2):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = dropout.recompute(lambda x: layer(x, training=True), x)
                layer(x, training=True)
            masks += [y, tape.gradient(y, x)]
    assert np.array_equal(masks[0], masks[1]) and np.array_equal(masks[2], masks[3])
    assert not np.array_equal(masks[0], masks[2])
    assert np.array_equal(masks[2], dropped(0.5, [5, 5], (30, 30), calls=4)[3])
