"""A fine-tuned tagger of words that stays loaded.

import word_tagging

predictor = word_tagging.load("conll")  # an output folder of run_ner.py
predictor.predict([["Ada", "lives", "in", "Paris"]])  # lists of words
predictor.predict(["Ada lives in Paris"])  # texts with spaces between the words
# [[{"word": "Ada", "tag": "B-PER", "score": 0.99}, ...]]
"""

import numpy as np

import arguments
import inference
import runs
from data import ner
from modeling import losses, models


def load_model(run):
    """The models.BertForTokenClassification of a runs.Run of run_ner.py.

    Raises:
        ValueError: there are no weights, or they lack the head.
    """
    return run.load(models.BertForTokenClassification, len(run.labels))[0]


class Predictor:
    """Tags the words of sentences of any length.

    Args:
        model: models.BertForTokenClassification.
        run: runs.Run.
        batch_size: int, windows at a time.
    """

    def __init__(self, model, run, batch_size=16):
        self.run = run
        self.tokenizer = run.tokenizer()
        self._logits = inference.Sequences(
            lambda batch: model(batch, training=False)["logits"], batch_size
        )

    def predict(self, sentences, of_one_document=False):
        """The tag of every word.

        Args:
            sentences: list; each is a list of words, str, or a text whose words stand
                between white space.
            of_one_document: bool, they follow one another, and each is read with
                those around, as `run_ner.py --document_context` does; otherwise each
                is read by itself.
        Returns:
            for each sentence a list with a dict for each word: word, tag and score,
            which is the tag's probability.
        Raises:
            ValueError: it is no list, or one of its sentences is neither.
        """
        sentences = _split(sentences)
        answers, labels = [], self.run.labels
        for words, logits in zip(
            sentences, self.logits(sentences, of_one_document), strict=True
        ):
            rows = zip(words, losses.softmax(logits).numpy(), strict=True)
            answers.append(
                [
                    {
                        "word": word,
                        "tag": labels[probabilities.argmax()],
                        "score": float(probabilities.max()),
                    }
                    for word, probabilities in rows
                ]
            )
        return answers

    def logits(self, sentences, of_one_document=False):
        """list of float32 [words, labels]; arguments as for `predict`."""
        sentences = _split(sentences)
        documents = [sentences] if of_one_document else [[words] for words in sentences]
        windows = [
            window
            for document in documents
            for window in ner.document_windows(
                document, self.run.max_seq_length, self.tokenizer
            )
        ]
        outputs = self._logits([(ids, [0] * len(ids)) for ids, _ in windows])
        # Over all windows these are the words in order.
        of_words = [
            output[places] for output, (_, places) in zip(outputs, windows, strict=True)
        ]
        of_words.append(np.zeros([0, len(self.run.labels)], np.float32))
        ends = np.cumsum([len(words) for words in sentences], dtype=int)
        return np.split(np.concatenate(of_words), ends)[:-1]


def _split(sentences):
    """Lists of words."""
    sentences = arguments.items("sentences", sentences, "texts or lists of words")
    return [
        words.split()
        if isinstance(words, str)
        else arguments.texts(f"sentences[{place}]", words)
        for place, words in enumerate(sentences)
    ]


def load(model_dir, batch_size=16):
    """The Predictor of an output folder of run_ner.py, with the run's settings.

    Raises:
        ValueError: the folder is not one of run_ner.py, or holds no weights, or
            batch_size is no number of windows.
    """
    run = runs.read(arguments.path("model_dir", model_dir), "run_ner")
    return Predictor(load_model(run), run, batch_size)
