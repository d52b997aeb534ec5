"""Record files: the original's are read, ours are what it would write."""

import os
import resource

import numpy as np
import pytest
import tensorflow as tf

from data import filesystem, record_reading, records
from tests.record_files import make_data, make_example, write_raw

SPEC = records.pretraining_spec(8, 3)


GOLDEN_FILES = {
    "tiny_tf1_runs/pretraining/*.tfrecord": records.pretraining_spec(64, 10),
    "tiny_tf1_runs/classifier_mrpc/*.tf_record": records.classifier_spec(48),
}


@pytest.mark.parametrize("pattern", GOLDEN_FILES)
def test_records_of_the_original_are_read_field_by_field(golden, pattern):
    spec = GOLDEN_FILES[pattern]
    files = filesystem.expand(str(golden / pattern))
    assert len(files) == len(list(golden.glob(pattern))) > 1
    record_reading.check(files, spec)
    data = record_reading.read_all(files, spec)
    assert set(data) == set(spec)
    row = 0
    for path in files:
        for serialized in tf.data.TFRecordDataset(path).as_numpy_iterator():
            features = tf.train.Example.FromString(serialized).features.feature
            assert set(features) == set(spec)
            for name, feature in spec.items():
                entry = features[name]
                values = (entry.int64_list.value or entry.float_list.value)[:]
                ours = data[name][row]
                assert np.atleast_1d(ours).tolist() == list(values)
                expected = np.float32 if entry.float_list.value else np.int32
                assert data[name].dtype == expected
                assert np.ndim(ours) == (0 if feature.is_scalar else 1)
            row += 1
    assert {len(values) for values in data.values()} == {row}
    assert record_reading.count(files) == row


@pytest.mark.parametrize("pattern", GOLDEN_FILES)
def test_what_is_read_and_written_again_has_the_originals_features(
    golden, pattern, tmp_path
):
    spec = GOLDEN_FILES[pattern]
    files = filesystem.expand(str(golden / pattern))
    path = str(tmp_path / "again.tfrecord")
    records.write(path, record_reading.read_all(files, spec), spec)
    theirs, ours = (
        [
            tf.train.Example.FromString(record)
            for record in tf.data.TFRecordDataset(source).as_numpy_iterator()
        ]
        for source in (files, path)
    )
    assert theirs == ours


@pytest.mark.parametrize("spec", [SPEC, records.classifier_spec(8)])
def test_reading_gives_what_was_written(spec, tmp_path):
    path = str(tmp_path / "a.tfrecord")
    data = make_data(2500, spec)
    records.write(path, data, spec)
    read = record_reading.read_all([path], spec)
    assert set(read) == set(spec)
    for name, values in data.items():
        np.testing.assert_array_equal(read[name], values)
        assert read[name].dtype == values.dtype


def test_the_originals_reader_parses_our_records(tmp_path):
    path = str(tmp_path / "a.tfrecord")
    data = make_data(5, SPEC)
    records.write(path, data, SPEC)
    layout = {
        "input_ids": tf.io.FixedLenFeature([8], tf.int64),
        "input_mask": tf.io.FixedLenFeature([8], tf.int64),
        "segment_ids": tf.io.FixedLenFeature([8], tf.int64),
        "masked_lm_positions": tf.io.FixedLenFeature([3], tf.int64),
        "masked_lm_ids": tf.io.FixedLenFeature([3], tf.int64),
        "masked_lm_weights": tf.io.FixedLenFeature([3], tf.float32),
        "next_sentence_labels": tf.io.FixedLenFeature([1], tf.int64),
    }
    for row, serialized in enumerate(tf.data.TFRecordDataset(path)):
        parsed = tf.io.parse_single_example(serialized, layout)
        for name, values in parsed.items():
            assert values.numpy().tolist() == data[name][row].tolist()


def test_a_missing_is_real_example_is_1(tmp_path):
    example = make_example(
        input_ids=[5, 6], input_mask=[1, 1], segment_ids=[0, 1], label_ids=[3]
    )
    path = write_raw(tmp_path / "old.tf_record", example, example)
    spec = records.classifier_spec(2)
    record_reading.check([path], spec)
    data = record_reading.read_all([path], spec)
    assert data["is_real_example"].tolist() == [1, 1]
    assert data["label_ids"].tolist() == [3, 3]


def test_shapes_are_static():
    parsed = tf.function(lambda x: record_reading.parse(x, SPEC)).get_concrete_function(
        tf.TensorSpec([4], tf.string)
    )
    shapes = {name: x.shape.as_list() for name, x in parsed.structured_outputs.items()}
    assert shapes["input_ids"] == [4, 8]
    assert shapes["masked_lm_weights"] == [4, 3]
    assert shapes["next_sentence_labels"] == [4, 1]


def test_choices_stand_in_a_row_in_a_record(tmp_path):
    spec = records.multiple_choice_spec(3, 8)
    data = make_data(5, spec)
    assert data["input_ids"].shape == (5, 3, 8)
    path = str(tmp_path / "choices.tfrecord")
    records.write(path, data, spec)
    record_reading.check([path], spec)
    for row, serialized in enumerate(tf.data.TFRecordDataset(path)):
        features = tf.train.Example.FromString(serialized.numpy()).features.feature
        assert set(features) == set(data)
        for name, entry in features.items():
            assert list(entry.int64_list.value) == data[name][row].ravel().tolist()
    for name, values in record_reading.read_all([path], spec).items():
        np.testing.assert_array_equal(values, data[name], strict=True)


def test_equal_data_gives_equal_bytes(tmp_path):
    for name in "ab":
        records.write(str(tmp_path / name), make_data(100, SPEC), SPEC)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def failing_batches():
    yield make_data(1000, SPEC)
    raise OSError("the text cannot be read any more")


def test_nothing_half_written_is_left(tmp_path):
    path = tmp_path / "a"
    path.write_text("what was there before")
    with pytest.raises(OSError, match="any more"):
        records.write_stream(str(path), failing_batches(), SPEC)
    assert os.listdir(tmp_path) == ["a"]
    assert path.read_text() == "what was there before"


def test_a_full_disk_leaves_nothing(tmp_path):
    # A limit on the size of files stands in for it: writing fails in the same place.
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, old[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            records.write(str(tmp_path / "a"), make_data(2000, SPEC), SPEC)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_written_is_refused(tmp_path):
    path = str(tmp_path / "a")
    wrong = make_data(2, records.pretraining_spec(9, 3))
    with pytest.raises(ValueError, match=r"input_ids .*\(2, 8\).* got \(2, 9\)"):
        records.write(path, wrong, SPEC)
    with pytest.raises(ValueError, match="no record to write to .*a$"):
        records.write(path, make_data(0, SPEC), SPEC)
    assert os.listdir(tmp_path) == []
