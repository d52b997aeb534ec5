"""SavedModels with the signatures of exports and answers that tests can foretell."""

import tensorflow as tf

# What someone could write to get markup or code into a page, or to break its layout.
HOSTILE = (
    "<script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'>",
    "\"quotes\" & 'apostrophes' &lt;",
    "\u202eright to left\u202c שלום عالم",
    "👩‍🚀 e\u0301 👋🏽 \U0001f1eb\U0001f1f7",
    "long" * 60,
    "{{7 * 7}} ${window.pwned = 1} javascript:window.pwned = 1",
    " spaces  and\ttabs ",
    "ninth",
    "tenth",
    "eleventh",
    "none",
)
SHARES = [0.3, 0.15, 0.6, 0.05, 0.5, 0.2, 0.02, 0.01, 0.1, 0.04, 0.9, 0.0]
MAX_BODY_BYTES = 200_000  # of the server of these models
WORDS = ("sat", HOSTILE[1], "##ting")
_TEXT = [tf.TensorSpec([None], tf.string, "text")]
_PAIR = [*_TEXT, tf.TensorSpec([None], tf.string, "text_pair")]


def _signature(*specs):
    return tf.function(input_signature=specs, autograph=False)


def _shares(text, first, second):
    """One list of shares for texts without "!", another for those with it."""
    is_loud = tf.strings.regex_full_match(text, "(?s).*!.*")[:, tf.newaxis]
    return tf.where(is_loud, tf.constant([second]), tf.constant([first]))


def _names(names, text):
    return tf.tile([names], [tf.size(text), 1])


class Labels(tf.Module):
    """Of several labels; "!" in a text makes none of them likely."""

    @_signature(*_TEXT)
    def serving_default(self, text):
        shares = _shares(text, SHARES, [0.1] * len(SHARES))
        return {"labels": _names(HOSTILE, text), "probabilities": shares}


class Class(tf.Module):
    """Of one label, with or without a second text; refuses texts with "refuse"."""

    names = HOSTILE[:4]
    shares = ([0.2, 0.5, 0.1, 0.2], [0.1, 0.2, 0.6, 0.1])

    def _outputs(self, text):
        is_bad = tf.strings.regex_full_match(text, "(?s).*refuse.*")
        check = tf.debugging.assert_equal(is_bad, False, f"refused: {HOSTILE[0]}")
        with tf.control_dependencies([check]):
            shares = _shares(text, *self.shares)
        label = tf.gather(tf.constant(self.names), tf.argmax(shares, axis=1))
        return {"label": label, "probabilities": shares}

    @_signature(*_TEXT)
    def serving_default(self, text):
        return self._outputs(text)

    @_signature(*_PAIR)
    def pair(self, text, text_pair):
        return self._outputs(tf.strings.join([text, text_pair]))


class NamedClass(Class):
    """And the names of all labels, by Classify."""

    @_signature(tf.TensorSpec([None], tf.string, "inputs"))
    def classify(self, inputs):
        feature = tf.io.FixedLenFeature([], tf.string, "")
        columns = dict.fromkeys(("text", "text_pair"), feature)
        columns = tf.io.parse_example(inputs, columns)
        scores = self.pair(**columns)["probabilities"]
        return {"classes": _names(self.names, inputs), "scores": scores}


class Number(tf.Module):
    """A third of the bytes of a text and its second text."""

    @_signature(*_TEXT)
    def serving_default(self, text):
        value = tf.cast(tf.strings.length(text), tf.float32) / 3
        return {"value": value, "logits": value[:, tf.newaxis]}

    @_signature(*_PAIR)
    def pair(self, text, text_pair):
        return self.serving_default(tf.strings.join([text, text_pair]))


