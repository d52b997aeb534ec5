"""Counts against Python's, descriptions against NumPy's."""

import collections

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from data import tallies

NUMBERS = st.integers(-3, 40)


@given(st.lists(st.lists(NUMBERS)))
def test_numbers_are_counted(batches):
    tally = tallies.Tally()
    for batch in batches:
        tally.add(np.array(batch, np.int64))
    expected = collections.Counter(n for batch in batches for n in batch if n >= 0)
    assert {n: tally[n] for n in range(50)} == {n: expected[n] for n in range(50)}
    assert tally.total == expected.total()
    assert tally.padded(50)[:50].tolist() == [expected[n] for n in range(50)]
    found = tallies.most_common(tally.counts, 4)
    counts = sorted(expected.items(), key=lambda item: (-item[1], item[0]))
    assert found == counts[:4]


def test_huge_numbers_take_no_memory():
    tally = tallies.Tally()
    tally.add(np.array([7, 2**50, -(2**50)]))
    assert (tally.total, len(tally.counts)) == (1, 8)


@given(st.lists(st.integers(0, 300), min_size=1))
def test_numbers_are_described(numbers):
    found = tallies.describe(np.bincount(numbers))
    np.testing.assert_allclose(found.pop("mean"), np.mean(numbers))
    np.testing.assert_allclose(found.pop("std"), np.std(numbers), atol=1e-6)
    assert (found.pop("min"), found.pop("max")) == (min(numbers), max(numbers))
    expected = {
        name: np.percentile(numbers, int(name[1:]), method="inverted_cdf")
        for name in found
    }
    assert found == expected
    assert {"p1", "p10", "p50", "p90", "p99"} <= found.keys()


def test_faults_are_counted_and_the_first_is_kept():
    faults = tallies.Faults()
    faults.add("a", np.array([False, False]), ["1", "2"])
    assert faults.found == {}
    faults.add("a", np.array([False, True, True]), ["3", "4", "5"])
    faults.add("a", np.array([True]), ["6"])
    faults.add("b", np.array([True]), ["7"])
    assert faults.found == {
        "a": {"records": 3, "first": "4"},
        "b": {"records": 1, "first": "7"},
    }
