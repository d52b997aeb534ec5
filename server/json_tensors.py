"""The JSON of requests to TensorFlow Serving's REST API, to arrays."""

import base64
import collections
import json

import numpy as np
import tensorflow as tf

from server import errors

_MAX_RANK = 32
# Which values of JSON a tf.DType takes; others it has none for.
_NUMBERS = (
    (lambda dtype: dtype.is_integer, {int}),
    (lambda dtype: dtype.is_bool, {bool}),
    (lambda dtype: dtype.is_floating, {int, float}),
)


def parse(body):
    """The JSON object that a request is.

    Args:
        body: bytes.
    Returns:
        dict.
    Raises:
        errors.RequestError: it is none, or names a key twice.
    """
    try:
        document = json.loads(body.decode(), object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        raise errors.invalid(f"the body is not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise errors.invalid(
            f"the body is not JSON, from character {error.pos} on: {error.msg}"
        ) from None
    except RecursionError:
        raise errors.invalid("the lists of the body are nested too deeply") from None
    except ValueError:  # Python reads integers of some thousand digits, no more.
        raise errors.invalid("a number of the body has too many digits") from None
    if not isinstance(document, dict):
        raise errors.invalid('the body must be an object, such as {"instances": [...]}')
    return document


def _object(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = collections.Counter(name for name, _ in pairs)
        ((twice, _),) = counts.most_common(1)
        raise errors.invalid(f"key {errors.quoted(twice)} is twice in one object")
    return found


def signature_name(document):
    """The signature that a request names, "" if none."""
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise errors.invalid('"signature_name" must be a string')
    return name


def inputs(document, signature):
    """The inputs of a predict request, in row or in column format.

    Args:
        document: dict, with "instances" or "inputs".
        signature: signatures.Signature.
    Returns:
        dict of name → np.ndarray.
    Raises:
        errors.RequestError: they are not what the signature takes.
    """
    if ("instances" in document) == ("inputs" in document):
        raise errors.invalid('the body must have either "instances" or "inputs"')
    if "instances" in document:
        columns = _columns(document["instances"], signature)
    elif _is_object(document["inputs"]):
        columns = document["inputs"]
    else:
        columns = _only_input(document["inputs"], "inputs", signature)
    signature.check_names(columns)
    return {
        name: to_array(columns[name], spec, name)
        for name, spec in signature.inputs.items()
    }


def _columns(instances, signature):
    """dict of name → list of values, from a list of items."""
    if not isinstance(instances, list) or not instances:
        raise errors.invalid('"instances" must be a list of at least one item')
    if not _is_object(instances[0]):
        return _only_input(instances, "instances", signature)
    for row in instances:
        if not _is_object(row):
            raise errors.invalid('all of "instances" must be objects if the first is')
        signature.check_names(row)
    return {name: [row[name] for row in instances] for name in signature.inputs}


def _only_input(value, key, signature):
    if len(signature.inputs) != 1:
        names = ", ".join(signature.inputs)
        raise errors.invalid(
            f'"{key}" must name the inputs, as signature {signature.name} takes {names}'
        )
    return dict.fromkeys(signature.inputs, value)


def _is_object(value):
    """Whether it is an object, and not one that stands for bytes."""
    return isinstance(value, dict) and set(value) != {"b64"}


def to_array(value, spec, name):
    """A value or nested lists as an array.

    Args:
        value: of JSON.
        spec: tf.TensorSpec.
        name: str, of the input.
    Returns:
        np.ndarray of the type of `spec`, objects for strings; its shape is the value's.
    Raises:
        errors.RequestError: lists of the same depth differ in length, they are deeper
            than `spec`, or a value is not of its type.
    """
    shape, level = [], [value]
    deepest = _MAX_RANK if spec.shape.rank is None else spec.shape.rank
    while level and isinstance(level[0], list):
        if len(shape) == deepest:
            raise errors.invalid(
                f"input {name} must be lists {deepest} deep, got deeper ones"
            )
        if any(not isinstance(v, list) or len(v) != len(level[0]) for v in level):
            raise errors.invalid(
                f"input {name} is ragged: its lists must be equally long"
            )
        shape.append(len(level[0]))
        level = [item for items in level for item in items]
    return _values(level, spec.dtype, name).reshape(shape)


def _values(values, dtype, name):
    """A list of values of JSON as an array, [values]."""
    if dtype == tf.string:
        return np.array([to_bytes(v, f"input {name}") for v in values], object)
    expected = next((found for is_one, found in _NUMBERS if is_one(dtype)), set())
    # The exact type: a bool is an int to Python.
    wrong = [value for value in values if type(value) not in expected]
    if wrong:
        raise errors.invalid(
            f"input {name} must be {dtype.name}, got {errors.quoted(wrong[0])}"
        )
    number_type = dtype.as_numpy_dtype
    if dtype.is_integer and values:
        info = np.iinfo(number_type)
        if min(values) < info.min or max(values) > info.max:
            raise errors.invalid(
                f"input {name} must be between {info.min} and {info.max}"
            )
    if not dtype.is_floating:
        return np.array(values, number_type)
    try:
        exact = np.array(values, np.float64)
    except OverflowError:
        raise errors.invalid(f"input {name} has a number out of range") from None
    with np.errstate(over="ignore"):
        array = exact.astype(number_type)
    if np.any(np.isinf(array) & np.isfinite(exact)):
        raise errors.invalid(f"input {name} has a number out of range")
    return array


def to_bytes(value, name):
    """The bytes of a JSON string, or of {"b64": ...}.

    Raises:
        errors.RequestError: it is neither.
    """
    try:
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, dict) and set(value) == {"b64"}:
            text = value["b64"]
            padding = "=" * (-len(text) % 4)  # which TensorFlow Serving can do without
            return base64.b64decode(text + padding, validate=True)
    except UnicodeEncodeError:
        raise errors.invalid(f"{name} has half of a surrogate pair") from None
    except (ValueError, TypeError):
        raise errors.invalid(f'{name} has a "b64" that is not base64') from None
    raise errors.invalid(f"{name} must be a string, got {errors.quoted(value)}")
