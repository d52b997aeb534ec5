"""Choosing in a graph against the Python path; saved: tests/export_heads_test.py."""

import random

import numpy as np
import pytest
import tensorflow as tf

import choosing
import runs
from data import multiple_choice
from modeling import config as config_lib
from modeling import models
from serving import multiple_choice as servers
from tests import exports, small_models


@pytest.fixture(scope="module")
def model(golden):
    config = config_lib.BertConfig.from_json_file(golden / "tiny_tf1/bert_config.json")
    model = models.BertForMultipleChoice(config)
    small_models.randomize(model, 6, num_labels=1)
    return model


@pytest.fixture(scope="module")
def vocab_file(golden):
    return str(golden / "tiny_tf1/vocab.txt")


@pytest.fixture(scope="module")
def predictor(model, golden):
    folder = str(golden / "tiny_tf1")
    run = runs.Run(folder, {"do_lower_case": True}, {"max_seq_length": 12})
    return choosing.Predictor(model, run)


@pytest.fixture(scope="module")
def swag(model, vocab_file):
    return servers.SwagChooser(model, vocab_file, True, 12)


@pytest.fixture(scope="module")
def arct(model, vocab_file):
    return servers.ArctChooser(model, vocab_file, True, 12)


def random_text(rng, least=0):
    kinds = (range(1, 0x300), range(1, 0xD800), range(97, 123), b" .!?'\"")
    length = rng.randrange(least, 12)
    return "".join(chr(rng.choice(rng.choice(kinds))) for _ in range(length))


def check(outputs, contexts, choices, predictor):
    """Compares outputs, padded, with the answers for lists of texts."""
    for row, answer in enumerate(predictor.predict(contexts, choices)):
        assert outputs["label"][row] == answer["label"]
        padding = outputs["logits"].shape[1] - len(choices[row])
        probabilities = answer["probabilities"] + [0] * padding
        np.testing.assert_allclose(
            outputs["probabilities"][row], probabilities, atol=1e-5
        )
        assert outputs["score"][row] == max(outputs["probabilities"][row])


def test_any_number_of_choices(swag, predictor):
    rng = random.Random(0)
    contexts = [random_text(rng) for _ in range(20)] + ["word " * 300, ""]
    choices = [
        [random_text(rng, least=1) for _ in range(rng.randrange(1, 6))]
        for _ in contexts
    ]
    choices[0] = ["the same"] * 5 + ["word " * 300]
    padded = [texts + [""] * (6 - len(texts)) for texts in choices]
    outputs = swag.serving_default(tf.constant(contexts), tf.constant(padded))
    check(outputs, contexts, choices, predictor)
    for row, texts in enumerate(choices):
        choice = outputs["choice"][row].numpy().decode()
        assert choice == texts[int(outputs["label"][row])]


def test_the_columns_of_swag(swag, predictor):
    rng = random.Random(1)
    rows = [[random_text(rng) for _ in range(2)] for _ in range(20)]
    endings = [[random_text(rng, least=1) for _ in range(4)] for _ in rows]
    sent1, sent2 = (tf.constant(column) for column in zip(*rows, strict=True))
    outputs = swag.swag(sent1, sent2, tf.constant(endings))
    # Zellers et al. 2018: the second sentence starts with its noun phrase.
    choices = [
        [f"{row[1]} {ending}" for ending in texts]
        for row, texts in zip(rows, endings, strict=True)
    ]
    check(outputs, [row[0] for row in rows], choices, predictor)
    for row, texts in enumerate(endings):
        choice = outputs["choice"][row].numpy().decode()
        assert choice == texts[int(outputs["label"][row])]


def test_the_columns_of_arct(arct, predictor):
    rng = random.Random(2)
    rows = [[random_text(rng) for _ in range(2)] for _ in range(40)]
    warrants = [[random_text(rng, least=1) for _ in range(2)] for _ in rows]
    claim, reason = (tf.constant(column) for column in zip(*rows, strict=True))
    outputs = arct.arct(claim, reason, tf.constant(warrants))
    columns = ({"claim": row[0], "reason": row[1]} for row in rows)
    contexts = [multiple_choice.warrants(row, "")[0] for row in columns]
    check(outputs, contexts, warrants, predictor)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a", "a."),
        ("a.", "a."),
        ("a?'\"", "a?'\""),
        ("", "."),
        ("'", "'."),
        ("a. ", "a. ."),
        ("a\n!", "a\n!"),
        ("a!\n", "a!\n."),
    ],
)
def test_sentences_of_arct_end(text, expected):
    assert servers._sentence(tf.constant([text])).numpy()[0].decode() == expected


def test_the_comparison_sees_another_length(swag, arct, model, vocab_file):
    for server in (swag, arct):
        assert max(server.differences(exports.signatures(server))) <= 1e-5
    other = servers.TextChooser(model, vocab_file, True, 13)
    assert any(d > 1e-4 for d in swag.differences(exports.signatures(other)))


@pytest.mark.slow
def test_the_comparison_sees_every_signature(swag, arct):
    for server in (swag, arct):
        assert exports.uncompared(server) == []


def test_no_question_no_answer(swag):
    answer = swag.serving_default(
        context=tf.constant([], tf.string), choices=tf.zeros([0, 2], tf.string)
    )
    assert {len(values) for values in answer.values()} == {0}


@pytest.mark.parametrize("number", range(3))
def test_every_text_needs_one_row_of_choices(swag, arct, number):
    # One row would do for all by broadcasting, and two for one.
    for function in (swag.swag, arct.arct, swag.serving_default):
        *texts, choices = function.input_signature
        given = [tf.fill([2] * spec.shape.rank, "a") for spec in (*texts, choices)]
        if number < len(given):
            given[number] = given[number][:1]
            with pytest.raises(tf.errors.InvalidArgumentError, match="one row of choi"):
                function(*given)
