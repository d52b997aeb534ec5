"""The LSTM against plain NumPy and Keras's own; padding; the encoder with one on it."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from modeling import bilstm, checkpoint, dropout, models, optimization
from tests import small_models
from tests.small_models import close


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def numpy_lstm(x, kernel, recurrent_kernel, bias):
    """States, [tokens, units], of one sequence without padding, [tokens, size]."""
    units = recurrent_kernel.shape[0]
    h, c, states = np.zeros(units), np.zeros(units), []
    for row in x:
        z = row @ kernel + h @ recurrent_kernel + bias
        i, f, g, o = (z[n * units : (n + 1) * units] for n in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    return np.stack(states)


def numpy_bilstm(layer_weights, x):
    """Of several layers on one sequence; weights as the layers hold them."""
    for kernel, recurrent_kernel, bias in layer_weights:
        (wf, wb), (bf, bb) = np.split(kernel, 2, axis=1), np.split(bias, 2)
        forward = numpy_lstm(x, wf, recurrent_kernel[0], bf)
        backward = numpy_lstm(x[::-1], wb, recurrent_kernel[1], bb)[::-1]
        x = np.concatenate([forward, backward], axis=1)
    return x


def make(seed, num_layers=2, size=6, width=8):
    """A BiLSTM with random weights, also in float64."""
    model = bilstm.BiLSTM(num_layers, width)
    model.build((None, None, size))
    rng = np.random.default_rng(seed)
    for variable in model.weights:
        variable.assign(rng.normal(0, 0.5, variable.shape))
    weights = [
        [w.numpy().astype(np.float64) for w in layer.weights] for layer in model.layers
    ]
    return model, weights


def inputs(seed, size=6, batch_size=4, seq_length=9):
    """(x, input_mask) of random lengths; the first has all, the last one token."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(batch_size, seq_length, size)).astype(np.float32)
    lengths = rng.integers(1, seq_length + 1, batch_size)
    lengths[0], lengths[-1] = seq_length, 1
    return x, (np.arange(seq_length) < lengths[:, None]).astype(np.int32)


@pytest.mark.parametrize("seed", range(8))
def test_states_equal_plain_numpy(seed):
    model, weights = make(seed, num_layers=1 + seed % 3, size=5)
    x, input_mask = inputs(seed, size=5)
    states = model(x, input_mask).numpy()
    assert states.dtype == np.float32
    for row, mask, actual in zip(x, input_mask, states, strict=True):
        real = mask == 1
        close(actual[real], numpy_bilstm(weights, row[real].astype(np.float64)))


def test_states_and_gradients_equal_those_of_keras():
    model, ((kernel, recurrent_kernel, bias),) = make(0, num_layers=1)
    x, input_mask = inputs(1)
    theirs = keras.layers.Bidirectional(keras.layers.LSTM(4, return_sequences=True))
    theirs.build(x.shape)
    for part, i in ((theirs.forward_layer, 0), (theirs.backward_layer, 1)):
        own = np.split(kernel, 2, 1)[i], recurrent_kernel[i], np.split(bias, 2)[i]
        part.set_weights(own)
    real = tf.constant(input_mask[..., None], tf.float32)

    def gradients(states_of, variables):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.sin(3 * states_of()) * real)
        return loss, tape.gradient(loss, variables)

    loss, ours = gradients(
        lambda: model(x, input_mask, training=True),
        [v.value for v in model.trainable_variables],
    )
    expected, (wf, uf, bf, wb, ub, bb) = gradients(
        lambda: theirs(x, mask=input_mask.astype(bool)),
        [v.value for v in theirs.trainable_variables],
    )
    close(loss, expected, 1e-4)
    close(ours[0], np.concatenate([wf, wb], axis=1), 1e-4)
    close(ours[1], np.stack([uf, ub]), 1e-4)
    close(ours[2], np.concatenate([bf, bb]), 1e-4)


@pytest.mark.parametrize("seed", range(8))
def test_padding_does_not_change_real_positions(seed):
    model, _ = make(seed)
    x, input_mask = inputs(seed)
    real = input_mask == 1
    expected = model(x, input_mask).numpy()[real]
    rng = np.random.default_rng(seed)
    other = np.where(real[..., None], x, 100 * rng.normal(size=x.shape))
    close(model(other.astype(np.float32), input_mask).numpy()[real], expected, 0)
    longer = np.pad(x, [(0, 0), (0, 5), (0, 0)], constant_values=3)
    longer_mask = np.pad(input_mask, [(0, 0), (0, 5)])
    close(model(longer, longer_mask).numpy()[longer_mask == 1], expected, 1e-6)
    order = rng.permutation(len(x))
    shuffled = model(x[order], input_mask[order]).numpy()[real[order]]
    close(shuffled, model(x, input_mask).numpy()[order][real[order]], 1e-6)


def test_padding_has_no_gradient():
    model, _ = make(0)
    x, input_mask = inputs(0)
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        states = model(x, input_mask, training=True)
        loss = tf.reduce_sum(states**2 * tf.constant(input_mask[..., None], tf.float32))
    gradient = tape.gradient(loss, x).numpy()
    assert (gradient[input_mask == 0] == 0).all()
    assert (np.abs(gradient[input_mask == 1]).sum(axis=-1) > 0).all()


def test_every_state_knows_both_sides():
    model, _ = make(3, num_layers=1)
    x, input_mask = inputs(3)
    x, input_mask = x[:1], input_mask[:1]
    before = model(x, input_mask).numpy()[0]
    changed = x.copy()
    changed[0, 4] += 1
    moved = np.abs(model(changed, input_mask).numpy()[0] - before)
    assert (moved[:4, :4] == 0).all() and (moved[4:, :4].sum(axis=1) > 0).all()
    assert (moved[5:, 4:] == 0).all() and (moved[:5, 4:].sum(axis=1) > 0).all()


