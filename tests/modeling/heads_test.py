"""The heads alone: which rows are gathered, and where gradients go."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from modeling import heads, models
from tests import small_models
from tests.small_models import close


@pytest.mark.parametrize("seed", range(5))
def test_positions_are_gathered_from_their_own_row(seed):
    rng = np.random.default_rng(seed)
    hidden_states = rng.normal(size=(4, 6, 3)).astype(np.float32)
    positions = rng.integers(0, 6, (4, 5)).astype(np.int32)
    actual = heads.gather_positions(tf.constant(hidden_states), tf.constant(positions))
    expected = [[hidden_states[b, p] for p in positions[b]] for b in range(4)]
    assert np.array_equal(actual, expected)


def test_positions_of_unknown_number():
    spec = [
        tf.TensorSpec([None, None, 3], tf.float32),
        tf.TensorSpec([None, None], tf.int32),
    ]
    function = tf.function(heads.gather_positions, input_signature=spec)
    x = tf.reshape(tf.range(24.0), [2, 4, 3])
    assert function(x, [[3], [0]]).numpy().tolist() == [[[9, 10, 11]], [[12, 13, 14]]]


def test_the_output_layer_keeps_its_weights_transposed():
    layer = heads.OutputLayer(2, name="seq_relationship")
    layer.build((None, 3))
    layer.output_weights.assign([[1, 2, 3], [4, 5, 6]])
    layer.output_bias.assign([10, 20])
    assert layer(tf.constant([[1.0, 0, 2]])).numpy().tolist() == [[17, 36]]
    actual = layer(tf.constant([[[1.0, 0, 2], [0, 0, 0]]]))
    assert actual.numpy().tolist() == [[[17, 36], [10, 20]]]


def test_the_decoder_is_the_embedding_table():
    """The table's gradient has both parts: of rows looked up and of words scored."""
    config = small_models.config()
    model = models.BertForPretraining(config)
    small_models.randomize(model, 0)
    batch = small_models.batch(config, 0)
    batch["input_ids"][:], batch["input_mask"][:] = np.arange(7), 1
    table = model.bert.embeddings.word_embeddings

    def gradient(score_words):
        with tf.GradientTape() as tape:
            outputs = model(small_models.tensors(batch))
            score = "masked_lm_logits" if score_words else "next_sentence_logits"
            total = tf.reduce_sum(tf.sin(outputs[score]))
        return tf.convert_to_tensor(tape.gradient(total, table.value)).numpy()

    looked_up = np.arange(config.vocab_size) < 7
    assert (np.abs(gradient(True)).max(axis=1) > 1e-4).all()
    by_lookup = np.abs(gradient(False)).max(axis=1)
    assert (by_lookup[looked_up] > 1e-6).all() and not by_lookup[~looked_up].any()


def test_logits_move_with_the_output_bias():
    config = small_models.config()
    model = models.BertForPretraining(config)
    small_models.randomize(model, 0)
    batch = small_models.tensors(small_models.batch(config, 0))
    before = model(batch)["masked_lm_logits"]
    shift = np.arange(config.vocab_size, dtype=np.float32)
    model.predictions.output_bias.assign_add(shift)
    close(
        model(batch)["masked_lm_logits"] - before, np.broadcast_to(shift, before.shape)
    )


def gradient_of_masked_lm(policy, training, seed):
    """That of what the head takes, float32, [200, 64]; its GELU is felt most."""
    config = small_models.config(hidden_size=64, num_attention_heads=1)
    before = keras.config.dtype_policy()
    try:
        keras.config.set_dtype_policy(policy)
        head = heads.MaskedLM(config)
    finally:
        keras.config.set_dtype_policy(before)
    head.build((None, 64))
    head.transform.kernel.assign(np.eye(64))
    rng = np.random.default_rng(seed)
    shapes = (200, 64), (config.vocab_size, 64), (200, config.vocab_size)
    exact = (tf.cast(rng.normal(size=shape), tf.bfloat16) for shape in shapes)
    x, table, dy = (tf.cast(a, head.compute_dtype) for a in exact)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = head(x, table, training=training)
    return tf.cast(tape.gradient(y, x, dy), tf.float32).numpy()


@pytest.mark.parametrize("seed", range(3))
def test_masked_lm_trains_with_the_precise_gradient_of_gelu(seed):
    expected = gradient_of_masked_lm("float32", False, seed)
    close(gradient_of_masked_lm("float32", True, seed), expected, 1e-4)
    errors = [
        np.std(gradient_of_masked_lm("mixed_bfloat16", training, seed) - expected)
        for training in (True, False)
    ]
    assert 0 < errors[0] < 0.8 * errors[1]
