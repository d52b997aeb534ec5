"""Answers of the graph against question_answering.Predictor; saved and loaded too."""

import dataclasses
import json

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies

import question_answering
from data import squad, squad_answers, squad_windows, tokenization
from modeling import models
from serving import question_answering as serving
from serving import saved_model
from tests import exports, small_models

SIZES = squad_windows.WindowSizes(64, 16, 24)
THRESHOLD = -1.0  # near the middle of what the random models give
BOTH_VERSIONS = pytest.mark.parametrize(
    "version_2", [True, pytest.param(False, marks=pytest.mark.slow)]
)
HOSTILE = [
    "",
    " \t\r\n\u202f",
    "\u200b\0\ufffd",
    "x" * 100_000,
    "it is " + "ab-" * 33_333,
    "a\u00a0" * 3_000,
    "e\u0301" * 300 + " É" * 300,
    "\u202fAda\u2028b\u0085c\t\r\nd\u3000e",
    "한국어 시험 " * 20,
    "😀" * 50,
    "[UNK] [SEP] a ##b",
]


@pytest.fixture(scope="module")
def vocab_file(golden):
    return str(golden.parents[1] / "sample_data/vocab.txt")


@pytest.fixture(scope="module")
def make(vocab_file):
    """function (version_2) → (server, predictor), with random weights."""
    tokenizer = tokenization.FullTokenizer(vocab_file)
    config = small_models.config(
        vocab_size=len(tokenizer.vocab), max_position_embeddings=SIZES.max_seq_length
    )
    made = {}

    def make(version_2, seed=0):
        if version_2 not in made:
            options = squad_answers.AnswerOptions(
                version_2_with_negative=version_2, null_score_diff_threshold=THRESHOLD
            )
            predictor = question_answering.Predictor(
                models.BertForQuestionAnswering(config), tokenizer, SIZES, options
            )
            server = serving.QuestionAnswering(predictor, vocab_file)
            made[version_2] = server, predictor
        server, predictor = made[version_2]
        rng = np.random.default_rng(seed)
        for variable in predictor.model.weights:
            variable.assign(rng.normal(size=variable.shape, scale=0.7))
        return server, predictor

    return make


def check(outputs, predictor, questions, contexts):
    """Compares the outputs of the graph with the answers of Python; returns those."""
    outputs = {name: values.numpy() for name, values in outputs.items()}
    expected = predictor.predict(questions, contexts)
    assert {len(values) for values in outputs.values()} == {len(expected)}
    for row, answer in enumerate(expected):
        assert outputs["answer"][row].decode() == answer["text"]
        for name in ("start", "end"):
            place = -1 if answer[name] is None else answer[name]
            assert outputs[name][row] == place
        for name in ("score", "probability", "null_score"):
            value = 0 if answer[name] is None else answer[name]
            assert float(outputs[name][row]) == pytest.approx(value, abs=1e-5)
        if outputs["start"][row] >= 0:
            start, end = outputs["start"][row], outputs["end"][row]
            assert contexts[row][start:end] == answer["text"] != ""
    return expected


def ask(server, questions, contexts):
    return server.serving_default(tf.constant(questions), tf.constant(contexts))


