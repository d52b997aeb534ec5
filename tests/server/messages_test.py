"""TensorProtos that TensorFlow writes become the arrays they were, and back."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2

from server import errors, messages


class Input:
    """A signature of one input."""

    name = "s"

    def __init__(self, dtype):
        self.inputs = {"x": tf.TensorSpec(None, dtype)}

    def check_names(self, names):
        assert set(names) == {"x"}


def read(proto, dtype):
    request = predict_pb2.PredictRequest(inputs={"x": proto})
    return messages.inputs(request, Input(dtype))["x"]


DTYPES = [tf.int8, tf.uint8, tf.int32, tf.int64, tf.uint64, tf.float32, tf.float64]


@pytest.mark.parametrize("dtype", [*DTYPES, tf.float16, tf.bfloat16, tf.bool])
def test_numbers(dtype):
    rng = np.random.default_rng(0)
    for shape in ((), (1,), (7,), (2, 3), (4, 1, 2), (0,), (2, 0)):
        array = rng.integers(0, 100, shape).astype(dtype.as_numpy_dtype)
        proto = tf.make_tensor_proto(array, dtype, shape)
        found = read(proto, dtype)
        assert (found.dtype, found.shape) == (array.dtype, shape)
        np.testing.assert_array_equal(found, array)
        np.testing.assert_array_equal(
            tf.make_ndarray(messages.to_tensor(found, dtype)), array
        )


@pytest.mark.parametrize("values", [[], [b""], [b"a\0", b"\xff"], [[b"a"], [b"b"]]])
def test_strings(values):
    array = np.array(values, object)
    found = read(tf.make_tensor_proto(array, tf.string, array.shape), tf.string)
    assert found.tolist() == values
    again = tf.make_ndarray(messages.to_tensor(found, tf.string))
    assert again.tolist() == values


def test_values_that_are_packed_in_bytes():
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    proto = tf.make_tensor_proto(array)
    assert proto.tensor_content
    np.testing.assert_array_equal(read(proto, tf.int32), array)
    proto.tensor_content = proto.tensor_content[:-1]
    with pytest.raises(errors.RequestError, match="values of its shape"):
        read(proto, tf.int32)


@pytest.mark.parametrize(
    ("dtype", "number"), [(tf.int8, 300), (tf.uint8, -1), (tf.int16, 1 << 20)]
)
def test_numbers_that_the_type_does_not_hold(dtype, number):
    proto = tf.make_tensor_proto([1, 2, 3], dtype)
    proto.ClearField("tensor_content")
    proto.int_val[:] = [1, number, 3]
    with pytest.raises(errors.RequestError, match="values of its shape"):
        read(proto, dtype)


def test_a_small_message_cannot_ask_for_much_memory():
    proto = tf.make_tensor_proto(1)
    for size in (1 << 10, 1 << 31):
        proto.tensor_shape.dim.add(size=size)
    with pytest.raises(errors.RequestError, match="fewer values"):
        read(proto, tf.int32)


def test_examples_need_one_input_of_strings():
    rows = [tf.train.Example(), tf.train.Example()]
    found = messages.example_inputs(rows, Input(tf.string))["x"]
    assert found.tolist() == [b"", b""]
    with pytest.raises(errors.RequestError, match="takes no examples"):
        messages.example_inputs(rows, Input(tf.int32))
