"""A fine-tuned model that stays loaded and chooses among texts.

import choosing

predictor = choosing.load("swag_run")  # an output folder of run_swag.py
predictor.predict(["She opens the door."], [["She flies.", "She goes in."]])
# [{"label": 1, "choice": "She goes in.", "score": 0.97, "probabilities": [...]}]

Of a run on SWAG the context is the first sentence, and a choice is the second with an
ending; of one on ARCT they are claim and reason, and a warrant: see `continuations` and
`warrants` in data/multiple_choice.py.
"""

import numpy as np
import tensorflow as tf

import arguments
import inference
import runs
from data import classification, features
from modeling import losses, models


def load_model(run):
    """The models.BertForMultipleChoice of a runs.Run of run_swag.py.

    Raises:
        ValueError: there are no weights, or they lack the head.
    """
    return run.load(models.BertForMultipleChoice)[0]


class Predictor:
    """Chooses among texts; each question may have choices of its own number.

    Args:
        model: models.BertForMultipleChoice.
        run: runs.Run.
        batch_size: int, choices at a time.
    """

    def __init__(self, model, run, batch_size=16):
        self.run = run
        self.tokenizer = run.tokenizer()

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
            ValueError: they are not lists of str of the same length, or there is no
                choice.
        """
        contexts, choices = _check(contexts, choices)
        answers = []
        for texts, logits in zip(choices, self._logits(contexts, choices), strict=True):
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
        return self._logits(*_check(contexts, choices))

    def _logits(self, contexts, choices):
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


def _check(contexts, choices):
    """A list of str, and a list of lists of str."""
    contexts = arguments.texts("contexts", contexts)
    choices = [
        arguments.texts(f"choices[{place}]", of_context)
        for place, of_context in enumerate(
            arguments.items("choices", choices, "lists of str")
        )
    ]
    if len(contexts) != len(choices):
        raise ValueError(
            f"every context needs a list of choices, got {len(contexts)} contexts "
            f"and {len(choices)} lists"
        )
    if not all(choices):
        raise ValueError(
            f"every context needs a choice, got none for number "
            f"{choices.index([])}, counted from 0"
        )
    return contexts, choices


def load(model_dir, batch_size=16):
    """The Predictor of an output folder of run_swag.py, with the run's settings.

    Raises:
        ValueError: the folder is not one of run_swag.py, or holds no weights, or
            batch_size is no number of choices.
    """
    run = runs.read(arguments.path("model_dir", model_dir), "run_swag")
    return Predictor(load_model(run), run, batch_size)
