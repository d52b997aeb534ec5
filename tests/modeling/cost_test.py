"""What training costs, against published counts, hand calculation and built graphs."""

import dataclasses
import math

import keras
import pytest
import tensorflow as tf

from modeling import config as config_lib
from modeling import cost, dropout, losses, models
from tests import small_models


def sizes(num_layers, hidden_size, vocab_size=30522):
    """The config of a released model."""
    return config_lib.BertConfig(
        vocab_size,
        hidden_size,
        num_layers,
        hidden_size // 64,
        4 * hidden_size,
        type_vocab_size=2,
    )


BASE, LARGE = sizes(12, 768), sizes(24, 1024)
L6 = dataclasses.replace(sizes(6, 384), num_attention_heads=12)


def test_parameters_of_the_released_models():
    # spec of the papers: 110 M and 340 M; counted from the released checkpoints.
    assert cost.num_parameters(BASE) == 109_482_240
    assert cost.num_parameters(BASE, pretraining=True) == 110_106_428
    assert cost.num_parameters(LARGE) == 335_141_888


@pytest.mark.parametrize(
    "num_layers, hidden_size, vocab_size, millions",
    [
        (2, 128, 30522, 4.4),
        (4, 256, 30522, 11.2),
        (4, 512, 30522, 28.8),
        (8, 512, 30522, 41.4),
        (12, 128, 30522, 6.4),
        (10, 768, 30522, 95.3),
        (24, 1024, 28996, 333.6),
        (12, 768, 119547, 177.9),
        (12, 768, 21128, 102.3),
    ],
)
def test_parameters_of_the_others(num_layers, hidden_size, vocab_size, millions):
    count = cost.num_parameters(sizes(num_layers, hidden_size, vocab_size))
    assert round(count / 1e6, 1) == millions


def test_parameters_are_those_of_built_models():
    config = small_models.config(type_vocab_size=3)
    for model, count in (
        (models.BertModel(config), cost.num_parameters(config)),
        (models.BertForPretraining(config), cost.num_parameters(config, True)),
    ):
        assert model.count_params() == count


def test_flops_by_hand():
    # A layer of BERT-Base has 12 H² weights in its linear maps: 7.08 M, two FLOPs each
    # for a token; attention has two products of H with S = 128 keys.
    token = 12 * (2 * 12 * 768**2 + 2 * 2 * 768 * 128)
    pooler = 2 * 768**2
    assert cost.forward_flops(BASE, 8, 128) == 8 * (128 * token + pooler)
    head = 2 * 768**2 + 2 * 768 * 30522
    with_head = 8 * (128 * token + pooler + 20 * head)
    assert cost.forward_flops(BASE, 8, 128, 20) == with_head
    # Known figures of training steps, in units of 10⁹.
    for config, batch_size, predictions, expected in (
        (L6, 32, 0, 275),
        (BASE, 8, 0, 536),
        (L6, 16, 20, 160),
    ):
        flops = cost.training_flops(config, batch_size, 128, predictions)
        assert flops / 1e9 == pytest.approx(expected, rel=0.005)
    # "6 N a token" (Kaplan et al. 2020, 2.1) of weights but embeddings; the rest is
    # attention, 12 L H S (the head of the vocabulary is left out).
    weights = 12 * 12 * 768**2
    kaplan = 64 * 512 * (6 * weights + 12 * 12 * 768 * 512)
    assert cost.training_flops(BASE, 64, 512) == pytest.approx(kaplan, rel=1e-3)


def operations(graph):
    """Those that the results need."""
    needed, to_do = {}, [output.op for output in graph.outputs]
    while to_do:
        operation = to_do.pop()
        if operation.name not in needed:
            needed[operation.name] = operation
            to_do += [tensor.op for tensor in operation.inputs]
    return list(needed.values())


def products(graph):
    """FLOPs of all matrix products of a graph with static shapes."""
    count = 0
    for operation in operations(graph):
        if operation.type in ("MatMul", "BatchMatMulV2"):
            inner = "transpose_a" if operation.type == "MatMul" else "adj_x"
            rows = operation.inputs[0].shape[-2 if operation.get_attr(inner) else -1]
            count += 2 * rows * math.prod(operation.outputs[0].shape)
    return count


def trace(model, objective, batch, with_gradients):
    """The graph of the loss, or of the gradients."""
    specs = {n: tf.TensorSpec(x.shape, x.dtype) for n, x in batch.items()}

    @tf.function
    def run(batch):
        with dropout.dropout_seed(tf.constant([1, 2])), tf.GradientTape() as tape:
            outputs = model(batch, training=True)
            loss = tf.add_n(list(objective.numerators(outputs, batch).values()))
        if with_gradients:
            return tape.gradient(loss, model.trainable_variables)
        return loss

    return run.get_concrete_function(specs).graph


def test_flops_are_those_of_the_products_of_the_graph():
    config = small_models.config(num_hidden_layers=3)
    size, segments = config.hidden_size, config.type_vocab_size
    batch = small_models.tensors(small_models.batch(config, 1, 3, 7))
    model = models.BertForPretraining(config)
    # Too small to count: the one-hot product of segments, the next sentence head.
    segments = 2 * 3 * 7 * segments * size
    next_sentence = 2 * 3 * size * 2
    forward = products(trace(model, losses.PRETRAINING, batch, False))
    expected = cost.forward_flops(config, 3, 7, num_predictions=4)
    assert forward == expected + segments + next_sentence
    training = products(trace(model, losses.PRETRAINING, batch, True))
    expected = cost.training_flops(config, 3, 7, num_predictions=4)
    # Nor do the sums of biases' gradients, which are products with ones.
    tokens = 3 * 7 * config.num_hidden_layers
    biases = tokens * (5 * size + config.intermediate_size) + (3 + 3 * 4) * size
    # Nor four sums of each norm's: two a weight, two a token.
    norms = 1 + 2 * config.num_hidden_layers
    biases += 4 * (3 * 7 * norms + 3 * 4) * size
    assert training == expected + 2 * segments + 3 * next_sentence + 2 * biases


