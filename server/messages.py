"""Arrays in the messages of TensorFlow Serving's gRPC, to arrays and back."""

import math

import numpy as np
import tensorflow as tf

from server import errors

_MAX_RANK = 32
# A message may give one number for all of a large shape. More elements than this, and
# than the message has bytes, are refused.
_MAX_REPEATED = 1 << 17


def inputs(request, signature):
    """The inputs of a predict request.

    Args:
        request: tensorflow.serving.PredictRequest.
        signature: signatures.Signature.
    Returns:
        dict of name → np.ndarray.
    Raises:
        errors.RequestError: they are not what the signature takes.
    """
    signature.check_names(request.inputs)
    return {
        name: _to_array(request.inputs[name], spec, name)
        for name, spec in signature.inputs.items()
    }


def example_inputs(examples, signature):
    """The input of a signature that classifies or regresses.

    Args:
        examples: list of tf.train.Example.
        signature: signatures.Signature.
    Returns:
        dict of name → np.ndarray of serialized examples.
    Raises:
        errors.RequestError: the signature takes no examples.
    """
    if [spec.dtype for spec in signature.inputs.values()] != [tf.string]:
        raise errors.invalid(f"signature {signature.name} takes no examples")
    serialized = np.empty(len(examples), object)
    serialized[:] = [example.SerializeToString() for example in examples]
    return dict.fromkeys(signature.inputs, serialized)


def _to_array(tensor, spec, name):
    """np.ndarray of a TensorProto."""
    if tensor.dtype != spec.dtype.as_datatype_enum:
        raise errors.invalid(
            f"input {name} must be {spec.dtype.name}, got {_type_name(tensor.dtype)}"
        )
    shape = [dim.size for dim in tensor.tensor_shape.dim]
    if tensor.tensor_shape.unknown_rank or any(size < 0 for size in shape):
        raise errors.invalid(f"input {name} must have a shape")
    if spec.dtype == tf.string:
        most = len(tensor.string_val)  # One may be long.
    else:
        most = max(_MAX_REPEATED, tensor.ByteSize())
    if len(shape) > _MAX_RANK or math.prod(shape) > most:
        raise errors.invalid(f"input {name} has shape {shape} and fewer values")
    try:
        return tf.make_ndarray(tensor).reshape(shape)
    except (ValueError, TypeError, IndexError, OverflowError):
        raise errors.invalid(
            f"input {name} does not have the values of its shape {shape}"
        ) from None


def _type_name(number):
    try:
        return tf.as_dtype(number).name
    except TypeError:
        return f"type {number}"


def to_tensor(array, dtype):
    """The TensorProto of an np.ndarray, of a tf.DType."""
    return tf.make_tensor_proto(array, dtype, array.shape)
