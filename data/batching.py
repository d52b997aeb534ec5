"""Batches of records: in memory or from files, for training and for evaluation.

The order in training is a function of (seed, step) and of nothing else: a run that
resumes at a step sees what it would have seen. TensorFlow's global seed plays no part.

B batch_size; a batch is a dict of the features of a `records.Spec`, integers as int32.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from data import record_reading, records

# Records that are shuffled together. Most data sets fit into one window; some windows
# of pre-training records fit into memory.
WINDOW = 16384


def read_all(files: Sequence[str], spec: records.Spec) -> dict[str, np.ndarray]:
    """Reads all records into memory, in the order of the files.

    Raises:
        ValueError: a file is damaged or has another layout.
    """
    record_reading.count(files)  # TensorFlow overlooks some files that are cut off
    batches = _read(files).batch(1024)
    batches = batches.map(lambda serialized: record_reading.parse(serialized, spec))
    with record_reading.damage_explained(files, spec):
        parts = list(batches.as_numpy_iterator())
    return {name: np.concatenate([part[name] for part in parts]) for name in spec}


def in_memory_batches(
    data: Mapping[str, np.ndarray], batch_size: int, seed: int, first_step: int = 0
) -> tf.data.Dataset:
    """Endless training batches; every epoch is a permutation of the rows.

    A batch may hold the end of one epoch and the start of the next.

    Args:
        data: arrays with the same number of rows.
        batch_size: B.
        seed: of the order.
        first_step: the number of batches to leave out at the start.
    """
    tensors = _to_tensors(data)
    num_rows = len(next(iter(tensors.values())))
    if num_rows == 0:
        raise ValueError("there are no examples to train on")

    rows = tf.range(num_rows, dtype=tf.int64)

    def shuffle(epoch_seed):
        order = tf.random.experimental.stateless_shuffle(rows, epoch_seed)
        return tf.data.Dataset.from_tensor_slices(order)

    order = _endless(shuffle, seed, first_step * batch_size, num_rows)
    batches = order.batch(batch_size, drop_remainder=True)
    return batches.map(lambda i: _gather(tensors, i)).prefetch(2)


def training_batches(
    files: Sequence[str],
    spec: records.Spec,
    batch_size: int,
    seed: int,
    first_step: int = 0,
) -> tf.data.Dataset:
    """Endless training batches from files.

    In every epoch the files come in another order, their records are interleaved, and
    each `WINDOW` records in a row are shuffled.

    Args:
        files: TFRecord files.
        spec: their layout.
        batch_size: B.
        seed: of the order.
        first_step: the number of batches to leave out at the start. Whole epochs are
            not read, the rest of one is not parsed.
    """
    paths = tf.constant(sorted(files))
    compression = record_reading.compression(files)

    def read_epoch(epoch_seed):
        def shuffle(number, window):
            window_seed = tf.random.experimental.stateless_fold_in(epoch_seed, number)
            return tf.random.experimental.stateless_shuffle(window, window_seed)

        order = tf.random.experimental.stateless_shuffle(paths, epoch_seed)
        serialized = tf.data.Dataset.from_tensor_slices(order).interleave(
            lambda path: tf.data.TFRecordDataset(path, compression),
            cycle_length=4,
            block_length=16,
        )
        return serialized.batch(WINDOW).enumerate().map(shuffle).unbatch()

    num_records = record_reading.count(files) if first_step else 1
    serialized = _endless(read_epoch, seed, first_step * batch_size, num_records)
    batches = serialized.batch(batch_size, drop_remainder=True)
    return batches.map(
        lambda batch: record_reading.parse(batch, spec),
        tf.data.AUTOTUNE,
        deterministic=True,
    ).prefetch(2)


def _read(files: Sequence[str]) -> tf.data.Dataset:
    """Serialized records, in the order of the files."""
    return tf.data.TFRecordDataset(files, record_reading.compression(files))


def _endless(
    read_epoch: Callable[[tf.Tensor], tf.data.Dataset],
    seed: int,
    first: int,
    num_elements: int,
) -> tf.data.Dataset:
    """One epoch after the other, from element `first` on.

    Args:
        read_epoch: seed int64 [2] -> the num_elements elements of an epoch.
        seed: of all epochs.
        first: the number of elements to leave out at the start; those of whole epochs
            are not read.
        num_elements: of an epoch; does not matter where first is 0.
    """
    epoch, rest = divmod(first, num_elements)
    epochs = tf.data.Dataset.range(epoch, np.iinfo(np.int64).max)
    seeds = epochs.map(lambda epoch: tf.stack([tf.constant(seed, tf.int64), epoch]))
    return seeds.flat_map(read_epoch).skip(rest)


def evaluation_batches(
    files: Sequence[str], spec: records.Spec, batch_size: int
) -> tf.data.Dataset:
    """All records once, in order; see `in_memory_evaluation_batches`."""
    batches = _read(files).batch(batch_size)
    return batches.map(
        lambda batch: _pad(record_reading.parse(batch, spec), batch_size),
        tf.data.AUTOTUNE,
        deterministic=True,
    ).prefetch(2)


def in_memory_evaluation_batches(
    data: Mapping[str, np.ndarray], batch_size: int
) -> tf.data.Dataset:
    """All rows once, in order.

    The last batch is filled up with zeros. `is_real_example` int32 [B] is part of every
    batch, whatever the layout, and 0 where a row is filling.

    Args:
        data: arrays with the same number of rows.
        batch_size: B.
    """
    tensors = _to_tensors(data)
    rows = tf.data.Dataset.range(len(next(iter(tensors.values()))))
    batches = rows.batch(batch_size)
    return batches.map(lambda i: _pad(_gather(tensors, i), batch_size)).prefetch(2)


def trim_padding(
    batch: dict[str, tf.Tensor], multiple: int = 8, also: Sequence[str] = ()
) -> dict[str, tf.Tensor]:
    """Cuts off the columns that are padding in every sequence; for `Dataset.map`.

    Sequences are along the last axis, whether a row is one or several (choices).

    Attention gives padding no weight, so the results are those of the whole batch. The
    length becomes dynamic, rounded up to a multiple, within what there was.

    Args:
        batch: with input_ids, input_mask and segment_ids.
        multiple: of the length.
        also: names of other features with a column a token, such as their labels.
    """
    length = tf.reduce_max(tf.reduce_sum(batch["input_mask"], axis=-1))
    length = -(-tf.maximum(length, 1) // multiple) * multiple
    names = ("input_ids", "input_mask", "segment_ids", *also)
    return batch | {name: batch[name][..., :length] for name in names}


def _to_tensors(data: Mapping[str, np.ndarray]) -> dict[str, tf.Tensor]:
    # Tensors, as arrays would become constants of the graph, which has a limit of 2 GB.
    with tf.device("CPU:0"):
        return {name: tf.constant(values) for name, values in data.items()}


def _gather(tensors: Mapping[str, tf.Tensor], rows: tf.Tensor) -> dict[str, tf.Tensor]:
    return {name: tf.gather(values, rows) for name, values in tensors.items()}


def _pad(batch: dict[str, tf.Tensor], batch_size: int) -> dict[str, tf.Tensor]:
    """Fills a batch up to batch_size rows."""
    rows = tf.shape(next(iter(batch.values())))[0]
    padded = {}
    for name, values in (
        {"is_real_example": tf.ones([rows], tf.int32)} | batch
    ).items():
        paddings = [[0, batch_size - rows]] + [[0, 0]] * (values.shape.rank - 1)
        shape = [batch_size, *values.shape[1:]]
        padded[name] = tf.ensure_shape(tf.pad(values, paddings), shape)
    return padded
