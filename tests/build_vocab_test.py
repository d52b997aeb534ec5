"""build_vocab.py: what it writes and shows, and what it refuses."""

import gzip
import json
import os
import re
import subprocess

import pytest

from benchmarks import plain_tokenizer
from data import tokenization, vocabulary
from tests import scripts

SCRIPT = "build_vocab.py"
CORPUS = scripts.ROOT / "sample_data/corpus.txt"
VOCAB = scripts.ROOT / "sample_data/vocab.txt"
WITHOUT_UNUSED = scripts.ROOT / "tests/golden/tiny_tf1/vocab.txt"


@pytest.fixture
def learn(tmp_path):
    """Flags that learn a small vocabulary."""
    return {
        "input_file": CORPUS,
        "vocab_size": 700,
        "output_file": tmp_path / "out/vocab.txt",
    }


@pytest.fixture
def audit(tmp_path):
    """Flags that audit the bundled vocabulary."""
    return {
        "mode": "audit",
        "input_file": CORPUS,
        "vocab_file": VOCAB,
        "output_file": tmp_path / "audit.json",
    }


@pytest.fixture
def domain(tmp_path):
    """Flags that add two words of a text to the bundled vocabulary."""
    (tmp_path / "text.txt").write_text("A methylphenidate dose\n" * 3 + "Zoledronic.\n")
    return {
        "mode": "extend",
        "input_file": tmp_path / "text.txt",
        "vocab_file": VOCAB,
        "num_words": 2,
        "min_frequency": 1,
        "output_file": tmp_path / "vocab.txt",
    }


