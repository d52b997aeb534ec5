"""What signatures take, and which of them may be joined."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2

from server import errors, versions
from server import signatures as signatures_lib
from tests import served

signature_def_utils = tf.compat.v1.saved_model.signature_def_utils


@pytest.fixture(scope="module")
def signatures(toy):
    return versions.Version("toy", 1, str(toy / "1")).signatures


def test_which_requests_may_be_joined(signatures):
    joinable = {name for name in served.Toy.SIGNATURES if signatures[name].is_joinable}
    # `words` is as wide as the longest text of the batch, `total` has no rows.
    assert joinable == set(served.Toy.SIGNATURES) - {"words", "total"}


def test_what_is_checked(signatures):
    look_up = signatures["look_up"]
    ids, flags = np.zeros((3, 2), np.int32), np.zeros(3, bool)
    assert look_up.check({"ids": ids, "is_negative": flags}) == 3
    assert look_up.check({"ids": ids, "is_negative": np.zeros(5, bool)}) == 5
    bad = [
        ({"ids": ids}, 'takes ids, is_negative; got "ids"'),
        ({"ids": ids, "is_negative": flags, "x": ids}, "takes ids, is_negative; got"),
        ({"ids": ids[0], "is_negative": flags}, r"ids must have shape \[any, any\]"),
        ({"ids": ids[:0], "is_negative": flags}, "ids is empty"),
    ]
    for inputs, part in bad:
        with pytest.raises(errors.RequestError, match=part):
            look_up.check(inputs)


def test_limits_of_texts_in_two_axes():
    limits = signatures_lib.Limits(max_items=6, max_text_bytes=4, max_body_bytes=20)

    def check(rows):
        spec = tf.TensorSpec([None, None], tf.string)
        definition = signature_def_utils.build_signature_def(
            {"choices": tensor_info(spec)}, {"y": tensor_info(spec)}
        )
        signature = signatures_lib.Signature("s", definition, None)
        return signature.check({"choices": np.array(rows, object)}, limits)

    assert check([[b"a", b"bc", b"d"], [b"e", b"f", b"g"]]) == 2
    assert check([[], []]) == 2  # the model says what is wrong with that
    for rows, part in (
        ([[b"a"] * 4] * 2, "has 8 items, at most 6"),
        ([[b"abcde"]], "has 5 bytes, at most 4"),
        ([[b"abcd", b"", b""], [b"", b"", b""]], "padded to the longest of 4 bytes"),
    ):
        with pytest.raises(errors.RequestError, match=part):
            check(rows)


def tensor_info(spec):
    info = meta_graph_pb2.TensorInfo(dtype=spec.dtype.as_datatype_enum)
    info.tensor_shape.CopyFrom(spec.shape.as_proto())
    return info


def test_running(signatures):
    ids, flags = np.array([[1, 2], [3, 4]], np.int32), np.array([False, True])
    outputs = signatures["look_up"].run({"ids": ids, "is_negative": flags})
    assert list(outputs) == ["ids", "sum"]
    assert outputs["sum"].tolist() == [30, -70]
    texts = np.array([b"a\0", b""], object)
    outputs = signatures["serving_default"].run({"text": texts})
    assert outputs["echo"].dtype == object
    assert outputs["echo"].tolist() == [b"a\0", b""]


def test_it_says_what_it_takes(signatures):
    assert str(signatures["look_up"]) == "look_up(ids, is_negative)"
