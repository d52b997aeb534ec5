"""What the model says, in words, for each kind of label."""

import numpy as np
import pytest
import scipy.special
import tensorflow as tf

import classifier_tasks
from data import classification, targets
from data.classification import InputExample
from modeling import losses
from tests import numpy_bert

LOGITS = np.array([[1.0, -2.0, 0.5], [-1.0, -3.0, -0.5], [0.0, 4.0, 3.0]], np.float32)
NAMES = ("a", "b", "c")
EXAMPLES = [InputExample(f"dev-{i}", "", label=label) for i, label in enumerate("abc")]


def task(kind, labels=NAMES):
    return classification.OwnTask(kind=kind, labels=labels)


def test_answers_of_one_class():
    found = classifier_tasks.answers(LOGITS, NAMES, targets.Kind.CLASS)
    probabilities = scipy.special.softmax(LOGITS.astype(np.float64), axis=1)
    assert [answer["label"] for answer in found] == ["a", "c", "b"]
    for answer, row in zip(found, probabilities, strict=True):
        assert list(answer["probabilities"]) == list(NAMES)
        np.testing.assert_allclose(list(answer["probabilities"].values()), row, 1e-6)
        assert answer["score"] == answer["probabilities"][answer["label"]]
        assert type(answer["score"]) is float


def test_answers_of_several_labels():
    found = classifier_tasks.answers(LOGITS, NAMES, targets.Kind.MULTI_LABEL)
    probabilities = scipy.special.expit(LOGITS.astype(np.float64))
    # 0 is a probability of 0.5, which counts.
    assert [answer["label"] for answer in found] == [["a", "c"], [], ["a", "b", "c"]]
    np.testing.assert_allclose(found[0]["score"], probabilities[0, [0, 2]], 1e-6)
    for answer, row in zip(found, probabilities, strict=True):
        np.testing.assert_allclose(list(answer["probabilities"].values()), row, 1e-6)


def test_answers_that_are_numbers():
    found = classifier_tasks.answers(LOGITS[:, 1:2], (), targets.Kind.NUMBER)
    assert found == [{"value": -2.0}, {"value": -3.0}, {"value": 4.0}]


def test_tables():
    table = classifier_tasks.table(EXAMPLES, LOGITS, task("class"), with_gold=True)
    assert table[0] == ["id", "gold", "label", "score"]
    assert [row[:3] for row in table[1:]] == [
        ["dev-0", "a", "a"],
        ["dev-1", "b", "c"],
        ["dev-2", "c", "b"],
    ]
    # As short as float32 allows, as the original writes them.
    for row, logits in zip(table[1:], LOGITS, strict=True):
        score = scipy.special.softmax(logits).max()
        assert float(row[3]) == pytest.approx(score, abs=1e-6)
        assert len(row[3]) <= 11
    examples = [InputExample("x", "", label=("b", "a")), *EXAMPLES[1:]]
    table = classifier_tasks.table(examples, LOGITS, task("multi_label"), "; ", True)
    assert table[1][:3] == ["x", "b; a", "a; c"]
    scores = [float(score) for score in table[1][3].split("; ")]
    np.testing.assert_allclose(scores, scipy.special.expit([1, 0.5]), 1e-6)
    assert table[2][2:] == ["", ""]
    examples = [InputExample("x", "", label=2.5), *EXAMPLES[1:]]
    rows = classifier_tasks.table(examples, LOGITS[:, :1], task("number", ()))
    assert rows == [["id", "value"], ["x", "1.0"], ["dev-1", "-1.0"], ["dev-2", "0.0"]]


def test_heads_have_as_many_outputs_as_labels():
    assert classifier_tasks.num_outputs(NAMES) == 3
    assert classifier_tasks.num_outputs(()) == 1
    assert set(classifier_tasks.HEADS) == set(targets.Kind)


def loss_of(objective, labels):
    """Of the random logits of an objective with these label ids."""
    batch = {
        "label_ids": np.array(labels, np.int32),
        "input_ids": np.zeros((3, 1), np.int32),
    }
    outputs = {"logits": tf.constant(LOGITS)}
    numerator = objective.numerators(outputs, batch)["loss"]
    return float(numerator / objective.denominators(batch)["loss"])


def test_class_weights_reach_the_loss(tmp_path):
    labels = [0, 2, 2]
    per_example = numpy_bert.cross_entropy(LOGITS, np.array(labels))
    path = tmp_path / "weights.json"
    path.write_text('{"a": 4, "b": 1, "c": 0.5}')
    for weights, of_examples in (
        (None, [1, 1, 1]),
        ("balanced", [1, 0.5, 0.5]),  # 3 / (3 * 1), 3 / (3 * 2)
        ("2,1,1", [2, 1, 1]),
        (str(path), [4, 0.5, 0.5]),
    ):
        objective = classifier_tasks.objective(task("class"), weights, labels)
        expected = np.average(per_example, weights=of_examples)
        assert loss_of(objective, labels) == pytest.approx(expected, abs=1e-4)


def test_class_weights_of_no_class():
    with pytest.raises(ValueError, match="one class, not for multi_label"):
        classifier_tasks.objective(task("multi_label"), "balanced", None)
    assert (
        classifier_tasks.objective(task("number", ()), None, None) is losses.REGRESSION
    )