def run(**flags):
    """What a run shows on the screen."""
    result = scripts.run(SCRIPT, **flags)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_equal_bytes_from_every_process_and_every_form_of_the_text(learn, tmp_path):
    shown = run(**learn)
    expected = learn["output_file"].read_bytes()
    assert re.search(r"^words +\d", shown, re.M)
    vocab = tokenization.load_vocab(learn["output_file"])
    assert len(vocab) == expected.count(b"\n") == 700
    assert expected.startswith(b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n")

    text = CORPUS.read_text("utf-8")
    folder = tmp_path / "texts"
    folder.mkdir()
    half = text.index("\n\n", len(text) // 2)
    with gzip.open(folder / "a.txt.gz", "wt", encoding="utf-8") as file:
        file.write(text[:half])
    with open(folder / "b.jsonl", "w", encoding="utf-8") as file:
        for document in text[half:].split("\n\n"):
            file.write(json.dumps({"body": document}) + "\n")
    learn |= {"input_file": folder, "text_field": "body", "overwrite": True}
    subprocess.run(
        scripts.command(SCRIPT, **learn),
        env=os.environ | {"PYTHONHASHSEED": "7"},
        capture_output=True,
        check=True,
    )
    assert learn["output_file"].read_bytes() == expected


def test_flags_of_learning(learn):
    learn |= {"do_lower_case": False, "num_unused": 100, "character_coverage": 0.9}
    run(**learn, min_frequency=50)
    entries = learn["output_file"].read_text("utf-8").split("\n")[:-1]
    assert entries[:105] == vocabulary.special_tokens(100)
    assert entries.index("[UNK]") == 100
    assert {"The", "the", "Z"} <= set(entries)  # Z is rare, but it is ASCII
    refused = scripts.refusal(
        SCRIPT, **{**learn, "vocab_size": 9000}, overwrite=True, min_frequency=50
    )
    assert "lower --min_frequency" in refused


def test_few_words_are_kept_and_it_is_said(learn):
    shown = run(**learn, max_words=1000)
    assert re.search(r"note: to keep 1,000 different words at most", shown)
    assert len(tokenization.load_vocab(learn["output_file"])) == 700


def test_audit_is_plain_counting_even_if_words_are_dropped(audit, tmp_path):
    shown = run(**audit)
    report = json.loads(audit["output_file"].read_text("utf-8"))
    vocab = tokenization.load_vocab(VOCAB)
    words = plain_tokenizer.words(CORPUS.read_text("utf-8"), True)
    pieces = {word: plain_tokenizer.pieces(word, vocab) for word in set(words)}
    assert report["words"] == len(words)
    assert report["pieces"] == sum(len(pieces[word]) for word in words)
    assert report["whole_words"] == sum(pieces[word] == [word] for word in words)
    assert report["unknown_words"] == sum(pieces[word] == ["[UNK]"] for word in words)
    assert len(report["fragmented"]) == 100
    assert f"pieces per word      {report['pieces_per_word']:.3f}" in shown

    few = {**audit, "output_file": tmp_path / "few.json"}
    run(**few, max_words=1000, num_examples=3)
    few = json.loads(few["output_file"].read_text("utf-8"))
    assert len(few["fragmented"]) == 3
    numbers = {name: value for name, value in report.items() if type(value) is not list}
    assert {name: few[name] for name in numbers} == numbers


def test_audit_on_the_screen_only(audit, tmp_path):
    shown = run(**audit)
    audit["output_file"].unlink()
    del audit["output_file"]
    assert run(**audit) == shown
    assert os.listdir(tmp_path) == []


def test_json_lines_with_half_a_character(audit, learn, domain, tmp_path):
    path = tmp_path / "text.jsonl"
    path.write_text('{"text": "methylphenidate \\ud83d the \\ud83d the"}\n' * 2)
    shown = run(**{**audit, "input_file": path})
    report = json.loads(audit["output_file"].read_text("utf-8"))
    assert (report["words"], report["unknown"]) == (6, [])
    assert "whole words          66.67 %" in shown
    run(**{**learn, "input_file": path, "vocab_size": 40})
    assert len(tokenization.load_vocab(learn["output_file"])) == 40
    run(**{**domain, "input_file": path, "num_words": 1})
    assert "methylphenidate" in tokenization.load_vocab(domain["output_file"])


def test_words_are_added(domain):
    shown = run(**domain)
    lines = VOCAB.read_text("utf-8").split("\n")[:-1]
    added = [*lines, "methylphenidate", "zoledronic"]
    assert domain["output_file"].read_text("utf-8").split("\n")[:-1] == added
    tokenizer = tokenization.FullTokenizer(domain["output_file"])
    assert tokenizer.tokenize("Methylphenidate") == ["methylphenidate"]
    assert re.search(r"pieces per word +[\d.]+ before, 1\.000 after", shown)
    assert re.search(r"whole words +63\.64 % before, 100\.00 % after", shown)
    assert "2 words: methylphenidate, zoledronic" in shown


def test_words_fill_unused_entries(domain, learn):
    run(**learn, num_unused=3)
    domain["vocab_file"] = learn["output_file"]
    run(**domain, fill_unused=True)
    old, new = (
        path.read_text("utf-8").split("\n")
        for path in (learn["output_file"], domain["output_file"])
    )
    assert new == ["[PAD]", "methylphenidate", "zoledronic", *old[3:]]


def spoil(flags, tmp_path, **changes):
    """Changed flags; bytes become a file with them, None leaves a flag out."""
    flags = {**flags, **changes}
    for name, value in changes.items():
        if isinstance(value, bytes):
            path = tmp_path / f"{name}.txt"
            path.write_bytes(value)
            flags[name] = path
    return {name: value for name, value in flags.items() if value is not None}


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"input_file": b""}, ["input_file.txt is empty"]),
        ({"input_file": b" \n\t\n"}, ["no words"]),
        ({"input_file": b"\x7fELF\0\0\x01\xff"}, ["input_file.txt", "line 1"]),
        ({"input_file": b"caf\xe9\n"}, ["input_file.txt, line 1", "UTF-8"]),
        ({"input_file": "/nowhere/*.txt"}, ["/nowhere/*.txt"]),
        ({"vocab_size": 60}, ["60", "--vocab_size to", "--character_coverage"]),
        ({"vocab_size": 10**6}, ["at most", "1,000,000", "--min_frequency"]),
        ({"vocab_size": None}, ["--mode=learn needs --vocab_size"]),
        ({"vocab_file": VOCAB}, ["--vocab_file means nothing with --mode=learn"]),
        ({"output_file": None}, ["--mode=learn needs --output_file"]),
        ({"output_file": b"precious"}, ["exists", "--overwrite"]),
        ({"output_file": CORPUS}, ["is an input file"]),
        ({"output_file": f"{CORPUS}/vocab.txt"}, [str(CORPUS)]),
        ({"output_file": scripts.ROOT}, ["is a folder"]),
    ],
)
def test_refusals_of_learning(learn, tmp_path, changes, words):
    flags = spoil(learn, tmp_path, **changes)
    sentence = scripts.refusal(SCRIPT, **flags)
    assert [word for word in words if word not in sentence] == [], sentence
    left = {p.name for p in tmp_path.rglob("*") if p.is_file()}
    assert left <= {"input_file.txt", "output_file.txt"}
    there = tmp_path / "output_file.txt"
    assert not there.exists() or there.read_bytes() == b"precious"


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"vocab_file": None}, ["needs --vocab_file"]),
        ({"num_words": None}, ["needs --num_words"]),
        ({"output_file": None}, ["--mode=extend needs --output_file"]),
        ({"output_file": VOCAB, "overwrite": True}, ["vocab.txt is an input file"]),
        ({"num_words": 5000}, ["are asked for"]),
        (
            {"fill_unused": True, "vocab_file": WITHOUT_UNUSED},
            ["0 [unused] entries for 2 words", "--num_words"],
        ),
        ({"vocab_file": VOCAB.read_bytes() + b"the\n"}, ["token 'the' is on line"]),
        ({"vocab_file": "/nowhere/vocab.txt"}, ["/nowhere/vocab.txt does not exist"]),
    ],
)
def test_refusals_of_extending(domain, tmp_path, changes, words):
    flags = spoil(domain, tmp_path, **changes)
    sentence = scripts.refusal(SCRIPT, **flags)
    assert [word for word in words if word not in sentence] == [], sentence
    assert not domain["output_file"].exists()


def test_case_that_the_folder_contradicts(audit, tmp_path):
    folder = tmp_path / "cased_L-2_H-32_A-4"
    folder.mkdir()
    (folder / "vocab.txt").write_bytes(VOCAB.read_bytes())
    audit["vocab_file"] = folder / "vocab.txt"
    assert "--do_lower_case=False" in scripts.refusal(SCRIPT, **audit)
