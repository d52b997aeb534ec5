"""Lines of text to vectors, of any number of lines in bounded memory.

Lines are cut into windows, sorted by length within each and cut into batches, so that
little is padding. `in_order` undoes the sorting; files are written as vectors come.
"""

import contextlib
import itertools
import json
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import tensorflow as tf

from data import classification, features, tables

SEPARATOR = " ||| "

# A window ends with the batch that reaches one of these. The first bounds what waits to
# be written (256 MB of float32), the second what waits to be computed.
WINDOW_VALUES = 1 << 26
WINDOW_BATCHES = 128


class Line(NamedTuple):
    """A line as the model sees it, without padding."""

    number: int  # from 0
    input_ids: list[int]
    segment_ids: list[int]


def read_examples(
    path: str | pathlib.Path,
) -> Iterator[classification.InputExample]:
    """Yields every line, an empty one too: TEXT or TEXT_A ||| TEXT_B.

    Raises:
        FileNotFoundError, ValueError: as `tables.read_lines`.
    """
    for number, line in tables.read_lines(path):
        text = line.strip()
        text_a, separator, text_b = text.rpartition(SEPARATOR)
        texts = (text_a, text_b) if separator else (text, None)
        yield classification.InputExample(str(number - 1), *texts)


def count_lines(path: str | pathlib.Path) -> int:
    """Reads the whole file; raises what `read_examples` raises."""
    return sum(1 for _ in tables.read_lines(path))


def featurize(
    examples: Iterable[classification.InputExample],
    max_seq_length: int,
    tokenizer: features.Tokenizer,
) -> Iterator[Line]:
    """Tokenizes and truncates as the classifier does."""
    for number, example in enumerate(examples):
        ids_a = tokenizer.encode(example.text_a)
        ids_b = tokenizer.encode(example.text_b) if example.text_b else []
        ids = features.join_segments(ids_a, ids_b, max_seq_length, tokenizer)
        yield Line(number, *ids)


def sorted_batches(
    lines: Iterable[Line], batch_size: int, values_per_token: int
) -> Iterator[list[Line]]:
    """Yields batches of lines of like length; only the last may be smaller.

    Args:
        lines: in the order of the file.
        batch_size: B.
        values_per_token: numbers to keep for each token until the line's turn to be
            written has come.
    """
    for window in _windows(lines, batch_size, values_per_token):
        window.sort(key=lambda line: len(line.input_ids))
        for start in range(0, len(window), batch_size):
            yield window[start : start + batch_size]


def _windows(
    lines: Iterable[Line], batch_size: int, values_per_token: int
) -> Iterator[list[Line]]:
    window, num_values, lines = [], 0, iter(lines)
    while batch := list(itertools.islice(lines, batch_size)):
        window += batch
        num_values += values_per_token * sum(len(line.input_ids) for line in batch)
        if num_values >= WINDOW_VALUES or len(window) >= batch_size * WINDOW_BATCHES:
            yield window
            window, num_values = [], 0
    if window:
        yield window


