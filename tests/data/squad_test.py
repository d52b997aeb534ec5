"""Reading SQuAD files: the original's examples, errors, real data sets."""

import gzip
import json

import pytest

from data import squad
from tests import squad_files


@pytest.fixture
def path(tmp_path):
    return tmp_path / "questions.json"


def read(path, is_training=True, **options):
    return squad.read_squad_examples(path, is_training, **options)


@pytest.mark.parametrize("version_2", [False, True])
@pytest.mark.parametrize("is_training", [False, True])
def test_examples_are_the_originals(golden, version_2, is_training):
    rows = squad_files.golden_rows(golden / "squad_examples.jsonl")
    expected = [
        row
        for row in rows
        if (row.pop("version_2"), row.pop("is_training")) == (version_2, is_training)
    ]
    assert len(expected) >= 32
    path = squad_files.golden_input(golden, version_2)
    questions = read(path, is_training, version_2_with_negative=version_2)
    found = [
        {name: getattr(example, name) for name in expected[0]}
        for example in questions.examples
    ]
    assert found == expected
    assert questions.misplaced == (["bad1"] if is_training else [])


def test_words_end_at_five_characters_only(path):
    context = " one\ttwo\rthree\nfour\u202ffive\u00a0six\u2003seven  eight"
    answer = ("two", context.index("two"))
    squad_files.write(path, (context, [squad_files.question("q", answer)]))
    (example,) = read(path).examples
    words = ["one", "two", "three", "four", "five\u00a0six\u2003seven", "eight"]
    assert example.doc_tokens == words
    for start, word in zip(example.paragraph.word_starts, words, strict=True):
        assert context[start:].startswith(word)
    assert (example.start_position, example.end_position) == (1, 1)


@pytest.mark.parametrize(
    "answer",
    [
        ("two", 0),  # elsewhere
        ("two", 100),  # behind the end
        ("two", -3),  # a Python index, but no offset
        ("three", 8),  # not in the text
        ("two thr", 7),  # reaches beyond the end
        ("  ", 3),  # nothing
    ],
)
def test_answers_at_wrong_offsets_are_left_out_and_named(path, answer):
    good = squad_files.question("good", ("two", 4))
    bad = squad_files.question("bad", answer)
    squad_files.write(path, ("one two thr", [bad, good]))
    questions = read(path)
    assert [example.qas_id for example in questions.examples] == ["good"]
    assert questions.misplaced == ["bad"]
    assert len(read(path, is_training=False).examples) == 2


@pytest.mark.parametrize(
    "context, text, start",
    [
        ("see (1821-1887), then", "1821", 5),
        ("see (1821-1887), then", "1821", 6),  # off by one within the word
        ("reaching 30\u00a0% of all", "30\u00a0%", 9),
        (" leading space", " leading", 0),
        ("a  bcd", "a bcd", 0),  # spaces are as they please
    ],
)
def test_answers_within_their_words_are_kept(path, context, text, start):
    squad_files.write(path, (context, [squad_files.question("q", (text, start))]))
    (example,) = read(path).examples
    words = example.doc_tokens[example.start_position : example.end_position + 1]
    assert "".join(text.split()) in "".join(" ".join(words).split())


def test_impossible_questions(path):
    impossible = squad_files.question("q", ("one", 0), is_impossible=True)
    plain = squad_files.question("r", ("one", 0))  # 1.1 files lack is_impossible
    squad_files.write(path, ("one", [impossible, plain]))
    first, second = read(path, version_2_with_negative=True).examples
    assert first.is_impossible
    assert (first.orig_answer_text, first.start_position) == ("", -1)
    assert not second.is_impossible
    # By the rules of 1.1 it is a question like others.
    assert not read(path).examples[0].is_impossible


def test_number_of_answers_in_training(path):
    squad_files.write(path, ("one two", [squad_files.question("q7")]))
    with pytest.raises(ValueError, match="'q7' has no answer.*version_2"):
        read(path)
    two = squad_files.question("q8", ("two", 4), ("one", 0))
    squad_files.write(path, ("one two", [two]))
    with pytest.raises(ValueError, match="'q8' has 2 answers.*--several_answers=first"):
        read(path)
    (example,) = read(path, several_answers="first").examples
    assert example.orig_answer_text == "two"
    (example,) = read(path, is_training=False).examples
    assert example.answers == ("two", "one")


