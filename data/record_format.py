"""The bytes of TFRecord files, for many records at once and without TensorFlow.

A record is a tf.train.Example with lists of integers and floats; its bytes are those of
`SerializeToString(deterministic=True)`. Doing a thousand records at once in NumPy takes
a few microseconds each, where protocol buffers take a hundred.

N records, W bytes: matrices of bytes have a row a record. Rows differ in length, so
beside a matrix stands a mask of the bytes that are there.
"""

import functools
from collections.abc import Mapping

import numpy as np

# Tags of the fields on the wire: field number * 8 + 2, all of them length-delimited.
_FIRST, _SECOND, _THIRD = 0x0A, 0x12, 0x1A
_FLOATS, _INTEGERS = _SECOND, _THIRD

_TABLE_BITS = 17  # integers whose bytes are looked up: ids of all usual vocabularies

# Bytes that all rows share; or bytes uint8 [N, W], and is_there bool [N, W] or True.
Part = bytes | tuple[np.ndarray, np.ndarray | bool]
Lengths = int | np.ndarray  # of something in all rows, or int64 [N]


def encode(columns: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Records as they stand in a TFRecord file, one after the other.

    Args:
        columns: name -> integers or float32 [N, values], with at least one value; all
            with the same N.

    Returns:
        The bytes uint8 [total], and int64 [N], where in them each record ends.
    """
    parts, lengths = [], 0
    for name in sorted(columns):
        entry, size = _entry(name, columns[name])
        parts += entry
        lengths = lengths + size
    parts, lengths = _start(_FIRST, parts, lengths)
    # Around it: length (8 bytes), checksum of it (4), content, checksum of that (4).
    num_rows = len(columns[name])
    content = _join([bytes(12), *parts, bytes(4)], num_rows)
    lengths = np.broadcast_to(lengths, num_rows)
    ends = np.cumsum(lengths + 16)
    numbers = lengths.astype("<u8").view(np.uint8).reshape(-1, 8)
    head = np.concatenate([numbers, checksums(numbers, np.full(num_rows, 8))], axis=1)
    content[(ends - lengths - 16)[:, None] + np.arange(12)] = head
    content[ends[:, None] - np.arange(4, 0, -1)] = _checksums(
        content, ends - 4, lengths
    )
    return content, ends


def _entry(name: str, values: np.ndarray) -> tuple[list[Part], Lengths]:
    """An entry of the map of features, in parts, and its lengths.

    It holds its name and a feature, which holds a list, which holds the values; each
    of these begins with a tag and the length of what follows.
    """
    if values.dtype == np.float32:
        kind, matrix = _FLOATS, values.astype("<f4").view(np.uint8)
        payload, lengths = (matrix, True), matrix.shape[1]
    else:
        kind, (payload, lengths) = _INTEGERS, _varints(values)
    parts = [payload]
    for tag in (_FIRST, kind, _SECOND):
        parts, lengths = _start(tag, parts, lengths)
    key = bytes([_FIRST, *_varint(len(name.encode())), *name.encode()])
    return _start(_FIRST, [key, *parts], lengths + len(key))


def _start(tag: int, parts: list[Part], lengths: Lengths) -> tuple[list[Part], Lengths]:
    """Puts tag and length before something; its parts and lengths with these."""
    if isinstance(lengths, int):
        start = bytes([tag, *_varint(lengths)])
        return [start, *parts], len(start) + lengths
    number, sizes = _varints(lengths[:, None])
    return [bytes([tag]), number, *parts], 1 + sizes + lengths


def _join(parts: list[Part], num_rows: int) -> np.ndarray:
    """The bytes that are there, row by row: uint8 [total]."""
    same = [part if isinstance(part, bytes) else bytes(_width(part)) for part in parts]
    matrix = np.tile(np.frombuffer(b"".join(same), np.uint8), (num_rows, 1))
    is_there = np.ones(matrix.shape, bool)
    end = 0
    for part in parts:
        start, end = end, end + _width(part)
        if not isinstance(part, bytes):
            matrix[:, start:end], is_there[:, start:end] = part
    return matrix.take(np.flatnonzero(is_there))  # quicker than `matrix[is_there]`


def _width(part: Part) -> int:
    return len(part) if isinstance(part, bytes) else part[0].shape[1]


def _varint(number: int) -> list[int]:
    """One number that is not negative; see `_varints`."""
    groups = [number & 0x7F]
    while number := number >> 7:
        groups[-1] |= 0x80
        groups.append(number & 0x7F)
    return groups


def _varints(values: np.ndarray) -> tuple[Part, Lengths]:
    """Integers [N, values], seven bits a byte, the lowest first; negative ones take ten
    bytes, as their 64 bits say."""
    least, largest = int(values.min(initial=0)), int(values.max(initial=0))
    if least >= 0 and largest < 2**7:
        return (values.astype(np.uint8), True), values.shape[1]
    if least >= 0 and largest < 2**_TABLE_BITS:
        words, are_there = (table.take(values) for table in _varint_words())
        part = words.view(np.uint8), are_there.view(bool)
    else:
        part = _long_varints(values.astype(np.int64).view(np.uint64))
    return part, part[1].sum(axis=1, dtype=np.uint32).astype(np.int64)


@functools.cache
def _varint_words() -> tuple[np.ndarray, np.ndarray]:
    """What `_long_varints` says of each of the first numbers, four bytes as one uint32.

    Returns:
        uint32 [2**_TABLE_BITS], bytes, and the same of whether they are there.
    """
    part = _long_varints(np.arange(2**_TABLE_BITS, dtype=np.uint64)[:, None])
    fourth = np.zeros((2**_TABLE_BITS, 1), np.uint8)
    words = (np.concatenate([matrix, fourth], axis=1) for matrix in part)
    return tuple(word.view(np.uint32)[:, 0] for word in words)


def _long_varints(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `_varints`, for uint64 [N, values] of any size."""
    width = -(-int(values.max(initial=1)).bit_length() // 7)
    groups = np.empty((*values.shape, width), np.uint8)
    is_there = np.empty(groups.shape, bool)
    for place in range(width):
        rest = values >> np.uint64(7 * place)
        groups[..., place] = np.where(rest > 0x7F, rest | 0x80, rest)
        is_there[..., place] = rest > 0 if place else True
    return groups.reshape(len(values), -1), is_there.reshape(len(values), -1)


# A checksum is a remainder of polynomials, and there x**(8 * 290) is the sum of
# x**(8 * a) with a = 136, 113, 107, 32 and 0: a byte may be left out if it is added to
# the bytes so far behind it. Of all sums with few terms this one moves bytes quickly.
_MOVES = (154, 177, 183, 258, 290)
_BLOCK = 64  # columns of bytes that are looked up at once, so that they stay in caches


def checksums(content: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Checksums of byte strings that stand one after the other.

    Args:
        content: uint8, the bytes.
        lengths: int [N], of the strings, each at least 4.

    Returns:
        uint8 [N, 4]: CRC-32C, turned and shifted as TFRecord files want it.
    """
    return _checksums(content.ravel(), np.cumsum(lengths), lengths)


def _checksums(content: np.ndarray, ends: np.ndarray, lengths: np.ndarray):
    """As `checksums`, for strings that end anywhere in `content`.

    A checksum is linear: every byte adds a number that depends on the byte and on how
    many follow. So the numbers are looked up and added (exclusive or).
    """
    longest = int(lengths.max(initial=0))
    rows = _right_justified(content, ends, lengths, longest)
    # Starting with ones instead of zeros is the same as turning the first four bytes.
    first = longest - lengths[:, None] + np.arange(4)
    rows[np.arange(len(lengths))[:, None], first] ^= 0xFF
    while rows.shape[1] > _MOVES[-1]:
        size = min(_MOVES[0], rows.shape[1] - _MOVES[-1])
        moved = rows[:, :size].copy()
        for move in _MOVES:
            rows[:, move : move + size] ^= moved
        rows = rows[:, size:]
    crc = np.full(len(lengths), 0xFFFFFFFF, np.uint32)
    width = rows.shape[1]
    table = contributions(_MOVES[-1])[-width:]
    starts = 256 * np.arange(_BLOCK)
    for column in range(0, width, _BLOCK):
        block = slice(column, column + _BLOCK)
        places = rows[:, block] + starts[: width - column]
        crc ^= np.bitwise_xor.reduce(table[block].ravel().take(places), axis=1)
    crc = ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(0xA282EAD8)
    return crc.astype("<u4").view(np.uint8).reshape(-1, 4)


def _right_justified(
    content: np.ndarray, ends: np.ndarray, lengths: np.ndarray, width: int
) -> np.ndarray:
    """Strings that end in `content`, with zeros before them: uint8 [N, width]."""
    padded = np.concatenate([np.zeros(width, np.uint8), content])
    rows = np.lib.stride_tricks.sliding_window_view(padded, width)[ends]
    start = width - int(lengths.min(initial=width))
    places = np.arange(start, dtype=np.int32)
    rows[:, :start] *= places >= width - lengths[:, None].astype(np.int32)
    return rows


@functools.lru_cache(maxsize=8)
def contributions(count: int) -> np.ndarray:
    """uint32 [count, 256]: what a byte adds, those that most others follow first."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):  # bits; the polynomial of Castagnoli, reflected
        table = (table >> 1) ^ np.where(table & 1, 0x82F63B78, 0).astype(np.uint32)
    rows = [table]
    for _ in range(count - 1):
        rows.append((rows[-1] >> 8) ^ table[rows[-1] & 0xFF])
    return np.stack(rows[::-1])
