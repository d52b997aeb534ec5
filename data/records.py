"""Layouts of TFRecord files, and writing them.

The features have the names and types of the original BERT, so its programs read our
files and we read theirs. A layout is a `Spec`; a new task adds a function that returns
one. `data/record_reading.py` checks and parses records, `data/batching.py` says in
which order. Here is no TensorFlow, so that many small processes can write.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping

import numpy as np

from data import features, filesystem, record_format

_ROWS_AT_ONCE = 1024  # large for NumPy, small for the memory


@dataclasses.dataclass(frozen=True)
class Feature:
    """An entry of a record.

    Attributes:
        length: number of values in a record.
        dtype: "int64" or "float32", as in the file.
        flag: the flag that decides on `length`, if there is one.
        is_scalar: of length 1, and [B] in a batch, where others are [B, length].
        default: stands in where a record lacks the feature.
        num_choices: in a record so many times `length` values stand in a row; they are
            [B, num_choices, length] in a batch.
    """

    length: int
    dtype: str = "int64"
    flag: str | None = None
    is_scalar: bool = False
    default: int | None = None
    num_choices: int | None = None

    @property
    def shape(self) -> list[int]:
        """Of one record's entry of a batch."""
        if self.is_scalar:
            return []
        return [self.num_choices, self.length] if self.num_choices else [self.length]

    @property
    def size(self) -> int:
        """The number of values in a record."""
        return math.prod(self.shape)


Spec = dict[str, Feature]


def pretraining_spec(max_seq_length: int, max_predictions_per_seq: int) -> Spec:
    """Layout of masked LM and next sentence records."""
    predictions = Feature(max_predictions_per_seq, flag="max_predictions_per_seq")
    return _sequence_spec(max_seq_length) | {
        "masked_lm_positions": predictions,
        "masked_lm_ids": predictions,
        "masked_lm_weights": dataclasses.replace(predictions, dtype="float32"),
        "next_sentence_labels": Feature(1),
    }


def classifier_spec(max_seq_length: int) -> Spec:
    """Layout of classified sentences and pairs."""
    return _sequence_spec(max_seq_length) | {
        "label_ids": Feature(1, is_scalar=True),
        # Files of the first versions of the original lack it.
        "is_real_example": Feature(1, is_scalar=True, default=1),
    }


def regression_spec(max_seq_length: int) -> Spec:
    """Layout of sentences and pairs with a number each."""
    label = Feature(1, "float32", is_scalar=True)
    return classifier_spec(max_seq_length) | {"label_ids": label}


def multi_label_spec(max_seq_length: int, num_labels: int) -> Spec:
    """Layout of sentences and pairs with 1 or 0 for each of `num_labels` labels."""
    return classifier_spec(max_seq_length) | {"label_ids": Feature(num_labels)}


def window_spec(spec: Spec) -> Spec:
    """Layout of the windows of documents."""
    return spec | {"document_ids": Feature(1, is_scalar=True)}


def multiple_choice_spec(num_choices: int, max_seq_length: int) -> Spec:
    """Layout of choices among sequences, [B, num_choices, max_seq_length]."""
    # No flag: whether it or the number of choices is another, a length does not tell.
    sequences = Feature(max_seq_length, num_choices=num_choices)
    return classifier_spec(max_seq_length) | dict.fromkeys(features.INPUTS, sequences)


def squad_spec(max_seq_length: int, is_training: bool) -> Spec:
    """Layout of questions with a part of their text."""
    names = ["unique_ids"]
    if is_training:
        names += ["start_positions", "end_positions", "is_impossible"]
    scalars = dict.fromkeys(names, Feature(1, is_scalar=True))
    return _sequence_spec(max_seq_length) | scalars


def _sequence_spec(max_seq_length: int) -> Spec:
    return dict.fromkeys(
        features.INPUTS, Feature(max_seq_length, flag="max_seq_length")
    )


def write(path: str, data: Mapping[str, np.ndarray], spec: Spec) -> None:
    """Writes a file that holds the rows of `data`; see `write_stream`."""
    write_stream(path, [data], spec)


def write_stream(
    path: str, batches: Iterable[Mapping[str, np.ndarray]], spec: Spec
) -> int:
    """Writes tf.train.Example records.

    The file appears under its name when it is complete. If something goes wrong, what
    stood there before is left.

    Args:
        path: the file.
        batches: dicts with the features of `spec`, shaped as in a batch.
        spec: the layout.

    Returns:
        The number of records.

    Raises:
        ValueError: a feature has another shape, or there is no record.
    """
    num_records = 0
    with filesystem.replacing(path) as file:
        for batch in batches:
            num_rows = len(batch[next(iter(spec))])
            for start in range(0, num_rows, _ROWS_AT_ONCE):
                rows = slice(start, start + _ROWS_AT_ONCE)
                part = {name: batch[name][rows] for name in spec}
                file.write(encode(part, spec)[0])
            num_records += num_rows
        if not num_records:
            raise ValueError(f"there is no record to write to {path}")
    return num_records


def encode(
    batch: Mapping[str, np.ndarray], spec: Spec
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a batch as they stand in a file, one after the other.

    Args:
        batch: the features of `spec`, shaped as in a batch.
        spec: the layout.

    Returns:
        See `record_format.encode`: bytes, and where in them each record ends.

    Raises:
        ValueError: a feature has another shape.
    """
    columns = {}
    for name, feature in spec.items():
        rows = np.asarray(batch[name])
        shape = (len(rows), *feature.shape)
        if rows.shape != shape:
            raise ValueError(
                f"{name} must have shape {shape} in the records, got {rows.shape}"
            )
        if rows.dtype.kind != "i" or feature.dtype != "int64":  # int32 will do, too
            rows = rows.astype(feature.dtype)
        columns[name] = rows.reshape(len(rows), feature.size)
    return record_format.encode(columns)
