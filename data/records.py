"""Layouts of TFRecord files: writing, finding, checking and parsing them.

The features have the names and types of the original BERT, so its programs read our
files and we read theirs. A layout is a `Spec`; a new task adds a function that returns
one. `data/batching.py` says in which order records are read.
"""

import contextlib
import dataclasses
import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import tensorflow as tf
from google.protobuf import message

_SEQUENCES = ("input_ids", "input_mask", "segment_ids")
_TOKEN_IDS = ("input_ids", "masked_lm_ids")


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
    return classifier_spec(max_seq_length) | dict.fromkeys(_SEQUENCES, sequences)


def squad_spec(max_seq_length: int, is_training: bool) -> Spec:
    """Layout of questions with a part of their text."""
    names = ["unique_ids"]
    if is_training:
        names += ["start_positions", "end_positions", "is_impossible"]
    scalars = dict.fromkeys(names, Feature(1, is_scalar=True))
    return _sequence_spec(max_seq_length) | scalars


def _sequence_spec(max_seq_length: int) -> Spec:
    return dict.fromkeys(_SEQUENCES, Feature(max_seq_length, flag="max_seq_length"))


def parse(serialized: tf.Tensor, spec: Spec) -> dict[str, tf.Tensor]:
    """Records, string [B], to a batch; integers become int32."""
    layout = {}
    for name, feature in spec.items():
        layout[name] = tf.io.FixedLenFeature(
            feature.shape, feature.dtype, feature.default
        )
    parsed = tf.io.parse_example(serialized, layout)
    return {
        name: tf.cast(values, tf.int32) if values.dtype == tf.int64 else values
        for name, values in parsed.items()
    }


def write(path: str, data: Mapping[str, np.ndarray], spec: Spec) -> None:
    """Writes a file that holds the rows of `data`; see `write_stream`."""
    write_stream([path], [data], spec)


def write_stream(
    paths: Sequence[str], batches: Iterable[Mapping[str, np.ndarray]], spec: Spec
) -> int:
    """Writes tf.train.Example records to files in turn.

    Files appear under their names when all are complete. If something goes wrong, none
    does, and what stood there before is left.

    Args:
        paths: the files, all different.
        batches: dicts with the features of `spec`, shaped as in a batch.
        spec: the layout.

    Returns:
        The number of records.

    Raises:
        ValueError: a feature has another shape, or a file would get no record.
    """
    if len({os.path.realpath(path) for path in paths}) < len(paths):
        raise ValueError(f"the output files must differ, got {', '.join(paths)}")
    # Hidden files, which `expand` passes over, should a kill leave them behind.
    places = [os.path.split(os.path.abspath(path)) for path in paths]
    temporary = [f"{folder}/.{name}.tmp-{os.getpid()}" for folder, name in places]
    num_records = 0
    try:
        with contextlib.ExitStack() as stack:
            enter = stack.enter_context
            writers = [enter(tf.io.TFRecordWriter(name)) for name in temporary]
            for record in _serialize(batches, spec):
                writers[num_records % len(writers)].write(record)
                num_records += 1
        if num_records < len(paths):
            raise ValueError(
                f"every file needs a record, got {num_records} for {', '.join(paths)}"
            )
        for name, path in zip(temporary, paths, strict=True):
            os.replace(name, path)
    finally:
        for name in temporary:
            with contextlib.suppress(FileNotFoundError):
                os.remove(name)
    return num_records


def _serialize(
    batches: Iterable[Mapping[str, np.ndarray]], spec: Spec
) -> Iterator[bytes]:
    """Yields each row of each batch as an Example."""
    for batch in batches:
        columns = []
        for name, feature in spec.items():
            rows = np.asarray(batch[name])
            shape = (len(rows), *feature.shape)
            if rows.shape != shape:
                raise ValueError(
                    f"{name} must have shape {shape} in the records, got {rows.shape}"
                )
            # Plain numbers go into protocol buffers faster than arrays do.
            rows = rows.reshape(len(rows), feature.size)
            columns.append(rows.astype(feature.dtype).tolist())
        for row in zip(*columns, strict=True):
            example = tf.train.Example()
            for (name, feature), values in zip(spec.items(), row, strict=True):
                entry = example.features.feature[name]
                is_int = feature.dtype == "int64"
                (entry.int64_list if is_int else entry.float_list).value.extend(values)
            # Without `deterministic`, equal records may differ in the order of entries.
            yield example.SerializeToString(deterministic=True)


