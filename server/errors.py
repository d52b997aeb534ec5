"""What can be wrong with a request: a code of gRPC and one sentence."""

import json

import grpc
import tensorflow as tf
from absl import logging

_Code = grpc.StatusCode
# As TensorFlow Serving's, but a full queue is 503, which clients and proxies try again.
HTTP_STATUS = {
    _Code.OK: 200,
    _Code.INVALID_ARGUMENT: 400,
    _Code.NOT_FOUND: 404,
    _Code.RESOURCE_EXHAUSTED: 503,
    _Code.UNAVAILABLE: 503,
    _Code.DEADLINE_EXCEEDED: 504,
    _Code.INTERNAL: 500,
}
_MAX_LENGTH = 400  # of a sentence, which gRPC sends as a header
# Lines of TensorFlow's messages that say where in the graph, not what.
_NOISE = ("Graph execution error", "Detected at node", "<stack traces", "File ", "[[")


class RequestError(Exception):
    """An answer that is no result.

    Args:
        code: grpc.StatusCode.
        sentence: str, for the client.
    """

    def __init__(self, code, sentence):
        super().__init__(sentence)
        self.code, self.sentence = code, sentence[:_MAX_LENGTH]


def invalid(sentence):
    """The client has to change the request."""
    return RequestError(_Code.INVALID_ARGUMENT, sentence)


def not_found(sentence):
    """There is no such model, version or page."""
    return RequestError(_Code.NOT_FOUND, sentence)


def busy(sentence):
    """The client may try again later, as clients of gRPC do by themselves."""
    return RequestError(_Code.UNAVAILABLE, sentence)


def stopping():
    """There is no time left for the request."""
    return busy("the server is stopping; try again later")


def check_count(count, most):
    """Raises a RequestError if a request has more items than are allowed."""
    if count > most:
        raise invalid(
            f"the request has {count} items, at most {most} are allowed; send several "
            "requests"
        )


def too_slow(seconds):
    """The answer took too long."""
    return RequestError(
        _Code.DEADLINE_EXCEEDED,
        f"no answer within {seconds:g} seconds; send less, or try again",
    )


def quoted(value):
    """A value of JSON that a client sent, in ASCII and cut, for a sentence."""
    if isinstance(value, list | dict):  # of any depth
        return "a list" if isinstance(value, list) else "an object"
    text = json.dumps(value[:60] if isinstance(value, str) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def of_model(error):
    """RequestError for what a model raised while it ran, an Exception."""
    if isinstance(error, RequestError):
        return error
    # What is wrong with values, such as ids outside the vocabulary, the graph finds.
    if isinstance(error, tf.errors.InvalidArgumentError | tf.errors.OutOfRangeError):
        return invalid(f"the model refuses these inputs: {_sentence(error)}")
    if isinstance(error, tf.errors.ResourceExhaustedError | MemoryError):
        return RequestError(
            _Code.RESOURCE_EXHAUSTED,
            "the inputs are too large for this machine's memory",
        )
    logging.error("a model failed: %s: %s", type(error).__name__, _sentence(error))
    return RequestError(_Code.INTERNAL, "the model failed; the server's log says how")


def _sentence(error):
    """What an exception says, on one line."""
    lines = str(getattr(error, "message", error)).splitlines()
    lines = [line.strip() for line in lines]
    lines = [line for line in lines if line and not line.startswith(_NOISE)]
    return " ".join(lines).partition(" [Op:")[0]
