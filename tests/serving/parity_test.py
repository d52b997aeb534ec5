"""The comparison of an export sees every difference that matters."""

import math

import numpy as np
import pytest

from modeling import models
from serving import parity
from tests import small_models


def test_difference_is_relative_only_for_large_values():
    assert parity.difference([1.0, 0.25], [1.0, 0.5]) == 0.25
    assert parity.difference([-200.0, 1.0], [-100.0, 1.0]) == 1.0
    assert parity.difference(np.zeros([0, 3]), np.zeros([0, 3])) == 0.0
    assert math.isnan(parity.difference([math.nan, 1.0], [0.0, 1.0]))
    with pytest.raises(ValueError, match=r"\[2\].*\[1\]"):
        parity.difference([1.0, 2.0], [1.0])


def test_ids_find_a_model_that_is_a_little_off():
    model = models.BertForSequenceClassification(small_models.config(), 3)
    small_models.randomize(model, 0)

    def exact(**batch):
        return {"logits": model(batch)["logits"], "label": "of the export only"}

    def off(**batch):
        return {"logits": model(batch)["logits"] + 1e-3}

    assert max(parity.differences_of_ids(exact, model, 7)) == 0
    for difference in parity.differences_of_ids(off, model, 7):
        assert difference == pytest.approx(1e-3, rel=0.5)


def test_ids_of_choices_come_in_groups():
    model = models.BertForMultipleChoice(small_models.config())
    shapes = []

    def exact(**batch):
        shapes.append(batch["input_ids"].shape)
        return {"logits": model(batch)["logits"]}

    assert max(parity.differences_of_ids(exact, model, 7, (2,))) == 0
    assert shapes == [(1, 2, 1), (3, 2, 7)]
