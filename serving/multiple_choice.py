"""A model that chooses among texts, of a context or of the columns of a task."""

import tensorflow as tf

from data import multiple_choice
from modeling import losses
from serving import parity, saved_model


def _columns(*texts, choices):
    """Strings of these names, one text a row, and choices, as many in each row."""
    spec = tf.TensorSpec([None, None], tf.string, choices)
    return [*saved_model.texts_signature(*texts), spec]


class TextChooser(saved_model.TextServer):
    """Signatures of a model that gives a logit for each choice.

    serving_default: context, string [batch], and choices, string [batch, choices]; ""
    is padding, for rows of fewer choices.
    ids: input_ids, input_mask and segment_ids, int32 [batch, choices, seq_length].

    Both give label, int32 [batch], the number of the best choice from 0; score, its
    probability; probabilities and logits, [batch, choices], at padding 0 and the
    lowest number; and serving_default also choice, string [batch], the best one.

    Args:
        model: models.BertForMultipleChoice.
        vocab_file: str, becomes an asset.
        do_lower_case: bool.
        max_seq_length: int, of a choice with its context; longer ones are cut as in
            training, shorter ones are padded to the longest of their batch only.
    """

    SIGNATURES = ("serving_default", "ids")
    RANK = 3

    # No autograph: it has nothing to do in these, and takes its time.
    @tf.function(
        input_signature=_columns("context", choices="choices"), autograph=False
    )
    def serving_default(self, context, choices):
        context, choices = _equally_many(context, choices)
        return self._choose(context, choices, choices)

    def answer(self, batch):
        return self._outputs(self.forward(batch)["logits"])

    def _outputs(self, logits):
        probabilities = losses.softmax(logits)
        return {
            "label": tf.argmax(logits, axis=-1, output_type=tf.int32),
            "score": tf.reduce_max(probabilities, axis=-1),
            "probabilities": probabilities,
            "logits": logits,
        }

    def _choose(self, first, second, choices):
        """The outputs for texts.

        Args:
            first: string [batch], the first text of each pair.
            second: string [batch, choices], the second texts.
            choices: string [batch, choices], as the client gave them.
        """
        with tf.device("CPU"):  # As the tokenizer.
            shape = tf.shape(choices)
            row = tf.repeat(tf.range(shape[0]), shape[1])
            ids_a = tf.gather(self.tokenizer(first), row)
            ids_b = self.tokenizer(tf.reshape(second, [-1]))
            batch = self.tokenizer.pack(ids_a, ids_b, self.max_seq_length)
            # Not -1 for the length: nothing has any shape.
            shape = tf.concat([shape, tf.shape(batch["input_ids"])[1:]], axis=0)
            batch = {name: tf.reshape(ids, shape) for name, ids in batch.items()}
        logits = self.forward(batch)["logits"]
        outputs = self._outputs(tf.where(choices == "", logits.dtype.min, logits))
        choice = tf.gather(choices, outputs["label"], batch_dims=1)
        return {"choice": choice, **outputs}

    def differences(self, signatures):
        """Yields how far an export's logits are from the model's and our Python code's.

        Args:
            signatures: those of a SavedModel of this module that was loaded.
        """
        choices = [text for text in parity.TEXTS if text]
        pairs = [[(text, choice) for choice in choices] for text in parity.TEXTS]
        expected = self._python_logits(pairs)
        actual = signatures["serving_default"](
            context=tf.constant(parity.TEXTS),
            choices=tf.constant([choices] * len(pairs)),
        )
        yield parity.difference(actual["logits"], expected)
        for text, row in zip(parity.TEXTS, expected, strict=True):
            actual = signatures["serving_default"](
                context=tf.constant([text]), choices=tf.constant([[*choices[:2], ""]])
            )
            yield parity.difference(actual["logits"][:, :2], [row[:2]])
        for name in sorted(set(self.SIGNATURES) & set(multiple_choice.TASKS)):
            yield self._difference_of_columns(signatures[name], name)
        yield from self._differences_of_ids(signatures, (2,))

    def _difference_of_columns(self, signature, name):
        """Of a signature that takes the columns of a task."""
        task = multiple_choice.find_task(name)
        # What ends a sentence, and what does not.
        texts = [*parity.TEXTS, 'She said "yes."', "Is it?'\"", "a.\n", "'", "", "b\n!"]
        pairs = zip(texts, reversed(texts), strict=True)
        rows = [dict(zip(task.context, pair, strict=True)) for pair in pairs]
        choices = [text for text in texts if text]
        actual = signature(
            **{c: tf.constant([row[c] for row in rows]) for c in task.context},
            **{f"{task.choices}s": tf.constant([choices] * len(rows))},
        )
        pairs = [[task.make_pair(row, choice) for choice in choices] for row in rows]
        return parity.difference(actual["logits"], self._python_logits(pairs))

    def _python_logits(self, pairs):
        """[rows, choices], without the tokenizer of the graph.

        Args:
            pairs: a list of pairs of texts for each row.
        """
        examples = [multiple_choice.ChoiceExample("", tuple(row)) for row in pairs]
        arrays = multiple_choice.to_arrays(
            examples, self.max_seq_length, self._python_tokenizer
        )
        return self.model(arrays, training=False)["logits"].numpy()


class SwagChooser(TextChooser):
    """Takes the columns of SWAG too.

    swag: sent1 and sent2, string [batch], and endings, string [batch, choices].
    """

    SIGNATURES = (*TextChooser.SIGNATURES, "swag")

    @tf.function(
        input_signature=_columns("sent1", "sent2", choices="endings"),
        autograph=False,
    )
    def swag(self, sent1, sent2, endings):
        sent1, sent2, endings = _equally_many(sent1, sent2, endings)
        with tf.device("CPU"):
            second = tf.expand_dims(tf.strings.join([sent2, " "]), 1) + endings
        return self._choose(sent1, second, endings)


class ArctChooser(TextChooser):
    """Takes the columns of ARCT too.

    arct: claim and reason, string [batch], and warrants, string [batch, choices].
    """

    SIGNATURES = (*TextChooser.SIGNATURES, "arct")

    @tf.function(
        input_signature=_columns("claim", "reason", choices="warrants"),
        autograph=False,
    )
    def arct(self, claim, reason, warrants):
        claim, reason, warrants = _equally_many(claim, reason, warrants)
        with tf.device("CPU"):
            first = tf.strings.join([_sentence(claim), _sentence(reason)], " ")
        return self._choose(first, warrants, warrants)


def _equally_many(*columns):
    """The same tensors; fails if they do not have a row for every example."""
    with tf.device("CPU"):
        rows = [tf.shape(column)[0] for column in columns]
        checks = [
            tf.debugging.assert_equal(
                count, rows[-1], "every text needs one row of choices, and no more"
            )
            for count in rows[:-1]
        ]
        with tf.control_dependencies(checks):
            return [tf.identity(column) for column in columns]


def _sentence(text):
    """As in data/multiple_choice.py: with a full stop if it has no mark at its end."""
    has_mark = tf.strings.regex_full_match(text, r"""(?s).*[.!?]["']*""")
    return tf.where(has_mark, text, tf.strings.join([text, "."]))
