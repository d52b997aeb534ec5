"""The tagger's graph against the Python path; saved: tests/export_heads_test.py."""

import functools
import random

import numpy as np
import pytest
import tensorflow as tf

import runs
import word_tagging
from modeling import config as config_lib
from modeling import models
from serving import tagging
from tests import exports, small_models

LABELS = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")


@pytest.fixture(scope="module")
def make(golden):
    """function (max_seq_length) → (server, predictor) of one model."""
    vocab_file = str(golden / "tiny_tf1/vocab.txt")
    config = config_lib.BertConfig.from_json_file(golden / "tiny_tf1/bert_config.json")
    model = models.BertForTokenClassification(config, len(LABELS))
    small_models.randomize(model, 3)

    @functools.cache
    def make(max_seq_length):
        identity = {"labels": LABELS, "do_lower_case": True}
        settings = {"max_seq_length": max_seq_length}
        run = runs.Run(str(golden / "tiny_tf1"), identity, settings)
        server = tagging.WordTagger(model, LABELS, vocab_file, True, max_seq_length)
        return server, word_tagging.Predictor(model, run)

    return make


def random_word(rng):
    """Letters, spaces, marks, symbols, characters of no piece, or nothing."""
    kinds = (range(1, 0x300), range(1, 0xD800), range(97, 123), range(0x200B, 0x2010))
    return "".join(chr(rng.choice(rng.choice(kinds))) for _ in range(rng.randrange(6)))


def check(outputs, sentences, predictor):
    """Compares outputs, padded, with the answers for lists of words."""
    answers = predictor.predict(sentences)
    for row, answer in enumerate(answers):
        padding = outputs["tags"].shape[1] - len(answer)
        tags = [tag.decode() for tag in outputs["tags"][row].numpy()]
        assert tags == [word["tag"] for word in answer] + [""] * padding
        scores = [word["score"] for word in answer] + [0] * padding
        np.testing.assert_allclose(outputs["scores"][row], scores, atol=1e-5)
    assert len({word["tag"] for answer in answers for word in answer}) > 1


@pytest.mark.parametrize("max_seq_length", [3, 9, 32])
def test_words_have_the_tags_of_the_python_path(make, max_seq_length):
    server, predictor = make(max_seq_length)
    rng = random.Random(max_seq_length)
    sentences = [
        [*(random_word(rng) for _ in range(rng.randrange(40))), "end"]
        for _ in range(12)
    ]
    sentences += [["word"] * 300, [], ["\u200b", "", "\0", "end"]]
    width = max(map(len, sentences)) + 1
    padded = [words + [""] * (width - len(words)) for words in sentences]
    outputs = server.serving_default(tf.constant(padded))
    assert outputs["tags"].shape == (len(sentences), width)
    check(outputs, sentences, predictor)

    texts = [" ".join(words) + "\u2003\x1c\x85 end" for words in sentences]
    outputs = server.text(tf.constant(texts))
    check(outputs, [text.split() for text in texts], predictor)
    for row, text in zip(outputs["words"].numpy(), texts, strict=True):
        assert [word.decode() for word in row if word] == text.split()


def test_ids_are_tagged_token_by_token(make):
    server, _ = make(9)
    ids = tf.constant([[2, 5, 6, 7, 3], [2, 8, 3, 0, 0]])
    mask = tf.cast(ids > 0, tf.int32)
    outputs = server.ids(ids, mask, tf.zeros_like(ids))
    logits = server.model({"input_ids": ids, "input_mask": mask})["logits"].numpy()
    np.testing.assert_allclose(outputs["logits"], logits, atol=1e-5)
    for row, length in enumerate([5, 3]):
        tags = [tag.decode() for tag in outputs["tags"][row].numpy()]
        best = [LABELS[i] for i in logits[row, :length].argmax(-1)]
        assert tags == best + [""] * (5 - length)
        assert (outputs["scores"][row] > 0).numpy().tolist() == [t != "" for t in tags]


def test_no_words_no_tags(make):
    server, _ = make(9)
    for shape in [(0, 0), (0, 2), (2, 0), (2, 3)]:
        outputs = server.serving_default(tf.fill(shape, ""))
        assert outputs["tags"].shape == outputs["scores"].shape == shape
        assert outputs["logits"].shape == (*shape, len(LABELS))
        assert set(outputs["tags"].numpy().flat) <= {b""}
        text = server.text(tf.fill(shape[:1], " "))
        assert text["words"].shape == text["tags"].shape == (shape[0], 0)


def test_the_comparison_sees_windows_and_tokens_of_another_kind(make):
    server, _ = make(9)
    assert max(server.differences(exports.signatures(server))) <= 1e-5
    other, _ = make(32)
    assert any(d > 1e-3 for d in server.differences(exports.signatures(other)))


@pytest.mark.slow
def test_the_comparison_sees_every_signature(make):
    assert exports.uncompared(make(9)[0]) == []
