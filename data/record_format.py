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

Part = tuple[np.ndarray, np.ndarray]  # bytes uint8 [N, W], is_there bool [N, W]


def encode(columns: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Records as they stand in a TFRecord file, one after the other.

    Args:
        columns: name -> integers or float32 [N, values], with at least one value; all
            with the same N.

    Returns:
        The bytes uint8 [total], and int64 [N], where in them each record ends.
    """
    entries = [_entry(name, columns[name]) for name in sorted(columns)]
    content, is_there = _delimited(_FIRST, _join(entries))
    lengths = is_there.sum(axis=1)
    header = lengths.astype("<u8").view(np.uint8).reshape(-1, 8)
    record = _join(
        [
            _whole(header),
            _whole(checksums(header, np.full(len(lengths), 8))),
            (content, is_there),
            _whole(checksums(content[is_there], lengths)),
        ]
    )
    return record[0][record[1]], np.cumsum(lengths + 16)


def _entry(name: str, values: np.ndarray) -> Part:
    """An entry of the map of features: its name and its list of values."""
    if values.dtype == np.float32:
        kind, payload = _SECOND, _whole(values.astype("<f4").view(np.uint8))
    else:
        kind, payload = _THIRD, _varints(values)
    feature = _delimited(kind, _delimited(_FIRST, payload))
    key = np.frombuffer(name.encode(), np.uint8)[None].repeat(len(values), axis=0)
    pair = _join([_delimited(_FIRST, _whole(key)), _delimited(_SECOND, feature)])
    return _delimited(_FIRST, pair)


def _delimited(tag: int, part: Part) -> Part:
    """A part with its tag and its length before it."""
    lengths = part[1].sum(axis=1)[:, None]
    tags = np.full(lengths.shape, tag, np.uint8)
    return _join([_whole(tags), _varints(lengths), part])


def _whole(matrix: np.ndarray) -> Part:
    return matrix, np.ones(matrix.shape, bool)


def _join(parts: list[Part]) -> Part:
    matrices, masks = zip(*parts, strict=True)
    return np.concatenate(matrices, axis=1), np.concatenate(masks, axis=1)


def _varints(values: np.ndarray) -> Part:
    """Integers [N, values], seven bits a byte, the lowest first; negative ones take ten
    bytes, as their 64 bits say."""
    rest = values.astype(np.int64).view(np.uint64)
    width = max(1, -(-int(rest.max(initial=0)).bit_length() // 7))
    if width == 1:
        return _whole(rest.astype(np.uint8))
    if width < 5:
        rest = rest.astype(np.uint32)  # twice as fast
    shifted = rest[:, :, None] >> (7 * np.arange(width, dtype=rest.dtype))
    is_there = shifted > 0
    is_there[:, :, 0] = True
    groups = (shifted & 0x7F).astype(np.uint8)
    groups[:, :, :-1] |= is_there[:, :, 1:].astype(np.uint8) << 7  # more to come
    rows = len(values)
    return groups.reshape(rows, -1), is_there.reshape(rows, -1)


def checksums(content: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """uint8 [N, 4]: CRC-32C of byte strings that stand one after the other in
    `content`, turned and shifted as TFRecord files want it.

    A checksum is linear: every byte adds a number that depends on the byte and on how
    many follow. So the numbers are looked up and added (exclusive or).
    """
    longest = int(lengths.max(initial=0))
    place = np.arange(longest - 1, -1, -1)  # bytes that follow
    is_there = place < lengths[:, None]
    rows = np.zeros(is_there.shape, np.uint8)
    rows[is_there] = content.ravel()
    # Starting with ones instead of zeros is the same as turning the first four bytes.
    is_start = is_there & (place >= lengths[:, None] - 4)
    rows ^= np.where(is_start, 0xFF, 0).astype(np.uint8)
    # Lengths vary a little from call to call; their table stays.
    table = contributions(-(-longest // 1024) * 1024)
    numbers = table.ravel()[256 * place + rows]
    crc = np.bitwise_xor.reduce(numbers, axis=1) ^ np.uint32(0xFFFFFFFF)
    crc = ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(0xA282EAD8)
    return crc.astype("<u4").view(np.uint8).reshape(-1, 4)


@functools.lru_cache(maxsize=8)
def contributions(count: int) -> np.ndarray:
    """uint32 [count, 256]: what a byte adds that so many bytes follow."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):  # bits; the polynomial of Castagnoli, reflected
        table = (table >> 1) ^ np.where(table & 1, 0x82F63B78, 0).astype(np.uint32)
    rows = [table]
    for _ in range(count - 1):
        rows.append((rows[-1] >> 8) ^ table[rows[-1] & 0xFF])
    return np.stack(rows)
