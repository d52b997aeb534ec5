"""Less padding: batches as long as their longest sequence, of sequences of like length.

B batch_size. Attention gives padding no weight, so what a model makes of a sequence
does not depend on how far it is padded.
"""

import functools
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from data import features

Batch = dict[str, tf.Tensor]

# Batches that are sorted by length together: enough for batches of one length, few
# enough to leave which rows meet in a batch to chance.
WINDOW = 50


def trim(batch: Batch, multiple: int = 8, also: Sequence[str] = ()) -> Batch:
    """Cuts off the columns that are padding in every sequence; for `Dataset.map`.

    Sequences are along the last axis, whether a row is one or several (choices). The
    length becomes dynamic, rounded up to a multiple, within what there was.

    Args:
        batch: with input_ids, input_mask and segment_ids.
        multiple: of the length.
        also: names of other features with a column a token, such as their labels.
    """
    length = tf.reduce_max(tf.reduce_sum(batch["input_mask"], axis=-1))
    length = -(-tf.maximum(length, 1) // multiple) * multiple
    names = (*features.INPUTS, *also)
    return batch | {name: batch[name][..., :length] for name in names}


def trimming(
    pad_to_max: bool, also: Sequence[str] = ()
) -> Callable[[Batch], Batch] | None:
    """What to apply to every batch: `trim`, or nothing with --pad_to_max."""
    return None if pad_to_max else functools.partial(trim, also=also)


class LengthBuckets:
    """Arranges the rows of an epoch so that those of a batch are of like length.

    For `batching.InMemoryBatches`. The rows, in random order, are cut into windows of
    `WINDOW` batches, and each is sorted by length and cut into batches, which change
    places at random within the window. Which batches are whole is reckoned from the
    start of the training: the rows that share a batch with the epoch before, and those
    with the epoch after, stay as they are.

    Args:
        input_mask: int [num_rows, ..., seq_length], 1 for real tokens. Of several
            sequences in a row the longest counts.
        batch_size: B.
    """

    def __init__(self, input_mask: np.ndarray, batch_size: int):
        sums = input_mask.sum(axis=-1).reshape(len(input_mask), -1)
        self._lengths = tf.constant(sums.max(axis=-1), tf.int64)
        self._batch_size = batch_size

    def __call__(self, rows: tf.Tensor, epoch_seed: tf.Tensor) -> tf.Tensor:
        """The rows in the order to take.

        Args:
            rows: int64 [num_rows], in random order.
            epoch_seed: int64 [2], the seed of the training and the number of the epoch.
        """
        num_rows, size = len(self._lengths), self._batch_size
        head = -epoch_seed[1] * num_rows % size  # what the epoch before lacked
        num_batches = tf.maximum(num_rows - head, 0) // size
        whole = rows[head : head + num_batches * size]

        windows = tf.range(num_batches) // WINDOW  # of every batch
        longest = tf.reduce_max(self._lengths)
        lengths = tf.gather(self._lengths, whole)
        keys = tf.repeat(windows, size) * (longest + 1) + lengths
        batches = tf.gather(whole, tf.argsort(keys, stable=True))

        seed = tf.random.experimental.stateless_fold_in(epoch_seed, 1)
        draws = tf.random.stateless_uniform([num_batches], seed, dtype=tf.float64)
        order = tf.argsort(tf.cast(windows, tf.float64) + draws)
        batches = tf.gather(tf.reshape(batches, [-1, size]), order)
        tail = rows[head + num_batches * size :]
        return tf.concat([rows[:head], tf.reshape(batches, [-1]), tail], axis=0)
