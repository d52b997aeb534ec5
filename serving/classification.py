"""Classifiers of raw text: a fine-tuned model and its tokenizer in one module."""

import tensorflow as tf

from modeling import losses
from serving import parity, saved_model, text_pairs

_EXAMPLES = saved_model.texts_signature("inputs")


class _Classifier(text_pairs.TextPairServer):
    """Its signatures, and one more for TensorFlow Serving's Classify.

    classify: inputs, string [batch], tf.train.Examples with the features text and, if
        it is a pair, text_pair. Gives classes, string, and scores, float32, [batch,
        labels], of all labels in the order of the model's.

    Args:
        model: models.BertForSequenceClassification.
        labels: sequence of str.
        vocab_file, do_lower_case, max_seq_length: as of saved_model.TextServer.
    """

    SIGNATURES = (*text_pairs.TextPairServer.SIGNATURES, "classify")
    METHODS = {"classify": saved_model.CLASSIFY}

    def __init__(self, model, labels, vocab_file, do_lower_case, max_seq_length):
        super().__init__(model, vocab_file, do_lower_case, max_seq_length)
        self.label_names = tuple(labels)
        self.labels = tf.constant(self.label_names, tf.string)

    # No autograph: it has nothing to do in these, and takes its time.
    @tf.function(input_signature=_EXAMPLES, autograph=False)
    def classify(self, inputs):
        scores = self._of_examples(inputs)["probabilities"]
        return {"classes": self._all_labels(scores), "scores": scores}

    def _all_labels(self, scores):
        """string [batch, labels]."""
        return tf.tile(self.labels[tf.newaxis], [tf.shape(scores)[0], 1])

    def _differences_of_examples(self, actual, results):
        scores = self.outputs(results)["probabilities"]
        yield parity.difference(actual["scores"], scores)
        yield parity.mismatch(actual["classes"], self._all_labels(scores))


class TextClassifier(_Classifier):
    """Gives label and score, [batch], probabilities and logits, [batch, labels]."""

    def outputs(self, results):
        probabilities = losses.softmax(results["logits"])
        return {
            "label": tf.gather(self.labels, tf.argmax(results["logits"], axis=-1)),
            "score": tf.reduce_max(probabilities, axis=-1),
            "probabilities": probabilities,
            **results,
        }


class MultiLabelTextClassifier(_Classifier):
    """Of several labels: gives labels, the names of all, with probabilities and logits.

    All are [batch, labels]; those of probability 0.5 or more apply.
    """

    def outputs(self, results):
        return {
            "labels": self._all_labels(results["logits"]),
            "probabilities": losses.sigmoid(results["logits"]),
            **results,
        }


class TextRegressor(text_pairs.TextPairServer):
    """Gives value, [batch], a number, and the same as logits, [batch, 1].

    regress, for TensorFlow Serving's Regress: inputs, string [batch], as of a
        classifier's `classify`. Gives outputs, float32 [batch].

    Args:
        model: models.BertForSequenceClassification with one output.
        others: as of saved_model.TextServer.
    """

    SIGNATURES = (*text_pairs.TextPairServer.SIGNATURES, "regress")
    METHODS = {"regress": saved_model.REGRESS}

    def outputs(self, results):
        return {"value": results["logits"][:, 0], **results}

    @tf.function(input_signature=_EXAMPLES, autograph=False)
    def regress(self, inputs):
        return {"outputs": self._of_examples(inputs)["value"]}

    def _differences_of_examples(self, actual, results):
        yield parity.difference(actual["outputs"], results["logits"][:, 0])
