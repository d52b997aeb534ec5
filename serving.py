"""A fine-tuned model and its tokenizer in one SavedModel that takes raw text.

What is loaded needs TensorFlow and, for the text signatures, `import tensorflow_text`;
none of this code.
"""

import os
import shutil

import tensorflow as tf

from data import graph_tokenization
from modeling import losses

SIGNATURES = ("serving_default", "pair", "ids")


class TextClassifier(tf.Module):
    """Signatures of a classifier; each gives label, score, probabilities and logits.

    serving_default: text, string [batch].
    pair: text and text_pair, string [batch].
    ids: input_ids, input_mask and segment_ids, int32 [batch, seq_length].

    Args:
        model: models.BertForSequenceClassification.
        labels: list of str.
        vocab_file: str, becomes an asset.
        do_lower_case: bool.
        max_seq_length: int; longer texts are cut as in training, shorter ones are
            padded to the longest of their batch only.
    """

    def __init__(self, model, labels, vocab_file, do_lower_case, max_seq_length):
        super().__init__()
        self.model, self.max_seq_length = model, max_seq_length
        self.labels = tf.constant(list(labels))
        self.vocab = tf.saved_model.Asset(vocab_file)
        self.tokenizer = graph_tokenization.GraphTokenizer(vocab_file, do_lower_case)

    def _classify(self, batch):
        logits = self.model(batch, training=False)["logits"]
        probabilities = losses.softmax(logits)
        best = tf.argmax(logits, axis=-1)
        return {
            "label": tf.gather(self.labels, best),
            "score": tf.reduce_max(probabilities, axis=-1),
            "probabilities": probabilities,
            "logits": logits,
        }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def serving_default(self, text):
        ids = self.tokenizer(text)
        return self._classify(self.tokenizer.pack(ids, None, self.max_seq_length))

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, "text"),
            tf.TensorSpec([None], tf.string, "text_pair"),
        ]
    )
    def pair(self, text, text_pair):
        ids_a, ids_b = self.tokenizer(text), self.tokenizer(text_pair)
        return self._classify(self.tokenizer.pack(ids_a, ids_b, self.max_seq_length))

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None], tf.int32, name)
            for name in ("input_ids", "input_mask", "segment_ids")
        ]
    )
    def ids(self, input_ids, input_mask, segment_ids):
        return self._classify(
            {
                "input_ids": input_ids,
                "input_mask": input_mask,
                "segment_ids": segment_ids,
            }
        )


def save(server, path, check):
    """Writes a SavedModel, whole and checked or not at all.

    Args:
        server: TextClassifier.
        path: str, must not exist.
        check: function of the path of the unfinished SavedModel; raises if it is bad.
    """
    unfinished = f"{path}.tmp"
    shutil.rmtree(unfinished, ignore_errors=True)  # left by a run that was killed
    try:
        signatures = {name: getattr(server, name) for name in SIGNATURES}
        tf.saved_model.save(server, unfinished, signatures=signatures)
        check(unfinished)
        os.rename(unfinished, path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
