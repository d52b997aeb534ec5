"""What is given to predictors: nothing but texts is answered, and errors say where."""

import pathlib

import numpy as np
import pytest

import arguments
import choosing
import language_model
import question_answering
import runs
import text_classification
import word_tagging
from data import squad_answers, squad_windows, tokenization
from modeling import config as config_lib
from modeling import models

MODULES = (
    choosing,
    language_model,
    question_answering,
    text_classification,
    word_tagging,
)
# No list of texts, and what its type is called.
NO_LISTS = [(None, "NoneType"), (5, "int"), ("a", "str"), (b"a", "bytes")]
NO_LISTS += [({"a": "b"}, "dict"), ({"a"}, "set"), (np.array("a"), "ndarray")]
NO_TEXTS = [(None, "NoneType"), (0, "int"), (False, "bool"), (float("nan"), "float")]
NO_TEXTS += [(b"a", "bytes"), ([], "list"), ({}, "dict"), (("a", "b"), "tuple")]


def as_lists(texts):
    """The same texts in everything that can be gone through in order."""
    return [texts, tuple(texts), np.array(texts), iter(texts), (t for t in texts)]


@pytest.fixture(scope="module")
def make_predictors(golden):
    """Function of a batch size, giving the predictors of random models by module."""
    folder = golden / "tiny_tf1"
    config = config_lib.BertConfig.from_json_file(folder / "bert_config.json")
    tokenizer = tokenization.FullTokenizer(folder / "vocab.txt")
    identity = {"labels": ("O", "B"), "do_lower_case": True, "label_type": "class"}
    run = runs.Run(str(folder), identity, {"max_seq_length": 16})
    classes = {
        choosing: (models.BertForMultipleChoice, ()),
        language_model: (models.BertForPretraining, ()),
        question_answering: (models.BertForQuestionAnswering, ()),
        text_classification: (models.BertForSequenceClassification, (2,)),
        word_tagging: (models.BertForTokenClassification, (2,)),
    }
    made = {module: make(config, *args) for module, (make, args) in classes.items()}
    rest = {module: (run,) for module in MODULES}
    rest[language_model] = (tokenizer, 16)
    sizes = squad_windows.WindowSizes(16, 4, 4)
    rest[question_answering] = (tokenizer, sizes, squad_answers.AnswerOptions())

    def make_all(batch_size):
        return {
            module: module.Predictor(made[module], *rest[module], batch_size=batch_size)
            for module in MODULES
        }

    return make_all


# Of every argument that is a list: its name, what it may be, and the call with it.
CALLS = [
    (choosing, "predict", "contexts", ["a", "b"], lambda x: (x, [["a"], ["b"]])),
    (choosing, "predict", "choices", [["a"], ["b"]], lambda x: (["a", "b"], x)),
    (choosing, "predict", "choices[0]", ["a", "b"], lambda x: (["a"], [x])),
    (question_answering, "predict", "questions", ["a", "b"], lambda x: (x, ["a", "b"])),
    (question_answering, "predict", "contexts", ["a", "b"], lambda x: (["a", "b"], x)),
    (text_classification, "predict", "texts", ["a", "b"], lambda x: (x,)),
    (text_classification, "predict", "pairs", ["a", "b"], lambda x: (["a", "b"], x)),
    (word_tagging, "predict", "sentences", ["a b", "b"], lambda x: (x,)),
    (word_tagging, "predict", "sentences[0]", ["a", "b"], lambda x: ([x],)),
    (language_model, "fill_mask", "texts", ["[MASK]", "[MASK]"], lambda x: (x,)),
    (language_model, "fill_mask", "pairs", ["a", "b"], lambda x: (["[MASK]"] * 2, x)),
    (language_model, "score", "texts", ["a", "b"], lambda x: (x,)),
    (language_model, "score", "pairs", ["a", "b"], lambda x: (["a", "b"], x)),
    (language_model, "next_sentence", "texts", ["a", "b"], lambda x: (x, ["a", "b"])),
    (language_model, "next_sentence", "pairs", ["a", "b"], lambda x: (["a", "b"], x)),
]


@pytest.fixture(scope="module")
def predictors(make_predictors):
    return make_predictors(4)


