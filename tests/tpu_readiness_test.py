"""What a TPU asks of a training step, as far as a CPU can tell.

Every op has an XLA kernel, every shape is known before the start, and the whole update
compiles.
"""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels  # has no public name

import strategies
import trainer as trainer_lib
import training
from modeling import layers, losses, models, optimization
from tests import small_models

CONFIG = small_models.config()
# XLA handles these itself.
PLUMBING = {
    "Placeholder",
    "Const",
    "NoOp",
    "Identity",
    "IdentityN",
    "PartitionedCall",
    "StatefulPartitionedCall",
}
WHOLE = small_models.batch(CONFIG, 0, batch_size=4)
SEQUENCES = {n: WHOLE[n] for n in ("input_ids", "input_mask", "segment_ids")}
LENGTH = SEQUENCES["input_ids"].shape[1]

# Script (and kind) → model, objective and what its batches hold besides.
STEPS = {
    "run_pretraining": (
        models.BertForPretraining,
        losses.PRETRAINING,
        {name: x for name, x in WHOLE.items() if name.startswith(("masked", "next"))},
    ),
    "run_classifier": (
        lambda config: models.BertForSequenceClassification(config, 3),
        losses.CLASSIFICATION,
        {"label_ids": np.int32([0, 1, 2, 0])},
    ),
    "run_classifier with weights": (
        lambda config: models.BertForSequenceClassification(config, 3),
        losses.weighted_classification([1.0, 2.0, 0.5]),
        {"label_ids": np.int32([0, 1, 2, 0])},
    ),
    "run_classifier of numbers": (
        lambda config: models.BertForSequenceClassification(config, 1),
        losses.REGRESSION,
        {"label_ids": np.float32([0, 1.5, 2, 0])},
    ),
    "run_classifier of several labels": (
        lambda config: models.BertForSequenceClassification(config, 3),
        losses.MULTI_LABEL,
        {"label_ids": np.eye(4, 3, dtype=np.int32)},
    ),
    "run_squad": (
        models.BertForQuestionAnswering,
        losses.SPAN,
        {name: np.int32([0, 1, 2, 3]) for name in ("start_positions", "end_positions")},
    ),
    "run_ner": (
        lambda config: models.BertForTokenClassification(config, 5),
        losses.TOKENS,
        {name: np.ones([4, LENGTH], np.int32) for name in ("label_ids", "label_mask")},
    ),
    "run_swag": (
        models.BertForMultipleChoice,
        losses.CLASSIFICATION,
        {"label_ids": np.int32([0, 1])},
    ),
}


def make_update(name, execution, kind="adamw", config=CONFIG):
    """(the update of a trainer as a function of a batch, batch) of a script."""
    make, objective, more = STEPS[name]
    batch = {**SEQUENCES, **more}
    if name == "run_swag":
        choices = {n: x.reshape(2, 2, LENGTH) for n, x in SEQUENCES.items()}
        batch = {**choices, **more, "is_real_example": np.ones(2, np.int32)}
    strategy = strategies.make()
    training.set_seed(0)
    model = make(config)
    schedule = optimization.warmup_then_decay(1e-3, 10, 2)
    optimizer = training.make_optimizer(strategy, model, schedule, kind)
    trainer = trainer_lib.Trainer(strategy, model, optimizer, objective, 1, execution)
    return lambda batch: trainer._replica_step(batch, tf.constant(0)), batch


def graphs(concrete):
    """A function's graph and those of the functions that it calls."""
    yield concrete.graph
    for function in concrete.graph._functions.values():
        if hasattr(function, "graph"):
            yield from graphs(function)


@pytest.fixture(autouse=True)
def as_on_a_tpu(monkeypatch):
    monkeypatch.setattr(layers, "makes_loops", lambda: False)


def without_kernel(concrete, device="XLA_CPU_JIT"):
    graph = concrete.graph.as_graph_def()
    called = {function.signature.name for function in graph.library.function}
    used = {node.op for node in graph.node}
    used |= {node.op for f in graph.library.function for node in f.node_def}
    return {
        op
        for op in used - called - PLUMBING
        if device
        not in [k.device_type for k in kernels.get_registered_kernels_for_op(op).kernel]
    }


def with_unknown_shape(concrete):
    return [
        tensor.name
        for graph in graphs(concrete)
        for op in graph.get_operations()
        # Its shape depends on which axes are broadcast; XLA knows them.
        if op.type != "BroadcastGradientArgs"
        for tensor in op.outputs
        if tensor.dtype != tf.resource and not tensor.shape.is_fully_defined()
    ]


@pytest.mark.parametrize("name", STEPS)
def test_every_step_has_kernels_and_shapes(name):
    update, batch = make_update(name, trainer_lib.Execution())
    concrete = tf.function(update).get_concrete_function(batch)
    assert len(concrete.graph.get_operations()) > 100
    assert not without_kernel(concrete)
    assert not with_unknown_shape(concrete)


def test_the_checks_find_what_they_look_for():
    @tf.function
    def printing(x):
        return tf.strings.length(tf.strings.as_string(x))

    assert "AsString" in without_kernel(printing.get_concrete_function(tf.zeros([2])))
    unknown = tf.TensorSpec([None], tf.float32)
    assert with_unknown_shape(tf.function(tf.square).get_concrete_function(unknown))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parts", "kind"),
    [*((name, 1, "adamw") for name in STEPS), ("run_pretraining", 2, "lamb")],
)
def test_every_step_compiles_and_gives_the_same(name, parts, kind, monkeypatch):
    execution = trainer_lib.Execution(parts)
    update, batch = make_update(name, execution, kind)
    compiled = tf.function(update, jit_compile=True)
    hlo = compiled.experimental_get_compiler_ir(batch)(stage="hlo")
    for way_out in ("infeed", "outfeed", " send", " recv"):
        assert way_out not in hlo
    assert compiled(batch)["finite"]

    # XLA draws other masks, so the numbers are compared without dropout.
    monkeypatch.setattr(models, "HEAD_DROPOUT_PROB", 0.0)
    config = small_models.config(
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    update, batch = make_update(name, execution, kind, config)
    expected = tf.function(update)(batch)
    update, batch = make_update(name, execution, kind, config)
    results = tf.function(update, jit_compile=True)(batch)
    for key, value in expected.items():
        np.testing.assert_allclose(results[key], value, rtol=2e-5, err_msg=key)
