"""Vectors of raw text, out of the layers of any BERT (Reimers and Gurevych 2019)."""

import tensorflow as tf

from modeling import pooling
from serving import text_pairs

_LEAST_NORM = 1e-12  # A vector of zeros stays one.


class SentenceVectors(text_pairs.TextPairServer):
    """Gives vectors, float32 [batch, size].

    Args:
        model: models.BertModel.
        vocab_file, do_lower_case, max_seq_length: as of saved_model.TextServer.
        pool: function of the model's outputs and its batch, giving float32 [batch,
            size], see `pooled`.
    """

    UNUSED = ("bert/pooler/",)

    def __init__(self, model, vocab_file, do_lower_case, max_seq_length, pool):
        super().__init__(model, vocab_file, do_lower_case, max_seq_length)
        self._pool = pool

    def run(self, batch):
        return {"vectors": self._pool(self.model(batch, training=False), batch)}


def pooled(layers, kind, is_normalized=False):
    """What makes one vector of a text, as `extract_features.py --pooling` does.

    Args:
        layers: ints; 0 is the first encoder layer, -1 the last.
        kind: key of `pooling.POOLINGS`.
        is_normalized: bool, divide each vector by its length.
    Returns:
        function of the model's outputs and its batch, giving float32 [batch,
        len(layers) * hidden_size], the layers side by side.
    """

    def pool(outputs, batch):
        vectors = pooling.select(outputs, batch, layers, kind)
        rows, _, size = tf.unstack(tf.shape(vectors))
        vectors = tf.reshape(vectors, [rows, len(layers) * size])
        if is_normalized:
            norms = tf.norm(vectors, axis=-1, keepdims=True)
            vectors /= tf.maximum(norms, _LEAST_NORM)
        return vectors

    return pool
