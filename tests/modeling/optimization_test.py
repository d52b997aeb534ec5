"""Optimizer and schedule against the original's numbers, alone and in training."""

import dataclasses
import json
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from modeling import config as config_lib
from modeling import lamb, losses, models, optimization
from tests import numpy_bert, small_models
from tests.small_models import close

pytestmark = pytest.mark.usefixtures("on_all_devices")


@pytest.fixture(scope="module")
def expected(golden):
    return json.loads((golden / "optimizer.json").read_text())


def make(weights, schedule, **options):
    """An optimizer of fresh variables."""
    variables = {
        name: keras.Variable(np.asarray(value, np.float32))
        for name, value in weights.items()
    }
    return variables, optimization.AdamWeightDecay(variables, schedule, **options)


def constant(rate):
    return lambda _: tf.constant(rate, tf.float32)


def compiled(optimizer):
    """The update as a graph, as in training; takes {name: gradient}."""
    function = tf.function(optimizer.apply)

    def apply(gradients):
        return function([tf.constant(gradients[name]) for name in optimizer.names])

    return apply


def test_learning_rates_equal_the_original(expected):
    assert len(expected["learning_rate"]) == 8
    for row in expected["learning_rate"]:
        schedule = optimization.warmup_then_decay(
            row["init_lr"], row["num_train_steps"], row["num_warmup_steps"]
        )
        for step, rate in zip(row["steps"], row["learning_rates"], strict=True):
            actual = float(schedule(tf.constant(step, tf.int64)))
            assert actual == pytest.approx(rate, abs=1e-6 * row["init_lr"])


@pytest.mark.parametrize("steps", [(100, 10), (100, 0), (7, 7), (10, 30), (1, 0)])
def test_the_whole_schedule(steps):
    schedule = optimization.warmup_then_decay(2e-5, *steps)
    for step in range(130):
        actual = schedule(tf.constant(step, tf.int64))
        assert actual.dtype == tf.float32
        expected = numpy_bert.learning_rate(step, 2e-5, *steps)
        assert float(actual) == pytest.approx(expected, abs=2e-11)
        assert float(actual) >= 0


@pytest.mark.parametrize("index", [0, 1])
def test_steps_equal_the_original(expected, index):
    run = expected["runs"][index]
    schedule = optimization.warmup_then_decay(
        run["init_lr"], run["num_train_steps"], run["num_warmup_steps"]
    )
    variables, optimizer = make(run["initial_params"], schedule)
    slots, apply = optimizer.slots(), compiled(optimizer)
    assert sorted([*variables, *slots]) == sorted(run["slot_and_variable_names"])
    assert len(run["steps"]) == 5
    for step in run["steps"]:
        assert int(optimizer.step) == step["step_before"]
        gradients = [tf.constant(g) for g in step["grads"].values()]
        scale, norm = optimization.clip_scale(gradients)
        assert float(norm) == pytest.approx(step["global_norm"], rel=1e-6)
        gradients = [scale * gradient for gradient in gradients]
        rate = apply(dict(zip(step["grads"], gradients, strict=True)))
        assert float(rate) == pytest.approx(step["learning_rate"], rel=1e-6)
        assert int(slots["global_step"]) == step["global_step_after"]
        for name, variable in variables.items():
            close(variable, step["params"][name], 1e-6)
            close(slots[f"{name}/adam_m"], step["adam_m"][name], 1e-6)
            close(slots[f"{name}/adam_v"], step["adam_v"][name], 1e-6)


def test_adam_alone_equals_the_original(expected):
    run = expected["bare_adam_no_decay_lr_0.2"]
    variables, optimizer = make({"w": run["initial"]}, constant(0.2), weight_decay=0.0)
    trace = {row["after_steps"]: row["w"] for row in run["trace"]}
    update = tf.function(lambda g: optimizer.apply([g]))
    for step in range(1, 101):
        update(2 / 3 * (variables["w"].value - run["target"]))
        if step in trace:
            # A hundred large steps add up the rounding of both sides.
            close(variables["w"], trace[step], 1e-6 if step < 10 else 1e-5)


