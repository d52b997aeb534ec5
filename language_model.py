"""A pre-trained model that stays loaded: words for masks, scores of texts and pairs.

import language_model

predictor = language_model.load("bert_folder")  # or an output folder of run_pretraining
predictor.fill_mask(["The [MASK] sat."], top_k=2)
# [[{"words": ["cat", "dog"], "probabilities": [0.31, 0.12]}]]
predictor.score(["The cat sat."])
# [{"tokens": [...], "log_probabilities": [...], "pseudo_log_likelihood": -9.1,
#   "pseudo_perplexity": 9.7}]
predictor.next_sentence(["The cat sat."], ["It purred."])  # [0.98]

The score of a masked language model is the pseudo-log-likelihood of Salazar et al. 2020
("Masked Language Model Scoring"): the sum of the log-probabilities of the tokens, each
masked by itself. That of a left-to-right model is the log-likelihood.
"""

import itertools
import math

import numpy as np
import tensorflow as tf

import arguments
import inference
import model_files
import trained_weights
from data import classification, features, filesystem, scoring, tokenization
from metrics import pretraining
from modeling import losses, models

_NAMES = (*features.INPUTS, "masked_lm_positions", "masked_lm_ids")


# What these weights are, to a person.
_HEADS = {
    "cls/predictions/": "masked LM head",
    "cls/seq_relationship/": "next sentence head",
}


class Predictor:
    """Answers for texts, or pairs of texts, in any order and number.

    Args:
        model: models.BertForPretraining.
        tokenizer: tokenization.FullTokenizer.
        max_seq_length: int, tokens of a sequence; longer ones are refused.
        batch_size: int, sequences at a time.
        absent: names of weights that were not trained; what depends on them is refused.
    Attributes:
        on_answers: function of an int, called after so many positions were answered.
    """

    def __init__(self, model, tokenizer, max_seq_length, batch_size=16, absent=()):
        self.tokenizer, self.max_seq_length = tokenizer, max_seq_length
        self.config = model.config
        self.on_answers = lambda _: None
        self._batch_size = arguments.whole("batch_size", batch_size)
        self._absent = absent
        # A model may have room for more entries than the vocabulary has.
        words = map(tokenizer.inv_vocab.get, range(model.config.vocab_size))
        self._words = np.array([word or "[UNK]" for word in words], object)

        def best(batch, top_k):
            logits = model(batch, training=False)["masked_lm_logits"]
            return tf.math.top_k(losses.softmax(logits), top_k)

        def log_probabilities(batch):
            outputs = model(batch, training=False)
            return (-losses.masked_lm_losses(outputs, batch),)

        def is_next(batch):
            logits = model(batch, training=False)["next_sentence_logits"]
            return (losses.softmax(logits)[:, :1],)

        batch = {name: tf.TensorSpec([None, None], tf.int32) for name in _NAMES}
        self._best = _compiled(best, batch, tf.TensorSpec([], tf.int32))
        self._log_probabilities = _compiled(log_probabilities, batch)
        self._is_next = _compiled(is_next, batch)

    @property
    def is_left_to_right(self):
        """Whether the model predicts each token from those before it."""
        return self.config.visibility == "left_to_right"

    def fill_mask(self, texts, pairs=None, top_k=5):
        """The likeliest entries of the vocabulary for each [MASK].

        Args:
            texts: list of str.
            pairs: list of str, the second texts, None where there is none; or None.
            top_k: int, entries for each [MASK].
        Returns:
            list of list of dict, for each [MASK] of a text, in order: words and their
            probabilities, the likeliest first.
        Raises:
            ValueError: they are not lists of str of the same length, a text has no
                [MASK] or is too long, the model has no masked LM head or is a
                left-to-right one, or top_k is not of its vocabulary.
        """
        check_fills_masks(self.config)
        self._need("cls/predictions/")
        most = self.config.vocab_size
        if not arguments.is_whole(top_k) or not 1 <= top_k <= most:
            raise ValueError(
                f"top_k must be an int from 1 to {most}, the entries of the model's "
                f"vocabulary, got {top_k!r}"
            )
        top_k = tf.constant(int(top_k))
        rows = self._rows(scoring.of_masks, texts, pairs)
        answers = self._answers(
            lambda batch: self._best(batch, top_k), rows, lambda row: [row]
        )
        return [
            [
                {
                    "words": self._words[word_ids].tolist(),
                    "probabilities": probabilities.tolist(),
                }
                for probabilities, word_ids in of_text
            ]
            for of_text in answers
        ]

    def score(self, texts, pairs=None, within_words=False):
        """How likely the model finds each text, or pair, and each of its tokens.

        Args:
            texts, pairs: as for `fill_mask`.
            within_words: bool, see `scoring.mask_each`.
        Returns:
            list of dict: tokens, their log_probabilities, pseudo_log_likelihood and
            pseudo_perplexity, see `perplexity`; of a left-to-right model log_likelihood
            and perplexity. [CLS] and [SEP] are seen, but not scored.
        Raises:
            ValueError: they are not lists of str of the same length, a text has a
                [MASK] or is too long, the model has no masked LM head, or is a
                left-to-right one and told `within_words`.
        """
        self._need("cls/predictions/")
        if within_words and self.is_left_to_right:
            raise ValueError(
                "a left-to-right model never sees the later pieces of a word; score "
                "without within_words"
            )

        def ask(row):
            if self.is_left_to_right:
                return [scoring.ask_before(row)]
            return scoring.mask_each(row, self.tokenizer, within_words)

        rows = self._rows(scoring.of_tokens, texts, pairs)
        answers = self._answers(self._log_probabilities, rows, ask)
        return [
            self._scores(row, [float(score) for (score,) in of_text])
            for row, of_text in zip(rows, answers, strict=True)
        ]

    def _scores(self, row, log_probabilities):
        """What `score` says of a text."""
        total = math.fsum(log_probabilities)
        kind = "" if self.is_left_to_right else "pseudo_"
        return {
            "tokens": self.tokenizer.convert_ids_to_tokens(row.masked_lm_ids),
            "log_probabilities": log_probabilities,
            f"{kind}log_likelihood": total,
            f"{kind}perplexity": perplexity(total, len(log_probabilities)),
        }

    def next_sentence(self, texts, pairs):
        """How probable it is that the second text of each pair follows the first.

        Args:
            texts, pairs: lists of str.
        Returns:
            list of float.
        Raises:
            ValueError: they are not lists of str of the same length, a text is empty,
                they are too long, or the model has no next sentence head.
        """
        self._need("cls/seq_relationship/", "bert/pooler/")
        rows = self._rows(scoring.of_pair, texts, pairs)
        answers = self._answers(self._is_next, rows, lambda row: [row])
        return [float(probability) for [(probability,)] in answers]

    def _need(self, *scopes):
        """Refuses answers that would be those of random weights."""
        missing = [name for name in self._absent if name.startswith(scopes)]
        if missing:
            raise ValueError(
                f"the checkpoint has no trained {_HEADS[scopes[0]]} ({missing[0]} is "
                "missing); give one of a pre-training"
            )

    def _rows(self, read, texts, pairs):
        """list of scoring.Row of texts, or pairs, by a function of `scoring`."""
        rows = []
        for both in arguments.pairs(texts, pairs):
            example = classification.InputExample("", *both)
            try:
                rows.append(read(example, self.max_seq_length, self.tokenizer))
            except ValueError as error:
                raise ValueError(f"text {len(rows)}, counted from 0: {error}") from None
        return rows

    def _answers(self, forward, rows, ask):
        """What the model says at the positions of each row.

        Args:
            forward: function of a batch, giving tensors [batch, positions, ...].
            rows: list of scoring.Row.
            ask: function of a row, giving rows to run one after the other in its place.
        Returns:
            list of list of tuple, the values of the tensors at each position.
        """
        # Sequences of like length share a batch, so that little of it is padding.
        order = sorted(range(len(rows)), key=lambda i: len(rows[i].input_ids))
        asked = ((i, row) for i in order for row in ask(rows[i]))
        answers = [[] for _ in rows]
        while chosen := list(itertools.islice(asked, self._batch_size)):
            batch = scoring.to_batch([row for _, row in chosen])
            tensors = forward({name: tf.constant(batch[name]) for name in _NAMES})
            outputs = zip(*(tensor.numpy() for tensor in tensors), strict=True)
            for (i, row), values in zip(chosen, outputs, strict=True):
                at_positions = list(zip(*values, strict=True))
                answers[i] += at_positions[: len(row.masked_lm_positions)]
            self.on_answers(sum(len(row.masked_lm_positions) for _, row in chosen))
        return answers


