"""What a masked language model would put for each [MASK] (Devlin et al. 2018, 3.1)."""

import numpy as np
import tensorflow as tf

from data import features, scoring
from modeling import losses
from serving import parity, saved_model

MASK = scoring.MASK


class MaskedWords(saved_model.TextServer):
    """Signatures of a masked language model.

    serving_default: text, string [batch], in which "[MASK]" stands for that token.
    ids: input_ids, input_mask and segment_ids, int32 [batch, seq_length].

    Both give, [batch, masks, top_k], for each [MASK] in the order of the text the
    likeliest entries of the vocabulary: words, string; word_ids, int32; probabilities
    and logits, float32. A row with fewer masks than others has "", 0, 0 and 0 behind
    its own, and a [MASK] that is cut off with the end of a long text has no answer.

    Args:
        model: models.BertForPretraining.
        vocab_file, do_lower_case, max_seq_length: as of saved_model.TextServer.
        top_k: int, entries for each [MASK].
    """

    SIGNATURES = ("serving_default", "ids")
    UNUSED = ("bert/pooler/", "cls/seq_relationship/")

    def __init__(self, model, vocab_file, do_lower_case, max_seq_length, top_k):
        super().__init__(model, vocab_file, do_lower_case, max_seq_length)
        self.top_k = top_k
        self._mask_id = self._python_tokenizer.vocab[MASK]
        # A model may have room for more entries than the vocabulary has.
        words = [self._word(i) for i in range(model.config.vocab_size)]
        with tf.device("CPU"):
            self._words = tf.constant(words)

    def _word(self, word_id):
        return self._python_tokenizer.inv_vocab.get(word_id, "[UNK]")

    # No autograph: it has nothing to do in these, and takes its time.
    @tf.function(input_signature=saved_model.texts_signature("text"), autograph=False)
    def serving_default(self, text):
        with tf.device("CPU"):
            parts = tf.strings.split(text, MASK)  # [N, (parts)]
            ids = self.tokenizer(parts.flat_values)  # [P, (pieces)]
            masks = tf.fill([ids.nrows(), 1], self._mask_id)
            # There is a mask before each part but the first of a text.
            ids = parts.with_flat_values(tf.concat([masks, ids], axis=1))
            ids = ids.merge_dims(-2, -1)[:, 1:]
            batch = self.tokenizer.pack(ids, None, self.max_seq_length)
        return self.answer(batch)

    def run(self, batch):
        """The best for each [MASK] of a batch; `is_mask` says where a row has one."""
        is_mask = (batch["input_ids"] == self._mask_id) & (batch["input_mask"] > 0)
        counts = tf.math.count_nonzero(is_mask, axis=1, dtype=tf.int32)
        most = tf.reduce_max(tf.pad(counts, [[0, 1]]))  # of no texts: 0
        # Where the masks are, in the order of the text, and then other places.
        places = tf.argsort(tf.cast(~is_mask, tf.int32), axis=1, stable=True)
        places = places[:, :most]
        outputs = self.model({**batch, "masked_lm_positions": places}, training=False)
        logits = outputs["masked_lm_logits"]  # [B, masks, vocab_size]
        best, word_ids = tf.math.top_k(logits, self.top_k)
        probabilities = tf.gather(losses.softmax(logits), word_ids, batch_dims=2)
        is_mask = tf.sequence_mask(counts, most)[:, :, tf.newaxis]
        return {
            "word_ids": tf.where(is_mask, word_ids, 0),
            "probabilities": tf.where(is_mask, probabilities, 0.0),
            "logits": tf.where(is_mask, best, 0.0),
            "is_mask": is_mask,
        }

    def numbers(self, batch):
        """Logits, [batch, seq_length, vocab_size], of every position."""
        return {"logits": self.model(batch, training=False)["masked_lm_logits"]}

    def answer(self, batch):
        outputs = dict(self.forward(batch))
        is_mask = outputs.pop("is_mask")
        with tf.device("CPU"):
            words = tf.gather(self._words, outputs["word_ids"])
            return {"words": tf.where(is_mask, words, ""), **outputs}

    def differences(self, signatures):
        """Yields how far an export's answers are from the model's and Python code's.

        Args:
            signatures: those of a SavedModel of this module that was loaded.
        """
        texts = [*parity.TEXTS, MASK, f"{MASK}a {MASK}{MASK} [mask]", f"é {MASK} " * 99]
        for text in texts:
            actual = signatures["serving_default"](text=tf.constant([text]))
            yield from self._differences(actual, self._python_batch([text]))
        actual = signatures["serving_default"](text=tf.constant(texts))
        yield from self._differences(actual, self._python_batch(texts))
        for name, inputs in saved_model.NAMES_OF_IDS.items():
            for batch in parity.random_batches(self.model.config, self.max_seq_length):
                ids = batch["input_ids"].numpy()
                ids[:, ::3] = self._mask_id
                ids[0, 1:] = 0  # fewer masks than others
                batch["input_ids"] = tf.constant(ids)
                named = dict(zip(inputs, batch.values(), strict=True))
                yield from self._differences(signatures[name](**named), batch)

    def _python_batch(self, texts):
        """The batch of texts, without the tokenizer of the graph."""
        tokenizer, rows = self._python_tokenizer, []
        for text in texts:
            ids = scoring.encode(text, tokenizer)
            length = self.max_seq_length
            rows.append(features.join_segments(ids, [], length, tokenizer))
        return features.pad(rows, len(rows), length)

    def _differences(self, actual, batch):
        """Yields how far answers are from what the model in memory says of a batch.

        An equal score decides as well as an equal word: words may tie.
        """
        actual = {name: values.numpy() for name, values in actual.items()}
        every = self.model(batch, training=False)["masked_lm_logits"].numpy()
        is_real = np.asarray(batch["input_mask"]) > 0
        is_mask = (np.asarray(batch["input_ids"]) == self._mask_id) & is_real
        shape = (len(is_mask), is_mask.sum(1).max(), self.top_k)
        yield parity.mismatch(actual["words"].shape, shape)
        for row, places in enumerate(is_mask):
            answer = {name: v[row, : places.sum()] for name, v in actual.items()}
            ids, logits = answer["word_ids"], every[row, places]  # [masks, vocab_size]
            words = np.vectorize(lambda i: self._word(i).encode(), otypes=[object])(ids)
            yield parity.mismatch(answer["words"], words)
            yield parity.difference(
                answer["logits"], -np.sort(-logits)[:, : self.top_k]
            )
            for name, values in (
                ("logits", logits),
                ("probabilities", losses.softmax(logits).numpy()),
            ):
                yield parity.difference(
                    answer[name], np.take_along_axis(values, ids, axis=1)
                )
