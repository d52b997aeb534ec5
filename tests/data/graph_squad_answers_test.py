"""Logits to answers in the graph, against data/squad_answers.py."""

import math

import numpy as np
import pytest
import tensorflow as tf

from data import (
    graph_squad_answers,
    graph_squad_text,
    graph_squad_windows,
    graph_tokenization,
    squad,
    squad_answers,
    squad_windows,
    tokenization,
)

SIZES = squad_windows.WindowSizes(32, 7, 8)
QUESTIONS = ["who?", "", "is it? " * 9, "who is it?", "what", "why"]
CONTEXTS = [
    "Ada, of Saltmere (1821-1887); and others. " * 4,
    "",
    "the the the the the the the the the the the",
    "e\u0301t\u0301 \u200bzero\u200bwidth\u200b, " * 9,
    "東京は日本の首都です。" * 5,
    "one two",
]


@pytest.fixture(scope="module")
def tokenizers(golden):
    vocab_file = golden.parents[1] / "sample_data/vocab.txt"
    return (
        tokenization.FullTokenizer(vocab_file),
        graph_tokenization.GraphTokenizer(vocab_file),
    )


def in_python(tokenizer, make_logits, options):
    """Answers and windows; `make_logits` is a function of a length."""
    examples = [
        squad.SquadExample("", question, squad.Paragraph.from_text(context))
        for question, context in zip(QUESTIONS, CONTEXTS, strict=True)
    ]
    windows = list(squad_windows.make_windows(examples, tokenizer, SIZES))
    logits = [make_logits(len(window.input_ids)) for window in windows]
    found = squad_answers.find_answers(examples, windows, logits, tokenizer, options)
    return list(found), windows, logits


def in_graph(tokenizer, logits, options):
    """The same answers from the same logits, eagerly."""
    queries = tokenizer(tf.constant(QUESTIONS))[:, : SIZES.max_query_length]
    tokens = tokenizer.tokens(tf.constant(CONTEXTS))
    lengths = (tf.cast(x.row_lengths(), tf.int32) for x in (tokens.ids, queries))
    windows = graph_squad_windows.place_windows(*lengths, SIZES)
    sequences = graph_squad_windows.Sequences(
        tokenizer.enclose(queries), tokens.ids, windows
    )
    spans = []
    for first in range(0, len(logits), 4):
        batch = sequences.batch(first, first + 4)
        padded = np.full((2, *batch["input_ids"].shape), 99.0, np.float32)
        for row, pair in enumerate(logits[first : first + 4]):
            padded[:, row, : len(pair[0])] = pair
        spans.append(
            graph_squad_answers.window_spans(
                first, list(tf.constant(padded)), batch, windows, options
            )
        )
    nulls = [(starts[0], ends[0]) for starts, ends in logits]
    return graph_squad_answers.choose(
        tf.concat(spans, axis=0),
        tf.constant(nulls, tf.float64),
        windows,
        graph_squad_text.GraphTexts(tokens),
        tf.cast(tokens.ids.row_starts(), tf.int32),
        options,
    )


@pytest.mark.parametrize("seed", range(12))
def test_answers_are_those_of_python(tokenizers, seed):
    rng = np.random.default_rng(seed)
    version_2 = seed % 2 == 1
    options = squad_answers.AnswerOptions(
        n_best_size=int(rng.choice([1, 2, 5, 20, 64])),
        max_answer_length=int(rng.integers(1, 30)),
        version_2_with_negative=version_2,
        null_score_diff_threshold=float(rng.choice([-2, 0, 2, math.inf])),
        drop_padding=True,
    )

    def make_logits(length):
        # Few different numbers, so that some spans are as good as others.
        shape = (2, length)
        values = rng.integers(-9, 9, shape) if seed % 3 else rng.normal(size=shape)
        return values.astype(np.float32)

    expected, _, logits = in_python(tokenizers[0], make_logits, options)
    found = in_graph(tokenizers[1], logits, options)
    found = {name: values.numpy().tolist() for name, values in found.items()}
    for row, answer in enumerate(expected):
        assert found["text"][row].decode() == answer.text
        assert (found["first"][row] >= 0) == (answer.chosen.span is not None)
        assert found["score"][row] == answer.chosen.score
        probability = answer.chosen.probability
        assert found["probability"][row] == pytest.approx(probability, abs=1e-12)
        assert found["null_score"][row] == (answer.null_score or 0)
    assert len(set(found["text"])) > 1


def test_no_span_survives(tokenizers):
    def make_logits(length):
        values = np.zeros((2, length), np.float32)
        values[:, :3] = 9
        return values

    for version_2 in (False, True):
        options = squad_answers.AnswerOptions(
            2, version_2_with_negative=version_2, drop_padding=True
        )
        expected, _, logits = in_python(tokenizers[0], make_logits, options)
        found = in_graph(tokenizers[1], logits, options)
        texts = [text.decode() for text in found["text"].numpy()]
        assert texts == [answer.text for answer in expected]
        assert set(texts) == {"" if version_2 else "empty"}
        assert set(found["first"].numpy()) == {-1}
