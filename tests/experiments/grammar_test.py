"""The language of the ablations: what it promises, on many of its sentences."""

import hashlib
import itertools
import math
import pathlib
import random
from collections import Counter

import pytest

from data import conll, tables, tokenization
from experiments import grammar

FILES = {
    "vocab.txt",
    "corpus.txt",
    "held_out.txt",
    *(f"tagging/{split}.txt" for split in ("train", "dev")),
    *(
        f"{task}/{split}.tsv"
        for task in ("pairs", "topics")
        for split in ("train", "dev")
    ),
}
VERB_TYPES = {
    verb: name for name, (verbs, _) in grammar.TYPES.items() for verb in verbs.split()
}
FOLLOWER_TYPES = {
    w: t for t, (_, words) in grammar.TYPES.items() for w in words.split()
}
TOPIC_WORDS = {
    word + ending: topic
    for topic, lists in grammar.TOPICS.items()
    for words, endings in zip(lists, (("", "s"), ("",), ("",)), strict=True)
    for word in words.split()
    for ending in endings
}


def contents(folder):
    """{name: sum} of the files in a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in pathlib.Path(folder).rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("grammar")
    grammar.write(str(path), seed=1, num_documents=300)
    return path


@pytest.fixture(scope="module")
def sentences():
    """Ten thousand sentences: words and tags of each."""
    rng = random.Random(5)
    topics = itertools.cycle(grammar.TOPICS)
    made = [
        grammar.make_sentence(rng, topic) for topic in itertools.islice(topics, 9996)
    ]
    return [tuple(zip(*sentence, strict=True)) for sentence in made]


@pytest.fixture(scope="module")
def entities(sentences):
    """(type, words before the name, the name, words after it) of all entities."""
    found = []
    for words, tags in sentences:
        inside = [i for i, tag in enumerate(tags) if tag != "O"]
        if inside:
            start, end = inside[0], inside[-1] + 1
            name = tags[start].removeprefix("B-")
            found.append((name, words[:start], words[start:end], words[end:]))
    return found


def documents(path):
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n\n")
    return [document.split("\n") for document in text[:-2].split("\n\n")]


def topics_of(text):
    return {TOPIC_WORDS[word] for word in text.split() if word in TOPIC_WORDS}


def chi_square_in_deviations(pairs):
    """How far the chi-square of (row, column) pairs is above its mean, in sd."""
    pairs = list(pairs)
    rows, columns = (Counter(values) for values in zip(*pairs, strict=True))
    cells = Counter(pairs)
    chi_square = 0.0
    for row, column in itertools.product(rows, columns):
        expected = rows[row] * columns[column] / len(pairs)
        chi_square += (cells[row, column] - expected) ** 2 / expected
    freedom = (len(rows) - 1) * (len(columns) - 1)
    return (chi_square - freedom) / math.sqrt(2 * freedom)


def test_equal_seeds_give_equal_files_and_other_seeds_others(folder, tmp_path):
    grammar.write(str(tmp_path / "again"), seed=1, num_documents=300)
    grammar.write(str(tmp_path / "other"), seed=2, num_documents=300)
    first, other = contents(folder), contents(tmp_path / "other")
    assert contents(tmp_path / "again") == first
    assert set(first) == set(other) == FILES
    assert {name for name in FILES if first[name] == other[name]} == {"vocab.txt"}


def test_the_tasks_do_not_depend_on_the_size_of_the_corpus(folder, tmp_path):
    grammar.write(str(tmp_path), seed=1, num_documents=10)
    first, small = contents(folder), contents(tmp_path)
    changed = {name for name in FILES if first[name] != small[name]}
    assert changed == {"corpus.txt", "held_out.txt"}


def test_the_vocabulary_covers_every_text_a_word_a_token(folder):
    tokenizer = tokenization.FullTokenizer(str(folder / "vocab.txt"))
    words = set()
    for name in FILES - {"vocab.txt"}:
        lines = (folder / name).read_text(encoding="utf-8").split("\n")
        header = 1 if name.endswith(".tsv") else 0
        columns = 1 if name.startswith(("tagging", "topics")) else 2
        for line in lines[header:]:
            words |= {w for cell in line.split("\t")[:columns] for w in cell.split()}
    assert words == set(tokenizer.vocab) - set(grammar.SPECIAL_TOKENS)
    assert [word for word in words if tokenizer.tokenize(word) != [word]] == []


def test_no_word_has_two_roles():
    words = grammar.vocabulary()
    assert len(words) == len(set(words))
    assert words[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def test_nothing_up_to_the_verb_changes_with_the_type(monkeypatch):
    """An exact argument: the same draws with the types in another order."""
    types, found = list(grammar.TYPES.items()), []
    for turn in range(len(types)):
        monkeypatch.setattr(grammar, "TYPES", dict(types[turn:] + types[:turn]))
        rngs = (random.Random(seed) for seed in range(500))
        found.append([grammar.make_sentence(rng, "sea") for rng in rngs])
    compared = 0
    for alike in zip(*found, strict=True):
        words = [[word for word, _ in sentence] for sentence in alike]
        lefts = [list(itertools.takewhile(is_no_verb, left)) for left in words]
        assert lefts == lefts[:1] * len(types)
        kinds = sorted({tag[2:] for sentence in alike for _, tag in sentence} - {""})
        if kinds:
            assert kinds == sorted(name for name, _ in types)
            compared += 1
    assert compared > 250


def is_no_verb(word):
    return word not in VERB_TYPES


def test_the_left_says_nothing_about_the_type(entities):
    kinds = [kind for kind, *_ in entities]
    found = {
        "name": [name[0] for _, _, name, _ in entities],
        "last word of the name": [name[-1] for _, _, name, _ in entities],
        "length of the name": [len(name) for _, _, name, _ in entities],
        "word before": [(left or [""])[-1] for _, left, *_ in entities],
        "first word": [(left + name)[0] for _, left, name, _ in entities],
        "topic": ["".join(topics_of(" ".join(left))) for _, left, *_ in entities],
        "place": [len(left) for _, left, *_ in entities],
    }
    deviations = {
        feature: chi_square_in_deviations(zip(kinds, values, strict=True))
        for feature, values in found.items()
    }
    assert {feature: x for feature, x in deviations.items() if x > 4} == {}


def test_chi_square_would_notice_a_dependence(entities):
    rng = random.Random(3)
    # 1 name in 20 tells its type, the others do not.
    pairs = (
        (kind, kind if rng.random() < 0.05 else rng.choice("abcd"))
        for kind, *_ in entities
    )
    assert chi_square_in_deviations(pairs) > 20


def test_the_right_decides_on_the_type(entities):
    assert {kind for kind, *_ in entities} == set(grammar.TYPES)
    for kind, _, _, right in entities:
        verbs = [i for i, word in enumerate(right) if word in VERB_TYPES]
        assert len(verbs) == 1 and verbs[0] <= 2
        assert set(right[: verbs[0]]) <= set(grammar.ADVERBS.split())
        assert VERB_TYPES[right[verbs[0]]] == kind
        assert {FOLLOWER_TYPES[w] for w in right if w in FOLLOWER_TYPES} <= {kind}


def test_names_are_entities_and_nothing_else_is(sentences):
    names = set(grammar.NAMES.split())
    for words, tags in sentences:
        assert [word in names for word in words] == [tag != "O" for tag in tags]
        tagged = [tag for tag in tags if tag != "O"]
        assert [tag[0] for tag in tagged] in ([], ["B"], ["B", "I"])
        assert len({tag[2:] for tag in tagged}) <= 1
        # And the words of a type stand nowhere but behind a name.
        assert tagged or not set(words) & {*VERB_TYPES, *FOLLOWER_TYPES}


def test_types_and_verbs_are_balanced(entities):
    counts = Counter(kind for kind, *_ in entities)
    assert len(entities) / 9996 == pytest.approx(2 / 3, abs=0.02)
    for kind in grammar.TYPES:
        assert counts[kind] / len(entities) == pytest.approx(1 / 4, abs=0.02)
    verbs = Counter(
        word for *_, right in entities for word in right if word in VERB_TYPES
    )
    assert min(verbs.values()) > 0.5 * len(entities) / len(VERB_TYPES)


def test_sentences_are_short_and_end_with_the_mark(sentences):
    lengths = Counter(len(words) for words, _ in sentences)
    assert set(lengths) == set(range(6, 13))
    for words, _ in sentences:
        assert words[-1] == "." and "." not in words[:-1]


def test_determiners_agree_with_the_noun_to_their_right(sentences):
    nouns = {n for names, _, _ in grammar.TOPICS.values() for n in names.split()}
    adjectives = {a for *_, names in grammar.TOPICS.values() for a in names.split()}
    plural = Counter()
    for words, _ in sentences:
        for i, word in enumerate(words):
            for is_plural, determiners in enumerate(grammar.DETERMINERS):
                if word in determiners.split():
                    noun = words[i + 1 + (words[i + 1] in adjectives)]
                    assert (noun in nouns, noun[:-1] in nouns) == (
                        not is_plural,
                        bool(is_plural),
                    )
                    plural[is_plural] += 1
    assert plural[0] / sum(plural.values()) == pytest.approx(0.5, abs=0.02)


def test_documents_have_one_topic_and_no_empty_line_inside(folder):
    found = documents(folder / "corpus.txt")
    assert len(found) == 300 and len(documents(folder / "held_out.txt")) == 30
    for lines in found:
        assert 6 <= len(lines) <= 10 and all(lines)
        assert all(len(topics_of(line)) == 1 for line in lines)
        assert len(topics_of(" ".join(lines))) == 1
    assert {topics_of(lines[0]).pop() for lines in found} == set(grammar.TOPICS)


def test_tagged_files_are_read_and_training_shows_half_of_the_verbs(folder):
    train, dev = (
        conll.read(str(folder / f"tagging/{n}.txt")) for n in ("train", "dev")
    )
    assert (len(train.sentences), len(dev.sentences)) == (300, 600)
    assert (train.scheme, dev.scheme) == ("BIO", "BIO")
    for verbs, _ in grammar.TYPES.values():
        seen = {w for s in train.sentences for w in s.words if w in verbs.split()}
        assert seen <= set(verbs.split()[:10])
    known = {word for sentence in train.sentences for word in sentence.words}
    verbs = [w for s in dev.sentences for w in s.words if w in VERB_TYPES]
    share = sum(verb in known for verb in verbs) / len(verbs)
    assert share == pytest.approx(0.5, abs=0.07)


def test_pairs_are_neighbours_or_of_other_topics(folder):
    for split, size in (("train", 64), ("dev", 600)):
        rows = read_table(folder / f"pairs/{split}.tsv", ["text", "text_pair", "label"])
        assert Counter(label for *_, label in rows) == {
            "next": size // 2,
            "other": size // 2,
        }
        for first, second, label in rows:
            assert (topics_of(first) == topics_of(second)) == (label == "next")


def test_pairs_follow_one_another_in_a_document(monkeypatch):
    """With documents whose sentences tell where they stand."""
    made = []

    def numbered(rng, topic):
        made.append((topic, rng.randint(6, 10)))
        return [[(f"{len(made)}-{i}", "O")] for i in range(made[-1][1])]

    monkeypatch.setattr(grammar, "make_document", numbered)
    starts = set()
    for row in itertools.islice(grammar._pairs(random.Random(1), 400), 1, None):
        first, second, label = row.split("\t")
        (document, place), (other, next_place) = (
            map(int, x.split("-")) for x in (first, second)
        )
        if label == "next":
            assert (other, next_place) == (document, place + 1)
            starts.add(place)
        else:
            assert other != document
            assert made[other - 1][0] != made[document - 1][0]
    assert starts == set(range(9))


def test_topics_are_right_and_balanced(folder):
    for split, size in (("train", 240), ("dev", 600)):
        rows = read_table(folder / f"topics/{split}.tsv", ["text", "label"])
        assert set(Counter(topic for _, topic in rows).values()) == {size // 12}
        assert all(topics_of(text) == {topic} for text, topic in rows)


def test_training_and_dev_sets_share_hardly_a_sentence(folder):
    for name, column in (("pairs", "text"), ("topics", "text")):
        train, dev = (
            {text for (text,) in read_table(folder / f"{name}/{split}.tsv", [column])}
            for split in ("train", "dev")
        )
        assert len(train & dev) <= 0.01 * len(dev)
    train, dev = (
        {s.words for s in conll.read(str(folder / f"tagging/{split}.txt")).sentences}
        for split in ("train", "dev")
    )
    assert len(train & dev) <= 0.01 * len(dev)
    corpus, held_out = (
        {line for lines in documents(folder / f"{name}.txt") for line in lines}
        for name in ("corpus", "held_out")
    )
    assert len(corpus & held_out) <= 0.01 * len(held_out)


def read_table(path, columns):
    return [cells for _, _, cells in tables.read_columns(path, columns)]
