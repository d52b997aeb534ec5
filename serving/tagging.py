"""A tagger of words, such as named entities, that takes words or sentences.

S sentences, W words of all sentences, P pieces of all words, V windows.
"""

import re
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from data import features, ner
from modeling import losses
from serving import parity, saved_model

# What `str.split` splits at.
_SPACES = "".join(filter(str.isspace, map(chr, range(0x110000))))

# More of them, from very long sentences, take no more memory.
WINDOWS_AT_ONCE = 32


class _Windows(NamedTuple):
    """Windows that label words.

    Attributes:
        starts, ends: int64 [V], their first pieces, and those after their last.
        row: int32 [W], the window that labels a word, ascending.
        place: int32 [W], where in that window, behind its [CLS], the word begins.
    """

    starts: tf.Tensor
    ends: tf.Tensor
    row: tf.Tensor
    place: tf.Tensor


class WordTagger(saved_model.TextServer):
    """Signatures of a model that gives logits for tokens.

    serving_default: words, string [batch, words]; "" at the end of a row is padding.
    text: text, string [batch]; white space parts the words, as `str.split` does.
    ids: input_ids, input_mask and segment_ids, int32 [batch, seq_length].

    The first two give tags, string, and scores, float32, the tags' probabilities,
    [batch, words], "" and 0 at padding; logits, [batch, words, labels]; and `text` also
    the words. `ids` gives tags, scores and logits of every token, in place of words.

    Words are cut into pieces, and sentences into windows, as in `data/ner.py`. Every
    word has a tag: that of its first piece in the window that shows most around it.

    Args:
        model: models.BertForTokenClassification.
        labels: sequence of str.
        vocab_file: str, becomes an asset.
        do_lower_case: bool.
        max_seq_length: int, of a window; windows are padded to the longest only.
    """

    SIGNATURES = ("serving_default", "text", "ids")

    def __init__(self, model, labels, vocab_file, do_lower_case, max_seq_length):
        super().__init__(model, vocab_file, do_lower_case, max_seq_length)
        self.label_names = tuple(labels)
        self.labels = tf.constant(list(labels), tf.string)
        self._unknown = self._python_tokenizer.vocab["[UNK]"]

    # No autograph: it has nothing to do in these, and takes its time.
    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.string, "words")],
        autograph=False,
    )
    def serving_default(self, words):
        with tf.device("CPU"):
            is_filled = tf.cast(words != "", tf.int32)
            # A word is followed by one that is not "", or it is one.
            is_word = tf.cumsum(is_filled, axis=1, reverse=True) > 0
            lengths = tf.math.count_nonzero(is_word, axis=1)
            ragged = tf.RaggedTensor.from_tensor(words, lengths)
            return self._tag(ragged, is_word)

    @tf.function(input_signature=saved_model.texts_signature("text"), autograph=False)
    def text(self, text):
        with tf.device("CPU"):
            text = tf.strings.regex_replace(text, f"[{re.escape(_SPACES)}]", " ")
            words = tf.strings.split(text)
            is_word = tf.sequence_mask(words.row_lengths())
            return {"words": words.to_tensor(""), **self._tag(words, is_word)}

    def answer(self, batch):
        return self._outputs(self.forward(batch)["logits"], batch["input_mask"] > 0)

    def _outputs(self, logits, is_real):
        """What the signatures give for logits; nothing where not `is_real`."""
        tags = tf.gather(self.labels, tf.argmax(logits, axis=-1))
        scores = tf.reduce_max(losses.softmax(logits), axis=-1)
        return {
            "tags": tf.where(is_real, tags, ""),
            "scores": tf.where(is_real, scores, 0.0),
            "logits": logits,
        }

    def _tag(self, words, is_word):
        """The outputs for words, string [S, (words)], that are where `is_word` says."""
        with tf.device("CPU"):  # As the tokenizer, where the ids come from.
            pieces = self._pieces(words.flat_values)  # [W, (pieces)]
            windows = self._windows(words, pieces)
        logits = self._word_logits(pieces.flat_values, windows)  # [W, labels]
        shape = [*tf.unstack(tf.shape(is_word)), len(self.labels)]
        logits = tf.scatter_nd(tf.where(is_word), logits, tf.cast(shape, tf.int64))
        return self._outputs(logits, is_word)

    def _pieces(self, words):
        """int32 [W, (pieces)]; a word of which none is left is [UNK]."""
        pieces = self.tokenizer(words)
        is_empty = tf.cast(pieces.row_lengths() == 0, tf.int64)
        unknown = tf.fill([tf.reduce_sum(is_empty)], self._unknown)
        unknown = tf.RaggedTensor.from_row_lengths(unknown, is_empty)
        return tf.concat([pieces, unknown], axis=1)

    def _windows(self, words, pieces):
        """Windows as of `ner.document_windows`, of each sentence by itself."""
        room = self.max_seq_length - 2
        word_starts = pieces.row_splits[:-1]  # [W], among all pieces
        splits = tf.gather(pieces.row_splits, words.row_splits)  # [S + 1], likewise
        sizes = splits[1:] - splits[:-1]
        # A sentence has `steps` windows and one more, at even distances.
        surplus = tf.maximum(sizes - room, 0)
        half = max(1, room // 2)
        steps = (surplus + half - 1) // half
        step = tf.ragged.range(steps + 1)  # [S, (windows)]
        sentence, step = step.value_rowids(), step.flat_values

        def place(step):
            """Where a window starts."""
            step *= tf.gather(surplus, sentence)
            return step // tf.maximum(tf.gather(steps, sentence), 1)

        size, first = tf.gather(sizes, sentence), tf.gather(splits, sentence)
        start = place(step)
        end = tf.minimum(start + room, size)
        # The next window shows more around what is behind the middle of the overlap.
        is_last = step == tf.gather(steps, sentence)
        change = tf.where(is_last, size, (end + place(step + 1)) // 2)
        row = tf.searchsorted(first + change, word_starts, side="right")
        used, row = tf.unique(row)  # Others label nothing.
        starts, ends = tf.gather(first + start, used), tf.gather(first + end, used)
        place = tf.cast(word_starts - tf.gather(starts, row), tf.int32)
        return _Windows(starts, ends, row, place + 1)  # 1: [CLS]

    def _word_logits(self, ids, windows):
        """Runs the model over all windows, a few at a time.

        Args:
            ids: int32 [P].
            windows: _Windows.
        Returns:
            float32 [W, labels].
        """
        num_windows = tf.size(windows.starts)

        def score(first, results):
            with tf.device("CPU"):
                last = first + WINDOWS_AT_ONCE
                ranges = tf.ragged.range(
                    windows.starts[first:last], windows.ends[first:last]
                )
                batch = self.tokenizer.pack(
                    tf.gather(ids, ranges), None, self.max_seq_length
                )
                # The words are in the order of the windows.
                low, high = tf.unstack(tf.searchsorted(windows.row, [first, last]))
                row, place = windows.row[low:high] - first, windows.place[low:high]
            logits = self.forward(batch)["logits"]
            logits = tf.gather_nd(logits, tf.stack([row, place], axis=1))
            return last, results.write(first // WINDOWS_AT_ONCE, logits)

        results = tf.TensorArray(
            tf.float32,
            # One for no windows, too: what has no parts cannot be joined.
            size=tf.maximum(1, -(-num_windows // WINDOWS_AT_ONCE)),
            element_shape=[None, len(self.labels)],
            infer_shape=False,
        )
        _, results = tf.while_loop(
            lambda first, _: (first == 0) | (first < num_windows),
            score,
            (0, results),
            parallel_iterations=1,
        )
        return results.concat()

    def differences(self, signatures):
        """Yields how far an export's logits are from the model's and our Python code's.

        Args:
            signatures: those of a SavedModel of this module that was loaded.
        """
        sentences = [text.split() for text in parity.TEXTS]
        # Words without pieces, a word of several, and one of many.
        sentences.append(["", "\u200b", " ", "a b", "\0", "-" * 600, "x"])
        expected = self._python_logits(sentences)
        for words, logits in zip(sentences, expected, strict=True):
            row = tf.reshape(tf.constant(words, tf.string), [1, -1])
            actual = signatures["serving_default"](words=row)
            yield parity.difference(actual["logits"][0], logits)
        actual = signatures["text"](text=tf.constant(parity.TEXTS))["logits"]
        for row, logits in zip(actual, expected[:-1], strict=True):
            yield parity.difference(row[: len(logits)], logits)
        yield from self._differences_of_ids(signatures)

    def _python_logits(self, sentences):
        """[words, labels] of each, without the graph's tokenizer and windows."""
        windows = [
            window
            for words in sentences
            for window in ner.document_windows(
                [words], self.max_seq_length, self._python_tokenizer
            )
        ]
        rows = [(ids, [0] * len(ids)) for ids, _ in windows]
        batch = features.pad(rows, len(rows), self.max_seq_length)
        logits = self.model(batch, training=False)["logits"].numpy()
        row = np.repeat(np.arange(len(rows)), [len(places) for _, places in windows])
        place = np.concatenate([places for _, places in windows])
        ends = np.cumsum([len(words) for words in sentences])
        return np.split(logits[row, place], ends[:-1])
