"""Classifiers of raw text: a fine-tuned model and its tokenizer in one module."""

import tensorflow as tf

from data import classification, features
from modeling import losses
from serving import parity, saved_model


class _TextModel(saved_model.TextServer):
    """Signatures of a model that gives logits for texts.

    serving_default: text, string [batch].
    pair: text and text_pair, string [batch].
    ids: input_ids, input_mask and segment_ids, int32 [batch, seq_length].

    Args:
        model: models.BertForSequenceClassification.
        labels: sequence of str.
        vocab_file: str, becomes an asset.
        do_lower_case: bool.
        max_seq_length: int; longer texts are cut as in training, shorter ones are
            padded to the longest of their batch only.
    """

    SIGNATURES = ("serving_default", "pair", "ids")

    def __init__(self, model, labels, vocab_file, do_lower_case, max_seq_length):
        super().__init__(model, vocab_file, do_lower_case, max_seq_length)
        self.labels = tf.constant(list(labels), tf.string)

    def outputs(self, logits):
        """dict of what the signatures give for logits, [batch, outputs]."""
        raise NotImplementedError

    def _answer(self, batch):
        return self.outputs(self.model(batch, training=False)["logits"])

    # No autograph: it has nothing to do in these, and takes its time.
    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string, "text")], autograph=False
    )
    def serving_default(self, text):
        ids = self.tokenizer(text)
        return self._answer(self.tokenizer.pack(ids, None, self.max_seq_length))

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, "text"),
            tf.TensorSpec([None], tf.string, "text_pair"),
        ],
        autograph=False,
    )
    def pair(self, text, text_pair):
        ids_a, ids_b = self.tokenizer(text), self.tokenizer(text_pair)
        return self._answer(self.tokenizer.pack(ids_a, ids_b, self.max_seq_length))

    @tf.function(
        input_signature=saved_model.ids_signature(2),
        autograph=False,
    )
    def ids(self, input_ids, input_mask, segment_ids):
        return self._answer(
            {
                "input_ids": input_ids,
                "input_mask": input_mask,
                "segment_ids": segment_ids,
            }
        )

    def differences(self, signatures):
        """Yields how far an export's logits are from the model's and our Python code's.

        Args:
            signatures: those of a SavedModel of this module that was loaded.
        """
        texts = parity.TEXTS
        for text, expected in zip(texts, self._python_logits(texts), strict=True):
            actual = signatures["serving_default"](text=tf.constant([text]))
            yield parity.difference(actual["logits"], [expected])
        for text in texts:
            actual = signatures["pair"](
                text=tf.fill([len(texts)], text), text_pair=tf.constant(texts)
            )
            expected = self._python_logits([text] * len(texts), texts)
            yield parity.difference(actual["logits"], expected)
        yield from parity.differences_of_ids(
            signatures["ids"], self.model, self.max_seq_length
        )

    def _python_logits(self, texts, others=None):
        """The model's, [texts, outputs], without the tokenizer of the graph."""
        examples = [
            classification.InputExample("", text, others and others[i])
            for i, text in enumerate(texts)
        ]
        arrays = features.features_to_arrays(
            examples, (), self.max_seq_length, self._python_tokenizer
        )
        return self.model(arrays, training=False)["logits"].numpy()


class TextClassifier(_TextModel):
    """Gives label and score, [batch], probabilities and logits, [batch, labels]."""

    def outputs(self, logits):
        probabilities = losses.softmax(logits)
        return {
            "label": tf.gather(self.labels, tf.argmax(logits, axis=-1)),
            "score": tf.reduce_max(probabilities, axis=-1),
            "probabilities": probabilities,
            "logits": logits,
        }


class TextTagger(_TextModel):
    """Of several labels: gives labels, the names of all, with probabilities and logits.

    All are [batch, labels]; those of probability 0.5 or more apply.
    """

    def outputs(self, logits):
        rows = tf.shape(logits)[0]
        return {
            "labels": tf.tile(self.labels[tf.newaxis], [rows, 1]),
            "probabilities": losses.sigmoid(logits),
            "logits": logits,
        }


class TextRegressor(_TextModel):
    """Gives value, [batch], a number, and the same as logits, [batch, 1]."""

    def outputs(self, logits):
        return {"value": logits[:, 0], "logits": logits}
