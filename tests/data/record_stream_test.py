"""Records as TensorFlow reads and writes them, and every kind of damage."""

import gzip
import hashlib
import pathlib

import pytest
import tensorflow as tf

from data import record_stream
from tests import pretraining_records


def read(path):
    """All records, and the source they came from."""
    source = record_stream.Source(str(path))
    return [content for block in source.blocks() for content in block], source


def write(path, contents):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for content in contents:
            writer.write(content)
    return path


@pytest.fixture
def record_file(tmp_path):
    data = pretraining_records.make(30)
    return pathlib.Path(pretraining_records.write(tmp_path / "a.tfrecord", data))


def test_the_records_are_those_that_tensorflow_reads(record_file, golden):
    for path in (record_file, *(golden / "tiny_tf1_runs").rglob("*.tf*record")):
        expected = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
        contents, source = read(path)
        assert contents == expected
        assert source.num_records == len(expected)


def test_blocks_are_bounded(tmp_path):
    contents = [b"x" * (7 * i % 5000) for i in range(3000)]
    contents[500] = b"x" * 16_000
    source = record_stream.Source(str(write(tmp_path / "a", contents)))
    sizes = [[len(content) for content in block] for block in source.blocks()]
    assert sum(sizes, []) == [len(content) for content in contents]
    assert max(map(len, sizes)) <= 1024
    assert max(len(block) * max(block) for block in sizes) <= 2**21


@pytest.mark.parametrize("packed", [False, True])
def test_size_checksum_and_progress_are_those_of_the_file(
    packed, record_file, tmp_path
):
    content = record_file.read_bytes()
    path = tmp_path / ("b.gz" if packed else "b")
    path.write_bytes(gzip.compress(content) if packed else content)
    reported = []
    source = record_stream.Source(str(path), reported.append)
    assert [c for block in source.blocks() for c in block] == read(record_file)[0]
    assert source.size == sum(reported) == path.stat().st_size
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    assert source.checksum.hexdigest() == expected


def test_tensorflow_opens_remote_files(record_file):
    tf.io.gfile.copy(str(record_file), "ram://a.tfrecord")
    assert read("ram://a.tfrecord")[0] == read(record_file)[0]


def refusal(path):
    """What is said about a damaged file, and the records before the damage."""
    source = record_stream.Source(str(path))
    contents = []
    with pytest.raises(record_stream.Damage) as error:
        for block in source.blocks():
            contents += block
    content = pathlib.Path(path).read_bytes()
    assert source.checksum.hexdigest() == hashlib.sha256(content).hexdigest()
    assert len(contents) == source.num_records
    return str(error.value), contents


def test_a_file_that_is_cut_off(record_file):
    content, expected = record_file.read_bytes(), read(record_file)[0]
    ends = [0]
    for record in expected:
        ends.append(ends[-1] + len(record) + 16)
    for size in [*range(1, 40), *range(ends[3] - 20, ends[3] + 20), len(content) - 1]:
        record_file.write_bytes(content[:size])
        whole = sum(end <= size for end in ends) - 1
        if size in ends:
            assert read(record_file)[0] == expected[:whole]
            continue
        message, found = refusal(record_file)
        assert found == expected[:whole]
        assert f"cut off after {whole} records; copy it or make it again" in message


def test_a_changed_byte(record_file):
    content, expected = record_file.read_bytes(), read(record_file)[0]
    start = sum(len(record) + 16 for record in expected[:2])
    for place in range(start, start + len(expected[2]) + 16):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        record_file.write_bytes(damaged)
        message, found = refusal(record_file)
        assert found == expected[:2]
        assert "a.tfrecord is damaged or cut off after 2 records" in message


def test_long_records_are_checked_too(tmp_path):
    contents = [b"short", b"y" * 100_000, b"short again"]
    path = write(tmp_path / "a", contents)
    assert read(path)[0] == contents
    content = bytearray(path.read_bytes())
    for place in (25, 50_000):  # the length, what it is the length of
        damaged = content.copy()
        damaged[place] ^= 1
        path.write_bytes(damaged)
        assert refusal(path)[1] == contents[:1]


def test_other_files(tmp_path, record_file):
    path = tmp_path / "a"
    path.write_bytes(b"Once upon a time there was a file.\n" * 10)
    assert "a is no TFRecord file, or is cut off after 0 records" in refusal(path)[0]
    path.write_bytes(gzip.compress(record_file.read_bytes()))
    assert "a is compressed; rename it so that it ends in .gz" in refusal(path)[0]
    path = tmp_path / "b.gz"
    path.write_bytes(record_file.read_bytes())
    assert "b.gz is not compressed; rename it without .gz" in refusal(path)[0]


@pytest.mark.parametrize("cut", [1, 5, 100])
def test_a_compressed_file_that_is_cut_off(cut, record_file, tmp_path):
    path = tmp_path / "a.gz"
    packed = gzip.compress(record_file.read_bytes())
    path.write_bytes(packed[:-cut])
    message, found = refusal(path)
    assert f"cut off after {len(found)} records" in message
    assert found == read(record_file)[0][: len(found)]