def test_fresh_weights():
    model = bilstm.BiLSTM(1, 16)
    model.build((None, None, 24))
    kernel, recurrent_kernel, bias = (v.numpy() for v in model.weights)
    limit = (6 / (24 + 32)) ** 0.5
    assert kernel.shape == (24, 64) and recurrent_kernel.shape == (2, 8, 32)
    assert 0.95 * limit < np.abs(kernel).max() <= limit
    for matrix in recurrent_kernel:
        close(matrix @ matrix.T, np.eye(8), 1e-5)
    expected = [0] * 8 + [1] * 8 + [0] * 16
    assert bias.tolist() == expected * 2


def test_an_odd_size_is_refused():
    with pytest.raises(ValueError, match="must be even, got 7"):
        bilstm.BiLSTM(1, 7)


def with_bilstm(model_class, config, *args, num_layers=2):
    make_encoder = functools.partial(bilstm.EncoderWithBiLSTM, num_layers=num_layers)
    return model_class(config, *args, make_encoder=make_encoder)


@pytest.mark.parametrize("position", ["first", "last"])
def test_the_encoder_gives_the_states_and_one_of_them_pooled(position):
    config = small_models.config(pooled_position=position)
    model = with_bilstm(models.BertForSequenceClassification, config, 3)
    numbers = small_models.batch(config, 0)
    batch = small_models.tensors(numbers)
    outputs = model(batch)
    plain = models.BertForSequenceClassification(config, 3)
    for name, variable in small_models.variables(plain).items():
        variable.assign(small_models.variables(model)[name])
    expected = plain(batch)
    close(outputs["encoder_outputs"][-1], expected["sequence_output"], 0)
    x = expected["sequence_output"].numpy().astype(np.float64)
    weights = [[w.numpy() for w in layer.weights] for layer in model.bert.bilstm.layers]
    for row, mask, states, pooled in zip(
        x,
        numbers["input_mask"] == 1,
        outputs["sequence_output"].numpy(),
        outputs["pooled_output"],
        strict=True,
    ):
        close(states[mask], numpy_bilstm(weights, row[mask]))
        close(pooled, states[mask][-1 if position == "last" else 0], 0)


def test_checkpoints_without_it_leave_it_fresh_and_it_learns_like_a_head(tmp_path):
    config = small_models.config()
    plain = models.BertForTokenClassification(config, 3)
    weights = small_models.randomize(plain, 0)
    checkpoint.write_tf1(str(tmp_path / "plain"), weights)
    model = with_bilstm(models.BertForTokenClassification, config, 3, num_layers=1)
    report = checkpoint.load(model, str(tmp_path / "plain"))
    own = ["bilstm/layer_0/kernel", "bilstm/layer_0/recurrent_kernel"]
    own.append("bilstm/layer_0/bias")
    assert report.fresh == own and not report.unused
    rates = optimization.layer_rates(checkpoint.weight_names(model), 0.5, 2)
    assert {rates[name] for name in own} == {rates["output_bias"]} == {1}
    # As a classifier whose labels differ, one of other sizes may stay behind.
    other = small_models.config(hidden_size=12)
    deeper = with_bilstm(models.BertForTokenClassification, other, 3, num_layers=2)
    saved = {n: v.numpy() for n, v in checkpoint.weight_names(model).items()}
    checkpoint.write_tf1(str(tmp_path / "own"), saved)
    report = checkpoint.load(deeper, str(tmp_path / "own"))
    assert report.fresh == [name.replace("layer_0", "layer_1") for name in own]
    np.testing.assert_array_equal(
        deeper.bert.bilstm.layers[0].kernel, saved["bilstm/layer_0/kernel"]
    )


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_it_computes_in_float32_under_any_policy(policy):
    expected, _ = make(0)
    x, input_mask = inputs(0)
    keras.config.set_dtype_policy(policy)
    try:
        model, _ = make(0)
        model_of_it = with_bilstm(
            models.BertForTokenClassification, small_models.config(), 3
        )
    finally:
        keras.config.set_dtype_policy("float32")
    coarse = tf.cast(x, model_of_it.compute_dtype)
    states = model(coarse, input_mask)
    assert states.dtype == tf.float32
    close(states, expected(tf.cast(coarse, tf.float32), input_mask), 0)
    batch = small_models.tensors(small_models.batch(model_of_it.config, 0))
    outputs = model_of_it(batch)
    assert outputs["encoder_outputs"][-1].dtype == coarse.dtype
    assert outputs["sequence_output"].dtype == outputs["logits"].dtype == tf.float32


@pytest.mark.slow
def test_xla_gives_the_same_update():
    config = small_models.config()
    model = with_bilstm(models.BertForTokenClassification, config, 3)
    batch = small_models.tensors(small_models.batch(config, 0))
    batch = {n: batch[n] for n in ("input_ids", "input_mask", "segment_ids")}

    def gradients(batch):
        with dropout.dropout_seed([1, 2]), tf.GradientTape() as tape:
            logits = model(batch, training=True)["logits"]
            loss = tf.reduce_sum(tf.sin(logits))
        found = tape.gradient(loss, [v.value for v in model.trainable_variables])
        return loss, [tf.convert_to_tensor(g) for g in found if g is not None]

    signature = [{name: tf.TensorSpec([None, None], tf.int32) for name in batch}]
    plain, compiled = (
        tf.function(
            gradients, jit_compile=jit, autograph=False, input_signature=signature
        )(batch)
        for jit in (False, True)
    )
    close(compiled[0], plain[0], 1e-4)
    for ours, theirs in zip(compiled[1], plain[1], strict=True):
        close(ours, theirs, 1e-4)
