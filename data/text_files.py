"""Finding and reading a corpus: plain text and JSON lines, each perhaps compressed.

A document of plain text ends at an empty line or with its file; one of JSON lines
(.jsonl) is a line, whose text may have line feeds in it. Everything is UTF-8. Places in
a file count bytes, unpacked where the name ends in .gz.
"""

import contextlib
import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, NamedTuple

from data import filesystem

SUFFIXES = (".txt", ".jsonl", ".txt.gz", ".jsonl.gz")

# No sentence and no paragraph is as long; and what is held at once stays small.
MAX_LINE_BYTES = 2**24
MAX_DOCUMENT_BYTES = 2**26


Line = tuple[int, int, str]  # place, size and stripped text


class Document(NamedTuple):
    """Lines of text that belong together, without empty ones, and their place."""

    start: int
    end: int
    lines: list[str]


def open_local(path: str) -> IO[bytes]:
    """Opens a file of this machine."""
    return open(path, "rb")


def find(patterns: str) -> list[str]:
    """Files that a comma list of files, globs and folders names, sorted, each once.

    In a folder and the folders in it, files count whose names end in one of `SUFFIXES`.

    Raises:
        FileNotFoundError, ValueError: as `filesystem.expand`; also where a folder holds
            no text.
    """
    names = []
    for pattern in filter(None, (part.strip() for part in patterns.split(","))):
        if not os.path.isdir(pattern):
            names.append(pattern)
            continue
        found = [
            os.path.join(folder, name)
            for folder, _, files in os.walk(pattern)
            for name in files
            if name.endswith(SUFFIXES) and not filesystem.is_hidden(name)
        ]
        found = [path for path in found if os.path.getsize(path)]
        if not found:
            raise ValueError(
                f"{pattern} holds no text; files in it count whose names end in"
                f" {', '.join(SUFFIXES)}"
            )
        names += found
    return filesystem.expand(",".join(names) or patterns)


def read_lines(paths: Iterable[str], text_field: str = "text") -> Iterator[str]:
    """All lines of text that are not empty; documents may have any length."""
    for path in paths:
        lines = _read(path, 0, None, open_local)
        if _is_json_lines(path):
            for document in _read_json_lines(path, text_field, lines):
                yield from document.lines
        else:
            yield from (text for _, _, text in lines if text)


def read_documents(
    path: str,
    text_field: str = "text",
    start: int = 0,
    end: int | None = None,
    open_file: Callable[[str], IO[bytes]] = open_local,
) -> Iterator[Document]:
    """The documents of a file that have text.

    Args:
        path: the file; it is JSON lines if its name says so.
        text_field: where in an object of JSON lines the text is.
        start: place in the file to begin at, where a document starts.
        end: place where the last one ends.
        open_file: path -> binary file that can seek, as it is stored.

    Raises:
        ValueError: the file is no text, with line and byte; a line or a document is
            longer than `MAX_LINE_BYTES`, `MAX_DOCUMENT_BYTES`.
    """
    lines = _read(path, start, end, open_file)
    if _is_json_lines(path):
        return _read_json_lines(path, text_field, lines)
    return _read_plain(path, lines)


def _is_json_lines(path: str) -> bool:
    return path.removesuffix(".gz").endswith(".jsonl")


def _read_plain(path: str, source: Iterator[Line]) -> Iterator[Document]:
    first, lines = 0, []
    for number, (place, size, text) in enumerate(source, 1):
        if text:
            if not lines:
                first = place
            lines.append(text)
            if place + size - first > MAX_DOCUMENT_BYTES:
                raise ValueError(
                    f"{path}: a document of more than {MAX_DOCUMENT_BYTES / 2**20:.0f}"
                    f" MiB ends with line {number:,}; separate documents by empty lines"
                )
        elif lines:
            yield Document(first, place, lines)
            lines = []
    if lines:
        yield Document(first, place + size, lines)


def _read_json_lines(
    path: str, text_field: str, source: Iterator[Line]
) -> Iterator[Document]:
    for number, (place, size, line) in enumerate(source, 1):
        if not line:
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}, line {number}: no JSON: {error}") from None
        text = value.get(text_field) if isinstance(value, dict) else None
        if not isinstance(text, str):
            there = ", ".join(value) if isinstance(value, dict) else "no object"
            raise ValueError(
                f"{path}, line {number}: expected an object with a text in"
                f" {text_field!r}, got {there}; name the field with --text_field"
            )
        lines = [part for part in map(str.strip, text.split("\n")) if part]
        if lines:
            yield Document(place, place + size, lines)


def _read(
    path: str, start: int, end: int | None, open_file: Callable[[str], IO[bytes]]
) -> Iterator[Line]:
    place, number = start, 0
    with _open(path, open_file) as file:
        file.seek(start)
        while end is None or place < end:
            number += 1
            try:
                line = file.readline(MAX_LINE_BYTES + 1)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise ValueError(f"{path}, line {number}: {error}") from None
            if not line:
                break
            if len(line) > MAX_LINE_BYTES:
                raise ValueError(
                    f"{path}, line {number}: the line is longer than"
                    f" {MAX_LINE_BYTES / 2**20:.0f} MiB; put a sentence or a paragraph"
                    " on a line"
                )
            yield place, len(line), _decode(line, path, number, place)
            place += len(line)


def _decode(line: bytes, path: str, number: int, place: int) -> str:
    if b"\0" in line:
        raise ValueError(
            f"{path}, line {number}: there is a zero byte, so this is no text file"
        )
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}, line {number}, byte {error.start + 1}: the text must be"
            f" UTF-8, but there is a byte 0x{line[error.start]:02x} that is"
            " not; convert the file (for instance with iconv)"
        ) from None
    if not place:
        text = text.removeprefix("\ufeff")  # a byte order mark is not text
    return text.strip()


@contextlib.contextmanager
def _open(path: str, open_file: Callable[[str], IO[bytes]]) -> Iterator[IO[bytes]]:
    with open_file(path) as file:
        yield gzip.GzipFile(fileobj=file) if path.endswith(".gz") else file
