"""How many items are different: exact while there is room, then close."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from data import distinct


@given(st.lists(st.lists(st.integers(0, 50))))
def test_it_is_exact_while_there_is_room(batches):
    counter = distinct.DistinctCounter(capacity=60)
    for batch in batches:
        counter.add(np.array(batch, np.uint64))
    numbers = [number for batch in batches for number in batch]
    assert counter.is_exact
    assert counter.num_distinct == len(set(numbers))
    repeated = 1 - len(set(numbers)) / len(numbers) if numbers else 0
    assert counter.repeated_share == repeated


def test_it_is_close_beyond_that():
    rng = np.random.default_rng(0)
    items = rng.integers(0, 2**64, 100_000, np.uint64)
    stream = rng.permutation(np.concatenate([items, items[:25_000], items[:25_000]]))
    counter = distinct.DistinctCounter(capacity=4096)
    for start in range(0, len(stream), 1000):
        counter.add(stream[start : start + 1000])
        assert len(counter._hashes) <= 4096
        assert counter._num_pending <= 2024
    assert not counter.is_exact
    # 2,048 or more hashes are kept: a standard error of at most 2.2 %.
    assert abs(counter.num_distinct / 100_000 - 1) < 0.09
    assert abs(counter.repeated_share - 1 / 3) < 0.05


def test_the_order_does_not_matter():
    rng = np.random.default_rng(1)
    stream = rng.integers(0, 2**64, 5000, np.uint64).repeat(2)
    results = set()
    for _ in range(3):
        counter = distinct.DistinctCounter(capacity=256)
        for part in np.array_split(rng.permutation(stream), 7):
            counter.add(part)
        results.add((counter.num_distinct, counter.repeated_share))
    assert len(results) == 1
