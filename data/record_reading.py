"""Reading TFRecord files: parsing, counting, and saying what is wrong with them."""

import contextlib
import gzip
import hashlib
import itertools
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, TypeVar

import numpy as np
import tensorflow as tf
import tqdm
from google.protobuf import message

from data import records

_TOKEN_IDS = ("input_ids", "masked_lm_ids")
_BLOCK = 2**20  # bytes

T = TypeVar("T")


def compression(paths: Iterable[str]) -> str:
    """What tf.data is to be told: "GZIP" where the names end in .gz, else "".

    Raises:
        ValueError: some do and some do not.
    """
    kinds = {path: "GZIP" if path.endswith(".gz") else "" for path in paths}
    if len(set(kinds.values())) > 1:
        plain, zipped = (sorted(kinds, key=kinds.get)[i] for i in (0, -1))
        raise ValueError(
            f"record files are read together only if all are compressed or none is, "
            f"but {zipped} is and {plain} is not"
        )
    return next(iter(kinds.values()), "")


def serialized(files: Sequence[str]) -> tf.data.Dataset:
    """Records as they are stored, string [], in the order of the files."""
    return tf.data.TFRecordDataset(files, compression(files))


def read_all(files: Sequence[str], spec: records.Spec) -> dict[str, np.ndarray]:
    """Reads all records into memory, in the order of the files.

    Raises:
        ValueError: a file is damaged or has another layout.
    """
    count(files)  # TensorFlow overlooks some files that are cut off
    batches = serialized(files).batch(1024).map(lambda batch: parse(batch, spec))
    with damage_explained(files, spec):
        parts = list(batches.as_numpy_iterator())
    return {name: np.concatenate([part[name] for part in parts]) for name in spec}


def parse(serialized: tf.Tensor, spec: records.Spec) -> dict[str, tf.Tensor]:
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


def check(
    files: Iterable[str],
    spec: records.Spec,
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
        ValueError: what is wrong with which file, and what to change; or no file holds
            a record.
    """
    paths = list(files)
    number = 0
    for path in paths:
        start = itertools.islice(_read(path), num_records)
        for number, serialized in enumerate(start, 1):
            problem = _find_problem(serialized, spec, hint, vocab_size)
            if problem:
                raise ValueError(f"{path}, record {number}: {problem}")
    if not number:
        raise ValueError(f"there is no record in {', '.join(paths):.200}; {hint}")


@contextlib.contextmanager
def damage_explained(files: Sequence[str], spec: records.Spec) -> Iterator[None]:
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
    return sum(1 for _ in _shown(files, _record_numbers, "counting records"))


def fingerprint(files: Iterable[str]) -> str:
    """SHA-256 of what is in the files, in hexadecimal; tells sets of records apart."""
    digest = hashlib.sha256()
    for block in _shown(files, _blocks, "checksums"):
        digest.update(block)
    return digest.hexdigest()


def _shown(
    files: Iterable[str], read: Callable[[str], Iterator[tuple[T, int]]], title: str
) -> Iterator[T]:
    """Yields what is read of each file, and shows how far it is.

    Args:
        files: some.
        read: path -> values, each with the bytes that the file was read up to.
        title: what is done.
    """
    paths = list(files)
    total = sum(os.path.getsize(path) for path in paths if "://" not in path)
    done = 0
    with tqdm.tqdm(
        desc=title, total=total, unit="B", unit_scale=True, delay=1
    ) as progress:
        for path in paths:
            place = 0
            for value, place in read(path):
                if done + place >= progress.n + _BLOCK:
                    progress.update(done + place - progress.n)
                yield value
            done += place
            progress.update(done - progress.n)


def _blocks(path: str) -> Iterator[tuple[bytes, int]]:
    """Yields what is in a file, see `_shown`."""
    with _open(path) as file:
        while block := file.read(_BLOCK):
            yield block, _place(file)


def _place(file: IO[bytes]) -> int:
    """How far a file is read, as it is stored."""
    return (file.fileobj if isinstance(file, gzip.GzipFile) else file).tell()


def _record_numbers(path: str) -> Iterator[tuple[int, int]]:
    """Yields 0, 1, ..., one a record, see `_shown`; reads their lengths only."""
    # A record: length (8 bytes), checksum of it (4), content, checksum of that (4).
    end = number = 0
    with _open(path) as file:
        is_packed = isinstance(file, gzip.GzipFile)
        try:
            while header := file.read(8):
                length = int.from_bytes(header, "little")
                end += 16 + min(length, 2**40)  # where it is no record, anything
                file.seek(end - 1)
                if len(header) < 8 or not file.read(1):
                    raise ValueError(_damage(path, number))
                yield number, _place(file) if is_packed else end
                number += 1
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(_damage(path, number)) from error


@contextlib.contextmanager
def _open(path: str) -> Iterator[IO[bytes]]:
    remote = "://" in path
    with tf.io.gfile.GFile(path, "rb") if remote else open(path, "rb") as file:
        yield gzip.GzipFile(fileobj=file, mode="rb") if compression([path]) else file


def _read(path: str) -> Iterator[bytes]:
    """Yields the serialized records of a file; ValueError where it is damaged."""
    contents = tf.data.TFRecordDataset(path, compression([path])).as_numpy_iterator()
    for number, _ in _record_numbers(path):
        try:
            yield next(contents)
        except tf.errors.DataLossError as error:
            raise ValueError(_damage(path, number)) from error


def _damage(path: str, number: int) -> str:
    what = "is damaged or cut off" if number else "is no TFRecord file, or is cut off"
    return f"{path} {what} after {number} records; copy it or make it again"


def _find_problem(
    serialized: bytes, spec: records.Spec, hint: str, vocab_size: int | None
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