def to_batch(
    lines: Sequence[Line], batch_size: int, max_seq_length: int, multiple: int = 8
) -> dict[str, np.ndarray]:
    """Pads lines to the longest, rounded up to a multiple, and fills up the batch.

    Returns:
        int32: input_ids, input_mask and segment_ids [B, L]; line_numbers and
        is_real_example [B], 0 where a row is filling.
    """
    longest = max(len(line.input_ids) for line in lines)
    shape = (batch_size, min(max_seq_length, -(-longest // multiple) * multiple))
    batch = {name: np.zeros(shape, np.int32) for name in features.INPUTS}
    for row, line in enumerate(lines):
        size = len(line.input_ids)
        batch["input_ids"][row, :size] = line.input_ids
        batch["input_mask"][row, :size] = 1
        batch["segment_ids"][row, :size] = line.segment_ids
    numbers = np.zeros(batch_size, np.int32)
    numbers[: len(lines)] = [line.number for line in lines]
    is_real = (np.arange(batch_size) < len(lines)).astype(np.int32)
    return batch | {"line_numbers": numbers, "is_real_example": is_real}


def to_dataset(
    make_batches: Callable[[], Iterable[dict[str, np.ndarray]]],
    batch_size: int,
    num_lines: int,
) -> tf.data.Dataset:
    """A dataset of what `to_batch` returns, of all lines."""
    rows = ("line_numbers", "is_real_example")
    shapes = dict.fromkeys(features.INPUTS, [batch_size, None])
    shapes |= dict.fromkeys(rows, [batch_size])
    signature = {n: tf.TensorSpec(shape, tf.int32) for n, shape in shapes.items()}
    batches = tf.data.Dataset.from_generator(make_batches, output_signature=signature)
    num_batches = -(-num_lines // batch_size)
    return batches.apply(tf.data.experimental.assert_cardinality(num_batches))


def in_order(
    batches: Iterable[dict[str, np.ndarray]],
) -> Iterator[dict[str, np.ndarray]]:
    """Yields the rows of batches one by one, by their `line_numbers` 0, 1, 2, ..."""
    pending, turn = {}, 0
    for batch in batches:
        for row, number in enumerate(batch["line_numbers"].tolist()):
            pending[number] = {name: values[row] for name, values in batch.items()}
        while turn in pending:
            yield pending.pop(turn)
            turn += 1
    assert not pending, f"line {turn} is missing"


def token_features(
    number: int, tokens: Sequence[str], layers: Sequence[int], vectors: np.ndarray
) -> dict[str, Any]:
    """The original's JSON object of a line.

    Args:
        number: of the line, from 0.
        tokens: of the line, with [CLS] and [SEP].
        layers: numbers of the layers, as the person gave them.
        vectors: float, [tokens, layers, hidden_size].
    """
    values = _rounded(vectors)
    return {
        "linex_index": number,  # sic: users of the original read that key
        "features": [
            {"token": token, "layers": _by_layer(layers, of_token)}
            for token, of_token in zip(tokens, values, strict=True)
        ],
    }


def sentence_features(
    number: int, layers: Sequence[int], vectors: np.ndarray
) -> dict[str, Any]:
    """The like for one vector a layer: float, [layers, hidden_size]."""
    return {"linex_index": number, "layers": _by_layer(layers, _rounded(vectors))}


def _by_layer(layers: Sequence[int], values: list[list[float]]) -> list[dict[str, Any]]:
    pairs = zip(layers, values, strict=True)
    return [{"index": layer, "values": numbers} for layer, numbers in pairs]


def _rounded(vectors: np.ndarray) -> list:
    # A float32 times 10^6 is exact in float64, so this equals Python's round(x, 6).
    return np.round(vectors.astype(np.float64), 6).tolist()


@contextlib.contextmanager
def _whole_file(path: str) -> Iterator[BinaryIO]:
    """A file to write to, which gets its name when it is complete."""
    folder, name = os.path.split(os.path.abspath(path))
    temporary = os.path.join(folder, f".{name}.tmp-{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            yield file
        os.replace(temporary, path)
    except OSError as error:
        if error.filename or not error.strerror:
            raise
        raise OSError(f"{path} could not be written: {error.strerror}") from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)


def write_json_lines(path: str, objects: Iterable[dict[str, Any]]) -> None:
    """Writes one object a line as they come, whole or not at all."""
    with _whole_file(path) as file:
        for value in objects:
            file.write(json.dumps(value).encode("ascii") + b"\n")


def write_npy(path: str, vectors: Iterable[np.ndarray], shape: tuple[int, int]) -> None:
    """Writes vectors as they come as a float32 array for np.load, whole or not at all.

    Args:
        path: str.
        vectors: float, [shape[1]] each.
        shape: numbers of vectors and of values in each.
    """
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    with _whole_file(path) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for vector in vectors:
            file.write(np.asarray(vector, "<f4").tobytes())