def source(tensor):
    """The tensor that holds its numbers."""
    while tensor.op.type in ("Reshape", "Identity", "IdentityN"):
        index = tensor.value_index if tensor.op.type == "IdentityN" else 0
        tensor = tensor.op.inputs[index]
    return tensor


def kept(graph, first_sizes):
    """Bytes of what is computed before the loss and used after it.

    Of the activations alone, whose first axis is one of the sizes, as no weight's.
    """
    needed = operations(graph)
    loss = [o for o in needed if o.type.startswith("SparseSoftmaxCrossEntropy")]
    after = set()
    while loss:
        for output in loss.pop().outputs:
            new = [o for o in output.consumers() if o.name not in after]
            after.update(o.name for o in new)
            loss += new
    used = {}
    for operation in needed:
        if operation.name in after and operation.type not in ("Reshape", "Shape"):
            for tensor in map(source, operation.inputs):
                if tensor.op.name not in after and tensor.shape[:1] in first_sizes:
                    used[tensor.name] = math.prod(tensor.shape) * tensor.dtype.size
    return sum(used.values())


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_activations_are_those_that_the_graph_keeps(precision):
    policy = {"float32": "float32", "bfloat16": "mixed_bfloat16"}[precision]
    found = []
    for num_layers in (1, 3):
        config = small_models.config(num_hidden_layers=num_layers)
        batch = small_models.tensors(small_models.batch(config, 1, 3, 7))
        before = keras.config.dtype_policy()
        try:
            keras.config.set_dtype_policy(policy)
            model = models.BertForSequenceClassification(config, 2)
        finally:
            keras.config.set_dtype_policy(before)
        graph = trace(model, losses.CLASSIFICATION, batch, True)
        update = cost.Update(config, 3, 7, precision=precision)
        found.append((kept(graph, ([3], [21])), update.memory()["activations"]))
    (kept_1, estimate_1), (kept_3, estimate_3) = found
    # Mean and divisor of layer norms, two numbers a token: too small to count.
    moments = 2 * 2 * 2 * 3 * 7 * 4
    assert kept_3 - kept_1 == estimate_3 - estimate_1 + moments


def test_memory_by_hand():
    update = cost.Update(BASE, 32, 128, num_predictions=20)
    memory = update.memory()
    assert memory["weights and moments"] == 12 * 110_106_428
    assert memory["gradients"] == 4 * 110_106_428
    assert memory["logits"] == 3 * 4 * 32 * 20 * 30522
    of_layer = 32 * 128 * 4 * (9 * 768 + 2 * 3072 + 2 * 12 * 128)
    assert memory["activations"] == 14 * of_layer
    again = dataclasses.replace(update, recompute=True).memory()
    assert again["activations"] == 3 * of_layer + 12 * 32 * 128 * 768 * 4
    parts = dataclasses.replace(update, num_devices=2, gradient_accumulation_steps=4)
    assert parts.memory()["activations"] == 14 * of_layer / 8
    assert parts.memory()["gradients"] == 2 * memory["gradients"]
    assert parts.flops == update.flops
    assert cost.Update(BASE, 32, 128).memory()["logits"] == 0


def test_what_is_shown_before_a_training():
    update = cost.Update(BASE, 256, 512, num_predictions=76)
    text = cost.describe(update, 1_000_000, num_sequences=8_000_000)
    assert "110.1 M parameters" in text
    flops = 1e6 * cost.training_flops(BASE, 256, 512, 76)
    assert f"{flops:.2g} FLOPs" not in text.split("\n")[1]
    assert f"{flops:.2g} in all" in text.split("\n")[0]
    # Devlin et al. 2018, A.2: 256 sequences of 512 tokens, 1,000,000 steps.
    assert "1.31e+11 tokens" in text
    assert "32 epochs of 8000000 sequences" in text
    total = sum(update.memory().values()) / 2**30
    assert f"about {total:.1f} GiB" in text


def test_advice_names_flags_that_need_less():
    update = cost.Update(LARGE, 32, 512)
    text = cost.advice(update)
    needed = [float(x.split()[-1].strip("(")) for x in text.split(" GiB")[:-1]]
    assert needed[0] == pytest.approx(sum(update.memory().values()) / 2**30, abs=0.05)
    assert len(needed) == 6
    assert max(needed[1:]) < needed[0]
    for flag in (
        "--gradient_accumulation_steps=2",
        "--train_batch_size",
        "--precision=bfloat16",
        "--recompute",
        "--max_seq_length=256",
    ):
        assert flag in text
    small = dataclasses.replace(update, precision="bfloat16", recompute=True)
    text = cost.advice(small)
    assert "precision" not in text
    assert "--recompute" not in text
    # A batch that more parts would not divide, and records of a fixed length.
    odd = cost.Update(LARGE, 33, 512, num_predictions=77)
    assert "--gradient_accumulation_steps" not in cost.advice(odd)
    assert "--max_seq_length" not in cost.advice(odd)
