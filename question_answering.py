"""A fine-tuned model that stays loaded and answers questions about texts.

import question_answering

predictor = question_answering.load("squad")  # an output folder of run_squad.py
predictor.predict(["Who wrote it?"], ["Ada wrote the first program."])
"""

import dataclasses

import tensorflow as tf
from absl import logging

import arguments
import inference
import runs
import squad_results
from data import squad, squad_answers, squad_windows
from modeling import models


class Predictor:
    """Answers questions about texts of any length.

    Args:
        model: models.BertForQuestionAnswering.
        tokenizer: tokenization.FullTokenizer.
        sizes: squad_windows.WindowSizes.
        options: squad_answers.AnswerOptions.
        batch_size: int, windows at a time.
    """

    def __init__(self, model, tokenizer, sizes, options, batch_size=16):
        self.model, self.tokenizer = model, tokenizer
        self.sizes, self.batch_size = sizes, batch_size
        # An answer must not depend on what else is in its batch.
        self.options = dataclasses.replace(options, drop_padding=True)

        def forward(batch):
            """The logits of start and end of each token, [batch, seq_length, 2]."""
            outputs = model(batch, training=False)
            return tf.stack([outputs["start_logits"], outputs["end_logits"]], axis=-1)

        self._logits = inference.Sequences(forward, batch_size)

    def predict(self, questions, contexts):
        """The answer to each question from the text at the same place.

        Args:
            questions: list of str.
            contexts: list of str.
        Returns:
            list of dict: text ("" for no answer), start and end (which characters of
            the context the text is, or None), score, probability, null_score and
            candidates, the best answers in the same form.
        Raises:
            ValueError: they are not two lists of str of the same length.
        """
        questions = arguments.texts("questions", questions)
        contexts = arguments.texts("contexts", contexts)
        if len(questions) != len(contexts):
            raise ValueError(
                f"every question needs a text, got {len(questions)} questions and "
                f"{len(contexts)} texts"
            )
        # Texts that several questions share are tokenized once.
        paragraphs = {text: squad.Paragraph.from_text(text) for text in contexts}
        pairs = enumerate(zip(questions, contexts, strict=True))
        examples = [
            squad.SquadExample(str(number), question, paragraphs[text])
            for number, (question, text) in pairs
        ]
        windows = list(squad_windows.make_windows(examples, self.tokenizer, self.sizes))
        logits = (pair.T for pair in self._logits([_sequence(w) for w in windows]))
        answers = squad_answers.find_answers(
            examples, windows, logits, self.tokenizer, self.options
        )
        return [answer.to_dict() for answer in answers]


def _sequence(window):
    """(ids, segments) of a window."""
    ids, segments = window.input_ids, [0] * window.doc_offset
    return ids, segments + [1] * (len(ids) - len(segments))


def load(model_dir, threshold=None, precision="float32"):
    """The Predictor of an output folder of run_squad.py, with the run's settings.

    Args:
        model_dir: str.
        threshold: float, of no answer; default: the one that was found, or else the
            one that the run was given.
        precision: str, of the model, see `inference.models_in`.
    Raises:
        ValueError: the folder is not one of run_squad.py, or holds no weights, or the
            threshold is no number.
    """
    if threshold is not None:
        threshold = arguments.number("threshold", threshold)
    model_dir = arguments.path("model_dir", model_dir)
    run = runs.read(model_dir, "run_squad", precision)
    model, step = run.load(models.BertForQuestionAnswering)
    settings = run.settings
    if threshold is None:
        threshold = settings["null_score_diff_threshold"]
        if squad_results.has_threshold(model_dir):
            try:
                threshold = squad_results.read_threshold(model_dir, step)
            except ValueError as error:
                logging.warning("%s; no answer is given above %g", error, threshold)
    return Predictor(
        model,
        run.tokenizer(),
        squad_windows.WindowSizes(
            settings["max_seq_length"],
            settings["doc_stride"],
            settings["max_query_length"],
        ),
        squad_answers.AnswerOptions(
            settings["n_best_size"],
            settings["max_answer_length"],
            settings["version_2_with_negative"],
            threshold,
        ),
    )
