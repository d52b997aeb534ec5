"""Self-attention against the NumPy reference, one layer alone."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from modeling import attention, dropout, layers
from tests import numpy_bert, small_models
from tests.small_models import close

pytestmark = pytest.mark.usefixtures("on_all_devices")


def make_layer(seed, **sizes):
    config = small_models.config(**sizes)
    layer = attention.SelfAttention(config, name="self")
    layer.build((None, config.hidden_size))
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
    context, probs = layer(x.reshape(20, size), bias)
    context = tf.reshape(context, x.shape)

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


def test_the_mask_from_left_to_right():
    mask = attention.left_to_right_mask(tf.constant([[1, 1, 1, 0], [0, 1, 0, 0]]))
    of_three = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0]]
    assert mask.numpy().astype(int).tolist() == [
        of_three,
        [[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]],
    ]


def test_a_mask_for_every_query():
    """Where exactly one key is allowed, the context is that key's value."""
    config, layer = make_layer(0)
    x = tf.constant(np.random.default_rng(0).normal(size=(4, 12)), tf.float32)
    partner = [2, 0, 3, 3]
    mask = tf.constant(np.eye(4, dtype=bool)[partner][None])
    context, probs = layer(x, attention.score_bias(mask, tf.float32))
    assert probs.numpy()[0].argmax(-1).tolist() == [partner] * 3
    close(context, layer.value(x).numpy()[partner])


def training_inputs(seed):
    """A layer with dropout, hidden states, a bias with padding, a gradient."""
    config = small_models.config(attention_probs_dropout_prob=0.3)
    layer = attention.SelfAttention(config, name="self")
    layer.build((None, 12))
    rng = np.random.default_rng(seed)
    for variable in layer.weights:
        variable.assign(rng.normal(0, 0.4, variable.shape))
    x, dy = (tf.constant(rng.normal(size=(10, 12)), tf.float32) for _ in range(2))
    mask = attention.padding_mask(tf.constant([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]))
    return layer, x, attention.score_bias(mask, tf.float32), dy


def plain_attention(layer, x, bias):
    """The paper's formula, differentiated by TensorFlow."""

    def heads(linear):
        return tf.transpose(tf.reshape(linear(x), [2, 5, 3, 4]), [0, 2, 1, 3])

    query, key, value = map(heads, (layer.query, layer.key, layer.value))
    scores = tf.cast(tf.matmul(query, key, transpose_b=True) / 2 + bias, tf.float32)
    probs = layer.dropout(tf.cast(tf.nn.softmax(scores), x.dtype), training=True)
    context = tf.matmul(probs, value)
    return tf.reshape(tf.transpose(context, [0, 2, 1, 3]), [10, 12])


@pytest.mark.parametrize("shape", [(10, 12), (None, 12)])
@pytest.mark.parametrize("seed", range(3))
def test_gradients_in_training(seed, shape):
    layer, x, bias, dy = training_inputs(seed)
    weights = [w.value for w in layer.weights]

    @tf.function(input_signature=[tf.TensorSpec(shape)])
    def step(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            with dropout.dropout_seed([seed, 1]):
                actual = layer(x, bias, training=True)[0]
            with dropout.dropout_seed([seed, 1]):
                expected = plain_attention(layer, x, bias)
        results = (actual, expected)
        return [(y, tape.gradient(y, [x, *weights], dy)) for y in results]

    actual, expected = map(tf.nest.flatten, step(x))
    for ours, theirs in zip(actual, expected, strict=True):
        close(ours, theirs)


@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.float16])
def test_rounding_does_about_what_it_does_to_the_automatic_gradient(dtype):
    """Ours subtracts in the narrow type, which TensorFlow's does in float32."""

    def run(function, wide, policy, seed):
        keras.config.set_dtype_policy(policy)
        layer, x, bias, dy = training_inputs(seed)
        keras.config.set_dtype_policy("float32")
        type_ = tf.float32 if wide else dtype
        # What is rounded in the narrow type is rounded in both.
        x, bias, dy = (tf.cast(tf.cast(t, dtype), type_) for t in (x, bias, dy))
        with tf.GradientTape() as tape, dropout.dropout_seed([seed, 1]):
            tape.watch(x)
            y = function(layer, x, bias)
        gradients = tape.gradient(y, [x, *(w.value for w in layer.weights)], dy)
        return [tf.cast(t, tf.float32).numpy() for t in (y, *gradients)]

    def ours(layer, x, bias):
        return layer(x, bias, training=True)[0]

    def error(results, exact):
        return sum(np.sum((a - b) ** 2) for a, b in zip(results, exact, strict=True))

    errors = np.zeros(2)  # of squares
    for seed in range(10):
        exact = run(plain_attention, True, "float32", seed)
        for i, function in enumerate((ours, plain_attention)):
            results = run(function, False, f"mixed_{dtype.name}", seed)
            errors[i] += error(results, exact)
    assert 0 < errors[0] < 2**2 * errors[1]


def test_gradient_of_the_probabilities_in_training():
    """Of use to distillation; it does not pass through what makes the context."""
    layer, x, bias, _ = training_inputs(0)
    with tf.GradientTape(persistent=True) as tape, dropout.dropout_seed([0, 1]):
        tape.watch(x)
        loss = tf.reduce_sum(layer(x, bias, training=True)[1][..., 0] ** 2)
        expected = tf.reduce_sum(layer(x, bias)[1][..., 0] ** 2)
    close(tape.gradient(loss, x), tape.gradient(expected, x), 1e-6)
    assert np.abs(tape.gradient(loss, x)).max() > 1e-3


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize("length", [None, 5])
def test_without_gradients_the_bits_are_the_same(dtype, length):
    keras.config.set_dtype_policy(dtype)
    try:
        layer, x, bias, _ = training_inputs(0)
    finally:
        keras.config.set_dtype_policy("float32")
    specs = [tf.TensorSpec([None, 12]), tf.TensorSpec([None, 1, None, length])]

    def ask(x, bias):
        return layer(tf.cast(x, layer.compute_dtype), bias)

    plain = tf.function(ask, specs, autograph=False)
    fast = tf.function(layers.without_gradients()(ask), specs, autograph=False)
    graphs = [f.get_concrete_function().graph for f in (plain, fast)]
    operations = [{op.type for op in graph.get_operations()} for graph in graphs]
    assert "Bitcast" not in operations[0]
    assert "Bitcast" in operations[1]
    for ours, theirs in zip(fast(x, bias), plain(x, bias), strict=True):
        assert ours.dtype == theirs.dtype
        assert (ours.numpy() == theirs.numpy()).all()
