"""Files that do not fit are told apart and explained."""

import gzip
import hashlib
import pathlib

import numpy as np
import pytest
import tensorflow as tf
import tqdm

from data import batching, record_reading, records
from tests.record_files import make_data, make_example, write_raw

SPEC = records.pretraining_spec(8, 3)


@pytest.fixture
def record_file(tmp_path):
    """A file of 40 records of `SPEC`."""
    path = str(tmp_path / "a.tfrecord")
    records.write(path, make_data(40, SPEC), SPEC)
    return path


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            records.pretraining_spec(9, 3),
            "made with --max_seq_length=8, but .* --max_seq_length=9; pass"
            " --max_seq_length=8 or make it again by magic",
        ),
        (
            records.pretraining_spec(8, 4),
            "--max_predictions_per_seq=3, but .* --max_predictions_per_seq=4",
        ),
        (
            records.pretraining_spec(9, 4),
            "--max_seq_length=8 --max_predictions_per_seq=3, but",
        ),
        (
            records.multiple_choice_spec(2, 8),
            "input_ids should have 16 values of type int64, but has 8",
        ),
        (records.classifier_spec(8), "has no label_ids, only input_ids, .*by magic"),
        (
            {"next_sentence_labels": records.Feature(2)},
            "next_sentence_labels should have 2 values of type int64, but has 1",
        ),
        (
            {"input_ids": records.Feature(8, "float32")},
            "input_ids should have 8 values of type float32, but has 0",
        ),
    ],
)
def test_records_of_another_layout_are_explained(spec, message, record_file):
    with pytest.raises(ValueError, match=f"a.tfrecord, record 1: .*{message}"):
        record_reading.check([record_file], spec, hint="make it again by magic")


def test_token_ids_must_be_in_the_vocabulary(record_file):
    record_reading.check([record_file], SPEC, vocab_size=100)
    with pytest.raises(ValueError, match="input_ids holds 9.*vocab_size is 90"):
        record_reading.check([record_file], SPEC, vocab_size=90)
    data = make_data(1, SPEC)
    data["masked_lm_ids"][0, 0] = 200
    records.write(record_file, data, SPEC)
    with pytest.raises(ValueError, match="masked_lm_ids holds 200"):
        record_reading.check([record_file], SPEC, vocab_size=100)


def test_files_without_any_record_are_refused(tmp_path, record_file):
    paths = [str(tmp_path / f"{name}.tfrecord.gz") for name in "bc"]
    for path in paths:
        pathlib.Path(path).write_bytes(gzip.compress(b""))
    with pytest.raises(
        ValueError, match=r"no record in .*b\..*, .*c\..*; make the file"
    ):
        record_reading.check(paths, SPEC)
    record_reading.check([record_file, *paths], SPEC)


@pytest.mark.parametrize("content", [b"", b"\x00\x01\xff\xfe", b"no example at all"])
def test_other_records_are_recognised(content, tmp_path):
    path = write_raw(tmp_path / "a", content)
    with pytest.raises(ValueError, match=r"a, record 1: it is no tf\.train\.Example"):
        record_reading.check([path], SPEC)


def test_a_text_file_is_recognised(tmp_path):
    (tmp_path / "a.txt").write_text("Once upon a time there was a file.\n" * 10)
    with pytest.raises(ValueError, match=r"a\.txt is no TFRecord file"):
        record_reading.check([str(tmp_path / "a.txt")], SPEC)


def read_through(path):
    for _ in batching.evaluation_batches([path], SPEC, 4):
        pass


