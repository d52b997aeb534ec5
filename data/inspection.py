"""What is in record files, of any layout, in one pass over them.

Everything is added up block by block, so memory does not depend on the files' sizes.
What the numbers should be is in `data/inspection_checks.py`, how they are shown in
`data/inspection_table.py`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from data import inspection_statistics, record_decoding, record_stream, records, tallies

PRETRAINING = "pre-training"
CHOICES = "texts and classes, or choices"  # which a record does not tell apart
UNKNOWN = "unknown"
# What a record is by its features, and which script writes such ones. The first whose
# features are all there it is.
_LAYOUTS = (
    (PRETRAINING, "create_pretraining_data.py", records.pretraining_spec(1, 1)),
    ("questions and answers", "run_squad.py", records.squad_spec(1, True)),
    ("questions", "run_squad.py", records.squad_spec(1, False)),
    (
        "windows of texts, and classes",
        "run_classifier.py --document_stride",
        records.window_spec(records.classifier_spec(1)),
    ),
    (
        CHOICES,
        "run_classifier.py or run_swag.py",
        records.classifier_spec(1),
    ),
    ("texts and numbers", "run_classifier.py", records.regression_spec(1)),
)
WRITERS = {kind: script for kind, script, _ in _LAYOUTS}


class _Layout:
    """Records of one kind: which features they have, and of what sizes."""

    def __init__(self):
        self.num_records = 0
        self.features = {}

    def add(self, name: str, kind: str, counts: np.ndarray, values: np.ndarray) -> None:
        """Takes the values of a feature and their counts [n] into account."""
        counts = counts[counts > 0]
        if not len(counts):
            return
        entry = self.features.setdefault(
            (name, kind), {"records": 0, "count": None, "range": None}
        )
        entry["records"] += len(counts)
        for key, array in (("count", counts), ("range", values)):
            low, high = entry[key] or (array[0].item(), array[0].item())
            entry[key] = min(low, array.min().item()), max(high, array.max().item())

    def report(self) -> dict[str, Any]:
        """As JSON values."""
        features = [
            {"name": name, "kind": kind, **entry}
            for (name, kind), entry in sorted(self.features.items())
        ]
        return {"records": self.num_records, "features": features}


class Inspector:
    """Adds up what is in files."""

    def __init__(self, settings: inspection_statistics.Settings):
        self._files, self._layouts = [], {}
        self._faults = tallies.Faults()
        self._statistics = inspection_statistics.Statistics(settings, self._faults)

    def read(self, path: str, report: Callable[[int], object] = lambda _: None) -> None:
        """Takes a file into account; if it is damaged, what is before the damage.

        Args:
            path: the file.
            report: called with numbers of bytes as they are read.
        """
        source = record_stream.Source(path, report)
        kinds, damage = {}, None
        try:
            for contents in source.blocks():
                first = source.num_records + 1
                places = [f"{path}, record {first + i}" for i in range(len(contents))]
                for kind, number in self._add(contents, places).items():
                    kinds[kind] = kinds.get(kind, 0) + number
        except record_stream.Damage as error:
            damage = str(error)
        self._files.append(
            {
                "path": path,
                "records": source.num_records,
                "bytes": source.size,
                "sha256": source.checksum.hexdigest(),
                "kinds": kinds,
                "damage": damage,
            }
        )

    def _add(self, contents: list[bytes], places: list[str]) -> dict[str, int]:
        """Takes a block into account; how many records there are of each kind."""
        columns = record_decoding.decode(contents)
        kinds = _find_kinds(columns, len(contents))
        numbers = {kind: int((kinds == kind).sum()) for kind in sorted(set(kinds))}
        for kind, number in numbers.items():
            rows = kinds == kind
            layout = self._layouts.setdefault(kind, _Layout())
            layout.num_records += number
            for (name, dtype), column in columns.items():
                values = column.values
                if number < len(contents):
                    values = values[np.repeat(rows, column.counts)]
                layout.add(name, dtype, column.counts[rows], values)
        self._faults.add("layout", kinds == UNKNOWN, places)
        is_odd = kinds == PRETRAINING
        for rows, batch in _batches(columns, np.flatnonzero(is_odd)):
            is_odd[rows] = False
            self._statistics.add(
                batch, [contents[i] for i in rows], [places[i] for i in rows]
            )
        self._faults.add("features", is_odd, places)
        return numbers

    def samples(self) -> list[tuple[str, dict[str, list]]]:
        """(place, record) of some records of pre-training."""
        return self._statistics.samples()

    def report(self) -> dict[str, Any]:
        """What was found, as JSON values.

        Returns:
            files: path, records, bytes, sha256, number of records of each kind, and
                what is damaged or None.
            layouts: kind → records, and features: name, kind of value, the records that
                have it, the least and most values, the least and greatest value.
            faults: name → records that have it, and the first of them.
            pretraining: see `Statistics.report`; None if there are no such records.
        """
        statistics = self._statistics
        return {
            "files": self._files,
            "layouts": {k: v.report() for k, v in sorted(self._layouts.items())},
            "faults": self._faults.found,
            "pretraining": statistics.report() if statistics.num_records else None,
        }


def _find_kinds(columns: Mapping, num_records: int) -> np.ndarray:
    """The kind of each record, str [n]."""
    kinds = np.full(num_records, UNKNOWN, object)
    for kind, _, spec in reversed(_LAYOUTS):
        is_kind = np.ones(num_records, bool)
        for name, feature in spec.items():
            if feature.default is None:
                column = columns.get((name, feature.dtype))
                is_kind &= column.counts > 0 if column else False
        kinds[is_kind] = kind
    return kinds


def _batches(
    columns: Mapping, rows: np.ndarray
) -> Iterator[tuple[np.ndarray, dict[str, np.ndarray]]]:
    """Yields records of pre-training that have the same L and M, and their numbers.

    Those whose features are not of equal lengths are left out.
    """
    if not len(rows):
        return
    spec = records.pretraining_spec(2, 3)  # lengths that tell what belongs together
    columns = {name: columns[name, feature.dtype] for name, feature in spec.items()}
    sizes = {2: "input_ids", 3: "masked_lm_ids"}
    counts = {size: columns[name].counts[rows] for size, name in sizes.items()}
    counts[1] = np.ones(len(rows), np.int64)
    is_even = np.ones(len(rows), bool)
    for name, feature in spec.items():
        is_even &= columns[name].counts[rows] == counts[feature.length]
    pairs = np.stack([counts[2], counts[3]], axis=1)
    for pair in np.unique(pairs[is_even], axis=0):
        chosen = rows[is_even & (pairs == pair).all(axis=1)]
        widths = {1: 1, 2: int(pair[0]), 3: int(pair[1])}
        yield (
            chosen,
            {
                name: columns[name].rows(chosen, widths[feature.length])
                for name, feature in spec.items()
            },
        )
