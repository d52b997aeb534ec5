"""Where tokens stand in a text."""

import random
import sys
import unicodedata

import pytest

from benchmarks import plain_tokenizer
from data import token_offsets, tokenization
from tests import squad_files


@pytest.fixture(scope="module", params=[True, False], ids=["uncased", "cased"])
def tokenizer(request, golden):
    vocab = golden.parent.parent / "sample_data/vocab.txt"
    return tokenization.FullTokenizer(vocab, request.param)


def spans(text, tokenizer):
    return [
        text[start:end] for start, end in token_offsets.token_spans(text, tokenizer)
    ]


def test_what_was_normalised_is_found_as_it_stands(golden):
    vocab = golden.parent.parent / "sample_data/vocab.txt"
    uncased = tokenization.FullTokenizer(vocab)
    assert spans("École", uncased) == ["École"]
    # An accent of its own belongs to the letter before it.
    assert spans("E\u0301cole e\u0301", uncased) == ["E\u0301cole", "e\u0301"]
    # What is dropped at the edge belongs to nothing, within a token to it.
    assert spans("\u200bone\u200b tw\u00ado\u200b", uncased) == ["one", "tw\u00ado"]
    assert spans("(1821-1887),", uncased) == ["(", "1821", "-", "1887", ")", ","]
    assert spans("salTmere", uncased) == ["salT", "mere"]
    assert spans("x" * 201 + "!", uncased) == ["x" * 201, "!"]
    assert spans("東京Tokyo", uncased) == ["東", "京", "Tokyo"]
    assert spans("İstanbul", uncased)[0][0] == "İ"
    # Both pieces of one syllable are that syllable.
    pieces = spans("\uac00", uncased)
    assert len(pieces) == 2
    assert set(pieces) == {"\uac00"}


def check(text, tokenizer):
    """Tokens come in order, from characters that give just them."""
    found = token_offsets.token_spans(text, tokenizer)
    tokens = tokenizer.tokenize(text)
    assert len(found) == len(tokens), text
    assert found == sorted(found), text
    for (start, end), token in zip(found, tokens, strict=True):
        assert 0 <= start < end <= len(text), text
        if token == "[UNK]":
            continue
        wanted = letters(token.removeprefix("##"))
        words = plain_tokenizer.words(
            text[start:end], tokenizer.basic_tokenizer.do_lower_case
        )
        there = letters("".join(words))
        assert wanted in there, (text, token)
        # Of a character at an edge that became several, the token may have only some.
        edges = unicodedata.normalize("NFD", (text[start] + text[end - 1]).lower())
        assert len(there) - len(wanted) <= max(0, len(edges) - 2), (text, token)


def letters(text):
    """What can be compared: a sigma has two forms, depending on what follows it."""
    return text.replace("ς", "σ")


def test_golden_texts(golden, tokenizer):
    for row in squad_files.golden_rows(golden / "tokenization.jsonl"):
        check(row["text"], tokenizer)


def test_random_texts(tokenizer):
    rng = random.Random(5)
    ordinary = "abcxyzΣσς .,-'\u0301\u0316\u200b\u00adéİßﬁ한東ａ\u00a0\u2028[]"
    for _ in range(3000):
        text = "".join(
            rng.choice(ordinary)
            if rng.random() < 0.8
            else chr(rng.randrange(sys.maxunicode))
            for _ in range(rng.randrange(12))
        )
        check(text, tokenizer)