@pytest.mark.parametrize("bias_correction", [False, True])
@pytest.mark.parametrize("scale", [1e-8, 1e-5, 1e-3, 1.0, 100.0])
def test_random_runs_equal_the_reference(bias_correction, scale):
    """Small gradients too, where epsilon decides."""
    rng = np.random.default_rng(0)
    weights = {
        "bert/pooler/dense/kernel": rng.normal(size=(5, 4)),
        "bert/pooler/dense/bias": rng.normal(size=4),
    }
    schedule = optimization.warmup_then_decay(1e-2, 30, 3)
    variables, optimizer = make(weights, schedule, bias_correction=bias_correction)
    reference = numpy_bert.Adam(weights, bias_correction=bias_correction)
    apply = compiled(optimizer)
    for step in range(30):
        gradients = {
            name: (scale * rng.normal(size=value.shape)).astype(np.float32)
            for name, value in weights.items()
        }
        apply(gradients)
        reference.apply(gradients, numpy_bert.learning_rate(step, 1e-2, 30, 3))
        for name, variable in variables.items():
            close(variable, reference.weights[name], 2e-6)


def test_what_decays():
    """Without gradients, an update only shrinks: kernels, tables, output weights."""
    model = models.BertForPretraining(small_models.config())
    classifier = models.BertForSequenceClassification(small_models.config(), 2)
    for built in (model, classifier):
        small_models.randomize(built, 0)
        variables = small_models.variables(built)
        before = {name: v.numpy() for name, v in variables.items()}
        optimizer = optimization.AdamWeightDecay(variables, constant(0.5))
        compiled(optimizer)({n: np.zeros_like(w) for n, w in before.items()})
        for name, variable in variables.items():
            decays = name.endswith(("kernel", "_embeddings", "output_weights"))
            factor = 1 - 0.5 * 0.01 if decays else 1
            close(variable, before[name] * factor, 1e-6)
            exempt = re.search("LayerNorm|layer_norm|bias", name)
            assert decays == (not exempt), name


def test_exempt_words_count_anywhere_in_a_name():
    decays = {
        "a/bias_table/kernel": False,
        "a/layer_norm_1/scale": False,
        "LayerNorm/scale": False,
        "a/Bias/layernorm/kernel": True,
    }
    variables, optimizer = make(dict.fromkeys(decays, [1.0]), constant(0.5))
    compiled(optimizer)(dict.fromkeys(decays, np.zeros(1, np.float32)))
    for name, variable in variables.items():
        assert (variable.numpy() < 1) == decays[name], name


def test_a_weight_without_gradient_stays():
    variables, optimizer = make({"a/kernel": [1.0], "b/kernel": [1.0]}, constant(0.1))
    gradients = [None, tf.constant([3.0])]
    scale, norm = optimization.clip_scale(gradients)
    tf.function(lambda: optimizer.apply(gradients, scale=scale))()
    assert float(norm) == 3
    assert variables["a/kernel"].numpy() == 1
    assert variables["b/kernel"].numpy() < 1
    assert not optimizer.slots()["a/kernel/adam_v"].numpy()
    assert int(optimizer.step) == 1


@pytest.mark.parametrize("scale", [0.01, 0.99, 1.01, 50.0])
def test_clipping_is_of_all_gradients_together(scale):
    rng = np.random.default_rng(0)
    gradients = {"a": rng.normal(size=(3, 4)), "b": rng.normal(size=5)}
    size = np.sqrt(sum((g**2).sum() for g in gradients.values()))
    gradients = {name: scale * g / size for name, g in gradients.items()}
    clipping, norm = optimization.clip_scale(
        [tf.constant(g, tf.float32) for g in gradients.values()]
    )
    expected, expected_norm = numpy_bert.clip(gradients)
    assert float(norm) == pytest.approx(expected_norm, rel=1e-5)
    assert expected_norm == pytest.approx(scale)
    for gradient, theirs in zip(gradients.values(), expected.values(), strict=True):
        close(float(clipping) * gradient, theirs, 1e-6)


@pytest.mark.parametrize("make_optimizer", [optimization.AdamWeightDecay, lamb.Lamb])
def test_an_update_with_a_scale_is_one_with_scaled_gradients(make_optimizer):
    rng = np.random.default_rng(0)
    start, steps = rng.normal(size=(3, 4)), rng.normal(size=(4, 3, 4))
    results = []
    for scale in (1.0, 0.25):  # which rounds nothing
        weight = keras.Variable(start, dtype="float32")
        optimizer = make_optimizer({"a/kernel": weight}, constant(0.1))
        for gradient in steps:
            given = tf.constant(gradient / scale * 0.25, tf.float32)
            optimizer.apply([given], scale=tf.constant(scale))
        results.append(weight.numpy())
    assert np.array_equal(*results)


