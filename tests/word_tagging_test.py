"""The predictor of tags: what the script's path gives, words of every kind."""

import json

import numpy as np
import pytest

import runs
import word_tagging
from data import conll, ner, tokenization
from modeling import config as config_lib
from modeling import models
from tests import small_models

LABELS = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")


@pytest.fixture(scope="module")
def model(golden):
    config = config_lib.BertConfig.from_json_file(golden / "tiny_tf1/bert_config.json")
    model = models.BertForTokenClassification(config, len(LABELS))
    small_models.randomize(model, 4)
    return model


@pytest.fixture
def predictor(golden, model):
    identity = {"labels": LABELS, "do_lower_case": True}
    run = runs.Run(str(golden / "tiny_tf1"), identity, {"max_seq_length": 12})
    return word_tagging.Predictor(model, run, batch_size=3)


SENTENCES = [
    ["Ada", "lives", "in", "Paris", "."],
    ["word"] * 50,
    ["one", "\u200b", "unbelievably-long", "a\xa0b", "東京"],
    ["Ada"],
]


@pytest.mark.parametrize("of_one_document", [False, True])
def test_tags_are_those_of_a_file(predictor, model, tmp_path, of_one_document):
    path = tmp_path / "words.txt"
    lines = ["-DOCSTART-", "", *("\n".join([*s, ""]) for s in SENTENCES)]
    path.write_text("\n".join(lines), encoding="utf-8")
    file = conll.read(path)
    assert [list(s.words) for s in file.sentences] == SENTENCES
    tokenizer = tokenization.FullTokenizer(predictor.run.vocab_file)
    arrays = ner.files_to_arrays([file], LABELS, 12, tokenizer, of_one_document)
    expected = model(arrays)["logits"].numpy()[arrays["label_mask"] == 1]
    logits = predictor.logits(SENTENCES, of_one_document)
    assert [len(rows) for rows in logits] == [len(words) for words in SENTENCES]
    np.testing.assert_allclose(np.concatenate(logits), expected, atol=1e-5)

    answers = sum(predictor.predict(SENTENCES, of_one_document), [])
    exponentials = np.exp(expected.astype("f8"))
    probabilities = exponentials / exponentials.sum(1, keepdims=True)
    assert [a["word"] for a in answers] == sum(SENTENCES, [])
    assert [a["tag"] for a in answers] == [LABELS[i] for i in expected.argmax(1)]
    scores = [a["score"] for a in answers]
    np.testing.assert_allclose(scores, probabilities.max(1), atol=1e-5)


def test_texts_are_split_at_white_space(predictor):
    texts = ["Ada  lives\tin\u2003Paris\n", "", " ", "a"]
    assert predictor.predict(texts) == predictor.predict([t.split() for t in texts])


def test_sentences_without_words(predictor):
    assert predictor.predict([]) == predictor.predict([], of_one_document=True) == []
    for together in (False, True):
        answers = predictor.predict([[], ["a", ""], [], ["b"], []], together)
        assert [len(answer) for answer in answers] == [0, 2, 0, 1, 0]
    (answer,) = predictor.predict([[""]])
    assert answer[0]["word"] == "" and answer[0]["tag"] in LABELS


def test_what_it_refuses(tmp_path):
    with pytest.raises(ValueError, match=r"no output folder of a run: .*model\.json"):
        word_tagging.load(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps({"script": "run_squad"}))
    (tmp_path / "settings.json").write_text("{}")
    with pytest.raises(ValueError, match="is of run_squad, where a run of run_ner"):
        word_tagging.load(tmp_path)
