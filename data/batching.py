"""Batches of records: in memory or from files, for training and for evaluation.

The order in training is a function of (seed, step) and of nothing else: a run that
resumes at a step sees what it would have seen. TensorFlow's global seed plays no part.

B batch_size; a batch is a dict of the features of a `records.Spec`, integers as int32.
Where several workers share a dataset, each reads all of it and takes its part of every
batch.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
import tensorflow as tf

from data import padding, record_reading, records

# Records that are shuffled together. Most data sets fit into one window; some windows
# of pre-training records fit into memory.
WINDOW = 16384

Batch = padding.Batch
Transform = Callable[[Batch], Batch]


class Batches(Protocol):
    """Endless training batches.

    Attributes:
        num_records: of an epoch.
    """

    num_records: int

    def starting_at(self, step: int) -> tf.data.Dataset:
        """The batches that follow so many updates."""

    def describe(self, step: int) -> str:
        """Names the records of the first batch of `starting_at(step)`, in a line."""


class InMemoryBatches:
    """Endless training batches; every epoch is a permutation of the rows.

    A batch may hold the end of one epoch and the start of the next.

    Args:
        data: arrays with the same number of rows.
        batch_size: B.
        seed: of the order.
        transform: function of a batch, applied to every one, such as `padding.trim`.
        length_buckets: form batches of sequences of like length, by the `input_mask` of
            the data, see `padding.LengthBuckets`.
    Raises:
        ValueError: there is no row.
    """

    def __init__(
        self,
        data: Mapping[str, np.ndarray],
        batch_size: int,
        seed: int,
        transform: Transform | None = None,
        length_buckets: bool = False,
    ):
        self._tensors = _to_tensors(data)
        self.num_records = len(next(iter(self._tensors.values())))
        if self.num_records == 0:
            raise ValueError("there are no examples to train on")
        self._batch_size, self._seed = batch_size, seed
        self._transform, self._arrange = transform, None
        if length_buckets:
            self._arrange = padding.LengthBuckets(data["input_mask"], batch_size)

    def starting_at(self, step: int) -> tf.data.Dataset:
        """See Batches."""
        tensors = self._tensors  # the dataset needs no more of this object
        batches = self._rows(step).map(lambda rows: _gather(tensors, rows))
        return _finish(batches, self._transform)

    def describe(self, step: int) -> str:
        """See Batches."""
        rows = sorted(next(self._rows(step).as_numpy_iterator()).tolist())
        return f"rows {_join(rows)} of the training data, counted from 0"

    def _rows(self, step: int) -> tf.data.Dataset:
        """The batches from a step on, as numbers of rows, int64 [B]."""
        rows = tf.range(self.num_records, dtype=tf.int64)

        def read_epoch(epoch_seed):
            order = tf.random.experimental.stateless_shuffle(rows, epoch_seed)
            if self._arrange:
                order = self._arrange(order, epoch_seed)
            return tf.data.Dataset.from_tensor_slices(order)

        first = step * self._batch_size
        order = _endless(read_epoch, self._seed, first, self.num_records)
        return order.batch(self._batch_size, drop_remainder=True)


class FileBatches:
    """Endless training batches from files.

    In every epoch the files come in another order, their records are interleaved, and
    each `WINDOW` records in a row are shuffled.

    Args:
        files: TFRecord files.
        spec: their layout.
        batch_size: B.
        seed: of the order.
        transform: function of a batch, applied to every one, such as `padding.trim`.
    Raises:
        ValueError: some of the files are compressed and some are not.
    """

    def __init__(
        self,
        files: Sequence[str],
        spec: records.Spec,
        batch_size: int,
        seed: int,
        transform: Transform | None = None,
    ):
        self._files, self._spec = sorted(files), spec
        self._compression = record_reading.compression(files)
        self._batch_size, self._seed = batch_size, seed
        self._transform = transform

    @functools.cached_property
    def num_records(self) -> int:
        """See Batches.

        Raises:
            ValueError: there is none, or a file is cut off.
        """
        number = record_reading.count(self._files)
        if number == 0:
            raise ValueError(f"there is no record in {', '.join(self._files):.200}")
        return number

    def starting_at(self, step: int) -> tf.data.Dataset:
        """See Batches; what is left out is not parsed, whole epochs not even read."""
        paths = tf.constant(self._files)
        serialized = self._order(
            lambda file: tf.data.TFRecordDataset(paths[file], self._compression),
            step,
            self.num_records,
        )
        batches = serialized.map(
            lambda batch: record_reading.parse(batch, self._spec),
            tf.data.AUTOTUNE,
            deterministic=True,
        )
        return _finish(batches, self._transform)

    def describe(self, step: int) -> str:
        """See Batches."""
        # The same order, of numbers that count on from file to file.
        counts = [record_reading.count([path]) for path in self._files]
        starts = np.cumsum([0, *counts])
        bounds = tf.constant(starts, tf.int64)
        order = self._order(
            lambda file: tf.data.Dataset.range(bounds[file], bounds[file + 1]),
            step,
            sum(counts),
        )
        numbers = np.sort(next(order.as_numpy_iterator()))
        files = np.searchsorted(starts, numbers, side="right") - 1
        parts = [
            f"{self._files[i]}: {_join(numbers[files == i] - starts[i] + 1)}"
            for i in np.unique(files)
        ]
        return f"records {'; '.join(parts)}, counted from 1"

    def _order(
        self, read: Callable[[tf.Tensor], tf.data.Dataset], step: int, num_records: int
    ) -> tf.data.Dataset:
        """The batches from a step on, of whatever `read` makes of a file's number."""
        numbers = tf.range(len(self._files), dtype=tf.int64)

        def read_epoch(epoch_seed):
            def shuffle(number, window):
                seed = tf.random.experimental.stateless_fold_in(epoch_seed, number)
                return tf.random.experimental.stateless_shuffle(window, seed)

            order = tf.random.experimental.stateless_shuffle(numbers, epoch_seed)
            elements = tf.data.Dataset.from_tensor_slices(order).interleave(
                read, cycle_length=4, block_length=16
            )
            return elements.batch(WINDOW).enumerate().map(shuffle).unbatch()

        first = step * self._batch_size
        order = _endless(read_epoch, self._seed, first, num_records)
        return order.batch(self._batch_size, drop_remainder=True)


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
        num_elements: of an epoch.
    """
    epoch, rest = divmod(first, num_elements)
    epochs = tf.data.Dataset.range(epoch, np.iinfo(np.int64).max)
    seeds = epochs.map(lambda epoch: tf.stack([tf.constant(seed, tf.int64), epoch]))
    return seeds.flat_map(read_epoch).skip(rest)


def evaluation_batches(
    files: Sequence[str],
    spec: records.Spec,
    batch_size: int,
    transform: Transform | None = None,
) -> tf.data.Dataset:
    """All records once, in order; see `in_memory_evaluation_batches`."""
    batches = record_reading.serialized(files).batch(batch_size)
    batches = batches.map(
        lambda batch: _pad(record_reading.parse(batch, spec), batch_size),
        tf.data.AUTOTUNE,
        deterministic=True,
    )
    return _finish(batches, transform)


def in_memory_evaluation_batches(
    data: Mapping[str, np.ndarray], batch_size: int, transform: Transform | None = None
) -> tf.data.Dataset:
    """All rows once, in order.

    The last batch is filled up with zeros. `is_real_example` int32 [B] is part of every
    batch, whatever the layout, and 0 where a row is filling.

    Args:
        data: arrays with the same number of rows.
        batch_size: B.
        transform: function of a batch, applied to every one, such as `padding.trim`.
    """
    tensors = _to_tensors(data)
    rows = tf.data.Dataset.range(len(next(iter(tensors.values()))))
    batches = rows.batch(batch_size)
    batches = batches.map(lambda i: _pad(_gather(tensors, i), batch_size))
    return _finish(batches, transform)


def _finish(batches: tf.data.Dataset, transform: Transform | None) -> tf.data.Dataset:
    """What all datasets end with."""
    if transform:
        batches = batches.map(transform)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.DATA
    )
    return batches.prefetch(2).with_options(options)


def _join(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _to_tensors(data: Mapping[str, np.ndarray]) -> Batch:
    # Tensors, as arrays would become constants of the graph, which has a limit of 2 GB.
    with tf.device("CPU:0"):
        return {name: tf.constant(values) for name, values in data.items()}


def _gather(tensors: Mapping[str, tf.Tensor], rows: tf.Tensor) -> Batch:
    return {name: tf.gather(values, rows) for name, values in tensors.items()}


def _pad(batch: Batch, batch_size: int) -> Batch:
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
