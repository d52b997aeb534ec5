"""Learning a vocabulary: against a plain version, another trainer, and its rules."""

import collections
import gzip
import random
import re

import hypothesis
import pytest
from hypothesis import strategies

from benchmarks import plain_tokenizer
from data import tokenization, vocabulary, word_counts
from tests import scripts

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = strategies.dictionaries(
    strategies.text("abc", min_size=1, max_size=8),
    strategies.integers(1, 9),
    min_size=1,
)


def prose():
    """The lines of the bundled corpus."""
    return (scripts.ROOT / "sample_data/corpus.txt").read_text("utf-8").split("\n")


def counted(lines, lower=True):
    """Counts of words and of characters, and the tokenizer that made them."""
    tokenizer = tokenization.BasicTokenizer(lower)
    found = word_counts.count_words(lines, tokenizer, 10**9, lambda _: None)
    characters = collections.Counter()
    vocabulary.count_characters(characters, found.counts.items())
    return found.counts, characters, tokenizer


def learn(words, size, **settings):
    """The vocabulary for words with counts that consist of letters."""
    tokenizer = tokenization.BasicTokenizer()
    characters = collections.Counter()
    vocabulary.count_characters(characters, words.items())
    settings = vocabulary.Settings(size, **settings)
    return list(vocabulary.learn(words, characters, tokenizer, settings))


def plain_joins(words, entries, min_frequency):
    """Byte-pair encoding, written down as it is defined: counts everything every time.

    Args:
        words: word to count.
        entries: the pieces of single characters; equal counts go by their order.
    """
    entries = list(entries)
    cut = {w: [w[0]] + ["##" + char for char in w[1:]] for w in words}
    while True:
        counts = collections.Counter()
        for word, pieces in cut.items():
            for k in range(len(pieces) - 1):
                counts[pieces[k], pieces[k + 1]] += words[word]
        counts = {pair: n for pair, n in counts.items() if n >= min_frequency}
        if not counts:
            return entries
        left, right = min(
            counts, key=lambda pair: (-counts[pair], *map(entries.index, pair))
        )
        joined = left + right[2:]
        for pieces in cut.values():
            for k in range(len(pieces)):
                if pieces[k : k + 2] == [left, right]:
                    pieces[k : k + 2] = [joined]
        if joined not in entries:
            entries.append(joined)


def largest(words, **settings):
    """The vocabulary of the largest size there is, which the refusal names."""
    with pytest.raises(ValueError, match="at most") as caught:
        learn(words, 10**6, **settings)
    return int(re.search(r"at most ([\d,]+)", str(caught.value))[1].replace(",", ""))


@hypothesis.given(WORDS, strategies.integers(1, 4))
def test_pieces_are_those_of_the_plain_version(words, min_frequency):
    characters = sorted(set("".join(words)))
    expected = plain_joins(
        words, characters + ["##" + char for char in characters], min_frequency
    )
    size = largest(words, min_frequency=min_frequency)
    assert learn(words, size, min_frequency=min_frequency) == SPECIALS + expected


def test_pieces_are_those_of_the_plain_version_for_prose(golden):
    lines = (golden / "pretraining_corpus.txt").read_text("utf-8").split("\n")[:150]
    words, characters, tokenizer = counted(lines)
    pieces = vocabulary.character_pieces(sorted(characters), tokenizer)
    expected = plain_joins(words, pieces, 3)
    assert len(expected) > len(pieces) + 90
    assert pieces + list(vocabulary.join_pieces(words, pieces, 3)) == expected


def test_a_piece_that_comes_about_in_two_ways_is_one_entry():
    # ##b ##c and a ##b both make abc in the end; the plain version agrees above.
    words = {"abc": 3, "xbc": 3, "abd": 4, "abce": 1}
    entries = learn(words, largest(words))
    assert len(set(entries)) == len(entries)
    assert set(words) <= set(entries)


@pytest.mark.parametrize("lower", [True, False], ids=["uncased", "cased"])
def test_pieces_are_those_of_another_trainer(lower):
    tokenizers = pytest.importorskip("tokenizers")
    words, characters, tokenizer = counted(prose(), lower)
    theirs = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=4000, show_progress=False)
    text = (" ".join([word] * count) for word, count in words.items())
    theirs.train_from_iterator(text, trainer)
    ids = theirs.get_vocab()
    joined = [e for e in sorted(ids, key=ids.get) if len(e.removeprefix("##")) > 1]

    pieces = vocabulary.character_pieces(sorted(characters), tokenizer)
    size = len(SPECIALS) + len(pieces) + len(joined)
    ours = list(
        vocabulary.learn(words, characters, tokenizer, vocabulary.Settings(size))
    )
    # Of equally frequent pairs it takes others, in an order that changes by the run.
    common = set(ours) & set(joined)
    assert len(common) > 0.99 * len(joined) > 3000


