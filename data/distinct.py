"""Counting how many of a stream's items are different, in bounded memory."""

import numpy as np


class DistinctCounter:
    """Counts different items by their hashes.

    Exact up to a capacity. Beyond it only the hashes below a threshold are kept, which
    halves when there are too many again, and what they say is taken for the whole
    (Gibbons 2001, "Distinct Sampling for Highly-Accurate Answers to Distinct Values
    Queries and Event Reports"). With the default the error is then about 0.2 %.

    Args:
        capacity: hashes to keep; they take 16 bytes each, and as much again for a
            moment.
    """

    def __init__(self, capacity: int = 1 << 20):
        self._capacity = capacity
        self._halvings = 0
        self._hashes = np.zeros(0, np.uint64)  # ascending
        self._counts = np.zeros(0, np.int64)
        self._pending, self._num_pending = [], 0

    def add(self, hashes: np.ndarray) -> None:
        """Takes uint64 [n] of items into account."""
        if self._halvings:
            hashes = hashes[hashes >> np.uint64(64 - self._halvings) == 0]
        self._pending.append(hashes)
        self._num_pending += len(hashes)
        if self._num_pending > self._capacity // 4:
            self._merge()

    @property
    def is_exact(self) -> bool:
        """Whether all hashes are kept."""
        self._merge()
        return not self._halvings

    @property
    def num_distinct(self) -> int:
        """How many different items there were."""
        self._merge()
        return len(self._hashes) << self._halvings

    @property
    def repeated_share(self) -> float:
        """Share of the items that are equal to an earlier one."""
        self._merge()
        total = int(self._counts.sum())
        return 1 - len(self._hashes) / total if total else 0.0

    def _merge(self) -> None:
        if not self._num_pending:
            return
        hashes = np.concatenate([self._hashes, *self._pending])
        counts = np.concatenate([self._counts, np.ones(self._num_pending, np.int64)])
        self._pending, self._num_pending = [], 0
        self._hashes, places = np.unique(hashes, return_inverse=True)
        self._counts = np.bincount(places, counts).astype(np.int64)
        while len(self._hashes) > self._capacity:
            self._halvings += 1
            threshold = np.uint64(1 << (64 - self._halvings))
            kept = int(np.searchsorted(self._hashes, threshold))
            self._hashes, self._counts = self._hashes[:kept], self._counts[:kept]