def test_a_truncated_file_is_explained_wherever_it_is_cut(record_file, tmp_path):
    content = pathlib.Path(record_file).read_bytes()
    whole = str(tmp_path / "whole")
    pathlib.Path(whole).write_bytes(content)
    for size in (3, 10, 40, len(content) // 2 + 1, len(content) - 1):
        pathlib.Path(record_file).write_bytes(content[:size])
        number = size * 40 // len(content)
        for find in (
            record_reading.count,
            lambda files: record_reading.read_all(files, SPEC),
        ):
            with pytest.raises(ValueError, match=rf"a\.tfrecord .* {number} records"):
                find([whole, record_file])
    with (
        pytest.raises(ValueError, match=r"a\.tfrecord is damaged or cut off after 39"),
        record_reading.damage_explained([whole, record_file], SPEC),
    ):
        read_through(record_file)


def test_a_changed_byte_is_explained(record_file):
    content = bytearray(pathlib.Path(record_file).read_bytes())
    content[len(content) // 2] ^= 1
    pathlib.Path(record_file).write_bytes(content)
    with (
        pytest.raises(ValueError, match=r"a\.tfrecord is damaged .* after 2\d records"),
        record_reading.damage_explained([record_file], SPEC),
    ):
        read_through(record_file)


def test_a_record_that_differs_from_the_first_is_explained(tmp_path):
    spec = records.classifier_spec(2)
    features = {"input_mask": [1, 1], "segment_ids": [0, 1], "label_ids": [3]}
    good = make_example(input_ids=[5, 6], **features)
    bad = make_example(input_ids=[5, 6, 7], **features)
    path = write_raw(tmp_path / "a", *[good] * 50, bad)
    record_reading.check([path], spec)
    with pytest.raises(ValueError, match="a, record 51: .*--max_seq_length=3, but"):
        record_reading.read_all([path], spec)


def test_other_errors_are_left_alone(record_file):
    with (
        pytest.raises(tf.errors.InvalidArgumentError, match="indices"),
        record_reading.damage_explained([record_file], SPEC),
    ):
        raise tf.errors.InvalidArgumentError(None, None, "indices are out of range")


@pytest.mark.parametrize("cut", [0, 1, 100])
def test_compressed_files_are_read_and_checked(cut, tmp_path, record_file):
    content = gzip.compress(pathlib.Path(record_file).read_bytes())
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(content[: len(content) - cut])
    if cut:
        with pytest.raises(ValueError, match=r"a\.tfrecord\.gz .* cut off"):
            record_reading.count([str(path)])
        return
    assert record_reading.count([str(path)]) == 40
    record_reading.check([str(path)], SPEC)
    plain = record_reading.read_all([record_file], SPEC)
    unpacked = record_reading.read_all([str(path)], SPEC)
    for name, values in plain.items():
        np.testing.assert_array_equal(unpacked[name], values)
    batches = batching.FileBatches([str(path)], SPEC, 8, 1).starting_at(0)
    same = batching.FileBatches([record_file], SPEC, 8, 1).starting_at(0)
    for ours, theirs in zip(batches.take(5), same.take(5), strict=True):
        np.testing.assert_array_equal(ours["input_ids"], theirs["input_ids"])


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_what_takes_long_shows_how_far_it_is(
    ending, tmp_path, record_file, monkeypatch
):
    content = pathlib.Path(record_file).read_bytes()
    stored = gzip.compress(content) if ending else content
    paths = [str(tmp_path / f"{name}{ending}") for name in "bcd"]
    for path in paths:
        pathlib.Path(path).write_bytes(stored)
    monkeypatch.setattr(record_reading, "_BLOCK", len(stored) // 3)
    shown = []

    class Progress(tqdm.tqdm):
        def update(self, n=1):
            shown.append((self.n + n, self.total))

            return super().update(n)

    monkeypatch.setattr(record_reading.tqdm, "tqdm", Progress)
    total = 3 * len(stored)
    for function, expected in (
        (record_reading.count, 120),
        (record_reading.fingerprint, hashlib.sha256(3 * content).hexdigest()),
    ):
        shown.clear()
        assert function(paths) == expected
        assert shown == sorted(shown) and shown[-1] == (total, total)
        assert len(shown) >= (3 if ending else 9)  # a small .gz is read at once


def test_compressed_and_plain_files_are_not_mixed(tmp_path, record_file):
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(gzip.compress(pathlib.Path(record_file).read_bytes()))
    with pytest.raises(ValueError, match="all are compressed or none"):
        batching.FileBatches([record_file, str(path)], SPEC, 8, 1)
