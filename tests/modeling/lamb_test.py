"""LAMB against a reference written from the paper, Keras's, and its own laws."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from modeling import lamb, optimization
from tests.small_models import close

pytestmark = pytest.mark.usefixtures("on_all_devices")

SHAPES = {"a/kernel": (5, 4), "a/bias": (4,), "a/LayerNorm/gamma": (4,), "b": (3, 2)}


def arrays(rng, scale=1.0):
    return {
        name: (scale * rng.normal(size=shape)).astype(np.float32)
        for name, shape in SHAPES.items()
    }


def make(weights, make_optimizer=lamb.Lamb, **options):
    """Fresh variables and their update: {name: gradient} → None."""
    variables = {n: keras.Variable(w.astype(np.float32)) for n, w in weights.items()}
    optimizer = make_optimizer(variables, lambda _: tf.constant(0.02), **options)
    function = tf.function(optimizer.apply)

    def apply(gradients):
        function([tf.constant(gradients[n], tf.float32) for n in optimizer.names])

    return variables, optimizer, apply


class Reference:
    """You et al. 2020, algorithm 2, line by line, one weight; phi(z) = z."""

    def __init__(self, weight, adapted, decay=0.01, correct=True):
        self.x = weight.astype(np.float64)
        self.m, self.v = np.zeros_like(self.x), np.zeros_like(self.x)
        self.adapted, self.decay, self.correct, self.t = adapted, decay, correct, 0

    def step(self, gradient, rate):
        g, self.t = gradient.astype(np.float64), self.t + 1
        self.m = 0.9 * self.m + (1 - 0.9) * g
        self.v = 0.999 * self.v + (1 - 0.999) * g * g
        m, v = self.m, self.v
        if self.correct:
            m, v = m / (1 - 0.9**self.t), v / (1 - 0.999**self.t)
        r = m / (np.sqrt(v) + 1e-6)
        if not self.adapted:
            self.x = self.x - rate * r
            return
        u = r + self.decay * self.x
        over, under = np.sqrt((self.x**2).sum()), np.sqrt((u**2).sum())
        ratio = over / under if over > 0 and under > 0 else 1.0
        self.x = self.x - rate * ratio * u


@pytest.mark.parametrize("bias_correction", [True, False])
@pytest.mark.parametrize("scale", [1e-6, 1e-2, 10.0])
def test_equals_the_reference(bias_correction, scale):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        weights = arrays(rng, 0.5)
        variables, optimizer, apply = make(
            weights, bias_correction=bias_correction, rates={"b": 0.25}
        )
        references = {
            name: Reference(w, name in ("a/kernel", "b"), correct=bias_correction)
            for name, w in weights.items()
        }
        for _ in range(15):
            gradients = arrays(rng, scale)
            apply(gradients)
            for name, reference in references.items():
                reference.step(gradients[name], 0.02 * (0.25 if name == "b" else 1))
        for name, reference in references.items():
            close(variables[name], reference.x, 3e-6)
            close(optimizer.slots()[f"{name}/lamb_m"], reference.m, 1e-6 * scale)
            close(optimizer.slots()[f"{name}/lamb_v"], reference.v, 1e-6 * scale**2)
            assert np.abs(reference.x - weights[name]).max() > 0.01


def test_bias_correction_is_the_default():
    rng = np.random.default_rng(0)
    weights, gradients = arrays(rng), arrays(rng)
    variables, _, apply = make(weights)
    reference = Reference(weights["a/bias"], adapted=False)
    apply(gradients)
    reference.step(gradients["a/bias"], 0.02)
    close(variables["a/bias"], reference.x, 1e-6)


def test_equals_that_of_keras_where_they_agree():
    """Without decay: Keras takes the ratio before it decays, and excludes nothing."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        weight = rng.normal(size=(5, 4)).astype(np.float32)
        variables, _, apply = make({"kernel": weight}, weight_decay=0.0)
        theirs = keras.Variable(weight)
        optimizer = keras.optimizers.Lamb(0.02, epsilon=1e-6)
        for _ in range(5):
            gradient = rng.normal(size=(5, 4)).astype(np.float32)
            apply({"kernel": gradient})
            optimizer.apply([tf.constant(gradient)], [theirs])
        close(variables["kernel"], theirs, 2e-6)


@pytest.mark.parametrize("decay", [0.0, 0.01])
@pytest.mark.parametrize("zero", ["weight", "gradient"])
def test_the_ratio_is_1_where_a_norm_is_0(zero, decay):
    rng = np.random.default_rng(0)
    weights, gradients = (
        {"kernel": rng.normal(size=(3, 2)).astype(np.float32)} for _ in range(2)
    )
    (weights if zero == "weight" else gradients)["kernel"] *= 0
    variables, _, apply = make(weights, weight_decay=decay)
    reference = Reference(weights["kernel"], adapted=True, decay=decay)
    for _ in range(3):
        apply(gradients)
        reference.step(gradients["kernel"], 0.02)
        close(variables["kernel"], reference.x, 1e-6)
    moved = np.abs(variables["kernel"].numpy() - weights["kernel"]).max() > 0
    assert moved == (zero == "weight" or decay > 0)


def test_a_step_is_as_long_as_the_weight_times_the_rate():
    """However large gradients are; so the first step is the same for all sizes."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        weight, gradient = rng.normal(size=(2, 6, 5))
        results = []
        for size in (10.0, 100.0, 1e4):
            variables, _, apply = make({"kernel": weight}, weight_decay=0.0)
            apply({"kernel": size * gradient})
            results.append(variables["kernel"].numpy() - weight)
            length = np.linalg.norm(results[-1]) / np.linalg.norm(weight)
            assert length == pytest.approx(0.02, rel=1e-4)
        close(results[1], results[0], 2e-6)
        close(results[2], results[0], 2e-6)


def test_what_is_excluded_takes_the_step_of_adam():
    rng = np.random.default_rng(0)
    weights = arrays(rng)
    ours, ours_optimizer, apply = make(weights)
    adam, adam_optimizer, apply_adam = make(
        weights, optimization.AdamWeightDecay, bias_correction=True
    )
    for _ in range(3):
        gradients = arrays(rng)
        apply(gradients)
        apply_adam(gradients)
    slots, expected = ours_optimizer.slots(), adam_optimizer.slots()
    slots = {name.replace("lamb", "adam"): slot for name, slot in slots.items()}
    assert slots.keys() == expected.keys()
    for name, slot in slots.items():
        np.testing.assert_array_equal(slot, expected[name])
    for name in SHAPES:
        excluded = name in ("a/bias", "a/LayerNorm/gamma")
        assert np.array_equal(ours[name].numpy(), adam[name].numpy()) == excluded
