"""What becomes of code points in the graph, against Python's own Unicode tables."""

import random
import unicodedata

import pytest
import tensorflow as tf

from benchmarks import plain_tokenizer
from data import graph_characters


@pytest.mark.parametrize("lower", [True, False], ids=["uncased", "cased"])
def test_counts_and_accents(lower):
    chars = plain_tokenizer.ALL_CHARS[:0x3400]
    chars += random.Random(0).sample(plain_tokenizer.ALL_CHARS, 10_000)
    graph = graph_characters.GraphCharacters(lower)
    codes = tf.constant([ord(char) for char in chars], tf.int32)
    counts, accents = graph.counts(codes).numpy(), graph.are_accents(codes).numpy()
    for char, count, is_accent in zip(chars, counts, accents, strict=True):
        words = plain_tokenizer.words(char, lower)
        assert count == sum(map(len, words)), ascii(char)
        is_mark = unicodedata.category(char) == "Mn"
        assert is_accent == (lower and is_mark), ascii(char)


def test_words_are_set_apart():
    codes = tf.ragged.constant([[ord(c) for c in " ÉcoleΣ,中"], [ord("a")], []])
    spaced = graph_characters.GraphCharacters(True).space_words(codes).numpy()
    words = [text.decode().split() for text in spaced]
    assert words == [["ecoleς", ",", "中"], ["a"], []]
