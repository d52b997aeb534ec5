"""Where the tokens of the graph stand, against data/token_offsets.py."""

import random
import sys

import pytest
import tensorflow as tf

from benchmarks import plain_tokenizer
from data import graph_tokenization, token_offsets, tokenization
from tests import squad_files


@pytest.fixture(scope="module", params=[True, False], ids=["uncased", "cased"])
def check(request, golden):
    """function (texts): their tokens stand at the same places in Python and graph."""
    vocab_file = golden.parents[1] / "sample_data/vocab.txt"
    tokenizer = tokenization.FullTokenizer(vocab_file, request.param)
    graph = graph_tokenization.GraphTokenizer(vocab_file, request.param)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def places(texts):
        tokens = graph.tokens(texts)
        rows = tokens.ids.with_flat_values
        # Of the text itself, without those before it and its space.
        before = tf.cast(tokens.codes.row_starts(), tf.int32) + 1
        before = tf.gather(before, tokens.ids.value_rowids())
        starts, ends = tokens.starts - before, tokens.ends - before
        return rows(tf.stack([tokens.ids.flat_values, starts, ends], axis=1))

    def compare(texts):
        texts = [text.encode("utf-8", "ignore").decode() for text in texts]
        found = places(tf.constant(texts)).to_list()
        for text, row in zip(texts, found, strict=True):
            spans = token_offsets.token_spans(text, tokenizer)
            pairs = zip(tokenizer.encode(text), spans, strict=True)
            assert row == [[i, *span] for i, span in pairs], ascii(text)

    return compare


def test_golden_texts(golden, check):
    check([r["text"] for r in squad_files.golden_rows(golden / "tokenization.jsonl")])


def test_odd_texts(check):
    rng = random.Random(3)
    check([plain_tokenizer.odd_text(rng) for _ in range(1500)])


def test_accents_and_what_is_dropped(check):
    rng = random.Random(5)
    ordinary = "abcxyzΣσς .,-'\u0301\u0316\u200b\u00adéİßﬁ한東ａ\u00a0\u2028[]"
    check(
        [
            "".join(
                rng.choice(ordinary)
                if rng.random() < 0.8
                else chr(rng.randrange(sys.maxunicode))
                for _ in range(rng.randrange(12))
            )
            for _ in range(3000)
        ]
    )


def test_one_word_among_very_many(check):
    """Memory is that of the tokens, whatever the longest word."""
    check(["\u0301", "x" * 100_000 + " " + "ab-" * 10_000 + "\u0301", "", "\u0301a"])


def test_row_numbers():
    for lengths in ([], [0], [2, 0, 3, 0], [0, 0, 1]):
        expected = [row for row, n in enumerate(lengths) for _ in range(n)]
        found = graph_tokenization.row_numbers(tf.constant(lengths, tf.int64))
        assert found.numpy().tolist() == expected
