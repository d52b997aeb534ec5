"""The predictor of choices: what the script's path gives, any number of choices."""

import json

import numpy as np
import pytest

import choosing
import runs
from data import multiple_choice, tokenization
from modeling import config as config_lib
from modeling import models
from tests import small_models


@pytest.fixture(scope="module")
def predictor(golden):
    config = config_lib.BertConfig.from_json_file(golden / "tiny_tf1/bert_config.json")
    model = models.BertForMultipleChoice(config)
    small_models.randomize(model, 7, num_labels=1)
    folder = str(golden / "tiny_tf1")
    run = runs.Run(folder, {"do_lower_case": True}, {"max_seq_length": 16})
    predictor = choosing.Predictor(model, run, batch_size=3)
    predictor.model = model  # for the tests
    return predictor


CONTEXTS = ["She opens the door.", "", "word " * 40]
CHOICES = [["She flies.", "She goes in.", "東京"], ["a", "b " * 40, ""], list("xyz")]


def test_logits_are_those_of_the_model(predictor):
    examples = [
        multiple_choice.ChoiceExample("", tuple((context, text) for text in texts))
        for context, texts in zip(CONTEXTS, CHOICES, strict=True)
    ]
    tokenizer = tokenization.FullTokenizer(predictor.run.vocab_file)
    arrays = multiple_choice.to_arrays(examples, 16, tokenizer)
    expected = predictor.model(arrays)["logits"].numpy()
    logits = predictor.logits(CONTEXTS, CHOICES)
    np.testing.assert_allclose(np.array(logits), expected, atol=1e-5)
    exponentials = np.exp(expected.astype("f8"))
    probabilities = exponentials / exponentials.sum(1, keepdims=True)
    answers = predictor.predict(CONTEXTS, CHOICES)
    for answer, row, texts in zip(answers, probabilities, CHOICES, strict=True):
        np.testing.assert_allclose(answer["probabilities"], row, atol=1e-5)
        assert answer["label"] == row.argmax()
        assert answer["choice"] == texts[row.argmax()]
        assert answer["score"] == max(answer["probabilities"])


def test_each_context_has_choices_of_its_own_number(predictor):
    choices = [CHOICES[0][:1], CHOICES[1], CHOICES[2][:2]]
    together = predictor.logits(CONTEXTS, choices)
    assert [len(row) for row in together] == [1, 3, 2]
    for context, texts, row in zip(CONTEXTS, choices, together, strict=True):
        (alone,) = predictor.logits([context], [texts])
        np.testing.assert_allclose(row, alone, atol=1e-5)
    assert predictor.predict(["a"], [["b"]])[0]["probabilities"] == [1.0]
    assert predictor.predict([], []) == []


def test_what_it_refuses(predictor, tmp_path):
    with pytest.raises(ValueError, match="got 2 contexts and 1 lists"):
        predictor.predict(["a", "b"], [["c"]])
    with pytest.raises(ValueError, match="needs a choice, got none for number 1"):
        predictor.predict(["a", "b"], [["c"], []])
    with pytest.raises(ValueError, match=r"no output folder of a run: .*model\.json"):
        choosing.load(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps({"script": "run_ner"}))
    (tmp_path / "settings.json").write_text("{}")
    with pytest.raises(ValueError, match="is of run_ner, where a run of run_swag"):
        choosing.load(tmp_path)
