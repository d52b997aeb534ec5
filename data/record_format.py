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

Part = tuple[np.ndarray, np.ndarray]  # bytes uint8 [N, W], is_there bool [N, W]


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
    start, size = _start(_FIRST, lengths)
    lengths = lengths + size
    # Around it: length (8 bytes), checksum of it (4), content, checksum of that (4).
    head, tail = (_whole(np.zeros((len(lengths), n), np.uint8)) for n in (12, 4))
    matrix, is_there = _join([head, start, *parts, tail])
    content, ends = matrix[is_there], np.cumsum(lengths + 16)
    numbers = lengths.astype("<u8").view(np.uint8).reshape(-1, 8)
    head = np.concatenate([numbers, checksums(numbers, np.full(len(lengths), 8))], 1)
    content[(ends - lengths - 16)[:, None] + np.arange(12)] = head
    content[ends[:, None] - np.arange(4, 0, -1)] = _checksums(
        content, ends - 4, lengths
    )
    return content, ends


def _entry(name: str, values: np.ndarray) -> tuple[list[Part], np.ndarray]:
    """An entry of the map of features, in parts, and its lengths, int64 [N].

    It holds its name and a feature, which holds a list, which holds the values; each
    of these begins with a tag and the length of what follows.
    """
    if values.dtype == np.float32:
        kind, payload = _FLOATS, _whole(values.astype("<f4").view(np.uint8))
    else:
        kind, payload = _INTEGERS, _varints(values)
    parts, lengths = [payload], payload[1].sum(axis=1)
    for tag in (_FIRST, kind, _SECOND):
        part, size = _start(tag, lengths)
        parts.insert(0, part)
        lengths = lengths + size
    key = bytes([_FIRST, *_varint(len(name.encode())), *name.encode()])
    rows = np.broadcast_to(np.frombuffer(key, np.uint8), (len(values), len(key)))
    parts.insert(0, _whole(rows))
    lengths = lengths + len(key)
    part, size = _start(_FIRST, lengths)
    return [part, *parts], lengths + size


def _start(tag: int, lengths: np.ndarray) -> tuple[Part, np.ndarray]:
    """Tag and length that stand before something, and their own length, int [N]."""
    if lengths.min() == lengths.max():  # the usual case, and much quicker
        start = np.array([tag, *_varint(int(lengths[0]))], np.uint8)
        rows = np.broadcast_to(start, (len(lengths), len(start)))
        return _whole(rows), np.full(len(lengths), len(start))
    sizes, is_there = _varints(lengths[:, None])
    tags = np.full((len(lengths), 1), tag, np.uint8)
    return _join([_whole(tags), (sizes, is_there)]), 1 + is_there.sum(axis=1)


def _whole(matrix: np.ndarray) -> Part:
    return matrix, np.broadcast_to(True, matrix.shape)


def _join(parts: list[Part]) -> Part:
    matrices, masks = zip(*parts, strict=True)
    return np.concatenate(matrices, axis=1), np.concatenate(masks, axis=1)


def _varint(number: int) -> list[int]:
    """One number that is not negative; see `_varints`."""
    groups = [number & 0x7F]
    while number := number >> 7:
        groups[-1] |= 0x80
        groups.append(number & 0x7F)
    return groups


def _varints(values: np.ndarray) -> Part:
    """Integers [N, values], seven bits a byte, the lowest first; negative ones take ten
    bytes, as their 64 bits say."""
    largest = int(values.max(initial=0))
    if values.min(initial=0) < 0:
        values, largest = values.astype(np.int64).view(np.uint64), 2**64 - 1
    width = max(1, -(-largest.bit_length() // 7))
    if width == 1:
        return _whole(values.astype(np.uint8))
    rest = values.astype(np.uint32 if width < 5 else np.uint64)  # narrow is quick
    groups = np.empty((*values.shape, width), np.uint8)
    is_there = np.empty(groups.shape, bool)
    is_there[..., 0] = True
    for place in range(width):
        groups[..., place] = rest & 0x7F
        rest = rest >> 7
        if place + 1 < width:
            is_there[..., place + 1] = rest > 0
            groups[..., place] |= is_there[..., place + 1].view(np.uint8) << 7
    rows = len(values)
    return groups.reshape(rows, -1), is_there.reshape(rows, -1)


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
    width = -(-int(lengths.max(initial=0)) // _BLOCK) * _BLOCK
    padded = np.concatenate([np.zeros(width, np.uint8), content])
    windows = np.lib.stride_tricks.sliding_window_view(padded, width)
    rows = windows[ends]  # the bytes before each end
    rows *= np.arange(width, 0, -1) <= lengths[:, None]
    # Starting with ones instead of zeros is the same as turning the first four bytes.
    first = width - lengths[:, None] + np.arange(4)
    rows[np.arange(len(lengths))[:, None], first] ^= 0xFF
    crc = np.full(len(lengths), 0xFFFFFFFF, np.uint32)
    table = contributions(width)
    starts = 256 * np.arange(_BLOCK)
    for column in range(0, width, _BLOCK):
        block = slice(column, column + _BLOCK)
        numbers = table[block].ravel().take(starts + rows[:, block])
        crc ^= np.bitwise_xor.reduce(numbers, axis=1)
    crc = ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(0xA282EAD8)
    return crc.astype("<u4").view(np.uint8).reshape(-1, 4)


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
