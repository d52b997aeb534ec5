"""Reads the records of TFRecord files as bytes, without TensorFlow.

A file is read block by block, so memory does not depend on its size. Checksums are
verified, many at once.
"""

import gzip
import hashlib
import io
import zlib
from collections.abc import Callable, Iterator

import numpy as np

from data import record_format

_RECORDS = 1024  # of a block, at most
_BLOCK_BYTES = 1 << 21  # of a block, were all its records as long as the longest
_LONG = 1 << 14  # bytes; the tables of the fast checksums are a thousand times as large
_SHORT = 4  # bytes; they need as many
_READ_BYTES = 1 << 20
_DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error)


class Damage(ValueError):
    """A record file is damaged or none; says which and what to do."""


class Source(io.RawIOBase):
    """A record file that is read once, from its start to its end.

    Args:
        path: the file; compressed if its name ends in .gz. With "://" in it, TensorFlow
            opens it.
        report: called with numbers of bytes as they are read.

    Attributes:
        size: bytes of the file that were read.
        checksum: hashlib object, their SHA-256.
        num_records: that were read.
    """

    def __init__(self, path: str, report: Callable[[int], object] = lambda _: None):
        super().__init__()
        self.path = path
        self.size = self.num_records = 0
        self.checksum = hashlib.sha256()
        self._report, self._start = report, b""
        if "://" in path:
            import tensorflow as tf  # only here: it is large

            self._raw = tf.io.gfile.GFile(path, "rb")
        else:
            self._raw = open(path, "rb")  # noqa: SIM115

    def blocks(self) -> Iterator[list[bytes]]:
        """Yields the contents of some records at a time, never none.

        Raises:
            Damage: the file is damaged; what is before the damage was given.
        """
        with self._raw:
            stored = unpacked = io.BufferedReader(self, _READ_BYTES)
            if self.path.endswith(".gz"):
                unpacked = io.BufferedReader(gzip.GzipFile(fileobj=stored, mode="rb"))
            for block, is_cut_off in _cut(unpacked):
                num_good = _count_good(block)
                if num_good:
                    yield [content for _, content, _ in block[:num_good]]
                    self.num_records += num_good
                if is_cut_off or num_good < len(block):
                    while stored.read(_READ_BYTES):  # for the checksum
                        pass
                    raise Damage(self._damage())

    def readable(self) -> bool:
        """As `io.BufferedReader` asks for."""
        return True

    def readinto(self, buffer: memoryview) -> int:
        """Reads bytes as they are stored."""
        content = self._raw.read(len(buffer))
        buffer[: len(content)] = content
        if not self.size:
            self._start = bytes(content[:2])
        self.size += len(content)
        self.checksum.update(content)
        self._report(len(content))
        return len(content)

    def _damage(self) -> str:
        is_packed, is_named = self._start == b"\x1f\x8b", self.path.endswith(".gz")
        if self.num_records:
            what = f"is damaged or cut off after {self.num_records} records"
        elif is_packed and not is_named:
            return f"{self.path} is compressed; rename it so that it ends in .gz"
        elif is_named and not is_packed:
            return f"{self.path} is not compressed; rename it without .gz"
        else:
            what = "is no TFRecord file, or is cut off after 0 records"
        return f"{self.path} {what}; copy it or make it again"


def _cut(file: io.BufferedReader) -> Iterator[tuple[list, bool]]:
    """Yields blocks of (header, content, checksum), and whether what follows is cut
    off."""
    block, longest = [], 0
    while True:
        try:
            record = _read_record(file)
        except _DAMAGE:
            yield block, True
            return
        if record is None:
            break
        longest = max(longest, len(record[1]))
        if len(block) == _RECORDS or (len(block) + 1) * longest > _BLOCK_BYTES:
            yield block, False
            block, longest = [], len(record[1])
        block.append(record)
    yield block, False


def _read_record(file: io.BufferedReader) -> tuple[bytes, bytes, bytes] | None:
    """Header, content and its checksum; None at the end.

    Raises:
        EOFError: the file ends within the record, or its length cannot be.
    """
    header = file.read(12)
    if not header:
        return None
    length = int.from_bytes(header[:8], "little")
    # Otherwise a damaged length asks for more memory than there is.
    if length > _LONG and not _is_right(header[:8], header[8:]):
        raise EOFError
    content = file.read(length)
    checksum = file.read(4)
    if len(header) < 12 or len(content) < length or len(checksum) < 4:
        raise EOFError
    return header, content, checksum


def _count_good(block: list[tuple[bytes, bytes, bytes]]) -> int:
    """How many records there are before the first with a wrong checksum."""
    usual = [i for i, (_, c, _) in enumerate(block) if _SHORT <= len(c) <= _LONG]
    is_good = np.ones(len(block), bool)
    if usual:
        headers, contents, sums = zip(*(block[i] for i in usual), strict=True)
        heads = np.frombuffer(b"".join(headers), np.uint8).reshape(-1, 12)
        found = np.frombuffer(b"".join(sums), np.uint8).reshape(-1, 4)
        content = np.frombuffer(b"".join(contents), np.uint8)
        lengths = np.array([len(c) for c in contents])
        eights = np.full(len(usual), 8)
        is_good[usual] = (
            (record_format.checksums(heads[:, :8], eights) == heads[:, 8:])
            & (record_format.checksums(content, lengths) == found)
        ).all(axis=1)
    for i in set(range(len(block))) - set(usual):
        is_good[i] = _is_right(*block[i][1:])
    return len(block) if is_good.all() else int(is_good.argmin())


def _is_right(content: bytes, checksum: bytes) -> bool:
    """Whether a checksum is right, byte by byte, for a content of any length."""
    table = record_format.contributions(1)[0].tolist()
    crc = 0xFFFFFFFF
    for byte in content:
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    crc = ((crc >> 15) | (crc << 17)) + 0xA282EAD8
    return (crc & 0xFFFFFFFF).to_bytes(4, "little") == checksum
