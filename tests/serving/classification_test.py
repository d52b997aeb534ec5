"""Classifiers in memory; those that were saved: tests/export_saved_model_test.py."""

import numpy as np
import pytest
import tensorflow as tf

from data import classification, features, tokenization
from modeling import config as config_lib
from modeling import models
from serving import classification as servers
from serving import parity
from tests import exports, small_models

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
def servers_of(model, vocab_file):
    """dict of class → a server of the model, cut after 20 tokens."""
    return {
        kind: kind(model, LABELS, vocab_file, True, 20)
        for kind in (servers.TextClassifier, servers.MultiLabelTextClassifier)
    }


@pytest.fixture(scope="module")
def expected(model, vocab_file):
    """[texts, labels], the logits of `parity.TEXTS`, cut after 20 tokens."""
    examples = [classification.InputExample("", text) for text in parity.TEXTS]
    tokenizer = tokenization.FullTokenizer(vocab_file)
    arrays = features.examples_to_arrays(examples, (), 20, tokenizer)
    return model(arrays)["logits"].numpy()


def test_a_classifier_gives_the_likeliest_label(servers_of, expected):
    server = servers_of[servers.TextClassifier]
    outputs = server.serving_default(tf.constant(parity.TEXTS))
    np.testing.assert_allclose(outputs["logits"], expected, atol=1e-5)
    labels = [LABELS[i].encode() for i in expected.argmax(1)]
    assert outputs["label"].numpy().tolist() == labels
    exponentials = np.exp(expected.astype("f8"))
    probabilities = exponentials / exponentials.sum(1, keepdims=True)
    np.testing.assert_allclose(outputs["probabilities"], probabilities, atol=1e-5)
    np.testing.assert_allclose(outputs["score"], probabilities.max(1), atol=1e-5)


def test_several_labels_each_by_itself(servers_of, expected):
    server = servers_of[servers.MultiLabelTextClassifier]
    outputs = server.serving_default(tf.constant(parity.TEXTS))
    probabilities = 1 / (1 + np.exp(-expected.astype("f8")))
    np.testing.assert_allclose(outputs["probabilities"], probabilities, atol=1e-5)
    rows = outputs["labels"].numpy().tolist()
    assert rows == [[label.encode() for label in LABELS]] * len(parity.TEXTS)


def make_examples(*rows):
    """Serialized tf.train.Examples of dicts of name → str."""
    examples = []
    for row in rows:
        example = tf.train.Example()
        for name, text in row.items():
            example.features.feature[name].bytes_list.value.append(text.encode())
        examples.append(example.SerializeToString())
    return tf.constant(examples, tf.string)


@pytest.mark.parametrize(
    "kind",
    [
        servers.TextClassifier,
        pytest.param(servers.MultiLabelTextClassifier, marks=pytest.mark.slow),
    ],
)
def test_examples_get_scores_of_all_classes(servers_of, kind):
    server = servers_of[kind]
    answers = server.classify(
        make_examples(
            {"text": "Crème", "text_pair": "the word"},
            {"text": "of one"},
            {"text": "other", "text_pair": "", "guid": "is not read"},
        )
    )
    assert set(answers) == {"classes", "scores"}
    assert answers["classes"].numpy().tolist() == [[b"no", b"maybe", b"yes"]] * 3
    pair = server.pair(tf.constant(["Crème"]), tf.constant(["the word"]))
    alone = server.serving_default(tf.constant(["of one", "other"]))
    expected = tf.concat([pair["probabilities"], alone["probabilities"]], axis=0)
    np.testing.assert_allclose(answers["scores"], expected, atol=1e-6)


def test_examples_without_a_text_are_refused(servers_of):
    server = servers_of[servers.TextClassifier]
    with pytest.raises(tf.errors.InvalidArgumentError, match="text"):
        server.classify(make_examples({"text_pair": "a"}))
    with pytest.raises(tf.errors.InvalidArgumentError, match="parse"):
        server.classify(tf.constant(["no example"]))


@pytest.fixture(scope="module")
def regressor(golden, vocab_file):
    config = config_lib.BertConfig.from_json_file(golden / "tiny_tf1/bert_config.json")
    model = models.BertForSequenceClassification(config, 1)
    small_models.randomize(model, 6)
    return servers.TextRegressor(model, vocab_file, True, 20)


def test_a_number_is_the_only_output(regressor):
    texts = ["Crème", "the word", ""]
    outputs = regressor.serving_default(tf.constant(texts))
    np.testing.assert_array_equal(outputs["value"], outputs["logits"][:, 0])
    assert len(set(outputs["value"].numpy())) == 3
    answers = regressor.regress(make_examples(*({"text": text} for text in texts)))
    assert set(answers) == {"outputs"}
    np.testing.assert_allclose(answers["outputs"], outputs["value"], atol=1e-6)


def test_the_comparison_sees_other_classes(model, vocab_file, servers_of):
    server = servers_of[servers.TextClassifier]
    signatures = exports.signatures(server)
    assert max(server.differences(signatures)) <= 1e-5
    other = servers.TextClassifier(model, ["a", "b", "c"], vocab_file, True, 20)
    signatures["classify"] = other.classify
    assert np.isnan(list(server.differences(signatures))).any()


@pytest.mark.slow
def test_the_comparison_sees_another_model_and_another_tokenizer(
    model, vocab_file, servers_of
):
    server = servers_of[servers.TextClassifier]
    cased = servers.TextClassifier(model, LABELS, vocab_file, False, 20)
    shorter = servers.TextClassifier(model, LABELS, vocab_file, True, 19)
    for other in (cased, shorter):
        signatures = exports.signatures(other)
        assert any(d > 1e-3 for d in server.differences(signatures))


@pytest.mark.slow
def test_the_comparison_sees_every_signature(servers_of, regressor):
    for server in (*servers_of.values(), regressor):
        assert exports.uncompared(server) == []


def test_no_text_no_answer(servers_of):
    server = servers_of[servers.TextClassifier]
    nothing = tf.constant([], tf.string)
    for answer in (server.serving_default(nothing), server.pair(nothing, nothing)):
        assert {len(values) for values in answer.values()} == {0}
        assert answer["logits"].shape == (0, len(LABELS))
    answer = server.classify(nothing)
    assert answer["classes"].shape == answer["scores"].shape == (0, len(LABELS))
