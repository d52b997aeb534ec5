"""The loss scale against plain Python, and training in float16 with it."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from modeling import (
    attention,
    checkpoint,
    dropout,
    loss_scaling,
    losses,
    models,
    optimization,
)
from tests import small_models
from tests.small_models import close


@pytest.fixture
def float16():
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_float16")
    yield
    keras.config.set_dtype_policy(policy)


def history(scale, flags):
    """Scale and good steps after each update."""

    @tf.function
    def run(flags):
        rows = tf.TensorArray(tf.float32, tf.size(flags))
        for i in tf.range(tf.size(flags)):
            scale.update(flags[i])
            good_steps = tf.cast(scale.good_steps.read_value(), tf.float32)
            rows = rows.write(i, tf.stack([scale.value.read_value(), good_steps]))
        return rows.stack()

    return run(tf.constant(flags)).numpy().tolist()


def expected_history(flags):
    value, good_steps, rows = 32768.0, 0, []
    for finite in flags:
        if finite:
            good_steps += 1
            if good_steps == 2000:
                value, good_steps = value * 2, 0
        else:
            value, good_steps = max(1.0, value / 2), 0
        rows.append([value, float(good_steps)])
    return rows


@pytest.mark.parametrize("bad", [0.0, 1e-3, 0.5])
def test_the_scale_over_many_updates(bad):
    for seed in range(2):
        flags = np.random.default_rng(seed).random(9000) >= bad
        rows = history(loss_scaling.LossScale(), flags)
        assert rows == expected_history(flags)
    assert (max(value for value, _ in rows) > 32768) == (bad == 0)
    assert (min(value for value, _ in rows) == 1) == (bad == 0.5)


def test_2000_good_updates_in_a_row_double_it():
    flags = [True] * 1999 + [False] + [True] * 2000
    rows = history(loss_scaling.LossScale(), flags)
    assert rows[1998:2000] == [[32768, 1999], [16384, 0]]
    assert rows[3998:] == [[16384, 1999], [32768, 0]]


def test_it_stays_finite():
    scale = loss_scaling.LossScale()
    scale.value.assign(2.0**126)
    rows = history(scale, [True] * 4000 + [False])
    assert [rows[1999][0], rows[3999][0], rows[4000][0]] == [2.0**127] * 2 + [2.0**126]


def test_scaling_and_back_rounds_nothing():
    scale = loss_scaling.LossScale()
    x = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    scaled = scale.scale(tf.constant(x))
    assert np.array_equal(scaled, x * 32768)
    unscaled, none = scale.unscale([scaled, None])
    assert np.array_equal(unscaled, x)
    assert none is None


def test_it_is_in_checkpoints_beside_the_weights(tmp_path):
    scale = loss_scaling.LossScale()
    history(scale, [False, True, True])
    values = {name: v.numpy() for name, v in scale.slots().items()}
    prefix = str(tmp_path / "model.ckpt-3")
    checkpoint.write_tf1(prefix, {**values, "w": np.ones(1, np.float32)})
    read = checkpoint.read(prefix, with_slots=True)
    assert read["loss_scale"] == 16384
    assert read["loss_scale/good_steps"] == 2
    assert checkpoint.read(prefix).keys() == {"w"}


@pytest.mark.usefixtures("float16")
def test_the_mask_in_float16():
    """-10000 is exact; no key at all is no reason for a number that is none."""
    mask = attention.padding_mask(tf.constant([[1, 1, 0], [0, 0, 0]]))
    bias = attention.score_bias(mask, tf.float16)
    assert bias.dtype == tf.float16
    assert sorted(set(bias.numpy().ravel().tolist())) == [-10000, 0]
    config = small_models.config()
    layer = attention.SelfAttention(config, name="self")
    x = tf.constant(np.random.default_rng(0).normal(size=(6, 12)), tf.float16)
    context, probs = layer(x, bias)
    assert context.dtype == tf.float16
    assert probs.dtype == tf.float32
    assert np.isfinite(context).all()
    assert not probs.numpy()[0, :, :, 2].any()
    close(tf.reduce_sum(probs, -1), np.ones((2, 3, 3)), 1e-6)


def make(make_model, seed):
    model = make_model(
        small_models.config(
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            num_hidden_layers=1,
        )
    )
    weights = small_models.randomize(model, seed)
    return model, weights


def gradients_function(model, objective, batch):
    """Compiled: scale → loss, unscaled gradients."""
    variables = [w.value for w in model.trainable_weights]

    @tf.function
    def run(scale):
        with tf.GradientTape() as tape, dropout.dropout_seed([0, 0]):
            numerators = objective.numerators(model(batch, training=True), batch)
            denominators = objective.denominators(batch)
            loss = tf.add_n([n / denominators[name] for name, n in numerators.items()])
            scaled = loss * scale
        gradients = tape.gradient(scaled, variables)
        return loss, [tf.convert_to_tensor(g) / scale for g in gradients]

    return run


def relative_errors(exact, rounded):
    whole = np.sqrt(sum(np.square(g).sum() for g in exact))
    return [
        np.linalg.norm(a - b) / max(np.linalg.norm(a), 0.02 * whole)
        for a, b in zip(exact, rounded, strict=True)
    ]


@pytest.mark.usefixtures("float16")
def test_gradients_in_float16():
    """As exact as 11 bits are with the scale; without it, small ones vanish."""
    batch = small_models.tensors(small_models.batch(small_models.config(), 0, 6))
    model, _ = make(models.BertForPretraining, 0)
    outputs = model(batch)
    assert outputs["sequence_output"].dtype == tf.float16
    assert outputs["masked_lm_logits"].dtype == tf.float32
    assert {w.value.dtype for w in model.weights} == {tf.float32}
    rounded = gradients_function(model, losses.PRETRAINING, batch)
    keras.config.set_dtype_policy("float32")
    model, _ = make(models.BertForPretraining, 0)
    exact = gradients_function(model, losses.PRETRAINING, batch)
    loss, expected = exact(tf.constant(1.0))
    for scale in (1.0, 1024.0):
        actual_loss, actual = rounded(tf.constant(scale))
        assert float(actual_loss) == pytest.approx(float(loss), rel=2e-3)
        assert max(relative_errors(expected, actual)) < 0.02
    # A loss so small that its gradients are below what float16 holds.
    lost = relative_errors(expected, rounded(tf.constant(1e-7))[1])
    assert np.median(lost) > 0.1
    assert not all(np.isfinite(g).all() for g in rounded(tf.constant(2.0**30))[1])


@pytest.mark.usefixtures("float16")
def test_training_in_float16_finds_its_scale():
    """The scale starts too large; no weight moves until it fits, then losses fall."""
    batch = small_models.tensors(small_models.batch(small_models.config(), 1, 6))
    model, before = make(models.BertForPretraining, 1)
    gradients_of = gradients_function(model, losses.PRETRAINING, batch)
    scale = loss_scaling.LossScale()
    scale.value.assign(2.0**24)
    variables = small_models.variables(model)
    optimizer = optimization.AdamWeightDecay(variables, lambda _: tf.constant(5e-3))

    @tf.function
    def update():
        loss, gradients = gradients_of(scale.value)
        clipping, norm = optimization.clip_scale(gradients)
        finite = tf.math.is_finite(norm)
        optimizer.apply(gradients, finite, clipping)
        scale.update(finite)
        return loss, finite

    losses_, flags = [], []
    for _ in range(40):
        loss, finite = update()
        losses_.append(float(loss))
        flags.append(bool(finite))
        if not any(flags):
            for name, variable in variables.items():
                assert np.array_equal(variable.numpy(), before[name])
    skipped = flags.count(False)
    assert 2 <= skipped < 20
    assert not any(flags[:2])
    assert float(scale.value) == 2.0 ** (24 - skipped)
    assert all(np.isfinite(losses_))
    assert losses_[-1] < 0.7 * losses_[0]
