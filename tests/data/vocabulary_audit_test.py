"""The audit against counting token by token."""

import collections
import random

import pytest

from benchmarks import plain_tokenizer
from data import tokenization, vocabulary_audit
from tests import scripts


def plain_audit(words, vocab):
    """The numbers of a report for a text, given as the list of its words."""
    cut = [plain_tokenizer.pieces(word, vocab) for word in words]
    both = list(zip(words, cut, strict=True))
    unknown = [word for word, pieces in both if pieces == ["[UNK]"]]
    whole = [word for word, pieces in both if pieces == [word]]
    letters = {c for entry in vocab if not entry.startswith("[") for c in entry}
    num_pieces, characters = sum(map(len, cut)), sum(map(len, words))
    return {
        "words": len(words),
        "characters": characters,
        "pieces": num_pieces,
        "pieces_per_word": num_pieces / len(words),
        "whole_words": len(whole),
        "whole_word_share": len(whole) / len(words),
        "unknown_words": len(unknown),
        "unknown_word_share": len(unknown) / len(words),
        "unknown_characters": sum(map(len, unknown)),
        "unknown_character_share": sum(map(len, unknown)) / characters,
        "uncovered_characters": len(set("".join(words)) - letters),
        "entries": len(vocab),
        "entries_used": len({piece for pieces in cut for piece in pieces}),
    }


def audit(vocab, parts, num_examples=1000):
    """The report for words whose counts come in parts."""
    fit = vocabulary_audit.Audit(vocab)
    total = collections.Counter()
    for part in parts:
        counts = collections.Counter(part)
        fit.add(counts.items())
        total += counts
    return fit.report(total, num_examples)


@pytest.mark.parametrize("lower", [True, False], ids=["uncased", "cased"])
def test_numbers_are_those_of_plain_counting(lower):
    vocab = tokenization.load_vocab(scripts.ROOT / "sample_data/vocab.txt")
    # Characters that only a longer entry holds, and some that no entry holds alone.
    vocab = {entry: k for k, entry in enumerate([*vocab, "ಠ_ಠ", "[unused0]"])}
    del vocab["##j"], vocab["q"]
    rng = random.Random(5)
    text = (scripts.ROOT / "sample_data/corpus.txt").read_text("utf-8")[:60_000]
    text += " ".join(plain_tokenizer.odd_text(rng) for _ in range(200))
    words = plain_tokenizer.words(text, lower)
    expected = plain_audit(words, vocab)
    assert expected["unknown_words"] > 100
    assert expected["uncovered_characters"] > 10
    report = audit(vocab, [words[:5000], words[5000:]])
    assert {name: report[name] for name in expected} == expected


def test_examples():
    vocab = [*tokenization.SPECIAL_TOKENS, "a", "##b", "##c", "the", "c"]
    words = ["the"] * 5 + ["ab"] * 2 + ["abc"] * 4 + ["aé"] * 3 + ["é"] + ["b"] + ["cb"]
    report = audit(vocab, [words])
    assert report["fragmented"] == [
        {"word": "abc", "count": 4, "pieces": ["a", "##b", "##c"]},
        {"word": "ab", "count": 2, "pieces": ["a", "##b"]},
        {"word": "cb", "count": 1, "pieces": ["c", "##b"]},
    ]
    assert report["unknown"] == [
        {"word": "aé", "count": 3},
        {"word": "b", "count": 1},  # ##b is covered, but not at the start
        {"word": "é", "count": 1},
    ]
    name = "U+00E9 LATIN SMALL LETTER E WITH ACUTE"
    assert report["uncovered"] == [{"character": "é", "count": 4, "name": name}]
    few = audit(vocab, [words], num_examples=1)
    for key in ("fragmented", "unknown", "uncovered"):
        assert few[key] == report[key][:1]
    assert not any(audit(vocab, [words], 0)[k] for k in ("fragmented", "unknown"))
    assert vocabulary_audit.table(few).split("\n") == [
        "words                17",
        "pieces per word      1.647",
        "whole words          29.41 %",
        "unknown words        29.412 %, 5",
        "unknown characters   19.512 %, 8",
        "entries that occur   6 of 10",
        "fragmented           abc (4: a ##b ##c)",
        "unknown              aé (3)",
        f"uncovered            é (4: {name})",
    ]


def test_special_tokens_cover_no_character():
    report = audit([*tokenization.SPECIAL_TOKENS, "b"], [["K", "b"]])
    assert [row["character"] for row in report["uncovered"]] == ["K"]


def test_a_text_without_words_is_refused():
    with pytest.raises(ValueError, match="no words"):
        audit(tokenization.SPECIAL_TOKENS, [])