@pytest.mark.parametrize("lower, num_unused", [(True, 0), (False, 120)])
def test_size_and_coverage_for_prose(lower, num_unused):
    lines = prose()
    words, characters, tokenizer = counted(lines, lower)
    before = None
    for size in (300, 1000, 5001):
        settings = vocabulary.Settings(size, num_unused=num_unused)
        entries = list(vocabulary.learn(words, characters, tokenizer, settings))
        check(entries, size, words)
        assert entries[: 5 + num_unused] == vocabulary.special_tokens(num_unused)
        assert before is None or entries[: len(before)] == before
        before = entries


def check(entries, size, words):
    """A vocabulary has so many entries, all different, and knows all words."""
    assert len(entries) == len(set(entries)) == size
    vocab = {entry: k for k, entry in enumerate(entries)}
    assert not [w for w in words if plain_tokenizer.pieces(w, vocab) == ["[UNK]"]]


@pytest.mark.parametrize(
    "files, size",
    [("de_novels/kafka*", 6000), ("en_novels/Doyle_H*", 3000), ("zh_wiki*", 5000)],
    ids=["German", "English", "Chinese"],
)
@pytest.mark.parametrize("lower", [True, False], ids=["uncased", "cased"])
def test_size_and_coverage_for_languages(shared, files, size, lower):
    (path,) = (shared / "data/pretrain").glob(files)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        words, characters, tokenizer = counted(file, lower)
    settings = vocabulary.Settings(size)
    entries = list(vocabulary.learn(words, characters, tokenizer, settings))
    check(entries, size, words)
    # Ideographs are words of their own, so they need no entry that continues a word.
    assert not [e for e in entries if re.fullmatch("##[一-鿿]", e)]


@pytest.fixture(scope="module")
def prose_vocabulary():
    """Characters and vocabulary of the bundled corpus, cased."""
    lines = prose()
    lines += ["Łódź na ﬁn 数学 ಠ_ಠ £5", "éé"]
    words, characters, tokenizer = counted(lines, lower=False)
    settings = vocabulary.Settings(600)
    entries = list(vocabulary.learn(words, characters, tokenizer, settings))
    return sorted(characters), {entry: k for k, entry in enumerate(entries)}


@hypothesis.given(strategies.data())
def test_a_word_of_covered_characters_is_never_unknown(prose_vocabulary, data):
    characters, vocab = prose_vocabulary
    letters = strategies.sampled_from([*characters, " ", " "])
    text = "".join(data.draw(strategies.lists(letters)))
    for word in plain_tokenizer.words(text, do_lower_case=False):
        assert plain_tokenizer.pieces(word, vocab) != ["[UNK]"]


def test_the_order_of_words_does_not_matter():
    lines = prose()
    words, characters, tokenizer = counted(lines)
    settings = vocabulary.Settings(1000)
    expected = list(vocabulary.learn(words, characters, tokenizer, settings))
    shuffled = list(words.items())
    random.Random(1).shuffle(shuffled)
    found = vocabulary.learn(dict(shuffled), characters, tokenizer, settings)
    assert list(found) == expected


def test_special_tokens_stand_where_the_released_vocabularies_have_them(shared):
    assert vocabulary.special_tokens(0) == SPECIALS
    assert vocabulary.special_tokens(2) == [
        "[PAD]",
        "[unused0]",
        "[unused1]",
        *SPECIALS[1:],
    ]
    path = shared / "data/vocab/bert-base-uncased/vocab.txt"
    released = path.read_text("utf-8").split("\n")
    assert vocabulary.special_tokens(994) == released[:999]


def test_characters_are_chosen_by_frequency_ascii_first():
    totals = {"e": 50, "é": 40, "z": 1, "ü": 5, "ß": 5, "œ": 0, "ł": 3}
    assert vocabulary.choose_characters(totals, 0.5) == ["e", "z", "é"]
    assert vocabulary.choose_characters(totals, 91 / 104) == ["e", "z", "é"]
    assert vocabulary.choose_characters(totals, 92 / 104) == ["e", "z", "ß", "é"]
    assert vocabulary.choose_characters(totals, 0) == ["e", "z"]
    assert vocabulary.choose_characters(totals, 1) == ["e", "z", "ß", "é", "ü", "ł"]


def test_words_that_cannot_be_cut_are_passed_over():
    words = {"ab": 2, "aż": 9, "ab" * 101: 9}
    assert list(vocabulary.join_pieces(words, ["a", "##b"], 1)) == ["ab"]


@hypothesis.given(WORDS)
def test_a_size_too_small_or_too_large_is_refused_with_the_nearest(words):
    with pytest.raises(ValueError, match=r"--vocab_size to [\d,]+ or more") as caught:
        learn(words, 5)
    smallest = int(re.search(r"--vocab_size to (\d+)", str(caught.value))[1])
    for size in (smallest, largest(words)):
        assert len(learn(words, size)) == size
    for size in (smallest - 1, largest(words) + 1):
        with pytest.raises(ValueError, match=f"{size:,} (entries has|are asked)"):
            learn(words, size)
