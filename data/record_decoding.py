"""The features of tf.train.Examples, of many at once and without TensorFlow.

The counterpart of `data/record_format.py`: made for records that have the same features
in the same order, in which NumPy follows all of them a field at a time. Others are read
one by one, which takes ten times as long.

N records.
"""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

# Tags on the wire: field number * 8 + type, of which 2 is delimited by a length.
_FIELD_1, _FIELD_2 = 0x0A, 0x12
_KINDS = {0x0A: "bytes", 0x12: "float32", 0x1A: "int64"}
_LONE_INTEGER, _LONE_FLOAT = 0x08, 0x0D  # values that are not packed into a list
_MAX_LENGTH_BYTES = 5  # of a field's length, which is below 2**31

Key = tuple[str, str]  # name and kind of a feature


@dataclasses.dataclass(frozen=True)
class Column:
    """A feature of N records.

    Attributes:
        counts: int64 [N], values of each record; 0 where it lacks the feature.
        values: int64 or float32, those of all records one after the other. Of strings
            of bytes, their lengths.
    """

    counts: np.ndarray
    values: np.ndarray

    def rows(self, numbers: np.ndarray, width: int) -> np.ndarray:
        """The values [n, width] of n records that have so many."""
        starts = np.cumsum(self.counts) - self.counts
        return self.values[starts[numbers][:, None] + np.arange(width)]


def decode(contents: Sequence[bytes]) -> dict[Key, Column]:
    """The features of N records, by name and kind ("int64", "float32", "bytes").

    A record that is no tf.train.Example has none.
    """
    try:
        found = _parse_alike(contents)
    except ValueError:
        found = _parse_each(contents)
    columns = {}
    for (name, kind), (numbers, lists) in found.items():
        counts = np.zeros(len(contents), np.int64)
        counts[numbers], values = _DECODERS[kind](lists)
        columns[name, kind] = Column(counts, values)
    return columns


def _parse_alike(contents: Sequence[bytes]) -> dict[Key, tuple[slice, list[bytes]]]:
    """The packed lists of records that are built alike; ValueError if they are not."""
    content = b"".join(contents)
    reader = _Reader(content)
    ends = np.cumsum([len(c) for c in contents])
    places = ends - [len(c) for c in contents]
    found = {}
    places, features_ends = reader.field(places, _FIELD_1)
    _check(features_ends == ends)
    while (places < ends).any():
        places, entry_ends = reader.field(places, _FIELD_1)
        _check(entry_ends <= ends)
        places, name_ends = reader.field(places, _FIELD_1)
        name = content[places[0] : name_ends[0]]
        _check(name_ends - places == len(name), name_ends < entry_ends)
        rows = reader.data[places[:, None] + np.arange(len(name))]
        _check(rows == np.frombuffer(name, np.uint8))
        places, feature_ends = reader.field(name_ends, _FIELD_2)
        tag = reader.data[places[0]].item()
        if _KINDS.get(tag, "bytes") == "bytes":
            raise ValueError("bytes are looked at one by one")
        places, list_ends = reader.field(places, tag)
        places, value_ends = reader.field(places, _FIELD_1)
        for others in (feature_ends, list_ends, value_ends):
            _check(others == entry_ends)
        bounds = zip(places.tolist(), value_ends.tolist(), strict=True)
        lists = [content[start:end] for start, end in bounds]
        found[name.decode(), _KINDS[tag]] = slice(None), lists
        places = value_ends
    for (_, kind), (_, lists) in found.items():
        _check_lists(lists, kind)
    return found


class _Reader:
    """Reads fields at several places at once."""

    def __init__(self, content: bytes):
        # What is behind the end, a place that is checked afterwards may reach.
        self.data = np.frombuffer(content + bytes(16), np.uint8)

    def field(self, places: np.ndarray, tag: int) -> tuple[np.ndarray, np.ndarray]:
        """Where the contents of fields with this tag begin and end."""
        _check(places < len(self.data) - 16)
        _check(self.data[places] == tag)
        places = places + 1
        sizes = np.zeros_like(places)
        is_open = np.ones(len(places), bool)
        for shift in range(0, 7 * _MAX_LENGTH_BYTES, 7):
            byte = self.data[np.minimum(places, len(self.data) - 1)]
            sizes += np.where(is_open, (byte & 0x7F).astype(np.int64) << shift, 0)
            places = places + is_open
            is_open &= byte >= 0x80
            if not is_open.any():
                break
        return places, places + sizes


