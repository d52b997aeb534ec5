"""Vectors in a graph are those of the original's extract_features.py, pooled."""

import json

import numpy as np
import pytest
import tensorflow as tf

from data import extraction
from modeling import checkpoint, models
from modeling import config as config_lib
from serving import sentence_vectors
from tests import exports

POOL = {
    "cls": lambda tokens: tokens[0],
    "mean": lambda tokens: tokens.mean(0),
    "max": lambda tokens: tokens.max(0),
}
PLACES = {-1: 0, -2: 1}  # of a layer, in the golden file


@pytest.fixture(scope="module")
def tiny(golden):
    return golden / "tiny_tf1"


@pytest.fixture(scope="module")
def model(tiny):
    model = models.BertModel(
        config_lib.BertConfig.from_json_file(tiny / "bert_config.json")
    )
    checkpoint.load(model, tiny / "bert_model.ckpt")
    return model


@pytest.fixture(scope="module")
def lines(golden):
    """[(example, float [tokens, layers, hidden_size]), ...] of the golden file."""
    folder = golden / "tiny_tf1_runs/extract_features"
    examples = extraction.read_examples(folder / "input.txt")
    with open(folder / "output.jsonl", encoding="utf-8") as file:
        rows = [json.loads(line)["features"] for line in file]
    vectors = [
        [[layer["values"] for layer in token["layers"]] for token in tokens]
        for tokens in rows
    ]
    return list(zip(examples, map(np.array, vectors), strict=True))


def make(model, tiny, *pooling):
    pool = sentence_vectors.pooled(*pooling)
    vocab_file = str(tiny / "vocab.txt")
    return sentence_vectors.SentenceVectors(model, vocab_file, True, 24, pool)


@pytest.mark.parametrize(
    ("layers", "kind"),
    [
        ([-2, -1], "mean"),
        pytest.param([-1], "max", marks=pytest.mark.slow),
        pytest.param([-2], "cls", marks=pytest.mark.slow),
    ],
)
def test_vectors_of_the_originals_lines(model, tiny, lines, layers, kind):
    server = make(model, tiny, layers, kind)
    expected = [
        np.concatenate([POOL[kind](tokens[:, PLACES[layer]]) for layer in layers])
        for _, tokens in lines
    ]
    texts = [example.text_a for example, _ in lines]
    others = [example.text_b or "" for example, _ in lines]
    assert any(others) and not all(others)
    outputs = server.pair(tf.constant(texts), tf.constant(others))
    np.testing.assert_allclose(outputs["vectors"], expected, atol=2e-5)
    for row, (text, other) in enumerate(zip(texts, others, strict=True)):
        if not other:
            outputs = server.serving_default(tf.constant([text]))
            np.testing.assert_allclose(outputs["vectors"][0], expected[row], atol=2e-5)


def test_normalized_vectors_have_length_one(model, tiny):
    texts = tf.constant(["the word", "", "of " * 50])
    server = make(model, tiny, [-1, 0], "mean")
    plain = server.serving_default(texts)["vectors"]
    server = make(model, tiny, [-1, 0], "mean", True)
    outputs = server.serving_default(texts)
    norms = np.sqrt((plain.numpy().astype("f8") ** 2).sum(1, keepdims=True))
    assert (np.abs(norms - 1) > 0.01).all()
    np.testing.assert_allclose(outputs["vectors"], plain / norms, atol=1e-6)


def test_a_vector_of_zeros_stays_one():
    pool = sentence_vectors.pooled([-1], "cls", True)
    outputs = {"encoder_outputs": [tf.zeros([2, 3, 4])] * 2}
    vectors = pool(outputs, {"input_mask": tf.ones([2, 3], tf.int32)})
    assert vectors.shape == (2, 4) and not vectors.numpy().any()


def test_no_text_no_vector(model, tiny):
    server = make(model, tiny, [-1, -2], "mean", True)
    outputs = server.serving_default(tf.constant([], tf.string))
    assert outputs["vectors"].shape == (0, 2 * model.config.hidden_size)


def test_the_comparison_sees_other_vectors(model, tiny):
    server = make(model, tiny, [-1], "mean")
    assert max(server.differences(exports.signatures(server))) <= 1e-5
    other = make(model, tiny, [-2], "mean")
    assert any(d > 1e-3 for d in server.differences(exports.signatures(other)))


@pytest.mark.slow
def test_the_comparison_sees_every_signature(model, tiny):
    assert exports.uncompared(make(model, tiny, [-1], "mean")) == []
