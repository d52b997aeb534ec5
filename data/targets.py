"""What an example may be labelled with: a class, several labels, or a number."""

import enum
import math
import pathlib
from collections.abc import Sequence

import numpy as np

from data import tables

Label = str | tuple[str, ...] | float


class Kind(enum.StrEnum):
    """Which of the three: str, tuple of str, or float."""

    CLASS = "class"
    MULTI_LABEL = "multi_label"
    NUMBER = "number"


def parse(
    where: str,
    cell: str,
    names: Sequence[str],
    kind: Kind = Kind.CLASS,
    separator: str = ",",
) -> Label:
    """The label that a cell of a file says.

    Args:
        where: file and line, for errors.
        cell: what stands there; an empty one may stand for no labels at all if an
            example may have several.
        names: the known labels; if there are none, any is taken.
        kind: of the label.
        separator: between several labels; white space around them does not count.

    Raises:
        ValueError: no label, an unknown one, or no finite number; starts with `where`.
    """
    if kind == Kind.NUMBER:
        return _parse_number(where, "label", cell)
    parts = [cell]
    if kind == Kind.MULTI_LABEL:
        parts = [part.strip() for part in cell.split(separator)] if cell.strip() else []
    for part in parts:
        if not part:
            whole = f" in {cell!r}" if cell else ""
            raise ValueError(f"{where}: the label is empty{whole}")
        if names:
            check(where, part, names)
    return cell if kind == Kind.CLASS else tuple(parts)


def check(where: str, label: str, names: Sequence[str]) -> None:
    """Raises ValueError, which starts with `where`, if the label is not a known one."""
    if label not in names:
        raise ValueError(f"{where}: unknown label {tables.not_among(label, names)}")


def _parse_number(where: str, what: str, cell: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{where}: the {what} must be a number, got {cell!r}")
    return number


def encode(
    labels: Sequence[Label | None], names: Sequence[str], kind: Kind = Kind.CLASS
) -> np.ndarray:
    """Labels as the losses want them; an unknown one, None, becomes 0.

    Returns:
        CLASS: int32 [examples], index into `names`. MULTI_LABEL: int32 [examples,
        labels], 1 where one applies. NUMBER: float32 [examples].
    """
    if kind == Kind.NUMBER:
        return np.array([label or 0.0 for label in labels], np.float32)
    index = {name: i for i, name in enumerate(names)}
    if kind == Kind.CLASS:
        ids = [0 if label is None else index[label] for label in labels]
        return np.array(ids, np.int32)
    rows = np.zeros((len(labels), len(names)), np.int32)
    for row, label in zip(rows, labels, strict=True):
        row[[index[name] for name in label or ()]] = 1
    return rows


def balanced_weights(label_ids: np.ndarray, num_classes: int) -> np.ndarray:
    """Weights that make classes count alike: examples / (classes · examples of it).

    Returns:
        float32 [num_classes]; 0 for a class without examples, which weighs nothing.
    """
    counts = np.bincount(label_ids, minlength=num_classes)
    weights = len(label_ids) / (num_classes * np.maximum(counts, 1))
    return np.where(counts, weights, 0).astype(np.float32)


def read_weights(text: str, names: Sequence[str]) -> np.ndarray:
    """Weights of the classes: numbers in the order of `names`, or from a file.

    Args:
        text: numbers with commas between, or the path of a JSON object that has a
            number for every name.

    Returns:
        float32 [classes].

    Raises:
        FileNotFoundError: it is neither numbers nor a file.
        ValueError: a name without a weight or the other way round; a weight that is
            negative or no number; no weight above 0.
    """
    if not (pathlib.Path(text).is_file() or text.endswith(".json")):
        where, values = "the class weights", text.split(",")
        if len(values) != len(names):
            raise ValueError(
                f"the class weights are {len(values)}, {text!r}, but there are "
                f"{len(names)} classes: {', '.join(names)}"
            )
    else:
        where, weights = text, _read_object(text)
        for name in weights:
            check(text, name, names)
        missing = [name for name in names if name not in weights]
        if missing:
            raise ValueError(f"{text} has no weight for {', '.join(missing)}")
        values = [weights[name] for name in names]
    numbers = [_parse_number(where, "weight", str(value)) for value in values]
    if min(numbers) < 0 or not any(numbers):
        raise ValueError(f"{where} must be 0 or more, and one above 0, got {numbers}")
    return np.array(numbers, np.float32)


def _read_object(path: str) -> dict:
    value = tables.read_json(path)
    if not isinstance(value, dict):
        raise ValueError(f'{path} must be a JSON object such as {{"yes": 2, "no": 1}}')
    return value
