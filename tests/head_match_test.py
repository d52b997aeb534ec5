"""A head that was trained for something else does not pass for the run's unsaid."""

import json
import shutil

import numpy as np
import pytest

import trained_weights
from modeling import checkpoint, models
from tests import small_models

CLASS = {"script": "run_classifier", "label_type": "class"}
NUMBER = {"script": "run_classifier", "label_type": "number"}
MULTI_LABEL = {"script": "run_classifier", "label_type": "multi_label"}
NER, SWAG = {"script": "run_ner"}, {"script": "run_swag"}


@pytest.fixture
def load(tmp_path):
    """Function of what model.json says of the weights and of the run: loads them."""
    model = models.BertForSequenceClassification(small_models.config(), 2)
    weights = {n: w.numpy() for n, w in checkpoint.weight_names(model).items()}

    def load(there, here, **changed):
        for name, identity in (("source", there), ("out", here)):
            shutil.rmtree(tmp_path / name, ignore_errors=True)
            (tmp_path / name).mkdir()
            if identity:
                (tmp_path / name / "model.json").write_text(json.dumps(identity))
        source = str(tmp_path / "source")
        checkpoint.write_tf1(f"{source}/model.ckpt-1", weights | changed)
        skips = bool(changed)
        return trained_weights.load(model, source, skips, str(tmp_path / "out"))

    return load


@pytest.mark.parametrize(
    ("there", "here", "words"),
    [
        (NUMBER, SWAG, ("BertForSequenceClassification", "BertForMultipleChoice")),
        (
            CLASS,
            MULTI_LABEL,
            ("single_label_classification", "multi_label_classification"),
        ),
        (NER, CLASS, ("BertForTokenClassification", "BertForSequenceClassification")),
        (CLASS, CLASS, None),
        (SWAG, SWAG, None),
        (None, CLASS, None),
        (NER, None, None),
    ],
)
def test_a_head_of_another_kind_is_said(load, caplog, there, here, words):
    with caplog.at_level("WARNING", logger="absl"):
        load(there, here)
    messages = [record.getMessage() for record in caplog.records]
    if words is None:
        assert messages == []
    else:
        (message,) = messages
        assert message.endswith(
            f"/source is of {words[0]}, and is taken for {words[1]}"
        )


def test_a_head_that_is_left_out_is_taken_for_nothing(load, caplog):
    with caplog.at_level("WARNING", logger="absl"):
        other = {"output_weights": np.zeros([3, 12], "f4"), "output_bias": np.zeros(3)}
        report = load(NER, CLASS, **other)
    assert report.mismatched == ["output_weights", "output_bias"]
    assert caplog.records == []