def _check(*conditions: np.ndarray) -> None:
    if not all(condition.all() for condition in conditions):
        raise ValueError("the records are not built alike")


def _check_lists(lists: Sequence[bytes], kind: str) -> None:
    """Raises ValueError if a list ends within a value."""
    if kind == "float32" and any(len(values) % 4 for values in lists):
        raise ValueError("a float is cut off")
    if kind == "int64" and any(values and values[-1] >= 0x80 for values in lists):
        raise ValueError("an integer is cut off")


def _decode_integers(lists: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Counts int64 [N] and all values int64 of lists of integers."""
    data = np.frombuffer(b"".join(lists), np.uint8)
    is_last = data < 0x80  # the highest bit says that there is more to come
    bounds = np.cumsum([0, *map(len, lists)])
    counts = np.diff(np.concatenate([[0], np.cumsum(is_last)])[bounds])
    if is_last.all():
        return counts, data.astype(np.int64)
    ends = np.flatnonzero(is_last)
    starts = np.concatenate([[0], ends[:-1] + 1])
    widths = ends - starts + 1
    values = (data[starts] & 0x7F).astype(np.uint64)
    for place in range(1, min(10, int(widths.max()))):
        longer = np.flatnonzero(widths > place)
        bits = (data[starts[longer] + place] & 0x7F).astype(np.uint64)
        values[longer] |= bits << np.uint64(7 * place)
    return counts, values.view(np.int64)


def _decode_floats(lists: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Counts int64 [N] and all values float32 of lists of floats."""
    counts = np.array([len(values) // 4 for values in lists])
    return counts, np.frombuffer(b"".join(lists), "<f4")


def _measure_strings(lists: Sequence[list[bytes]]) -> tuple[np.ndarray, np.ndarray]:
    """Counts int64 [N] and the lengths int64 of all strings."""
    counts = np.array([len(strings) for strings in lists])
    sizes = [len(string) for strings in lists for string in strings]
    return counts, np.array(sizes, np.int64)


_DECODERS = {
    "int64": _decode_integers,
    "float32": _decode_floats,
    "bytes": _measure_strings,
}


def _parse_each(contents: Sequence[bytes]) -> dict[Key, tuple[list[int], list]]:
    """The lists of each feature, and the numbers of the records that have it."""
    found = {}
    for number, content in enumerate(contents):
        try:
            features = dict(_parse(content))
        except (IndexError, ValueError):
            continue
        for name, (kind, values) in features.items():
            numbers, lists = found.setdefault((name, kind), ([], []))
            numbers.append(number)
            lists.append(values)
    return found


def _parse(content: bytes) -> Iterator[tuple[str, tuple[str, bytes | list[bytes]]]]:
    """Yields names, and kinds with lists; ValueError or IndexError if it is no Example.

    A list of strings is a list, another one the bytes of its values.
    """
    for _, features in _fields(content, _FIELD_1):
        for _, entry in _fields(features, _FIELD_1):
            parts = dict(_fields(entry, _FIELD_1, _FIELD_2))
            name = parts.get(_FIELD_1, b"").decode()
            for tag, values in _fields(parts.get(_FIELD_2, b""), *_KINDS):
                kind = _KINDS[tag]
                lone = {"int64": _LONE_INTEGER, "float32": _LONE_FLOAT}.get(kind)
                pieces = [piece for _, piece in _fields(values, _FIELD_1, lone)]
                if kind == "bytes":
                    yield name, (kind, pieces)
                else:
                    _check_lists(pieces, kind)
                    yield name, (kind, b"".join(pieces))


def _fields(content: bytes, *allowed: int | None) -> Iterator[tuple[int, bytes]]:
    """Yields tags and contents of a message's fields."""
    place, end = 0, len(content)
    while place < end:
        tag = content[place]
        if tag not in allowed:
            raise ValueError(f"expected a field of {allowed}, got {tag}")
        place += 1
        if tag == _LONE_FLOAT:
            size = 4
        elif tag == _LONE_INTEGER:
            size = _size_of_integer(content, place)
        else:
            length = content[place : place + _size_of_integer(content, place)]
            place += len(length)
            size = sum((byte & 0x7F) << 7 * i for i, byte in enumerate(length))
        if place + size > end:
            raise ValueError("a field is cut off")
        yield tag, content[place : place + size]
        place += size


def _size_of_integer(content: bytes, place: int) -> int:
    """How many bytes it takes."""
    size = 1
    while content[place + size - 1] >= 0x80:
        size += 1
    return size