def trace_of(model, objective, batch, trace):
    """Trains on one batch without dropout; yields losses, norm and gradients."""
    variables = small_models.variables(model)
    schedule = optimization.warmup_then_decay(
        float(trace["init_lr"]),
        int(trace["num_train_steps"]),
        int(trace["num_warmup_steps"]),
    )
    optimizer = optimization.AdamWeightDecay(variables, schedule)
    denominators = objective.denominators(batch)

    @tf.function
    def update():
        with tf.GradientTape() as tape:
            numerators = objective.numerators(model(batch, training=True), batch)
            parts = {name: n / denominators[name] for name, n in numerators.items()}
            loss = tf.add_n(list(parts.values()))
        gradients = tape.gradient(loss, optimizer.weights)
        gradients = [tf.convert_to_tensor(g) for g in gradients]
        scale, norm = optimization.clip_scale(gradients)
        optimizer.apply(gradients, scale=scale)
        return (
            {"loss": loss, **parts},
            norm,
            dict(zip(variables, gradients, strict=True)),
        )

    for _ in range(len(trace["losses_before_each_step"])):
        yield update()


def without_dropout(path):
    config = config_lib.BertConfig.from_json_file(path)
    return dataclasses.replace(
        config, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )


def compare_weights(model, trace, initial):
    """The key's bias has no gradient but rounding, so only its size is compared."""
    for name, variable in small_models.variables(model).items():
        if name.endswith("key/bias"):
            assert np.abs(variable.numpy() - initial[name]).max() < 0.01
        else:
            close(variable, trace[f"param/{name}"], 1e-4)
            assert np.abs(variable.numpy() - initial[name]).max() > 1e-4, name


def test_pretraining_trace_of_the_original(golden):
    folder = golden / "tiny_tf1"
    model = models.BertForPretraining(without_dropout(folder / "bert_config.json"))
    initial = small_models.read_checkpoint(folder / "bert_model.ckpt")
    small_models.assign(model, initial)
    inputs, trace = (
        np.load(folder / f"{n}.npz") for n in ("expected", "training_trace")
    )
    names = small_models.batch(model.config, 0).keys() & set(inputs.files)
    batch = {name: tf.constant(inputs[name]) for name in names}
    rows = trace_of(model, losses.PRETRAINING, batch, trace)
    for step, (parts, norm, gradients) in enumerate(rows):
        total, *both = trace["losses_before_each_step"][step]
        close(parts["loss"], total, 1e-4)
        close([parts["masked_lm_loss"], parts["next_sentence_loss"]], both, 1e-4)
        assert float(norm) == pytest.approx(
            trace["global_norm_true_dense"][step], rel=1e-4
        )
        for name, gradient in gradients.items() if step == 0 else ():
            close(gradient, trace[f"grad/{name}"], 1e-4)
    assert step == 5
    compare_weights(model, trace, initial)


def test_classifier_trace_of_the_original(golden):
    folder = golden / "tiny_tf1_runs" / "classifier_mrpc"
    config = without_dropout(golden / "tiny_tf1" / "bert_config.json")
    model = models.BertForSequenceClassification(config, 2)
    model.dropout.rate = 0.0
    initial = small_models.read_checkpoint(folder / "model.ckpt-12")
    small_models.assign(model, initial)
    records = [
        tf.train.Example.FromString(record.numpy()).features.feature
        for record in tf.data.TFRecordDataset(str(folder / "eval.tf_record"))
    ]
    batch = {
        name: tf.constant([r[name].int64_list.value for r in records], tf.int32)
        for name in ("input_ids", "input_mask", "segment_ids", "label_ids")
    }
    batch["label_ids"] = batch["label_ids"][:, 0]
    trace = np.load(folder / "training_trace.npz")
    for step, (parts, norm, _) in enumerate(
        trace_of(model, losses.CLASSIFICATION, batch, trace)
    ):
        close(parts["loss"], trace["losses_before_each_step"][step], 1e-4)
        # The original clips by another norm, of the rows of a sparse gradient.
        assert float(norm) == pytest.approx(trace["global_norm_true"][step], rel=1e-3)
    assert step == 7
    compare_weights(model, trace, initial)
