"""JSON to arrays, with NumPy and TensorFlow Serving's documentation as the measure."""

import base64
import json

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from server import errors, json_answers, json_tensors


class Inputs:
    """A signature that takes anything by these names."""

    name = "s"

    def __init__(self, **dtypes):
        self.inputs = {n: tf.TensorSpec(None, dtype) for n, dtype in dtypes.items()}

    def check_names(self, names):
        if set(names) != set(self.inputs):
            raise errors.invalid("names")


DTYPES = ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float32"]


@pytest.mark.parametrize("dtype", [*DTYPES, "float64", "float16", "bool"])
def test_numbers_survive_both_ways(dtype):
    rng = np.random.default_rng(0)
    for shape in ((), (3,), (2, 3), (2, 1, 4), (2, 0), (0,)):
        numbers = rng.integers(0, 100, shape)
        if dtype.startswith("float"):
            numbers = rng.normal(size=shape)
        array = np.asarray(numbers).astype(dtype)
        sent = json_answers.from_outputs({"y": array}, is_row=False)["outputs"]
        sent = json.loads(json.dumps(sent))
        spec = tf.TensorSpec([None] * len(shape), dtype)
        got = json_tensors.to_array(sent, spec, "x")
        assert got.dtype == array.dtype
        np.testing.assert_array_equal(got, array)


def test_the_ends_of_integers():
    for name in DTYPES[:-1]:
        info, spec = np.iinfo(name), tf.TensorSpec([None], name)
        ends = [int(info.min), int(info.max)]
        assert json_tensors.to_array(ends, spec, "x").tolist() == ends
        for over in (ends[0] - 1, ends[1] + 1, 10**50):
            with pytest.raises(errors.RequestError, match="between"):
                json_tensors.to_array([over], spec, "x")


def test_bfloat16_comes_as_numbers():
    array = np.array([1.5, -2], ml_dtypes.bfloat16)
    assert json_answers.from_outputs({"y": array}, True) == {"predictions": [1.5, -2]}
    spec = tf.TensorSpec([None], tf.bfloat16)
    assert json_tensors.to_array([1.5, 2], spec, "x").tolist() == [1.5, 2]


def test_the_example_of_the_documentation():
    signature = Inputs(tag=tf.string, signal=tf.int32, sensor=tf.float32)
    rows = [
        {"tag": "foo", "signal": [1, 2, 3], "sensor": [[1, 2], [3, 4]]},
        {"tag": "bar", "signal": [3, 4, 1], "sensor": [[4, 5], [6, 8]]},
    ]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    for body in ({"instances": rows}, {"inputs": columns}):
        found = json_tensors.inputs(body, signature)
        assert found["tag"].tolist() == [b"foo", b"bar"]
        assert found["signal"].dtype == np.int32
        assert found["sensor"].shape == (2, 2, 2)
        for name in ("signal", "sensor"):
            np.testing.assert_array_equal(found[name], columns[name])


def test_ragged_lists_are_refused_wherever_they_are():
    spec = tf.TensorSpec(None, tf.int32)
    for value in ([[1], [2, 3]], [[1], 2], [1, [2]], [[[1], [2]], [[3]]], [[], [1]]):
        with pytest.raises(errors.RequestError, match="ragged|must be int32"):
            json_tensors.to_array(value, spec, "x")
    deep = 1
    for _ in range(100):
        deep = [deep]
    with pytest.raises(errors.RequestError, match="deep"):
        json_tensors.to_array(deep, spec, "x")


def test_types_that_are_not_numbers_or_text():
    spec = tf.TensorSpec([None], tf.complex64)
    with pytest.raises(errors.RequestError, match="complex64"):
        json_tensors.to_array([1.0], spec, "x")


def test_base64_may_lack_its_padding():
    for text in ("YQ", "YQ==", "YWI", "YWJj", ""):
        padded = text + "=" * (-len(text) % 4)
        expected = base64.b64decode(padded)
        assert json_tensors.to_bytes({"b64": text}, "x") == expected
