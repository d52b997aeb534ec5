"""Classify and Regress: `tf.Example`s in, classes or numbers out."""

import numpy as np
import tensorflow as tf

from server import errors, json_answers, json_tensors

_MAX_CONTEXT_BYTES = 16 << 20  # of all its copies


def from_json(document, max_items):
    """The examples of a request, each with the features of its context.

    Args:
        document: dict, with "examples" and perhaps "context".
        max_items: int.
    Returns:
        list of tf.train.Example.
    Raises:
        errors.RequestError: they are no examples, or too many.
    """
    rows, context = document.get("examples"), document.get("context", {})
    if not isinstance(rows, list) or not rows:
        raise errors.invalid('"examples" must be a list of at least one object')
    if any(not isinstance(features, dict) for features in (*rows, context)):
        raise errors.invalid('"context" and all of "examples" must be objects')
    errors.check_count(len(rows), max_items)
    if in_both := set(context) & set().union(*rows):
        name = errors.quoted(min(in_both))
        raise errors.invalid(f"feature {name} is both in the context and an example")
    return _merged(_example(context), [_example(row) for row in rows])


def from_message(message, max_items):
    """The examples of a request by gRPC, each with the features of its context.

    Args:
        message: tensorflow.serving.Input.
        max_items: int.
    Returns:
        list of tf.train.Example.
    Raises:
        errors.RequestError: there are none, or too many.
    """
    context = tf.train.Example()
    rows = message.example_list.examples
    if message.WhichOneof("kind") == "example_list_with_context":
        context = message.example_list_with_context.context
        rows = message.example_list_with_context.examples
    if not rows:
        raise errors.invalid("the input has no examples")
    errors.check_count(len(rows), max_items)
    return _merged(context, rows)


def _merged(context, rows):
    """Each of the examples with the features of a context."""
    if context.ByteSize() * len(rows) > _MAX_CONTEXT_BYTES:
        raise errors.invalid("the context is too large for so many examples")
    found = []
    for row in rows:
        example = tf.train.Example()
        example.CopyFrom(context)
        example.MergeFrom(row)
        found.append(example)
    return found


def _example(features):
    try:
        features = {name: _feature(name, value) for name, value in features.items()}
        return tf.train.Example(features=tf.train.Features(feature=features))
    except UnicodeEncodeError:
        raise errors.invalid("a feature's name has half of a surrogate pair") from None


def _feature(name, value):
    """A feature of a value of JSON or a list of them, all of one type."""
    values = value if isinstance(value, list) else [value]
    types = set(map(type, values))
    if types <= {bool, int}:
        if any(not -(2**63) <= number < 2**63 for number in values):
            raise errors.invalid(f"feature {errors.quoted(name)} must be 64-bit")
        return tf.train.Feature(int64_list=tf.train.Int64List(value=map(int, values)))
    if types == {float}:
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    if types <= {str, dict}:
        name = f"feature {errors.quoted(name)}"
        values = [json_tensors.to_bytes(item, name) for item in values]
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    raise errors.invalid(
        f"feature {errors.quoted(name)} must be strings, whole numbers or decimals"
    )


def classes(outputs, num_examples):
    """What classifies each example.

    Args:
        outputs: dict of np.ndarray: classes, bytes, and scores, [examples, classes], or
            one of them.
        num_examples: int.
    Returns:
        list of lists of (str, float); "" and 0.0 for what the model does not give.
    Raises:
        errors.RequestError: the outputs are not these.
    """
    names, scores = outputs.get("classes"), outputs.get("scores")
    given = [array for array in (names, scores) if array is not None]
    if not given or any(
        array.ndim != 2 or array.shape != given[0].shape or len(array) != num_examples
        for array in given
    ):
        raise errors.invalid("the signature gives no classes and scores of examples")
    rows = range(num_examples)
    width = given[0].shape[1]
    labels = [[""] * width for _ in rows] if names is None else names.tolist()
    if scores is None:
        scores = np.zeros([num_examples, width], np.float32)
    scores = json_answers.numbers(scores)
    return [
        [
            (label.decode(errors="replace") if label else "", score)
            for label, score in zip(labels[row], scores[row], strict=True)
        ]
        for row in rows
    ]


def numbers(outputs, num_examples):
    """The number of each example, list of float.

    Args:
        outputs: dict of np.ndarray: outputs, [examples] or [examples, 1].
        num_examples: int.
    Raises:
        errors.RequestError: the outputs are not these.
    """
    values = outputs.get("outputs")
    if values is None or values.shape not in ((num_examples,), (num_examples, 1)):
        raise errors.invalid("the signature gives no number for each example")
    return json_answers.numbers(values.reshape(-1))
