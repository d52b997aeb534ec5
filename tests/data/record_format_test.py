"""Bytes of records against TensorFlow and its protocol buffers."""

import numpy as np
import pytest
import tensorflow as tf

from data import record_format


def plain(columns, path):
    """The same file through tf.train.Example and TFRecordWriter."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in range(len(next(iter(columns.values())))):
            example = tf.train.Example()
            for name, values in columns.items():
                entry = example.features.feature[name]
                is_float = values.dtype == np.float32
                kind = entry.float_list if is_float else entry.int64_list
                kind.value.extend(values[row].tolist())
            writer.write(example.SerializeToString(deterministic=True))
    return path.read_bytes()


@pytest.mark.parametrize("seed", range(30))
def test_bytes_are_those_of_tensorflow(seed, tmp_path):
    rng = np.random.default_rng(seed)
    num_rows = int(rng.integers(1, 40))
    columns = {}
    for number in range(rng.integers(1, 6)):
        length = int(rng.integers(1, [2, 20, 400][number % 3]))
        # Of every number of bytes that an integer may take on the wire, negative too.
        bits = rng.integers(0, 63 if seed % 3 else 18, (num_rows, length))
        values = rng.integers(0, 2**62, (num_rows, length)) >> (62 - bits)
        if seed % 5 == 0:
            values -= 3
        if number % 4 == 3:
            values = rng.standard_normal((num_rows, length)).astype(np.float32)
        columns["xyzab"[number] * int(rng.integers(1, 200))] = values
    content, ends = record_format.encode(columns)
    assert content.tobytes() == plain(columns, tmp_path / "a")
    assert len(ends) == num_rows and ends[-1] == len(content)
    # Every part by itself is a file, too.
    start = int(ends[num_rows // 2 - 1]) if num_rows > 1 else 0
    (tmp_path / "b").write_bytes(content[start:].tobytes())
    rows = sum(1 for _ in tf.data.TFRecordDataset(str(tmp_path / "b")))
    assert rows == num_rows - (num_rows // 2 if num_rows > 1 else 0)


def test_a_short_record():
    content, ends = record_format.encode({"a": np.zeros((1, 1), np.int64)})
    assert ends.tolist() == [len(content)]
    example = tf.train.Example.FromString(content[12:-4].tobytes())
    assert list(example.features.feature["a"].int64_list.value) == [0]
