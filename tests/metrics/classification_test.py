"""Scores against scikit-learn, and by hand where it has nothing to say."""

import math
import warnings

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics

from metrics import classification

CASES = 1000


def random_case(seed, max_classes=4):
    """Labels and predictions that agree more or less often; sometimes of one class."""
    rng = np.random.default_rng(seed)
    size, classes = rng.integers(1, 40), rng.integers(1, max_classes)
    labels = rng.integers(0, classes, size)
    noise = rng.integers(0, classes, size)
    return labels, np.where(rng.random(size) < rng.random(), labels, noise)


def random_sets(seed):
    """0 and 1 [examples, labels] on both sides; sometimes a label is never used."""
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 30), rng.integers(2, 6)
    often = rng.random(shape[1]) * rng.integers(0, 2, shape[1])
    labels = rng.random(shape) < often
    noise = rng.random(shape) < rng.random()
    keep = rng.random(shape) < rng.random()
    return labels.astype(int), np.where(keep, labels, noise).astype(int)


def random_numbers(seed):
    """Numbers of some correlation, of any scale, with many ties, few or none."""
    rng = np.random.default_rng(seed)
    size, scale = rng.integers(3, 60), 10.0 ** rng.integers(-6, 6)
    labels = rng.normal(size=size)
    predictions = labels * rng.normal() + rng.normal(size=size) * rng.random()
    decimals = rng.integers(0, 4)
    labels, predictions = labels.round(decimals), predictions.round(decimals)
    return labels * scale, (predictions + rng.integers(0, 5)) * scale


def compare(metric, oracle, case):
    """Asserts equality on many cases, which must give many different scores."""
    values = set()
    for seed in range(CASES):
        labels, predictions = case(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # theirs about cases without a score
            expected = float(oracle(labels, predictions))
        actual = metric(labels, predictions)
        assert type(actual) is float
        expected = 0.0 if math.isnan(expected) else expected
        assert actual == pytest.approx(expected, abs=1e-9), seed
        values.add(actual)
    assert len(values) > 100


def test_accuracy_equals_scikit_learn():
    oracle = sklearn.metrics.accuracy_score
    compare(classification.accuracy, oracle, random_case)
    compare(classification.accuracy, oracle, random_sets)


def test_the_majority_is_what_a_constant_answer_gets():
    for seed in range(100):
        labels, _ = random_case(seed)
        constant = [np.full_like(labels, answer) for answer in range(4)]
        expected = max(classification.accuracy(labels, c) for c in constant)
        assert classification.majority_share(labels) == pytest.approx(expected)
    assert classification.majority_share(["O", "B", "O", "O"]) == 0.75


def test_f1_equals_scikit_learn():
    def oracle(labels, predictions):
        return sklearn.metrics.f1_score(labels, predictions, zero_division=0)

    compare(classification.f1, oracle, lambda seed: random_case(seed, 3))


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("case", [random_case, random_sets])
def test_averaged_f1_equals_scikit_learn(average, case):
    def oracle(labels, predictions):
        return sklearn.metrics.f1_score(
            labels, predictions, average=average, zero_division=0
        )

    compare(classification.METRICS[f"f1_{average}"], oracle, case)


def test_matthews_correlation_equals_scikit_learn():
    oracle = sklearn.metrics.matthews_corrcoef
    compare(classification.matthews_correlation, oracle, random_case)


def test_correlations_equal_scipy():
    def pearson(labels, predictions):
        return scipy.stats.pearsonr(labels, predictions).statistic

    def spearman(labels, predictions):
        return scipy.stats.spearmanr(labels, predictions).statistic

    compare(classification.pearson, pearson, random_numbers)
    compare(classification.spearmanr, spearman, random_numbers)


def test_ties_share_the_mean_of_their_ranks():
    # Ranks 1, 2.5, 2.5, 4 and 1.5, 1.5, 3, 4.
    labels, predictions = [0.5, 2, 2, 5], [1, 1, 3, 9]
    expected = scipy.stats.pearsonr([1, 2.5, 2.5, 4], [1.5, 1.5, 3, 4]).statistic
    actual = classification.spearmanr(labels, predictions)
    assert actual == pytest.approx(expected)


@pytest.mark.parametrize("name", ["pearson", "spearmanr"])
def test_correlations_with_a_constant_are_0(name):
    metric = classification.METRICS[name]
    constant = [0.1] * 30  # whose mean is not 0.1 to the last bit
    assert metric(np.arange(30) * 0.7, constant) == 0.0
    assert metric(constant, np.arange(30)) == 0.0


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


def test_decisions():
    logits = np.array([[-0.1, 0.0], [2.0, -3.0]], np.float32)
    assert classification.best_class(logits).tolist() == [1, 0]
    # A logit of 0 is a probability of 0.5.
    assert classification.likely_labels(logits).tolist() == [[0, 1], [1, 0]]
    assert classification.number(logits[:, :1]).tolist() == logits[:, 0].tolist()


def test_scores_of_sets_of_labels_and_of_numbers():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(9, 3))
    sets = rng.integers(0, 2, (9, 3))
    rows = {"logits": logits, "label_ids": sets, "losses": np.arange(9.0)}
    names = ["f1_micro", "accuracy"]
    actual = classification.scores([rows], names, classification.likely_labels)
    chosen = logits >= 0
    assert actual == {
        "eval_f1_micro": pytest.approx(
            sklearn.metrics.f1_score(sets, chosen, average="micro")
        ),
        "eval_accuracy": pytest.approx(sklearn.metrics.accuracy_score(sets, chosen)),
        "eval_loss": 4.0,
        "loss": 4.0,
    }
    numbers = rng.normal(size=9).astype(np.float32)
    rows = {"logits": logits[:, :1], "label_ids": numbers, "losses": np.arange(9.0)}
    actual = classification.scores([rows], ["spearmanr"], classification.number)
    expected = scipy.stats.spearmanr(numbers, logits[:, 0]).statistic
    assert actual["eval_spearmanr"] == pytest.approx(expected)


def test_scores_without_examples():
    with pytest.raises(ValueError, match="the data set is empty"):
        classification.scores([], ["accuracy"])
