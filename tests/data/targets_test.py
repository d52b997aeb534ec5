"""Labels: what cells say, what losses get, weights of classes."""

import json

import numpy as np
import pytest
import sklearn.preprocessing
import sklearn.utils.class_weight

from data import targets
from data.targets import Kind

NAMES = ("bad", "good", "so so")


def test_a_class():
    assert targets.parse("f, line 2", "so so", NAMES) == "so so"
    assert targets.parse("f, line 2", "anything", ()) == "anything"


def test_several_labels():
    def parse(cell, separator=","):
        return targets.parse("f", cell, NAMES, Kind.MULTI_LABEL, separator)

    assert parse("good") == ("good",)
    assert parse("good, so so ,bad") == ("good", "so so", "bad")
    assert parse("good|bad", "|") == ("good", "bad")
    assert parse("good; bad", "; ") == ("good", "bad")
    assert parse("") == parse("  ") == ()


@pytest.mark.parametrize("cell, value", [("5.000", 5.0), ("-1e-3", -0.001), ("7", 7)])
def test_a_number(cell, value):
    number = targets.parse("f", cell, (), Kind.NUMBER)
    assert type(number) is float and number == value


@pytest.mark.parametrize(
    ("cell", "kind", "message"),
    [
        ("", Kind.CLASS, "f, line 3: the label is empty$"),
        ("goood", Kind.CLASS, "f, line 3: unknown label 'goood'; .* mean 'good'"),
        ("good,bad", Kind.CLASS, "unknown label 'good,bad'"),
        ("good,", Kind.MULTI_LABEL, "f, line 3: the label is empty in 'good,'"),
        ("bad,goood", Kind.MULTI_LABEL, "f, line 3: unknown label 'goood'; there are"),
        ("", Kind.NUMBER, "f, line 3: the label must be a number, got ''"),
        ("4,5", Kind.NUMBER, "f, line 3: the label must be a number, got '4,5'"),
        ("nan", Kind.NUMBER, "must be a number, got 'nan'"),
        ("-inf", Kind.NUMBER, "must be a number, got '-inf'"),
    ],
)
def test_cells_that_say_no_label(cell, kind, message):
    with pytest.raises(ValueError, match=message):
        targets.parse("f, line 3", cell, NAMES, kind)


def test_encoding_a_class():
    ids = targets.encode(["so so", "bad", None], NAMES)
    assert ids.dtype == np.int32 and ids.tolist() == [2, 0, 0]


def test_encoding_a_number():
    values = targets.encode([0.1, None, -3.0], (), Kind.NUMBER)
    assert values.dtype == np.float32
    assert values.tolist() == [np.float32(0.1), 0, -3]


@pytest.mark.parametrize("seed", range(20))
def test_encoding_several_labels_equals_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    names = [f"n{i}" for i in range(rng.integers(2, 9))]
    sets = [tuple(rng.permutation(names)[: rng.integers(0, 4)]) for _ in range(12)]
    rows = targets.encode(sets, names, Kind.MULTI_LABEL)
    binarizer = sklearn.preprocessing.MultiLabelBinarizer(classes=names)
    np.testing.assert_array_equal(rows, binarizer.fit_transform(sets))
    assert rows.dtype == np.int32
    assert not targets.encode([None], names, Kind.MULTI_LABEL).any()


@pytest.mark.parametrize("seed", range(20))
def test_balanced_weights_equal_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    num_classes = rng.integers(2, 6)
    ids = np.r_[np.arange(num_classes), rng.integers(0, num_classes, 30)]
    expected = sklearn.utils.class_weight.compute_class_weight(
        "balanced", classes=np.arange(num_classes), y=ids
    )
    actual = targets.balanced_weights(ids, num_classes)
    assert actual.dtype == np.float32
    np.testing.assert_allclose(actual, expected, rtol=1e-6)
    with_absent = targets.balanced_weights(ids, num_classes + 1)
    assert with_absent[-1] == 0 and with_absent.shape == (num_classes + 1,)


def test_weights_as_numbers_and_from_a_file(tmp_path):
    path = tmp_path / "weights.json"
    path.write_text(json.dumps({"good": 2, "bad": 0.5, "so so": 0}))
    for text in ("0.5, 2,0", str(path)):
        weights = targets.read_weights(text, NAMES)
        assert weights.dtype == np.float32 and weights.tolist() == [0.5, 2, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2", "are 2, '1,2', but there are 3 classes: bad, good, so so"),
        ("balancd", "are 1, 'balancd', but there are 3 classes"),
        ("1,2,x", "the weight must be a number, got 'x'"),
        ("1,2,-1", "must be 0 or more"),
        ("0,0,0", "one above 0"),
        ("1,inf,1", "must be a number, got 'inf'"),
    ],
)
def test_numbers_that_are_no_weights(text, message):
    with pytest.raises(ValueError, match=message):
        targets.read_weights(text, NAMES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[1, 2, 3]", "must be a JSON object"),
        ('{"good": 1, "bad": 1}', "has no weight for so so"),
        ('{"goood": 1}', "unknown label 'goood'; .* did you mean 'good'"),
        ('{"good": "x", "bad": 1, "so so": 1}', "must be a number, got 'x'"),
        ("", "is empty"),
    ],
)
def test_files_that_are_no_weights(tmp_path, content, message):
    path = tmp_path / "weights.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message) as caught:
        targets.read_weights(str(path), NAMES)
    assert str(path) in str(caught.value)


def test_no_file_of_weights(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file .*nowhere.json"):
        targets.read_weights(str(tmp_path / "nowhere.json"), NAMES)
