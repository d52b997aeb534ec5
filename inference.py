"""Running a model over data sets, without dropout."""

import contextlib

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

import arguments
from data import features
from modeling import layers


@contextlib.contextmanager
def models_in(precision):
    """Models made in it compute so, whatever --precision the training had.

    Args:
        precision: str, "float32", or "bfloat16", for inference only: embeddings and
            the weights of linear layers are kept in that too.
    """
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy(precision)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(policy)


class Forward:
    """A model without dropout, compiled once, to run over data sets.

    Args:
        strategy: tf.distribute strategy.
        model: keras.Model.
        measure: function of (outputs, batch), giving a dict of name → [batch, ...].
    """

    def __init__(self, strategy, model, measure):
        self.strategy, self.model, self.measure = strategy, model, measure

    @layers.without_gradients()
    def _replica(self, batch):
        measured = self.measure(self.model(batch, training=False), batch)
        return {**measured, "is_real_example": batch["is_real_example"]}

    # No autograph, which would take a third of the time to trace: nothing needs it.
    @tf.function(reduce_retracing=True, autograph=False)
    def _next(self, iterator):
        results = self.strategy.run(self._replica, args=(next(iterator),))
        # In the order of the replicas, which is that of the batch, on all workers.
        return {n: self.strategy.gather(v, axis=0) for n, v in results.items()}

    def rows(self, batches, description):
        """Goes over a data set, in order, and shows progress.

        Args:
            batches: tf.data.Dataset of batches with `is_real_example`, which is 0 in
                the rows that fill up the last one.
            description: str, shown beside the progress bar.
        Yields:
            for each batch a dict of name → np.ndarray with the real rows only.
        """
        iterator = iter(self.strategy.experimental_distribute_dataset(batches))
        total = int(batches.cardinality())  # negative where it is not known
        total = total if total >= 0 else None
        with tqdm(total=total, desc=description, unit="batch") as progress:
            while True:
                try:
                    results = {n: v.numpy() for n, v in self._next(iterator).items()}
                except tf.errors.OutOfRangeError:
                    return
                progress.update()
                real = results.pop("is_real_example").astype(bool)
                yield {name: value[real] for name, value in results.items()}


def rows(strategy, model, batches, measure, description):
    """Runs a model over one data set; see `Forward`."""
    return Forward(strategy, model, measure).rows(batches, description)


class Sequences:
    """A model that stays loaded, compiled once, to run over sequences of any length.

    Args:
        forward: function of a batch, input_ids, input_mask and segment_ids [batch,
            seq_length], giving a tensor [batch, ...].
        batch_size: int, sequences at a time.
    Raises:
        ValueError: batch_size is not an int, 1 at least.
    """

    def __init__(self, forward, batch_size):
        self._forward = tf.function(
            layers.without_gradients()(forward),
            input_signature=[
                dict.fromkeys(features.INPUTS, tf.TensorSpec([None, None], tf.int32))
            ],
            autograph=False,
        )
        self._batch_size = arguments.whole("batch_size", batch_size)

    def __call__(self, rows):
        """What the model gives for each sequence, however they are batched.

        Args:
            rows: list of (ids, segments), each a list of int.
        Returns:
            list of np.ndarray; if one has a dimension of seq_length, then that is as
            long as the sequence at least.
        """
        # Sequences of like length share a batch, so that little of it is padding.
        order = sorted(range(len(rows)), key=lambda i: len(rows[i][0]))
        results = [None] * len(rows)
        for first in range(0, len(rows), self._batch_size):
            chosen = order[first : first + self._batch_size]
            longest = len(rows[chosen[-1]][0])
            arrays = features.pad([rows[i] for i in chosen], len(chosen), longest)
            outputs = self._forward(
                {n: tf.constant(arrays[n]) for n in features.INPUTS}
            )
            for i, output in zip(chosen, np.asarray(outputs), strict=True):
                results[i] = output
        return results
