"""What signatures take, and which of them may be joined."""

import numpy as np
import pytest

from server import errors, versions
from tests import served


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
