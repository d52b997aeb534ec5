"""The page knows the signatures of real exports, and shows their very answers."""

import numpy as np
import pytest

import question_answering
from data import squad_answers, squad_windows, tokenization
from modeling import models
from serving import (
    classification,
    masked_words,
    multiple_choice,
    saved_model,
    sentence_vectors,
    tagging,
)
from serving import question_answering as answering
from tests import browsing, page_models, served, small_models

pytestmark = pytest.mark.slow

LABELS = page_models.HOSTILE[:3]
TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
LENGTH = 32
TEXT = "Émile 🎉 was not the 👩‍🚀 of שלום,\ne\u0301 and the (first) of Paris."


def randomized(model, seed):
    rng = np.random.default_rng(seed)
    for variable in model.weights:
        variable.assign(rng.normal(size=variable.shape, scale=0.7))
    return model


def servers(vocab_file):
    """Yields (name, server) of a tiny random model of each kind."""
    tokenizer = tokenization.FullTokenizer(vocab_file)
    config = small_models.config(
        vocab_size=len(tokenizer.vocab),
        max_position_embeddings=LENGTH,
        num_hidden_layers=1,
    )
    text = (vocab_file, True, LENGTH)

    def classifier(num_labels):
        return randomized(models.BertForSequenceClassification(config, num_labels), 1)

    yield "class", classification.TextClassifier(classifier(3), LABELS, *text)
    multi_label = classification.MultiLabelTextClassifier
    yield "labels", multi_label(classifier(3), LABELS, *text)
    yield "number", classification.TextRegressor(classifier(1), *text)
    model = randomized(models.BertForQuestionAnswering(config), 2)
    sizes = squad_windows.WindowSizes(LENGTH, 8, 8)
    options = squad_answers.AnswerOptions()
    predictor = question_answering.Predictor(model, tokenizer, sizes, options)
    yield "answers", answering.QuestionAnswering(predictor, vocab_file)
    model = randomized(models.BertForTokenClassification(config, len(TAGS)), 3)
    yield "tags", tagging.WordTagger(model, TAGS, *text)
    model = randomized(models.BertForMultipleChoice(config), 4)
    yield "choices", multiple_choice.SwagChooser(model, *text)
    model = randomized(models.BertForPretraining(config), 5)
    yield "masks", masked_words.MaskedWords(model, *text, 4)
    pool = sentence_vectors.pooled([-1], "mean")
    model = randomized(models.BertModel(config), 6)
    yield "vectors", sentence_vectors.SentenceVectors(model, *text, pool)


@pytest.fixture(scope="module")
def server(golden, tmp_path_factory):
    folder, paths = tmp_path_factory.mktemp("exports"), {}
    for name, server in servers(str(golden / "tiny_tf1/vocab.txt")):
        paths[name] = str(folder / name)
        saved_model.save(server, paths[name], finish=lambda _: None)
    with served.serving(paths) as server:
        yield server


@pytest.fixture
def show(browser, server):
    """function (model, rows, signature, **values) → (page, answers to the rows)."""
    page = browsing.Page(browser, server.rest_port)

    def show(model, rows, signature="serving_default", **values):
        page.open(model)
        page.ask(**values)
        assert page.error() == ""
        body = {"signature_name": signature, "instances": rows}
        status, answer = served.predict(server.rest_port, body, model)
        assert status == 200, answer
        return page, answer["predictions"]

    yield show
    page.check()


def percents(shares):
    return [f"{100 * share:.1f}%" for share in shares]


@pytest.mark.parametrize("pair", ["", "a second text"])
def test_a_class(show, pair):
    row = {"text": TEXT, "text_pair": pair}
    page, (answer,) = show("class", [row], "pair", **row)
    assert page.text("#headline .text") == answer["label"]
    shares = sorted(answer["probabilities"], reverse=True)
    assert page.texts(".bars .number") == percents(shares)
    assert sorted(page.texts(".bars .text")) == sorted(LABELS)


def test_labels(show):
    page, (answer,) = show("labels", [TEXT], text=TEXT)
    shares = dict(zip(answer["labels"], answer["probabilities"], strict=True))
    names = page.texts(".bars .text")
    assert names == sorted(shares, key=lambda name: -shares[name])
    assert page.texts(".bars .chosen .text") == [n for n in names if shares[n] >= 0.5]


def test_a_number(show):
    page, (answer,) = show("number", [TEXT], text=TEXT)
    assert float(page.text("#headline .text")) == pytest.approx(
        answer["value"], abs=6e-5
    )


@pytest.mark.parametrize("question", ["who?", "was it the 🎉?", "Paris", "e\u0301"])
def test_an_answer(show, question):
    values = {"question": question, "context": f"{TEXT} {TEXT}"}
    page, (answer,) = show("answers", [values], **values)
    assert answer["answer"]
    assert page.text("#headline .text") == page.text("mark") == answer["answer"]
    assert page.text(".passage") == values["context"]
    before = page.run("return document.querySelector('mark').previousSibling.data")
    assert len(before) == answer["start"]


def test_tags(show):
    page, (answer,) = show("tags", [TEXT], "text", text=TEXT)
    kinds = {tag[2:] for tag in answer["tags"]} - {""}
    assert kinds and set(page.texts(".legend .text")) == kinds
    page.run("document.querySelectorAll('.passage .kind').forEach((k) => k.remove())")
    assert page.text(".passage") == TEXT
    marked = " ".join(page.texts(".passage mark")).split()
    tagged = zip(answer["words"], answer["tags"], strict=True)
    assert marked == [word for word, tag in tagged if tag != "O"]


def test_choices(show):
    choices = ["one", "two 🎉", "the third"]
    row = {"context": TEXT, "choices": choices}
    values = {"context": TEXT, "choices": "\n".join(choices)}
    page, (answer,) = show("choices", [row], **values)
    assert page.text("#headline .text") == answer["choice"]
    assert page.texts(".bars .number") == percents(answer["probabilities"])


def test_masks(show):
    text = "The [MASK] of [MASK] is 🎉."
    page, (answer,) = show("masks", [text], text=text)
    assert page.texts(".masks button") == sum(answer["words"], [])
    assert page.texts(".masks .number") == percents(sum(answer["probabilities"], []))


def test_vectors(show):
    values = {"text": TEXT, "other": "another text"}
    page, (first, second) = show("vectors", [*values.values()], **values)
    dot = sum(a * b for a, b in zip(first, second, strict=True))
    norms = [sum(a * a for a in vector) ** 0.5 for vector in (first, second)]
    assert float(page.text("#headline .text")) == pytest.approx(
        dot / norms[0] / norms[1], abs=6e-4
    )
