"""A fine-tuned model that stays loaded and chooses among texts.

import choosing

predictor = choosing.load("swag_run")  # an output folder of run_swag.py
predictor.predict(["She opens the door."], [["She flies.", "She goes in."]])
# [{"label": 1, "choice": "She goes in.", "score": 0.97, "probabilities": [...]}]

Of a run on SWAG the context is the first sentence, and a choice is the second with an
ending; of one on ARCT they are claim and reason, and a warrant: see `continuations` and
`warrants` in data/multiple_choice.py.
"""

import dataclasses
import os

import numpy as np
import tensorflow as tf

import inference
import run_directory
from data import classification, features, tokenization
from modeling import config as config_lib
from modeling import losses, models


@dataclasses.dataclass(frozen=True)
class Run:
    """What an output folder of run_swag.py says about its model.

    Attributes:
        model_dir: str, the folder.
        config: BertConfig.
        task: str, "swag" or "arct".
        do_lower_case: bool.
        max_seq_length: int, of a choice with its context.
        vocab_file: str.
        init_checkpoint: str or None, the weights if the run has not trained.
    """

    model_dir: str
    config: config_lib.BertConfig
    task: str
    do_lower_case: bool
    max_seq_length: int
    vocab_file: str
    init_checkpoint: str | None

    @inference.float32_models()
    def load_model(self):
        """The models.BertForMultipleChoice of the run.

        Raises:
            ValueError: there are no weights, or they lack the head.
        """
        model = models.BertForMultipleChoice(self.config)
        inference.load_trained(
            model, self.model_dir, self.init_checkpoint, complete=True
        )
        return model


def read_run(model_dir):
    """The Run of an output folder of run_swag.py.

    Raises:
        ValueError: the folder is not one of run_swag.py.
    """
    identity, settings = run_directory.read(model_dir, "run_swag")
    return Run(
        str(model_dir),
        config_lib.BertConfig.from_dict(identity["config"]),
        identity["task"],
        identity["do_lower_case"],
        settings["max_seq_length"],
        os.path.join(model_dir, "vocab.txt"),
        run_directory.weights_of_untrained(settings),
    )


class Predictor:
    """Chooses among texts; each question may have choices of its own number.

    Args:
        model: models.BertForMultipleChoice.
        run: Run.
        batch_size: int, choices at a time.
    """

    def __init__(self, model, run, batch_size=16):
        self.run = run
        self.tokenizer = tokenization.FullTokenizer(run.vocab_file, run.do_lower_case)

        def score(batch):
            """The logit of each sequence, [batch], as the only choice of its own."""
            batch = {name: tf.expand_dims(ids, 1) for name, ids in batch.items()}
            return model(batch, training=False)["logits"][:, 0]

        self._score = inference.Sequences(score, batch_size)

    def predict(self, contexts, choices):
        """The best choice for each context.

        Args:
            contexts: list of str.
            choices: list of list of str, those of each context, one at least.
        Returns:
            list of dict: label, the number of the best choice from 0; choice, its text;
            score, its probability; and probabilities, of all of them.
        Raises:
            ValueError: they are not lists of the same length, or there is no choice.
        """
        answers = []
        for texts, logits in zip(choices, self.logits(contexts, choices), strict=True):
            probabilities = losses.softmax(logits).numpy()
            label = int(probabilities.argmax())
            answers.append(
                {
                    "label": label,
                    "choice": texts[label],
                    "score": float(probabilities[label]),
                    "probabilities": probabilities.tolist(),
                }
            )
        return answers

    def logits(self, contexts, choices):
        """list of float32 [choices]; arguments as for `predict`."""
        if isinstance(contexts, str) or any(
            isinstance(texts, str) for texts in choices
        ):
            raise ValueError("expected a list of contexts and a list of lists of texts")
        if len(contexts) != len(choices):
            raise ValueError(
                f"every context needs a list of choices, got {len(contexts)} contexts "
                f"and {len(choices)} lists"
            )
        if not all(choices):
            raise ValueError(
                f"every context needs a choice, got none for number "
                f"{[len(texts) for texts in choices].index(0)}, counted from 0"
            )
        examples = [
            classification.InputExample("", context, text)
            for context, texts in zip(contexts, choices, strict=True)
            for text in texts
        ]
        length = self.run.max_seq_length
        logits = self._score(
            [features.example_ids(e, length, self.tokenizer) for e in examples]
        )
        ends = np.cumsum([len(texts) for texts in choices], dtype=int)
        return np.split(np.array(logits, np.float32), ends)[:-1]


def load(model_dir, batch_size=16):
    """The Predictor of an output folder of run_swag.py, with the run's settings.

    Raises:
        ValueError: the folder is not one of run_swag.py, or holds no weights.
    """
    run = read_run(model_dir)
    return Predictor(run.load_model(), run, batch_size)
