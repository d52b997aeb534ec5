"""Errors become a code and one short sentence."""

import grpc
import pytest
import tensorflow as tf

from server import errors


def test_what_a_client_sent_is_cut_and_ascii():
    assert errors.quoted("a") == '"a"'
    for text in ("x" * 1000, "é\n\0\ud800" * 100, {"a": [1] * 100}, 10**100, None):
        found = errors.quoted(text)
        assert len(found) <= 60 and found.isascii() and found.isprintable()
    assert len(errors.invalid("x" * 10_000).sentence) == 400


def test_every_code_has_a_status_of_http():
    made = [
        errors.invalid(""),
        errors.not_found(""),
        errors.busy(""),
        errors.too_slow(1.0),
        errors.of_model(KeyError()),
        errors.of_model(MemoryError()),
    ]
    found = [errors.HTTP_STATUS[error.code] for error in made]
    assert found == [400, 404, 503, 504, 500, 503]
    assert set(errors.HTTP_STATUS) - {error.code for error in made} == {
        grpc.StatusCode.OK
    }


def test_what_the_graph_refuses_is_the_clients_fault():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def look_up(ids):
        return tf.gather([1, 2, 3], ids)

    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        look_up(tf.constant([5]))
    found = errors.of_model(error.value)
    assert found.code == grpc.StatusCode.INVALID_ARGUMENT
    assert found.sentence == (
        "the model refuses these inputs: indices[0] = 5 is not in [0, 3)"
    )


def test_no_memory_and_faults_of_ours():
    full = tf.errors.ResourceExhaustedError(None, None, "OOM when allocating\n[[x]]")
    assert errors.of_model(full).code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert errors.of_model(MemoryError()).code == grpc.StatusCode.RESOURCE_EXHAUSTED
    found = errors.of_model(RuntimeError("secret"))
    assert found.code == grpc.StatusCode.INTERNAL and "secret" not in found.sentence
    refused = errors.invalid("no")
    assert errors.of_model(refused) is refused
