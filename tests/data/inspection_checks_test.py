"""Files, layouts, sizes and manifests that do not fit are told, one by one."""

import gzip
import hashlib
import os
import pathlib

import pytest

from data import (
    inspection,
    inspection_checks,
    inspection_statistics,
    manifests,
    records,
    tokenization,
)
from tests import pretraining_records
from tests.data import inspection_test

CONFIG = {"vocab_size": 100, "max_position_embeddings": 24, "type_vocab_size": 2}


@pytest.fixture
def vocab(golden):
    return tokenization.load_vocab(golden / "tiny_tf1/vocab.txt")


@pytest.fixture
def record_file(tmp_path):
    return pretraining_records.write(tmp_path / "a.tfrecord")


def check(*paths, limit=None, **wanted):
    """name → Check of what does not fit, and the names of all checks."""
    settings = inspection_statistics.Settings(vocab_size=limit)
    inspector = inspection.Inspector(settings)
    for path in paths:
        inspector.read(str(path))
    wanted = inspection_checks.Wanted(**wanted)
    checks = inspection_checks.check(inspector.report(), wanted)
    return {c.name: c for c in checks if not c.fits}, [c.name for c in checks]


def make_manifest(path, **changes):
    """The manifest of a file."""
    content = pathlib.Path(path).read_bytes()
    entry = {
        "bytes": len(content),
        "records": 64,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    vocabulary = {"path": "old/vocab.txt", "sha256": "1" * 64}
    outputs = {os.path.basename(path): entry | changes}
    return {path: manifests.Manifest("m.json", {}, vocabulary, outputs)}


def test_what_fits(record_file, vocab):
    wrong, names = check(
        record_file,
        config=CONFIG,
        vocab=vocab,
        vocab_sha256="1" * 64,
        max_seq_length=24,
        max_predictions_per_seq=4,
        manifest_of=make_manifest(record_file),
    )
    assert wrong == {}
    assert names == [
        "files",
        "compression",
        "layout",
        "max_seq_length",
        "max_predictions_per_seq",
        "token ids",
        "token ids",
        "vocab_size",
        "max_position_embeddings",
        "type_vocab_size",
        "manifest",
        "vocabulary",
        "builds",
    ]
    assert check(record_file)[1] == names[:5]


@pytest.mark.parametrize(
    ("wanted", "name", "expected", "came", "change"),
    [
        (
            {"max_seq_length": 32},
            "max_seq_length",
            "32 positions (--max_seq_length)",
            "24",
            "pass --max_seq_length=24, or build the records again with 32",
        ),
        (
            {"max_predictions_per_seq": 5},
            "max_predictions_per_seq",
            "5 predictions (--max_predictions_per_seq)",
            "4",
            "pass --max_predictions_per_seq=4, or build the records again with 5",
        ),
        (
            {"config": CONFIG | {"max_position_embeddings": 20}},
            "max_position_embeddings",
            "at most 20 positions, the model's max_position_embeddings",
            "24",
            "use a model with more, or build",
        ),
        (
            {"config": CONFIG | {"type_vocab_size": 1}},
            "type_vocab_size",
            "at most 1 segments",
            "2",
            "use a model with more",
        ),
        (
            {"config": CONFIG | {"vocab_size": 99}},
            "token ids",
            "ids below the model's vocab_size, 99",
            "0 to 99, first in ",
            "use the model and vocabulary that the records were built with",
        ),
        (
            {"vocab": {"a": 0, "b": 98}},
            "token ids",
            "ids of the 99 entries of --vocab_file",
            "0 to 99, first in ",
            "use the model and vocabulary that the records were built with",
        ),
    ],
)
def test_sizes_that_do_not_fit(wanted, name, expected, came, change, record_file):
    wrong, _ = check(record_file, limit=99, **wanted)
    assert list(wrong) == [name]
    assert wrong[name].expected.startswith(expected)
    assert wrong[name].came.startswith(came)
    assert wrong[name].change.startswith(change)


def test_a_vocabulary_that_is_larger_than_the_model(record_file, vocab):
    wrong, _ = check(record_file, config=CONFIG, vocab={**vocab, "new": 100})
    assert list(wrong) == ["vocab_size"]
    assert wrong["vocab_size"].came == "101"


def test_one_bad_id_among_all_records_is_found(tmp_path):
    for name, row, column in (("input_ids", 1500, 5), ("masked_lm_ids", 1700, 0)):
        for bad in (100, 2**40, -1):
            data = pretraining_records.make(1800)
            data[name][row, column] = bad
            path = pretraining_records.write(tmp_path / "a", data)
            wrong, _ = check(path, limit=100, config=CONFIG)
            assert list(wrong) == ["token ids"]
            came = wrong["token ids"].came
            assert f"{bad:,}" in came
            assert came.endswith(f", first in {path}, record {row + 1}")


def test_records_of_several_lengths(record_file, tmp_path):
    data = pretraining_records.make(5, 32, 6)
    other = pretraining_records.write(tmp_path / "b", data)
    for flags in ({}, {"max_seq_length": 24, "max_predictions_per_seq": 4}):
        wrong, _ = check(record_file, other, **flags)
        assert list(wrong) == ["max_seq_length", "max_predictions_per_seq"]
        assert wrong["max_seq_length"].expected == (
            "records with the same number of positions"
        )
        assert wrong["max_seq_length"].came == "24 to 32"
        assert wrong["max_predictions_per_seq"].came == "4 to 6"


def test_damage(record_file, tmp_path):
    path = tmp_path / "b.tfrecord"
    path.write_bytes(pathlib.Path(record_file).read_bytes()[:-1])
    wrong, _ = check(record_file, path)
    assert list(wrong) == ["files"]
    assert "b.tfrecord is damaged or cut off after 63 rec" in wrong["files"].came


def test_compressed_files_among_others(record_file, tmp_path):
    path = tmp_path / "b.gz"
    path.write_bytes(gzip.compress(pathlib.Path(record_file).read_bytes()))
    wrong, _ = check(record_file, path)
    assert list(wrong) == ["compression"]
    assert wrong["compression"].came == "1 of 2 compressed"
    assert check(path)[0] == {}


def test_records_of_another_kind(record_file, tmp_path):
    path = str(
        inspection_test.write(tmp_path / "a.tf_record", records.classifier_spec(24))
    )
    assert check(path)[0] == {}
    wrong, _ = check(record_file, path)
    assert list(wrong) == ["layout"]
    assert (
        wrong["layout"].came == "64 of pre-training, 5 of texts and classes, or choices"
    )
    wrong, _ = check(path, max_predictions_per_seq=4)
    assert wrong["layout"].expected == "records of pre-training"
    spec = {"other": records.Feature(3)}
    path = str(inspection_test.write(tmp_path / "other", spec))
    wrong, _ = check(path)
    assert wrong["layout"].came == f"5 of unknown; unknown first in {path}, record 1"


def test_choices_are_longer_than_their_sequences(tmp_path):
    spec = records.multiple_choice_spec(4, 24)
    path = inspection_test.write(tmp_path / "a", spec, 1)
    config = CONFIG | {"vocab_size": 1000, "type_vocab_size": 1000}
    wrong, names = check(path, config=config, max_seq_length=24)
    assert list(wrong) == ["max_seq_length"]
    assert "(unless they hold 4 choices each)" in wrong["max_seq_length"].change
    assert "max_position_embeddings" not in names


@pytest.mark.parametrize("key", ["bytes", "records", "sha256"])
def test_files_that_are_not_those_of_the_manifest(key, record_file):
    changed = make_manifest(record_file, **{key: 17})
    wrong, _ = check(record_file, manifest_of=changed)
    assert list(wrong) == ["manifest"]
    assert f"{record_file} has {key} " in wrong["manifest"].came
    assert wrong["manifest"].came.endswith(", not 17")
    assert "1 of the 1 files of m.json" in wrong["manifest"].expected


def test_another_vocabulary_than_that_of_the_manifest(record_file, vocab):
    wrong, _ = check(
        record_file,
        vocab=vocab,
        vocab_sha256="2" * 64,
        manifest_of=make_manifest(record_file),
    )
    assert list(wrong) == ["vocabulary"]
    assert wrong["vocabulary"].came == f"sha256 {'2' * 12}, not {'1' * 12}"
    assert "old/vocab.txt" in wrong["vocabulary"].expected


def test_files_of_another_build_than_the_manifest(record_file):
    named = make_manifest(record_file)
    (manifest,) = named.values()
    strays = {f"a/a-0000{i}-of-00006": manifest for i in range(6)}
    wrong, _ = check(record_file, manifest_of=named, strays=strays)
    assert list(wrong) == ["builds"]
    assert wrong["builds"].expected == "no files of another build than m.json"
    names = [f"a-0000{i}-of-00006" for i in range(4)]
    assert wrong["builds"].came == f"6: {', '.join(names)} and 2 more"
    assert wrong["builds"].change.startswith("remove these")
    wrong, names = check(record_file, strays={record_file: manifest})
    assert wrong["builds"].came == f"1: {os.path.basename(record_file)}"
    assert "manifest" not in names
