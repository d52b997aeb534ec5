"""The text of spans in the graph, against data/squad_text.py."""

import random

import pytest
import tensorflow as tf

from benchmarks import plain_tokenizer
from data import (
    graph_squad_text,
    graph_tokenization,
    squad,
    squad_text,
    squad_windows,
    tokenization,
)
from tests import squad_files


@pytest.fixture(scope="module", params=[True, False], ids=["uncased", "cased"])
def check(request, golden):
    """function (contexts, rng): spans of their tokens have the texts of Python."""
    vocab_file = golden.parents[1] / "sample_data/vocab.txt"
    tokenizer = tokenization.FullTokenizer(vocab_file, request.param)
    graph = graph_tokenization.GraphTokenizer(vocab_file, request.param)
    pairs = [tf.TensorSpec([None], tf.int32)] * 2

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string), *pairs], autograph=False
    )
    def texts_of(contexts, first, last):
        texts = graph_squad_text.GraphTexts(graph.tokens(contexts))
        exact = texts.exact_texts(*texts.characters(first, last))
        return texts.final_texts(texts.final_places(first, last)), exact

    def compare(contexts, rng):
        contexts = [text.encode("utf-8", "ignore").decode() for text in contexts]
        spans, expected, shift = [], [], 0
        for context in contexts:
            paragraph = squad.Paragraph.from_text(context)
            tokens = squad_windows.tokenize_context(paragraph.words, tokenizer)
            texts = squad_text.Texts(paragraph, tokens, tokenizer)
            count = len(tokens.ids)
            for _ in range(min(count, 12)):
                first = rng.randrange(count)
                last = min(first + rng.randrange(8), count - 1)
                spans.append((first + shift, last + shift))
                exact = context[slice(*texts.characters(first, last))]
                expected.append((texts.final_text(first, last), exact))
            shift += count
        first, last = zip(*spans, strict=True)
        found = texts_of(tf.constant(contexts), tf.constant(first), tf.constant(last))
        pairs = zip(*(texts.numpy() for texts in found), strict=True)
        found = [tuple(map(bytes.decode, pair)) for pair in pairs]
        assert found == expected
        return expected

    return compare


def test_odd_texts(check):
    rng = random.Random(11)
    pairs = check([plain_tokenizer.odd_text(rng) for _ in range(600)], rng)
    assert any(final != exact for final, exact in pairs)


def test_golden_contexts(golden, check):
    path = squad_files.golden_input(golden, True)
    texts = {e.paragraph.text for e in squad.read_prediction_set(path)}
    check(sorted(texts), random.Random(12))


@pytest.mark.parametrize("seed", range(3))
def test_repeated_characters(check, seed):
    """The original takes the first place that looks the same."""
    rng = random.Random(seed)
    letters = "ab--Aé \u00a0\u200b'한x"
    check(["".join(rng.choices(letters, k=rng.randint(1, 60))) for _ in range(99)], rng)


def test_long_words(check):
    """Longer than what is compared at a time."""
    rng = random.Random(13)
    words = ["ab-" * 20_000, "".join(rng.choices("abc-'", k=50_000))]
    check([" ".join(words), "x" * 100_000 + " é", "a\u00a0" * 9_000], rng)
