"""Adding words to a vocabulary: which, where, and what they were before."""

import collections

import hypothesis
import pytest
from hypothesis import strategies

from benchmarks import plain_tokenizer
from data import tokenization, vocabulary_extension
from tests import scripts

ENTRIES = [*tokenization.SPECIAL_TOKENS, "a", "##a", "b", "##b", "ab", "##c"]
VOCAB = {entry: k for k, entry in enumerate(ENTRIES)}


@pytest.fixture
def write(tmp_path):
    """Writes a vocabulary file."""

    def write(entries, line_end="\n", last="\n"):
        path = tmp_path / "vocab.txt"
        path.write_bytes((line_end.join(entries) + last).encode("utf-8"))
        return path

    return write


def test_words_that_save_most_come_first():
    counts = {
        "abab": 5,  # ab ##a ##b: saves 10
        "aba": 10,  # ab ##a: saves 10, and is before abab
        "aaa": 6,  # saves 12
        "xyz": 4,  # unknown: saves 8
        "x": 9,  # unknown, one character: saves 9
        "ab": 99,  # is there
        "bb": 1,  # too rare
        "a" * 201: 99,  # never looked up
    }
    choose = vocabulary_extension.choose_words
    assert choose(counts, VOCAB, 5, 2) == ["aaa", "aba", "abab", "x", "xyz"]
    assert choose(counts, VOCAB, 2, 2) == ["aaa", "aba"]
    with pytest.raises(ValueError, match="only 5 words .* 6 are asked for"):
        choose(counts, VOCAB, 6, 2)


def num_pieces(words, entries):
    """Pieces of all words."""
    vocab = dict.fromkeys(entries, 0)
    return sum(n * len(plain_tokenizer.pieces(w, vocab)) for w, n in words.items())


@hypothesis.given(
    strategies.dictionaries(
        strategies.text("abc", min_size=1).map(lambda text: "a" + text),
        strategies.integers(1, 9),
        min_size=1,
    )
)
def test_the_first_word_saves_at_least_as_much_as_any_other_says(words):
    # A new entry may cut longer words better as well, but itself it saves this much.
    before = num_pieces(words, ENTRIES)
    alone = {w: num_pieces({w: n}, ENTRIES) - n for w, n in words.items()}
    if not any(alone.values()):
        return
    (first,) = vocabulary_extension.choose_words(words, VOCAB, 1, 1)
    assert alone[first] == max(alone.values())
    assert num_pieces({first: words[first]}, [*ENTRIES, first]) == words[first]
    assert before - alone[first] >= sum(words.values())


@pytest.mark.parametrize("last", ["\n", ""], ids=["line end", "no line end"])
def test_appended_words_leave_all_lines(write, last):
    path = write(ENTRIES, last=last)
    assert vocabulary_extension.extend(path, ["aba", "é"], False) == [
        *ENTRIES,
        "aba",
        "é",
    ]


def test_odd_files_keep_their_ids(write):
    # Windows line ends, an entry of whitespace, and U+2028, which is no line end.
    path = write([*ENTRIES, "\u3000", "x\u2028y"], "\r\n", "\r\n")
    old = tokenization.load_vocab(path)
    path = write(vocabulary_extension.extend(path, ["aba"], False))
    assert tokenization.load_vocab(path) == {**old, "aba": len(ENTRIES) + 2}


def test_unused_entries_are_filled_in_order(write):
    entries = ["[PAD]", "[unused7]", *ENTRIES[1:], "[unused1]", "[unused]", "[unused2]"]
    path = write(entries)
    lines = vocabulary_extension.extend(path, ["aba", "abb"], True)
    expected = list(entries)
    expected[1], expected[-3] = "aba", "abb"
    assert lines == expected
    with pytest.raises(ValueError, match=r"has 3 \[unused\] entries for 4 words"):
        vocabulary_extension.extend(path, ["aba", "abb", "abc", "aa"], True)


def test_a_bad_vocabulary_is_refused(write):
    with pytest.raises(ValueError, match="line 12: token 'ab'"):
        vocabulary_extension.extend(write([*ENTRIES, "ab"]), ["aba"], False)


def test_pieces_before():
    old = {**VOCAB, "[unused0]": 11, "[unused1]": 12, "##bc": 13}
    new = dict(old)
    del new["[unused0]"]
    new |= {"abba": 11, "ax": 14, "##abc": 15, "##x": 16, "##aa": 17, "##": 18, "": 19}
    found = vocabulary_extension.old_pieces(old, new)
    assert list(found.items()) == [
        ("abba", ["ab", "##b", "##a"]),
        ("ax", ["[UNK]"]),
        ("##abc", ["##a", "##bc"]),
        ("##x", ["[UNK]"]),
        ("##aa", ["##a", "##a"]),
        ("##", ["[UNK]"]),
    ]


def test_pieces_of_entries_that_continue_a_word_match_whole_words(golden):
    # What stands for ##x inside a word is what the word has after its first piece, as
    # long as no longer first piece reaches into x: here nothing starts with a comma.
    vocab = dict(tokenization.load_vocab(scripts.ROOT / "sample_data/vocab.txt"))
    text = (golden / "pretraining_corpus.txt").read_text("utf-8")
    words = sorted(set(plain_tokenizer.words(text, True)))
    new = {f"##{word}": len(vocab) + k for k, word in enumerate(words)}
    new = {entry: number for entry, number in new.items() if entry not in vocab}
    found = vocabulary_extension.old_pieces(vocab, vocab | new)
    assert len(found) == len(new) > 100
    for entry, pieces in found.items():
        whole = plain_tokenizer.pieces("," + entry[2:], vocab)
        assert pieces == (whole[1:] or ["[UNK]"])


@pytest.mark.parametrize(
    "change, sentence",
    [
        (lambda v: v.pop("ab"), "'ab' has the id 9 .* is gone"),
        (lambda v: v.update(a=12), "'a' has the id 5 .* has the id 12"),
    ],
    ids=["gone", "moved"],
)
def test_old_entries_must_stay(change, sentence):
    new = collections.OrderedDict(VOCAB, aba=11)
    change(new)
    with pytest.raises(ValueError, match=sentence):
        vocabulary_extension.old_pieces(VOCAB, new)
