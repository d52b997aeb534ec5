"""Scores against scikit-learn, and by hand where it has nothing to say."""

import numpy as np
import pytest
import sklearn.metrics

from metrics import classification


def random_case(seed):
    """Labels and predictions that agree more or less often; sometimes of one class."""
    rng = np.random.default_rng(seed)
    size, classes = rng.integers(1, 40), rng.integers(1, 4)
    labels = rng.integers(0, classes, size)
    noise = rng.integers(0, classes, size)
    return labels, np.where(rng.random(size) < rng.random(), labels, noise)


def test_accuracy_equals_scikit_learn():
    for seed in range(300):
        labels, predictions = random_case(seed)
        expected = sklearn.metrics.accuracy_score(labels, predictions)
        assert classification.accuracy(labels, predictions) == pytest.approx(expected)


def test_f1_equals_scikit_learn():
    values = set()
    for seed in range(300):
        labels, predictions = random_case(seed)
        labels, predictions = np.minimum(labels, 1), np.minimum(predictions, 1)
        expected = sklearn.metrics.f1_score(labels, predictions, zero_division=0)
        actual = classification.f1(labels, predictions)
        assert actual == pytest.approx(expected)
        values.add(actual)
    assert len(values) > 50


def test_by_hand():
    labels, predictions = [1, 1, 1, 0, 0], [1, 0, 1, 1, 0]
    scores = classification.scores(("accuracy", "f1"), labels, predictions)
    # Precision 2/3, recall 2/3.
    assert scores == {"accuracy": pytest.approx(3 / 5), "f1": pytest.approx(2 / 3)}
    assert all(type(score) is float for score in scores.values())


def test_f1_without_any_positive():
    assert classification.f1([0, 0], [0, 0]) == 0.0


@pytest.mark.parametrize("name", classification.METRICS)
def test_cases_that_have_no_score(name):
    with pytest.raises(ValueError, match="no examples"):
        classification.scores([name], [], [])
    with pytest.raises(ValueError, match=r"\(2,\) and \(3,\)"):
        classification.scores([name], [0, 1], [0, 1, 1])
    with pytest.raises(ValueError, match=r"\(2,\) and \(2, 1\)"):
        classification.scores([name], [0, 1], [[0], [1]])
