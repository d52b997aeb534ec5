"""Vectors of a frozen encoder: made once for every window, then trained on."""

import numpy as np
import tensorflow as tf
from absl import logging

import inference
from data import batching, features, padding
from modeling import feature_tagger

# Windows that the encoder takes at a time. Not a flag: another number may change the
# last bits of the vectors, and so what a resumed training ends with.
_BATCH_SIZE = 32


class TokenVectors:
    """The vectors of the real tokens of windows, one after the other.

    Args:
        vectors: float32, [tokens, vectors, hidden_size].
        lengths: int, [windows], tokens of each.
    """

    def __init__(self, vectors, lengths):
        # In the host's memory, and no constants of a graph, which has a limit of 2 GB.
        with tf.device("CPU:0"):
            self._vectors = tf.constant(vectors)
            self._lengths = tf.constant(lengths, tf.int64)
            self._starts = tf.cumsum(self._lengths, exclusive=True)

    def add_to(self, batch):
        """For `Dataset.map`: looks up the vectors of a batch's windows.

        Args:
            batch: dict with input_mask, [batch, seq_length], and window_numbers,
                [batch].
        Returns:
            dict, the batch with vectors, float32, [batch, seq_length, vectors,
            hidden_size]. Those of padding are again that of the last token.
        """
        columns = tf.range(tf.shape(batch["input_mask"])[1], dtype=tf.int64)
        numbers = batch["window_numbers"]
        starts = tf.gather(self._starts, numbers)[:, tf.newaxis]
        last = tf.gather(self._lengths, numbers)[:, tf.newaxis] - 1
        places = starts + tf.minimum(columns, last)
        return {**batch, "vectors": tf.gather(self._vectors, places)}


class FrozenEncoder:
    """Runs an encoder over windows without dropout, and keeps what is asked for.

    Args:
        strategy: tf.distribute strategy.
        model: models.BertModel, with its weights.
        choice, weighted_sums: see `feature_tagger.select`.
    Attributes:
        vectors_shape: (vectors, hidden_size) of a token.
    Raises:
        ValueError: the encoder has too few layers.
    """

    def __init__(self, strategy, model, choice, weighted_sums):
        self.vectors_shape = (
            feature_tagger.num_vectors(
                choice, model.config.num_hidden_layers, weighted_sums
            ),
            model.config.hidden_size,
        )

        def measure(outputs, batch):
            encoder_outputs = outputs["encoder_outputs"]
            return {
                "vectors": feature_tagger.select(
                    encoder_outputs, choice, weighted_sums
                ),
                "input_mask": batch["input_mask"],
            }

        self._forward = inference.Forward(strategy, model, measure)

    def vectors(self, arrays):
        """The TokenVectors of windows.

        Args:
            arrays: dict of int32 [windows, seq_length]: input_ids, input_mask,
                segment_ids.
        """
        arrays = {name: arrays[name] for name in features.INPUTS}
        lengths = arrays["input_mask"].sum(axis=1)
        vectors = np.empty((lengths.sum(), *self.vectors_shape), np.float32)
        logging.info(
            "the vectors of %d tokens take %.2f GB of memory, for a moment twice that",
            lengths.sum(),
            vectors.nbytes / 1e9,
        )
        batches = batching.in_memory_evaluation_batches(
            arrays, _BATCH_SIZE, padding.trim
        )
        done = 0
        for row in self._forward.rows(batches, "encoding"):
            found = row["vectors"][row["input_mask"] == 1]
            vectors[done : done + len(found)] = found
            done += len(found)
        return TokenVectors(vectors, lengths)

    def __call__(self, arrays, trim=None):
        """Windows for `data.batching`.

        Args:
            arrays: as for `vectors`; others stay as they are.
            trim: function of a batch, to apply to every one, or None.
        Returns:
            (arrays with window_numbers, function of a batch that trims it and adds the
            vectors).
        """
        found = self.vectors(arrays)

        def transform(batch):
            return found.add_to(trim(batch) if trim else batch)

        numbers = np.arange(len(arrays["input_mask"]), dtype=np.int32)
        return {**arrays, "window_numbers": numbers}, transform