@pytest.mark.parametrize(
    "content, words",
    [
        ("", "empty"),
        ('{"data": [}', "not JSON: .* at column 11"),
        ('{"data":\n [}', "not JSON: .* at line 2, column 3"),
        (b'{"data": "caf\xe9"}', "not UTF-8"),
        ("[1, 2]", "'data'"),
        ('{"date": []}', "no 'data', only 'date'"),
        ('{"data": []}', "holds no question"),
        ('{"data": [{}]}', r"data\[0\] has no 'paragraphs'"),
        ('{"data": [{"paragraphs": {}}]}', "'paragraphs' must be a list"),
        (
            '{"data": [{"paragraphs": [{"qas": []}]}]}',
            r"data\[0\].paragraphs\[0\] has no 'context', only 'qas'",
        ),
        (
            '{"data": [{"paragraphs": [{"context": null, "qas": []}]}]}',
            "'context' must be a string, got None",
        ),
        ('{"data": [{"paragraphs": [{"context": "x"}]}]}', "no 'qas'"),
        (
            '{"data": [{"paragraphs": [{"context": "x", "qas": [1]}]}]}',
            r"qas\[0\]: expected an object with 'id', got 1",
        ),
        ('{"data": [{"paragraphs": [{"context": "x", "qas": [null]}]}]}', "got None"),
    ],
)
def test_what_is_no_squad_file(path, content, words):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=words) as error:
        read(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"id": None}, r"qas\[0\]: 'id' must be a string"),
        ({"question": 3}, "'question' must be a string, got 3"),
        ({"answers": "one"}, "'answers' must be a list"),
        ({"answers": ["one"]}, "expected an object with 'text'"),
        ({"answers": [{"text": "one"}]}, "'q' has no 'answer_start'"),
        ({"answers": [{"text": "one", "answer_start": "0"}]}, "must be a whole number"),
        ({"answers": [{"text": "one", "answer_start": True}]}, "got True"),
        ({"is_impossible": "no"}, "'is_impossible' must be true or false"),
    ],
)
def test_what_is_no_question(path, change, words):
    entry = squad_files.question("q", ("one", 0)) | change
    squad_files.write(path, ("one", [entry]))
    with pytest.raises(ValueError, match=words) as error:
        read(path, version_2_with_negative=True)
    assert str(path) in str(error.value)


def test_a_missing_file(path):
    with pytest.raises(FileNotFoundError, match=r"questions\.json"):
        read(path)


def test_a_gzipped_file(path, tmp_path):
    squad_files.write(path, ("one", [squad_files.question("q", ("one", 0))]))
    zipped = tmp_path / "questions.json.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    assert [e.qas_id for e in read(zipped).examples] == ["q"]


def test_several_training_sets_are_joined(path, tmp_path, caplog):
    other = tmp_path / "other.json"
    good = squad_files.question("good", ("one", 0))
    bad = [squad_files.question(name, ("one", 9)) for name in ("bad1", "bad2")]
    squad_files.write(path, ("one", [good]))
    squad_files.write(other, ("one", [*bad, good]))
    with caplog.at_level("WARNING", logger="absl"):
        examples = squad.read_training_set([path, other])
    assert [example.qas_id for example in examples] == ["good", "good"]
    assert "other.json: left out 2 questions" in caplog.text
    assert "bad1 bad2" in caplog.text
    squad_files.write(path, ("one", bad))
    with pytest.raises(ValueError, match=r"no question to train on in .*questions"):
        squad.read_training_set([path])
    with pytest.raises(ValueError, match="no file"):
        squad.read_training_set([])


def test_ids_of_a_prediction_set_differ(path):
    entries = [squad_files.question(name) for name in ("a", "b", "a")]
    squad_files.write(path, ("one", entries))
    with pytest.raises(ValueError, match=r"questions\.json: 1 ids .* 'a'"):
        squad.read_prediction_set(path)
    squad_files.write(path, ("one", entries[:2]))
    assert [e.qas_id for e in squad.read_prediction_set(path)] == ["a", "b"]


def test_what_can_be_scored(path):
    answered = squad_files.question("a", ("one", 0))
    empty = squad_files.question("b")
    unknown = {"id": "c", "question": "c?"}

    def can_be_scored(*entries):
        squad_files.write(path, ("one", list(entries)))
        examples = squad.read_prediction_set(path)
        return [squad.has_answers(examples, version_2) for version_2 in (False, True)]

    assert can_be_scored(answered) == [True, True]
    assert can_be_scored(answered, empty) == [False, True]
    assert can_be_scored(answered, empty, unknown) == [False, False]


@pytest.mark.parametrize(
    "name, version_2, count, impossible",
    [
        ("dev-v1.1.part.json", False, 2041, 0),
        ("dev-v2.0.part.json", True, 4158, 2117),
        ("xquad.de.part.json", False, 815, 0),
        ("xquad.en.part.json", False, 815, 0),
        ("xquad.es.part.json", False, 815, 0),
        ("xquad.zh.part.json", False, 815, 0),
        ("cmrc2018_dev.json.gz", False, 3219, 0),
    ],
)
def test_real_sets_are_read_whole(shared, name, version_2, count, impossible):
    path = shared / "data/squad" / name
    assert len(squad.read_prediction_set(path)) == count
    questions = read(path, version_2_with_negative=version_2, several_answers="first")
    assert len(questions.examples) == count
    assert questions.misplaced == []
    assert sum(example.is_impossible for example in questions.examples) == impossible


def test_questions_share_their_paragraph(golden):
    examples = read(squad_files.golden_input(golden, False), is_training=False).examples
    data = json.loads(squad_files.golden_input(golden, False).read_text("utf-8"))
    contexts = [p["context"] for a in data["data"] for p in a["paragraphs"]]
    assert len({id(example.paragraph) for example in examples}) == len(contexts)
