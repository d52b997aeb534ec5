"""The comparison of an export sees every difference that matters."""

import math

import numpy as np
import pytest

from serving import parity
from tests import small_models


def test_difference_is_relative_only_for_large_values():
    assert parity.difference([1.0, 0.25], [1.0, 0.5]) == 0.25
    assert parity.difference([-200.0, 1.0], [-100.0, 1.0]) == 1.0
    assert parity.difference(np.zeros([0, 3]), np.zeros([0, 3])) == 0.0
    assert math.isnan(parity.difference([math.nan, 1.0], [0.0, 1.0]))
    with pytest.raises(ValueError, match=r"\[2\].*\[1\]"):
        parity.difference([1.0, 2.0], [1.0])


def test_differences_are_of_all_that_is_expected():
    actual = {"b": [2.0], "a": [1.5], "label": [b"of the export only"]}
    assert list(parity.differences(actual, {"a": [1.0], "b": [2.0]})) == [0.5, 0.0]
    with pytest.raises(KeyError):
        list(parity.differences(actual, {"c": [1.0]}))


def test_texts_are_the_same_or_they_are_not():
    assert parity.mismatch([[b"a", b"b"]], [[b"a", b"b"]]) == 0
    for other in ([[b"a", b"c"]], [b"a", b"b"], [[b"a"]], []):
        assert math.isnan(parity.mismatch([[b"a", b"b"]], other))


@pytest.mark.parametrize("choices", [(), (2,)])
def test_batches_are_of_all_lengths_and_ids(choices):
    config = small_models.config(type_vocab_size=3)
    batches = list(parity.random_batches(config, 16, choices))
    assert [tuple(b["input_ids"].shape) for b in batches] == [
        (1, *choices, 1),
        (3, *choices, 16),
    ]
    for batch in batches:
        assert list(batch) == ["input_ids", "input_mask", "segment_ids"]
        ids, mask, segments = (values.numpy() for values in batch.values())
        assert ids.max() < config.vocab_size and segments.max() <= 1
        assert (mask[..., 0] == 1).all() and (np.diff(mask) <= 0).all()
    assert len(set(mask.sum(-1).flat)) > 1 and set(segments.flat) == {0, 1}
