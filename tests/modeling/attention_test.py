"""Self-attention against the NumPy reference, one layer alone."""

import numpy as np
import pytest
import tensorflow as tf

from modeling import attention
from tests import numpy_bert, small_models
from tests.small_models import close


def make_layer(seed, **sizes):
    config = small_models.config(**sizes)
    layer = attention.SelfAttention(config, name="self")
    layer.build((None, None, config.hidden_size))
    rng = np.random.default_rng(seed)
    for variable in layer.weights:
        variable.assign(rng.normal(0, 0.4, variable.shape))
    return config, layer


@pytest.mark.parametrize(("size", "heads"), [(12, 3), (12, 1), (12, 12), (10, 2)])
def test_equals_the_reference(size, heads):
    config, layer = make_layer(
        size + heads, hidden_size=size, num_attention_heads=heads
    )
    rng = np.random.default_rng(heads)
    x = rng.normal(size=(4, 5, size)).astype(np.float32)
    mask = (np.arange(5) < np.array([[5], [3], [1], [4]])).astype(np.int32)
    bias = attention.score_bias(attention.padding_mask(mask), tf.float32)
    context, probs = layer(x, bias)

    weights = {
        f"scope/{v.path.removeprefix('self/')}": v.numpy() for v in layer.weights
    }
    for i in range(4):
        expected = numpy_bert.attend(
            weights, config, "scope", x[i], mask[i], numpy_bert.no_dropout
        )
        close(context[i], expected[0])
        close(probs[i], expected[1])


def test_masks():
    mask = attention.padding_mask(tf.constant([[1, 1, 0], [1, 0, 0]]))
    assert mask.numpy().tolist() == [[[True, True, False]], [[True, False, False]]]
    bias = attention.score_bias(mask, tf.float32)
    assert bias.numpy().tolist() == [[[[0, 0, -10000]]], [[[0, -10000, -10000]]]]


def test_a_mask_for_every_query():
    """Where exactly one key is allowed, the context is that key's value."""
    config, layer = make_layer(0)
    x = tf.constant(np.random.default_rng(0).normal(size=(1, 4, 12)), tf.float32)
    partner = [2, 0, 3, 3]
    mask = tf.constant(np.eye(4, dtype=bool)[partner][None])
    context, probs = layer(x, attention.score_bias(mask, tf.float32))
    assert probs.numpy()[0].argmax(-1).tolist() == [partner] * 3
    close(context[0], layer.value(x).numpy()[0][partner])
