"""What serves a model of one text or two, whatever it gives for them."""

import tensorflow as tf

from data import classification, features
from serving import parity, saved_model


class TextPairServer(saved_model.TextServer):
    """Signatures of a model of texts.

    serving_default: text, string [batch].
    pair: text and text_pair, string [batch]; where the second is "", there is none.
    ids: input_ids, input_mask and segment_ids, int32 [batch, seq_length].

    Longer texts are cut as in training, shorter ones are padded to the longest of their
    batch only. Arguments as of saved_model.TextServer.
    """

    SIGNATURES = ("serving_default", "pair", "ids")

    def outputs(self, results):
        """dict of what the signatures give for what `run` gives."""
        return results

    def answer(self, batch):
        return self.outputs(self.forward(batch))

    # No autograph: it has nothing to do in these, and takes its time.
    @tf.function(input_signature=saved_model.texts_signature("text"), autograph=False)
    def serving_default(self, text):
        ids = self.tokenizer(text)
        return self.answer(self.tokenizer.pack(ids, None, self.max_seq_length))

    @tf.function(
        input_signature=saved_model.texts_signature("text", "text_pair"),
        autograph=False,
    )
    def pair(self, text, text_pair):
        ids_a, ids_b = self.tokenizer(text), self.tokenizer(text_pair)
        return self.answer(self.tokenizer.pack(ids_a, ids_b, self.max_seq_length))

    def _of_examples(self, inputs):
        """The outputs for serialized tf.train.Examples, string [batch]."""
        with tf.device("CPU"):
            columns = tf.io.parse_example(
                inputs,
                {
                    "text": tf.io.FixedLenFeature([], tf.string),
                    "text_pair": tf.io.FixedLenFeature([], tf.string, ""),
                },
            )
        return self.pair(columns["text"], columns["text_pair"])

    def differences(self, signatures):
        """Yields how far an export is from the model in memory and our Python code.

        Args:
            signatures: those of a SavedModel of this module that was loaded.
        """
        texts = parity.TEXTS
        expected = self._python_results(texts)
        for row, text in enumerate(texts):
            actual = signatures["serving_default"](text=tf.constant([text]))
            alone = {name: values[row : row + 1] for name, values in expected.items()}
            yield from parity.differences(actual, alone)
        for text in texts:
            pairs = {"text": [text] * len(texts), "text_pair": texts}
            columns = {name: tf.constant(column) for name, column in pairs.items()}
            expected = self._python_results(*pairs.values())
            yield from parity.differences(signatures["pair"](**columns), expected)
            if self.METHODS:
                (name,) = self.METHODS
                examples = _serialized_examples(*pairs.values())
                actual = signatures[name](inputs=examples)
                yield from self._differences_of_examples(actual, expected)
        yield from self._differences_of_ids(signatures)

    def _differences_of_examples(self, actual, results):
        """Yields how far the signature in METHODS is from what `run` gives."""
        raise NotImplementedError

    def _python_results(self, texts, others=None):
        """What `run` gives, without the tokenizer of the graph."""
        examples = [
            classification.InputExample("", text, others and others[i])
            for i, text in enumerate(texts)
        ]
        arrays = features.examples_to_arrays(
            examples, (), self.max_seq_length, self._python_tokenizer
        )
        return self.run({name: arrays[name] for name in features.INPUTS})


def _serialized_examples(texts, others):
    """string [batch]; an empty second text is left out."""
    examples = []
    for row in zip(texts, others, strict=True):
        example = tf.train.Example()
        for name, text in zip(("text", "text_pair"), row, strict=True):
            if text or name == "text":
                values = example.features.feature[name].bytes_list.value
                values.append(text.encode())
        examples.append(example.SerializeToString())
    return tf.constant(examples)
