"""Counts of numbers, and of faults, that come in batches."""

from collections.abc import Sequence
from typing import Any

import numpy as np

_MAX_NUMBER = 1 << 22  # larger ids are told as faults, but not counted one by one
_PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)


class Tally:
    """Counts numbers that are small and not negative; leaves out the others."""

    def __init__(self):
        self.counts = np.zeros(1, np.int64)

    def add(self, numbers: np.ndarray) -> None:
        """Takes integers of any shape into account."""
        numbers = numbers[(numbers >= 0) & (numbers < _MAX_NUMBER)]
        counts = np.bincount(numbers, minlength=len(self.counts))
        counts[: len(self.counts)] += self.counts
        self.counts = counts

    def __getitem__(self, number: int) -> int:
        return int(self.counts[number]) if number < len(self.counts) else 0

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def padded(self, size: int) -> np.ndarray:
        """The counts, at least of the numbers below `size`."""
        return np.pad(self.counts, (0, max(0, size - len(self.counts))))


def most_common(counts: np.ndarray, number: int) -> list[tuple[int, int]]:
    """(index, count) of the largest counts above 0, the largest first."""
    order = np.argsort(-counts, kind="stable")[:number]
    return [(int(i), int(counts[i])) for i in order if counts[i] > 0]


class Faults:
    """How many records have a fault, and which is the first."""

    def __init__(self):
        self.found = {}

    def add(self, name: str, is_fault: np.ndarray, places: Sequence[str]) -> None:
        """Takes bool [n] and the places of these records into account."""
        if is_fault.any():
            entry = self.found.setdefault(
                name, {"records": 0, "first": places[int(is_fault.argmax())]}
            )
            entry["records"] += int(is_fault.sum())


def describe(counts: np.ndarray) -> dict[str, Any]:
    """Mean, deviation and percentiles of numbers, of which the counts are given.

    A percentile is the least number that at least so many of all are at most.
    """
    total, numbers = counts.sum(), np.arange(len(counts))
    mean = counts @ numbers / total
    sums = np.cumsum(counts)
    values = {
        "mean": float(mean),
        "std": float(np.sqrt(counts @ (numbers - mean) ** 2 / total)),
        "min": int(np.flatnonzero(counts)[0]),
        "max": int(np.flatnonzero(counts)[-1]),
    }
    for percentile in _PERCENTILES:
        place = np.searchsorted(sums * 100, percentile * total)
        values[f"p{percentile}"] = int(place)
    return values