@BOTH_VERSIONS
@pytest.mark.parametrize(
    "name", ["dev-v2.0.part.json", "xquad.zh.part.json", "xquad.de.part.json"]
)
@pytest.mark.parametrize(
    "count, seeds", [(12, 1), pytest.param(100, 3, marks=pytest.mark.slow)]
)
def test_real_questions(shared, make, name, version_2, count, seeds):
    examples = squad.read_prediction_set(shared / "data/squad" / name)
    examples = examples[:: len(examples) // count]
    questions = [example.question_text for example in examples]
    contexts = [example.paragraph.text for example in examples]
    assert len(examples) >= count
    found = []
    for seed in range(seeds):
        server, predictor = make(version_2, seed)
        found += check(ask(server, questions, contexts), predictor, questions, contexts)
    assert len({answer["text"] for answer in found}) >= count / 4
    without = sum(answer["start"] is None for answer in found)
    assert (0 < without < len(found)) == version_2


@BOTH_VERSIONS
def test_hostile_texts(make, version_2):
    server, predictor = make(version_2)
    questions = (["", "who? " * 50, "\u200b", "who is it?"] * 3)[: len(HOSTILE)]
    outputs = ask(server, questions, HOSTILE)
    check(outputs, predictor, questions, HOSTILE)
    texts = [text.decode() for text in outputs["text"].numpy()]
    assert texts[0] == ("" if version_2 else squad_answers.NO_CANDIDATE)


def test_nothing_to_answer(make):
    server, _ = make(True)
    for questions, contexts in ([], []), (["a", ""], ["", " "]):
        outputs = ask(
            server, tf.constant(questions, tf.string), tf.constant(contexts, tf.string)
        )
        assert {len(values) for values in outputs.values()} == {len(questions)}
        assert set(outputs["answer"].numpy()) <= {b""}


def test_bytes_that_are_not_utf8_are_left_out(make):
    server, predictor = make(True)
    outputs = ask(
        server, [b"who\xff"], [b"\xffit is\xe4\xb8 Ada \xf0\x9f\x98\x80b\xff"]
    )
    check(outputs, predictor, ["who"], ["it is Ada 😀b"])


# JSON may carry lone surrogates, UTF-8 cannot.
TEXT = strategies.text(strategies.characters(exclude_categories=["Cs"]), max_size=200)
LATIN = strategies.text("ab Aé-'.\u0301\u00a0\u200b\n", max_size=200)


@hypothesis.settings(max_examples=25, deadline=None, derandomize=True)
@hypothesis.given(
    strategies.lists(strategies.tuples(TEXT, TEXT | LATIN), min_size=1, max_size=8)
)
def test_random_texts(make, pairs):
    server, predictor = make(True)
    questions, contexts = map(list, zip(*pairs, strict=True))
    check(ask(server, questions, contexts), predictor, questions, contexts)


def test_answers_do_not_depend_on_what_else_is_asked(make):
    server, predictor = make(True)
    contexts = ["It was Ada, in 1887. " * 20, "", "Café Orléans"]
    for context in contexts:
        outputs = ask(server, ["who?"], [context])
        check(outputs, predictor, ["who?"], [context])
    check(ask(server, ["who?"] * 3, contexts), predictor, ["who?"] * 3, contexts)


@pytest.mark.slow
def test_the_comparison_sees_every_signature(make):
    assert exports.uncompared(make(True)[0]) == []


@pytest.mark.slow
def test_saved_and_asked_where_nothing_of_ours_is(make, vocab_file, tmp_path):
    server, predictor = make(True)
    found = []

    def compare(path):
        signatures = dict(tf.saved_model.load(path).signatures)
        found.extend(server.differences(signatures))
        # Other options than the graph's must show.
        options = predictor.options
        predictor.options = dataclasses.replace(options, n_best_size=3)
        assert max(server.differences(signatures)) > 1e-3
        predictor.options = options

    saved_model.save(server, str(tmp_path), compare)
    assert max(found) < 1e-5
    with open(vocab_file, "rb") as file:
        assert (tmp_path / "1/assets/vocab.txt").read_bytes() == file.read()
    questions, contexts = ["who?"] * 3, ["It was Ada, in 1887. " * 9, "", "東京"]
    ids = {name: [[2, 5, 3], [2, 3, 0]] for name in ("input_ids", "segment_ids")}
    ids = {**ids, "input_mask": [[1, 1, 1], [1, 1, 0]]}
    ids["segment_ids"] = [[0, 1, 1], [0, 0, 0]]
    answers, logits, nothing = exports.ask(
        tmp_path / "1",
        [
            ("serving_default", {"question": questions, "context": contexts}),
            ("ids", ids),
            ("serving_default", {"question": [], "context": []}),
        ],
        tmp_path,
    )
    expected = predictor.predict(questions, contexts)
    assert answers["answer"] == [answer["text"] for answer in expected]
    outputs = predictor.model({name: tf.constant(x) for name, x in ids.items()})
    for name, values in logits.items():
        np.testing.assert_allclose(values, outputs[name], atol=1e-5)
    assert set(map(tuple, nothing.values())) == {()}
    assert json.dumps(answers, allow_nan=False)
