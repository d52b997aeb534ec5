"""Classify and Regress: `tf.Example`s in, classes or numbers out."""

import tensorflow as tf

from server import errors, json_tensors


def from_json(document):
    """The examples of a request, each with the features of its context.

    Args:
        document: dict, with "examples" and perhaps "context".
    Returns:
        list of tf.train.Example.
    Raises:
        errors.RequestError: they are no examples.
    """
    rows, context = document.get("examples"), document.get("context", {})
    if not isinstance(rows, list) or not rows:
        raise errors.invalid('"examples" must be a list of at least one object')
    if any(not isinstance(features, dict) for features in (*rows, context)):
        raise errors.invalid('"context" and all of "examples" must be objects')
    for name in context:
        if any(name in row for row in rows):
            raise errors.invalid(
                f"feature {errors.quoted(name)} is both in the context and an example"
            )
    common = _example(context)
    return [_merged(common, _example(row)) for row in rows]


def from_message(message):
    """The examples of a request by gRPC, each with the features of its context.

    Args:
        message: tensorflow.serving.Input.
    Returns:
        list of tf.train.Example.
    Raises:
        errors.RequestError: there are none.
    """
    if message.WhichOneof("kind") == "example_list_with_context":
        given = message.example_list_with_context
        found = [_merged(given.context, example) for example in given.examples]
    else:
        found = message.example_list.examples
    if not found:
        raise errors.invalid("the input has no examples")
    return found


def _merged(context, example):
    merged = tf.train.Example()
    merged.CopyFrom(context)
    merged.MergeFrom(example)
    return merged


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
    scores = [[0.0] * width for _ in rows] if scores is None else scores.tolist()
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
    return values.reshape(-1).tolist()
