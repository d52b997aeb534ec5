"""Rates by weight, updates that are skipped, and two devices, of all optimizers."""

import re
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from modeling import lamb, loss_scaling, models, optimization
from tests import scripts, small_models
from tests.small_models import close

OPTIMIZERS = [optimization.AdamWeightDecay, lamb.Lamb]
SHAPES = {
    "bert/embeddings/word_embeddings": (7, 4),
    "bert/encoder/layer_0/output/dense/kernel": (4, 3),
    "bert/encoder/layer_0/output/LayerNorm/gamma": (3,),
    "bert/encoder/layer_1/output/dense/bias": (3,),
    "output_weights": (2, 3),
}


def arrays(rng, scale=1.0):
    return {
        name: (scale * rng.normal(size=shape)).astype(np.float32)
        for name, shape in SHAPES.items()
    }


def make(make_optimizer, weights, **options):
    """An optimizer of fresh variables, and its numbers as a dict by name."""
    variables = {name: keras.Variable(value) for name, value in weights.items()}
    optimizer = make_optimizer(
        variables, optimization.warmup_then_decay(1e-2, 40, 2), **options
    )

    def numbers():
        slots = {name: v.numpy() for name, v in optimizer.slots().items()}
        del slots["global_step"]
        return {name: v.numpy() for name, v in variables.items()} | slots

    return optimizer, numbers


def in_order(optimizer, gradients):
    return [tf.constant(gradients[name]) for name in optimizer.names]


def same_bits(actual, expected):
    assert actual.keys() == expected.keys()
    for name, value in actual.items():
        assert value.tobytes() == expected[name].tobytes(), name


def decoupled_adam(weights, gradients, rates, factors, bias_correction):
    """Loshchilov and Hutter 2019, algorithm 2, a scalar rate for each weight."""
    weights = {name: w.astype(np.float64) for name, w in weights.items()}
    m = {name: np.zeros(w.shape) for name, w in weights.items()}
    v = {name: np.zeros(w.shape) for name, w in weights.items()}
    for t, (gradient, rate) in enumerate(zip(gradients, rates, strict=True), 1):
        for name, w in weights.items():
            g = gradient[name].astype(np.float64)
            m[name] = 0.9 * m[name] + 0.1 * g
            v[name] = 0.999 * v[name] + 0.001 * g**2
            first, second = (1 - 0.9**t, 1 - 0.999**t) if bias_correction else (1, 1)
            step = (m[name] / first) / (np.sqrt(v[name] / second) + 1e-6)
            if not re.search("LayerNorm|bias", name):
                step = step + 0.01 * w
            weights[name] = w - rate * factors[name] * step
    return weights


@pytest.mark.parametrize("bias_correction", [False, True])
def test_rates_by_weight_equal_the_reference(bias_correction):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        weights, gradients = arrays(rng), [arrays(rng, 0.1) for _ in range(12)]
        factors = dict(zip(SHAPES, [0.2, 0.5, 0.5, 3.0, 1.0], strict=True))
        given = {name: f for name, f in factors.items() if f != 1}
        optimizer, numbers = make(
            optimization.AdamWeightDecay,
            weights,
            bias_correction=bias_correction,
            rates=given,
        )
        apply = tf.function(optimizer.apply)
        rates = [float(apply(in_order(optimizer, g))) for g in gradients]
        schedule = [
            1e-2 * (s / 2 if s < 2 else 1 - s / 40) for s in range(len(gradients))
        ]
        close(rates, schedule, 1e-8)
        expected = decoupled_adam(weights, gradients, rates, factors, bias_correction)
        actual = numbers()
        for name, value in expected.items():
            close(actual[name], value, 1e-6)
            assert np.abs(value - weights[name]).max() > 1e-3


@pytest.mark.parametrize("make_optimizer", OPTIMIZERS)
def test_rates_of_1_change_no_bit(make_optimizer):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        weights, gradients = arrays(rng), [arrays(rng) for _ in range(4)]
        results = []
        for rates in (None, optimization.layer_rates(SHAPES, 1.0, 2)):
            optimizer, numbers = make(make_optimizer, weights, rates=rates)
            apply = tf.function(optimizer.apply)
            for gradient in gradients:
                apply(in_order(optimizer, gradient))
            results.append(numbers())
        same_bits(*results)


