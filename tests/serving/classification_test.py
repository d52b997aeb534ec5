"""Classifiers in memory; those that were saved: tests/export_saved_model_test.py."""

import numpy as np
import pytest
import tensorflow as tf

from data import classification, features, tokenization
from modeling import config as config_lib
from modeling import models
from serving import classification as servers
from serving import parity
from tests import small_models

LABELS = ["no", "maybe", "yes"]


@pytest.fixture(scope="module")
def vocab_file(golden):
    return str(golden / "tiny_tf1/vocab.txt")


@pytest.fixture(scope="module")
def model(golden):
    config = config_lib.BertConfig.from_json_file(golden / "tiny_tf1/bert_config.json")
    model = models.BertForSequenceClassification(config, len(LABELS))
    small_models.randomize(model, 5)
    return model


@pytest.fixture(scope="module")
def expected(model, vocab_file):
    """[texts, labels], the logits of `parity.TEXTS`, cut after 20 tokens."""
    examples = [classification.InputExample("", text) for text in parity.TEXTS]
    tokenizer = tokenization.FullTokenizer(vocab_file)
    arrays = features.features_to_arrays(examples, (), 20, tokenizer)
    return model(arrays)["logits"].numpy()


def test_a_classifier_gives_the_likeliest_label(model, vocab_file, expected):
    server = servers.TextClassifier(model, LABELS, vocab_file, True, 20)
    outputs = server.serving_default(tf.constant(parity.TEXTS))
    np.testing.assert_allclose(outputs["logits"], expected, atol=1e-5)
    labels = [LABELS[i].encode() for i in expected.argmax(1)]
    assert outputs["label"].numpy().tolist() == labels
    exponentials = np.exp(expected.astype("f8"))
    probabilities = exponentials / exponentials.sum(1, keepdims=True)
    np.testing.assert_allclose(outputs["probabilities"], probabilities, atol=1e-5)
    np.testing.assert_allclose(outputs["score"], probabilities.max(1), atol=1e-5)


def test_several_labels_each_by_itself(model, vocab_file, expected):
    server = servers.TextTagger(model, LABELS, vocab_file, True, 20)
    outputs = server.serving_default(tf.constant(parity.TEXTS))
    probabilities = 1 / (1 + np.exp(-expected.astype("f8")))
    np.testing.assert_allclose(outputs["probabilities"], probabilities, atol=1e-5)
    rows = outputs["labels"].numpy().tolist()
    assert rows == [[label.encode() for label in LABELS]] * len(parity.TEXTS)


def test_the_comparison_sees_another_model_and_another_tokenizer(model, vocab_file):
    def signatures(server):
        return {
            "serving_default": server.serving_default,
            "pair": server.pair,
            "ids": server.ids,
        }

    server = servers.TextClassifier(model, LABELS, vocab_file, True, 20)
    assert max(server.differences(signatures(server))) <= 1e-5
    cased = servers.TextClassifier(model, LABELS, vocab_file, False, 20)
    shorter = servers.TextClassifier(model, LABELS, vocab_file, True, 19)
    for other in (cased, shorter):
        assert any(d > 1e-3 for d in server.differences(signatures(other)))


def test_no_text_no_answer(model, vocab_file):
    server = servers.TextClassifier(model, LABELS, vocab_file, True, 16)
    nothing = tf.constant([], tf.string)
    for answer in (server.serving_default(nothing), server.pair(nothing, nothing)):
        assert {len(values) for values in answer.values()} == {0}
        assert answer["logits"].shape == (0, len(LABELS))
