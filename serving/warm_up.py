"""Requests with which TensorFlow Serving warms a model up before it serves.

It reads them from assets.extra/tf_serving_warmup_requests of a SavedModel: a TFRecord
file of PredictionLog messages.
"""

import os

import numpy as np
import tensorflow as tf

PATH = "assets.extra/tf_serving_warmup_requests"
_TEXT = "A short text with a [MASK] in it."
_LENGTH = 3  # of a sequence of ids: what the shortest model takes


def write(path, model_name, signatures, methods):
    """Adds one request for each signature to a SavedModel.

    Args:
        path: str, folder of the SavedModel.
        model_name: str.
        signatures: dict of name → function, those of the SavedModel.
        methods: dict of name → method of TensorFlow Serving, of signatures that are
            not for Predict.
    Raises:
        ImportError: the package tensorflow-serving-api is not installed.
    """
    from tensorflow_serving.apis import prediction_log_pb2  # an extra

    logs = []
    for name, function in sorted(signatures.items()):
        log = prediction_log_pb2.PredictionLog()
        kind = methods.get(name, "predict").rpartition("/")[2]
        request = getattr(log, f"{kind}_log").request
        request.model_spec.name = model_name
        request.model_spec.signature_name = name
        if kind == "predict":
            for argument, spec in function.structured_input_signature[1].items():
                tensor = tf.make_tensor_proto(_sample(argument, spec), spec.dtype)
                request.inputs[argument].CopyFrom(tensor)
        else:
            example = request.input.example_list.examples.add()
            example.features.feature["text"].bytes_list.value.append(_TEXT.encode())
        logs.append(log.SerializeToString())
    path = os.path.join(path, PATH)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tf.io.TFRecordWriter(path) as writer:
        for log in logs:
            writer.write(log)


def _sample(name, spec):
    """A value for an argument: one text or sequence, or two where they are choices."""
    if spec.dtype == tf.string:
        return np.full([1] if spec.shape.rank == 1 else [1, 2], _TEXT)
    return np.full([1, *[2] * (spec.shape.rank - 2), _LENGTH], int("mask" in name))
