"""A fine-tuned classifier that stays loaded.

import text_classification

predictor = text_classification.load("my_run")  # an output folder of run_classifier.py
predictor.predict(["Where is my card?"])  # [{"label": "card_arrival", "score": ...}]
predictor.predict(["A man sleeps."], ["A man is awake."])  # pairs
"""

import numpy as np

import arguments
import classifier_tasks
import inference
import runs
from data import classification, documents, features, targets
from modeling import models


def load_model(run):
    """The models.BertForSequenceClassification of a runs.Run of run_classifier.py.

    Raises:
        ValueError: there are no weights, or they lack the head.
    """
    return run.load(
        models.BertForSequenceClassification, classifier_tasks.num_outputs(run.labels)
    )[0]


class Predictor:
    """Classifies texts, or pairs of texts, of any length.

    Args:
        model: models.BertForSequenceClassification.
        run: runs.Run.
        batch_size: int, sequences at a time.
    """

    def __init__(self, model, run, batch_size=16):
        self.run = run
        self._kind = targets.Kind(run.identity["label_type"])
        self._stride = run.settings.get("document_stride")  # 0: longer texts are cut
        self.tokenizer = run.tokenizer()
        self._logits = inference.Sequences(
            lambda batch: model(batch, training=False)["logits"], batch_size
        )

    def predict(self, texts, pairs=None):
        """What the model says of each text or, with two lists, of each pair of texts.

        Args:
            texts: list of str.
            pairs: list of str, the second texts, None or "" where there is none; or
                None.
        Returns:
            list of dict, see `classifier_tasks.answers`: label, score and
            probabilities; value if the model gives a number.
        Raises:
            ValueError: they are not lists of str of the same length.
        """
        logits = self.logits(texts, pairs)
        return classifier_tasks.answers(logits, self.run.labels, self._kind)

    def logits(self, texts, pairs=None):
        """float32, [texts, outputs]; arguments as for `predict`."""
        rows, owners = [], []
        for number, (text, other) in enumerate(arguments.pairs(texts, pairs)):
            windows = self._sequences(text, other)
            rows += windows
            owners += [number] * len(windows)
        if not rows:
            return np.zeros((0, classifier_tasks.num_outputs(self.run.labels)), "f4")
        logits = np.array(self._logits(rows), "f8")
        return documents.mean_of_windows(logits, np.array(owners))

    def _sequences(self, text, other):
        """(ids, segments) of what is read of one text or pair."""
        length = self.run.max_seq_length
        if not self._stride or other:
            example = classification.InputExample("", text, other)
            return [features.example_ids(example, length, self.tokenizer)]
        ids = self.tokenizer.encode(text)
        windows = documents.cut(ids, length - 2, self._stride)
        return [
            features.join_segments(window, [], length, self.tokenizer)
            for window in windows
        ]


def load(model_dir, batch_size=16):
    """The Predictor of an output folder of run_classifier.py, with the run's settings.

    Raises:
        ValueError: the folder is not one of run_classifier.py, or holds no weights, or
            batch_size is no number of sequences.
    """
    run = runs.read(arguments.path("model_dir", model_dir), "run_classifier")
    return Predictor(load_model(run), run, batch_size)