class Answers(tf.Module):
    """The answer is where the question's very words stand in the context."""

    @_signature(
        tf.TensorSpec([None], tf.string, "question"),
        tf.TensorSpec([None], tf.string, "context"),
    )
    def serving_default(self, question, context):
        before = tf.strings.split(context, question[0])  # of the only row
        is_found = before.row_lengths() > 1
        first = before[:, :1].flat_values
        start = tf.strings.length(first, unit="UTF8_CHAR")
        end = start + tf.strings.length(question, unit="UTF8_CHAR")
        return {
            "answer": tf.where(is_found, question, ""),
            "start": tf.where(is_found, start, -1),
            "end": tf.where(is_found, end, -1),
            "probability": tf.fill(tf.shape(start), 0.875),
        }


class Tags(tf.Module):
    """Capital letters begin a name, small ones after "v" go on; numbers are markup."""

    @_signature(tf.TensorSpec([None, None], tf.string, "words"))
    def serving_default(self, words):
        tags = tf.fill(tf.shape(words), "O")
        for pattern, tag in (
            ("[A-ZÉ].*", "B-PER"),
            ("v.*", "I-PER"),
            ("[0-9].*", f"B-{HOSTILE[0]}"),
        ):
            tags = tf.where(tf.strings.regex_full_match(words, pattern), tag, tags)
        return {"tags": tags, "scores": tf.fill(tf.shape(words), 0.75)}

    @_signature(*_TEXT)
    def text(self, text):
        words = tf.strings.split(text).to_tensor("")
        return {"words": words, **self.serving_default(words)}


class Choices(tf.Module):
    """The choice after the first is the best."""

    @_signature(
        tf.TensorSpec([None], tf.string, "context"),
        tf.TensorSpec([None, None], tf.string, "choices"),
    )
    def serving_default(self, context, choices):
        shape = tf.shape(choices)
        shares = tf.one_hot(tf.ones_like(context, tf.int32), shape[1], 0.7, 0.15)
        return {
            "choice": choices[:, 1],
            "label": tf.ones_like(context, tf.int32),
            "probabilities": shares,
        }


class Masks(tf.Module):
    """The same words for each of the first three masks."""

    @_signature(*_TEXT)
    def serving_default(self, text):
        masks = tf.strings.split(text, "[MASK]").row_lengths() - 1
        shape = [tf.size(text), tf.minimum(tf.cast(tf.reduce_max(masks), tf.int32), 3)]
        shape = tf.concat([shape, [1]], axis=0)
        return {
            "words": tf.tile(tf.constant([[WORDS]]), shape),
            "probabilities": tf.tile(tf.constant([[[0.5, 0.3, 0.1]]]), shape),
        }


class Vectors(tf.Module):
    """How many of the letters a and b a text has."""

    @_signature(*_TEXT)
    def serving_default(self, text):
        counts = [
            tf.strings.split(text, letter).row_lengths() - 1 for letter in ("a", "b")
        ]
        return {"vectors": tf.cast(tf.stack(counts, axis=1), tf.float32)}


class Unknown(tf.Module):
    @_signature(tf.TensorSpec([None, None], tf.int32, "ids"))
    def serving_default(self, ids):
        return {"logits": tf.cast(ids, tf.float32)}


MODELS = {
    "labels": Labels,
    "class": NamedClass,
    "nameless": Class,
    "number": Number,
    "answers": Answers,
    "tags": Tags,
    "choices": Choices,
    "masks": Masks,
    "vectors": Vectors,
    "unknown": Unknown,
}


def export(folder):
    """Writes all; returns dict of name → path."""
    paths = {}
    for name, kind in MODELS.items():
        paths[name] = str(folder / name / "1")
        model = kind()
        found = ("serving_default", "pair", "classify", "text")
        found = {n: getattr(model, n) for n in found if hasattr(model, n)}
        tf.saved_model.save(model, paths[name], signatures=found)
    updater = tf.compat.v1.saved_model.signature_def_utils.MethodNameUpdater(
        paths["class"]
    )
    updater.replace_method_name("classify", "tensorflow/serving/classify", ["serve"])
    updater.save()
    return paths
