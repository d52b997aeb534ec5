"""Characters against lists written by hand from Unicode's tables."""

import unicodedata

import pytest

from benchmarks import plain_tokenizer
from data import characters


@pytest.mark.parametrize(
    ("chars", "expected"),
    [
        (" \t\n\r\u00a0\u1680\u2000\u200a\u202f\u205f\u3000", " "),
        ("\0\ufffd\x07\x0b\x0c\x1c\x1f\x7f\x85\x9f\u00ad\u200b\u200d\u2060\ufeff", ""),
    ],
)
def test_clean_makes_whitespace_a_space_and_drops_controls(chars, expected):
    assert [characters.clean(char) for char in chars] == [expected] * len(chars)


def test_clean_keeps_private_unassigned_separators_and_surrogates():
    for char in "aé\u0301\ue000\u0378\u2028\u2029\ud800😀":
        assert characters.clean(char) == char


def test_clean_sets_exactly_the_cjk_blocks_apart():
    apart = [c for c in plain_tokenizer.ALL_CHARS if characters.clean(c) == f" {c} "]
    blocks = plain_tokenizer.CJK_BLOCKS
    assert len(apart) == sum(map(len, blocks))
    assert all(any(ord(char) in block for block in blocks) for char in apart)


def test_punctuation_is_category_p_and_every_ascii_symbol():
    for char in plain_tokenizer.ASCII_PUNCTUATION + "¡«»‘’“”–—…。、！？·\u055a":
        assert characters.set_punctuation_apart(char) == f" {char} "
    for char in "aZ09 €£©°×™²½😀\u0301\x7f":
        assert characters.set_punctuation_apart(char) == char


def test_tables_give_the_same_when_asked_again():
    text = "".join(plain_tokenizer.ALL_CHARS[:3000])
    for table in (
        characters.CLEAN,
        characters.PUNCTUATION,
        characters.ACCENTS_AND_PUNCTUATION,
    ):
        assert text.translate(table) == text.translate(table)
    kept = text.translate(characters.ACCENTS_AND_PUNCTUATION)
    assert "Mn" not in map(unicodedata.category, kept)
