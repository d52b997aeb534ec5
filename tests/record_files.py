"""Rows of records, and files of single ones, for tests."""

import numpy as np
import tensorflow as tf


def make_data(num_rows, spec, seed=0):
    """Random rows in the shape of a batch."""
    rng = np.random.default_rng(seed)
    data = {}
    for name, feature in spec.items():
        shape = (num_rows, *feature.shape)
        dtype = np.int32 if feature.dtype == "int64" else np.float32
        data[name] = rng.integers(0, 100, shape).astype(dtype)
    return data


def write_raw(path, *serialized):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in serialized:
            writer.write(record)
    return str(path)


def make_example(**features):
    example = tf.train.Example()
    for name, values in features.items():
        entry = example.features.feature[name]
        kind = entry.float_list if isinstance(values[0], float) else entry.int64_list
        kind.value.extend(values)
    return example.SerializeToString()
