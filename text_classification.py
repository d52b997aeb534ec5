"""A fine-tuned classifier that stays loaded.

import text_classification

predictor = text_classification.load("my_run")  # an output folder of run_classifier.py
predictor.predict(["Where is my card?"])  # [{"label": "card_arrival", "score": ...}]
predictor.predict(["A man sleeps."], ["A man is awake."])  # pairs
"""

import dataclasses
import os

import numpy as np

import classifier_tasks
import inference
import run_directory
from data import classification, documents, features, targets, tokenization
from modeling import config as config_lib
from modeling import models


@dataclasses.dataclass(frozen=True)
class Run:
    """What an output folder of run_classifier.py says about its model.

    Attributes:
        model_dir: str, the folder.
        config: BertConfig.
        labels: tuple of str; empty if the answer is a number.
        kind: targets.Kind.
        do_lower_case: bool.
        max_seq_length: int.
        document_stride: int, 0 if longer texts are cut.
        vocab_file: str.
        init_checkpoint: str or None, the weights if the run has not trained.
    """

    model_dir: str
    config: config_lib.BertConfig
    labels: tuple[str, ...]
    kind: targets.Kind
    do_lower_case: bool
    max_seq_length: int
    document_stride: int
    vocab_file: str
    init_checkpoint: str | None

    @inference.float32_models()
    def load_model(self):
        """The models.BertForSequenceClassification of the run.

        Raises:
            ValueError: there are no weights, or they lack the head.
        """
        model = models.BertForSequenceClassification(
            self.config, classifier_tasks.num_outputs(self.labels)
        )
        inference.load_trained(
            model, self.model_dir, self.init_checkpoint, complete=True
        )
        return model


def read_run(model_dir):
    """The Run of an output folder of run_classifier.py.

    Raises:
        ValueError: the folder is not one of run_classifier.py.
    """
    identity, settings = run_directory.read(model_dir, "run_classifier")
    return Run(
        str(model_dir),
        config_lib.BertConfig.from_dict(identity["config"]),
        tuple(identity["labels"]),
        targets.Kind(identity["label_type"]),
        identity["do_lower_case"],
        settings["max_seq_length"],
        settings.get("document_stride", 0),
        os.path.join(model_dir, "vocab.txt"),
        run_directory.weights_of_untrained(settings),
    )


class Predictor:
    """Classifies texts, or pairs of texts, of any length.

    Args:
        model: models.BertForSequenceClassification.
        run: Run.
        batch_size: int, sequences at a time.
    """

    def __init__(self, model, run, batch_size=16):
        self.run = run
        self.tokenizer = tokenization.FullTokenizer(run.vocab_file, run.do_lower_case)
        self._logits = inference.Sequences(
            lambda batch: model(batch, training=False)["logits"], batch_size
        )

    def predict(self, texts, pairs=None):
        """What the model says of each text or, with two lists, of each pair of texts.

        Args:
            texts: list of str.
            pairs: list of str, the second texts; None if there are none.
        Returns:
            list of dict, see `classifier_tasks.answers`: label, score and
            probabilities; value if the model gives a number.
        Raises:
            ValueError: they are not lists of the same length.
        """
        logits = self.logits(texts, pairs)
        return classifier_tasks.answers(logits, self.run.labels, self.run.kind)

    def logits(self, texts, pairs=None):
        """float32, [texts, outputs]; arguments as for `predict`."""
        if isinstance(texts, str) or isinstance(pairs, str):
            raise ValueError("expected a list of texts, not one text")
        if pairs is not None and len(pairs) != len(texts):
            raise ValueError(
                f"every text of a pair needs the other, got {len(texts)} and "
                f"{len(pairs)} texts"
            )
        pairs = pairs or [None] * len(texts)
        rows, owners = [], []
        for number, (text, other) in enumerate(zip(texts, pairs, strict=True)):
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
        if not self.run.document_stride or other:
            example = classification.InputExample("", text, other)
            return [features.example_ids(example, length, self.tokenizer)]
        ids = self.tokenizer.encode(text)
        windows = documents.cut(ids, length - 2, self.run.document_stride)
        return [
            features.join_segments(window, [], length, self.tokenizer)
            for window in windows
        ]


def load(model_dir, batch_size=16):
    """The Predictor of an output folder of run_classifier.py, with the run's settings.

    Raises:
        ValueError: the folder is not one of run_classifier.py, or holds no weights.
    """
    run = read_run(model_dir)
    return Predictor(run.load_model(), run, batch_size)