def expand(patterns: str) -> list[str]:
    """Files that a comma list of globs names, sorted, each once; no hidden ones.

    Raises:
        FileNotFoundError: a pattern matches nothing.
        ValueError: a file is empty, or a folder, or there is no pattern.
    """
    files = set()
    for pattern in filter(None, (part.strip() for part in patterns.split(","))):
        matches = [pattern]  # a name may hold brackets, which a glob reads otherwise
        if not tf.io.gfile.exists(pattern):
            matches = tf.io.gfile.glob(pattern)
            matches = [m for m in matches if not os.path.basename(m).startswith(".")]
        if not matches:
            raise FileNotFoundError(f"no file matches {pattern!r}")
        files.update(matches)
    if not files:
        raise ValueError(f"expected file names, separated by commas, got {patterns!r}")
    for path in files:
        if tf.io.gfile.isdir(path):
            raise ValueError(f"{path} is a folder; for the files in it pass {path}/*")
        if tf.io.gfile.stat(path).length == 0:
            raise ValueError(f"{path} is empty")
    return sorted(files)


def check(
    files: Iterable[str],
    spec: Spec,
    hint: str = "make the file again",
    vocab_size: int | None = None,
    num_records: int | None = 32,
) -> None:
    """Compares the first records of each file with what is expected.

    Args:
        files: TFRecord files.
        spec: the layout they should have.
        hint: what to do if flags do not mend it.
        vocab_size: token ids must be below it.
        num_records: how many of each file; all if None.

    Raises:
        ValueError: what is wrong with which file, and what to change.
    """
    for path in files:
        start = itertools.islice(_read(path), num_records)
        for number, serialized in enumerate(start, 1):
            problem = _find_problem(serialized, spec, hint, vocab_size)
            if problem:
                raise ValueError(f"{path}, record {number}: {problem}")


@contextlib.contextmanager
def damage_explained(files: Sequence[str], spec: Spec) -> Iterator[None]:
    """Names file and record where reading fails within the `with` block.

    Raises:
        ValueError: in place of TensorFlow's errors about bad records.
    """
    try:
        yield
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
        is_damage = isinstance(error, tf.errors.DataLossError)
        if is_damage or "parse" in error.message.lower():
            count(files)  # soon finds a file that is cut off
            check(files, spec, num_records=None)
        raise  # the files are good, so it is about something else


def count(files: Iterable[str]) -> int:
    """Number of records; reads their lengths only.

    Raises:
        ValueError: a file ends within a record.
    """
    return sum(1 for path in files for _ in _record_ends(path))


def _record_ends(path: str) -> Iterator[int]:
    """Yields the place in the file where each record ends."""
    # A record: length (8 bytes), checksum of it (4), content, checksum of that (4).
    size, end, number = tf.io.gfile.stat(path).length, 0, 0
    with tf.io.gfile.GFile(path, "rb") as file:
        while end < size:
            file.seek(end)
            header = file.read(8)
            end += 16 + int.from_bytes(header, "little")
            if len(header) < 8 or end > size:
                raise ValueError(_damage(path, number))
            number += 1
            yield end


def _read(path: str) -> Iterator[bytes]:
    """Yields the serialized records of a file; ValueError where it is damaged."""
    records = tf.data.TFRecordDataset(path).as_numpy_iterator()
    for number, _ in enumerate(_record_ends(path)):
        try:
            yield next(records)
        except tf.errors.DataLossError as error:
            raise ValueError(_damage(path, number)) from error


def _damage(path: str, number: int) -> str:
    what = "is damaged or cut off" if number else "is no TFRecord file, or is cut off"
    return f"{path} {what} after {number} records; copy it or make it again"


def _find_problem(
    serialized: bytes, spec: Spec, hint: str, vocab_size: int | None
) -> str | None:
    """What is wrong with a record, and what to change."""
    try:
        features = tf.train.Example.FromString(serialized).features.feature
    except message.DecodeError:
        features = {}
    if not features:
        return f"it is no tf.train.Example with features; {hint}"
    lengths = {}  # flag -> (there, expected)
    for name, feature in spec.items():
        if name not in features:
            if feature.default is not None:
                continue
            return f"it has no {name}, only {', '.join(sorted(features))}; {hint}"
        kind = "int64_list" if feature.dtype == "int64" else "float_list"
        values = getattr(features[name], kind).value
        if len(values) == feature.size:
            if vocab_size and name in _TOKEN_IDS and max(values) >= vocab_size:
                return (
                    f"{name} holds {max(values)}, but the model's vocab_size is"
                    f" {vocab_size}; use the model that the vocabulary belongs to, or"
                    f" {hint}"
                )
        elif feature.flag and values:
            lengths[feature.flag] = (len(values), feature.length)
        else:
            wanted = f"{feature.size} values of type {feature.dtype}"
            return f"{name} should have {wanted}, but has {len(values)}; {hint}"
    if not lengths:
        return None
    made = " ".join(f"--{flag}={there}" for flag, (there, _) in lengths.items())
    asked = " ".join(f"--{flag}={length}" for flag, (_, length) in lengths.items())
    return f"it was made with {made}, but is read with {asked}; pass {made} or {hint}"
