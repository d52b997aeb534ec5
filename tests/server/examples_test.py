"""JSON ↔ examples, classes and numbers."""

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_serving.apis import input_pb2

from server import errors, examples


def example(text):
    return text_format.Parse(text, tf.train.Example())


def test_features_of_json_are_those_of_the_message():
    row = {
        "text": "é",
        "bytes": {"b64": "/w=="},
        "ids": [1, -2],
        "flag": True,
        "weights": [0.5, float("inf")],
        "nothing": [],
    }
    body = {"examples": [row], "context": {"year": 2018}}
    (found,) = examples.from_json(body, 1)
    expected = example(
        r"""features {
          feature { key: "text" value { bytes_list { value: "\303\251" } } }
          feature { key: "bytes" value { bytes_list { value: "\377" } } }
          feature { key: "ids" value { int64_list { value: 1 value: -2 } } }
          feature { key: "flag" value { int64_list { value: 1 } } }
          feature { key: "weights" value { float_list { value: 0.5 value: inf } } }
          feature { key: "nothing" value { int64_list {} } }
          feature { key: "year" value { int64_list { value: 2018 } } }
        }"""
    )
    assert found == expected


@pytest.mark.parametrize(
    "value", [None, {}, [[1]], [1, 0.5], ["a", 1], {"b64": 3}, 2**63, "\ud800"]
)
def test_values_that_are_no_feature(value):
    with pytest.raises(errors.RequestError, match='feature "x"'):
        examples.from_json({"examples": [{"x": value}]}, 1)


def test_names_that_are_no_text():
    with pytest.raises(errors.RequestError, match="surrogate"):
        examples.from_json({"examples": [{"\ud800": 1}]}, 1)


def test_the_context_of_a_message_is_of_every_example():
    message = input_pb2.Input()
    with pytest.raises(errors.RequestError, match="no examples"):
        examples.from_message(message, 9)
    a = example('features { feature { key: "a" value { int64_list { value: 1 } } } }')
    b = example('features { feature { key: "b" value { int64_list { value: 2 } } } }')
    message.example_list_with_context.context.CopyFrom(a)
    message.example_list_with_context.examples.extend([b, example("")])
    first, second = examples.from_message(message, 9)
    assert set(first.features.feature) == {"a", "b"}
    assert second == a
    message.example_list.examples.extend([b])
    assert examples.from_message(message, 9) == [b]
    with pytest.raises(errors.RequestError, match="at most 0"):
        examples.from_message(message, 0)


def test_classes_with_and_without_names_or_scores():
    names = np.array([[b"a", b"b"]], object)
    scores = np.array([[0.25, 0.75]], np.float32)
    both = {"classes": names, "scores": scores}
    assert examples.classes(both, 1) == [[("a", 0.25), ("b", 0.75)]]
    assert examples.classes({"classes": names}, 1) == [[("a", 0.0), ("b", 0.0)]]
    assert examples.classes({"scores": scores}, 1) == [[("", 0.25), ("", 0.75)]]
    bad = [{}, {"scores": scores[0]}, {"classes": names, "scores": scores[:, :1]}]
    for outputs in (*bad, {"scores": np.zeros((2, 2))}):
        with pytest.raises(errors.RequestError, match="classes"):
            examples.classes(outputs, 1)


def test_numbers_with_and_without_a_second_axis():
    values = np.array([1.5, -2], np.float32)
    assert examples.numbers({"outputs": values}, 2) == [1.5, -2]
    assert examples.numbers({"outputs": values[:, None]}, 2) == [1.5, -2]
    for outputs in ({}, {"outputs": values}, {"outputs": np.zeros((1, 2))}):
        with pytest.raises(errors.RequestError, match="number"):
            examples.numbers(outputs, 1)