@pytest.mark.parametrize("make_optimizer", OPTIMIZERS)
def test_a_rate_of_0_leaves_the_weight_out(make_optimizer):
    rng = np.random.default_rng(0)
    weights, gradient = arrays(rng), arrays(rng)
    frozen = ["bert/embeddings/word_embeddings", "output_weights"]
    optimizer, numbers = make(make_optimizer, weights, rates=dict.fromkeys(frozen, 0.0))
    others, of_others = make(
        make_optimizer, {n: w for n, w in weights.items() if n not in frozen}
    )
    assert len(optimizer.weights) == 3
    assert optimizer.slots().keys() == others.slots().keys()
    for each in (optimizer, others):
        tf.function(each.apply)(in_order(each, gradient))
    expected = of_others() | {name: weights[name] for name in frozen}
    same_bits(numbers(), expected)


def test_a_rate_of_no_weight_is_refused():
    with pytest.raises(ValueError, match="rate for 'bert/embedings', but no such weig"):
        make(
            optimization.AdamWeightDecay,
            arrays(np.random.default_rng(0)),
            rates={"bert/embedings": 0.5},
        )


def test_layer_rates_of_a_model():
    model = models.BertForPretraining(small_models.config(num_hidden_layers=3))
    classifier = models.BertForSequenceClassification(small_models.config(), 2)
    rates = optimization.layer_rates(small_models.variables(model), 0.5, 3)
    assert rates.keys() == small_models.variables(model).keys()
    assert set(optimization.layer_rates(rates, 1.0, 3).values()) == {1}
    assert rates["bert/embeddings/LayerNorm/beta"] == 2**-4
    assert rates["bert/encoder/layer_0/attention/self/query/kernel"] == 2**-3
    assert rates["bert/encoder/layer_1/output/dense/bias"] == 2**-2
    assert rates["bert/encoder/layer_2/output/dense/bias"] == 0.5
    assert rates["bert/pooler/dense/kernel"] == 1
    assert rates["cls/predictions/output_bias"] == 1
    # 16 weights a layer.
    powers = [1, 2, 3] * 16 + [4] * 5 + [0] * (len(rates) - 3 * 16 - 5)
    assert sorted(rates.values()) == sorted(0.5**p for p in powers)
    heads = optimization.layer_rates(small_models.variables(classifier), 0.5, 2)
    assert heads["output_weights"] == heads["output_bias"] == 1


COMPILED = {
    "graph": tf.function,
    "xla": lambda f: tf.function(f, jit_compile=True),
    "eager": lambda f: f,
}


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize("make_optimizer", OPTIMIZERS)
def test_a_skipped_update_changes_no_bit_but_the_step(make_optimizer, compiled):
    rng = np.random.default_rng(1)
    weights, gradients = arrays(rng), [arrays(rng) for _ in range(4)]
    # A schedule that does not move, so that the skipped runs differ in the step alone.
    optimizer, numbers = make(make_optimizer, weights, bias_correction=False)
    plain, of_plain = make(make_optimizer, weights, bias_correction=False)
    optimizer.schedule = plain.schedule = lambda _: tf.constant(0.01)
    skipping = COMPILED[compiled](optimizer.apply)
    always = COMPILED[compiled](plain.apply)
    bad = dict.fromkeys(SHAPES)
    for i, name in enumerate(SHAPES):
        bad[name] = np.full(SHAPES[name], [np.nan, np.inf, -np.inf][i % 3], np.float32)
    for done, gradient in enumerate(gradients):
        before = numbers()
        skipping(in_order(optimizer, bad), tf.constant(False))
        same_bits(numbers(), before)
        assert int(optimizer.step) == 2 * done + 1
        skipping(in_order(optimizer, gradient), tf.constant(True))
        always(in_order(plain, gradient))
        same_bits(numbers(), of_plain())
        assert int(optimizer.step) == 2 * done + 2
    assert numbers()["output_weights"].tobytes() != weights["output_weights"].tobytes()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e30])
