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


def test_f1_by_hand():
    # Precision 2/3, recall 1/2.
    labels, predictions = [1, 1, 1, 1, 0, 0], [1, 0, 0, 1, 1, 0]
    assert classification.f1(labels, predictions) == pytest.approx(4 / 7)
    assert classification.f1([0, 0], [0, 0]) == 0.0


@pytest.mark.parametrize("metric", classification.METRICS.values())
def test_cases_that_have_no_score(metric):
    with pytest.raises(ValueError, match="no examples"):
        metric([], [])
    with pytest.raises(ValueError, match=r"\(2,\) and \(3,\)"):
        metric([0, 1], [0, 1, 1])
    with pytest.raises(ValueError, match=r"\(2,\) and \(2, 1\)"):
        metric([0, 1], [[0], [1]])


def test_scores_equal_eval_results_of_the_original(golden):
    folder = golden / "tiny_tf1_runs" / "classifier_mrpc"
    lines = (folder / "eval_results.txt").read_text().splitlines()
    expected = {key: float(value) for key, value in (x.split(" = ") for x in lines)}
    del expected["global_step"]
    outputs = np.load(folder / "expected_eval.npz")
    rows = {
        "logits": outputs["logits"],
        "label_ids": outputs["label_ids"],
        "losses": outputs["per_example_loss"],
    }
    batches = [{k: v[i : i + 8] for k, v in rows.items()} for i in (0, 8)]
    actual = classification.scores(batches, ["accuracy"])
    assert actual == pytest.approx(expected, abs=1e-6)
    assert actual["loss"] != pytest.approx(actual["eval_loss"], abs=1e-3)
    assert all(type(score) is float for score in actual.values())


def test_scores_without_examples():
    with pytest.raises(ValueError, match="the data set is empty"):
        classification.scores([], ["accuracy"])