def check_fills_masks(config):
    """Refuses a left-to-right model, by its BertConfig."""
    if config.visibility == "left_to_right":
        raise ValueError(
            "a left-to-right model cannot fill a [MASK], as it sees nothing behind it; "
            "give a masked language model"
        )


def _compiled(function, *signature):
    # No autograph, which would take a third of the time to trace: nothing needs it.
    return tf.function(function, input_signature=signature, autograph=False)


def perplexity(log_likelihood, num_tokens):
    """exp(-log_likelihood / num_tokens), of one text or, with sums, of many.

    Returns:
        float, or None if there are no tokens.
    """
    if not num_tokens:
        return None
    return pretraining.perplexity(-log_likelihood / num_tokens)


def load(
    model_path,
    vocab_file=None,
    bert_config_file=None,
    do_lower_case=True,
    max_seq_length=None,
    batch_size=16,
):
    """The Predictor of a pre-trained model.

    Args:
        model_path: str, a TF1 checkpoint, a Hugging Face folder or the output folder of
            run_pretraining.py; see `checkpoint.locate`.
        vocab_file, bert_config_file: str; default: those beside the weights.
        do_lower_case: bool, True for uncased models.
        max_seq_length: int, tokens of a sequence; default: the positions of the model.
        batch_size: int, sequences at a time.
    Raises:
        ValueError: there is no config or vocabulary, or one does not fit the weights,
            or a number is no length, or no number of sequences.
    """
    model_path = arguments.path("model_path", model_path)
    model_files.check_case(do_lower_case, model_path)
    config = model_files.read_config(bert_config_file, model_path)
    vocab_file = model_files.find_vocab(vocab_file, model_path)
    length = config.max_position_embeddings
    if max_seq_length is not None:
        length = arguments.whole("max_seq_length", max_seq_length, 3)
    model_files.check(config, length, vocab_file)
    tokenizer = tokenization.FullTokenizer(vocab_file, do_lower_case)
    with inference.models_in("float32"):
        model = models.BertForPretraining(config)
    absent = trained_weights.load(model, model_path).fresh
    run = model_files.find(None, model_files.folder_of(model_path), "model.json")
    if run and not filesystem.read_json(run).get("next_sentence_loss", True):
        absent = [*absent, "cls/seq_relationship/*"]  # there, as it was at the start
    return Predictor(model, tokenizer, length, batch_size, absent)