@pytest.fixture(params=CALLS, ids=lambda row: f"{row[0].__name__}.{row[1]}:{row[2]}")
def call(predictors, request):
    """(name of the argument, what it may be, function of its value)."""
    module, method, name, good, values = request.param
    return name, good, lambda x: getattr(predictors[module], method)(*values(x))


def test_whatever_has_an_order_is_a_list(call):
    _, good, ask = call
    answers = [ask(value) for value in as_lists(good)]
    assert len(answers) == 5
    assert all(answer == answers[0] for answer in answers)


def test_what_is_no_list_is_not_taken_for_one(call):
    name, _, ask = call
    for value, kind in NO_LISTS:
        if (name, kind) in (("pairs", "NoneType"), ("sentences[0]", "str")):
            continue  # none at all; a text with spaces between the words
        with pytest.raises(ValueError) as error:
            ask(value)
        message = str(error.value)
        assert message.startswith(f"{name} must be a list of "), value
        assert message.endswith(f", got {kind}"), value


def test_what_is_no_text_has_no_answer(call):
    name, good, ask = call
    for value, kind in NO_TEXTS:
        if name == "pairs" and value is None:
            continue  # there is no second text
        if name in ("sentences", "choices") and kind in ("list", "tuple"):
            continue  # words, or choices
        with pytest.raises(ValueError) as error:
            ask([good[0], value])
        message = str(error.value)
        assert message.startswith(f"{name}[1] must be a "), value
        assert message.endswith(f", got {kind}"), value


def test_texts_are_paired_up():
    assert arguments.pairs(["a", "b"]) == [("a", None), ("b", None)]
    assert arguments.pairs(["a", "b"], ["c", None]) == [("a", "c"), ("b", None)]
    assert arguments.pairs([]) == []
    with pytest.raises(ValueError, match="needs the other, got 1 and 2 texts"):
        arguments.pairs(["a"], ["b", "c"])


def test_there_need_not_be_a_second_text(predictors):
    classify, model = predictors[text_classification], predictors[language_model]
    for nothing in (None, ""):
        assert classify.predict(["a"], [nothing]) == classify.predict(["a"])
        assert model.score(["a"], [nothing]) == model.score(["a"])


@pytest.mark.parametrize("size", [0, -1, "4", 2.5, None, True])
def test_batches_have_a_size(make_predictors, size):
    message = f"batch_size must be an int, 1 at least, got {size!r}"
    with pytest.raises(ValueError, match=message):
        make_predictors(size)


@pytest.mark.parametrize("top_k", ["5", 2.5, None, 0, True])
def test_so_many_words_for_a_mask(predictors, top_k):
    with pytest.raises(ValueError, match=rf"top_k must be an int from 1 .*{top_k!r}$"):
        predictors[language_model].fill_mask(["[MASK]"], top_k=top_k)


def test_numbers_may_be_those_of_numpy(make_predictors):
    predictor = make_predictors(np.int32(3))[language_model]
    ((answer,),) = predictor.fill_mask(["[MASK]"], top_k=np.int64(2))
    assert len(answer["words"]) == 2
    assert arguments.number("x", np.float32(1.5)) == 1.5
    assert arguments.number("x", float("inf")) == float("inf")


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("value", [None, 5, "", b"folder", ["folder"]])
def test_what_is_no_path_is_not_loaded(module, value):
    with pytest.raises(ValueError, match=r"^model_\w+ must be a path, got "):
        module.load(value)


@pytest.mark.parametrize("value", ["a", float("nan"), [1.0], True])
def test_a_threshold_can_be_compared(value):
    with pytest.raises(ValueError, match="^threshold must be a number, got "):
        question_answering.load("folder", threshold=value)


@pytest.mark.parametrize("length", [0, 2, "9"])
def test_a_sequence_has_room_for_a_token(golden, length):
    with pytest.raises(ValueError, match="^max_seq_length must be an int, 3 at least"):
        language_model.load(golden / "tiny_tf1", max_seq_length=length)


def test_paths_of_every_kind():
    assert arguments.path("x", pathlib.Path("a/b")) == "a/b"
    assert arguments.path("x", "a/b") == "a/b"