def test_a_norm_that_is_not_finite_is_reported_and_skipped(wrong):
    """1e30 is finite, but its square is not."""
    rng = np.random.default_rng(2)
    weights, gradient = arrays(rng), arrays(rng)
    optimizer, numbers = make(optimization.AdamWeightDecay, weights)
    before = numbers()

    @tf.function
    def update(gradients):
        scale, norm = optimization.clip_scale(gradients)
        optimizer.apply(gradients, tf.math.is_finite(norm), scale)
        return norm

    gradient["output_weights"][1, 1] = wrong
    assert not np.isfinite(update(in_order(optimizer, gradient)))
    same_bits(numbers(), before)
    gradient["output_weights"][1, 1] = 1
    norm = np.sqrt(sum(np.square(g).sum() for g in gradient.values()))
    assert float(update(in_order(optimizer, gradient))) == pytest.approx(norm)
    assert np.isfinite(numbers()["output_weights"]).all()
    assert int(optimizer.step) == 2


# Logical devices must be made before anything touches a device: a process of its own.
TWO_DEVICES = """
import sys
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
half = tf.config.LogicalDeviceConfiguration()
tf.config.set_logical_device_configuration(cpu, [half, half])

from tests.modeling import optimization_updates_test

one = tf.distribute.get_strategy()
two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
for name, strategy in (("one", one), ("two", two)):
    results = optimization_updates_test.run_under(strategy)
    np.savez(f"{sys.argv[1]}/{name}.npz", **results)
"""


def run_under(strategy):
    """Everything that the optimizers hold after six updates, the third skipped.

    All copies of a value, stacked: each replica has half of the gradient.
    """
    results = {}
    for make_optimizer in OPTIMIZERS:
        rng = np.random.default_rng(3)
        with strategy.scope():
            variables = {name: keras.Variable(w) for name, w in arrays(rng).items()}
            optimizer = make_optimizer(
                variables,
                optimization.warmup_then_decay(1e-2, 40, 2),
                bias_correction=True,
                rates={"output_weights": 0.5},
            )
            scale = loss_scaling.LossScale()

        def replica(gradients, optimizer=optimizer, scale=scale):
            context = tf.distribute.get_replica_context()
            gradients = [g / context.num_replicas_in_sync for g in gradients]
            gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
            clipping, norm = optimization.clip_scale(gradients)
            finite = tf.math.is_finite(norm)
            scale.update(finite)
            return optimizer.apply(gradients, finite, clipping)

        update = tf.function(lambda g, f=replica: strategy.run(f, args=(g,)))
        for i in range(6):
            gradients = in_order(optimizer, arrays(rng, np.inf if i == 2 else 1.0))
            update(gradients)
        values = {name: v.value for name, v in variables.items()}
        for name, value in (values | optimizer.slots() | scale.slots()).items():
            copies = strategy.experimental_local_results(value)
            key = f"{make_optimizer.__name__}|{name}".replace("/", "|")
            results[key] = np.stack([copy.numpy() for copy in copies])
    return results


@pytest.mark.slow
def test_two_devices_update_as_one(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", TWO_DEVICES, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        cwd=scripts.ROOT,
    )
    assert result.returncode == 0, result.stderr
    one, two = (np.load(tmp_path / f"{name}.npz") for name in ("one", "two"))
    assert len(one.files) == 2 * (3 * len(SHAPES) + 3)
    for name in one.files:
        assert two[name].shape[0] == 2
        assert np.isfinite(one[name]).all()
        # Halves of a number add up to it without rounding.
        np.testing.assert_array_equal(two[name][:1], one[name], err_msg=name)
        np.testing.assert_array_equal(two[name][1:], one[name], err_msg=name)
    assert one["Lamb|global_step"] == 6
    assert one["Lamb|loss_scale"] == 2**14
    assert one["Lamb|loss_scale|good_steps"] == 3
