"""Finding and reading a corpus: plain text and JSON lines, each perhaps compressed.

A document of plain text ends at an empty line or with its file; one of JSON lines
(.jsonl) is a line, whose text may have line feeds in it. Everything is UTF-8. Places in
a file count bytes, unpacked where the name ends in .gz.
"""

import contextlib
import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, NamedTuple

from data import filesystem

SUFFIXES = (".txt", ".jsonl", ".txt.gz", ".jsonl.gz")

# No sentence and no paragraph is as long; and what is held at once stays small.
MAX_LINE_BYTES = 2**24
MAX_DOCUMENT_BYTES = 2**26
MAX_DOCUMENT_LINES = 2**20  # each takes room of its own, however short

# Numbers are not read, and Python refuses integers of many digits.
_JSON = json.JSONDecoder(parse_int=float)
_JSON_NAMES = {
    type(None): "null",
    bool: "a truth value",
    float: "a number",
    list: "a list",
    dict: "an object",
}
# Half characters, which JSON can write and UTF-8 cannot.
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

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

    In a folder and the folders in it, also linked ones, files count whose names end in
    one of `SUFFIXES`; hidden files and folders do not. Of several names of a file the
    first counts.

    Raises:
        FileNotFoundError, ValueError: as `filesystem.expand`; also where a folder holds
            no text.
        OSError: a folder cannot be read.
    """
    names = {}
    for pattern in filter(None, (part.strip() for part in patterns.split(","))):
        is_folder = os.path.isdir(pattern)
        found = _walk(pattern) if is_folder else filesystem.expand(pattern)
        for name in found:
            names.setdefault(os.path.realpath(name), name)
    return sorted(names.values()) or filesystem.expand(patterns)


def _walk(root: str) -> list[str]:
    """The files with text in a folder and below it."""

    def give_up(error):
        raise error

    found, seen = [], {os.path.realpath(root)}
    for folder, folders, files in os.walk(root, onerror=give_up, followlinks=True):
        below = {}
        for name in sorted(folders):
            if not filesystem.is_hidden(name):
                below.setdefault(os.path.realpath(os.path.join(folder, name)), name)
        folders[:] = [name for place, name in below.items() if place not in seen]
        seen.update(below)
        found += [
            os.path.join(folder, name)
            for name in files
            if name.endswith(SUFFIXES) and not filesystem.is_hidden(name)
        ]
    found = [path for path in sorted(found) if os.path.getsize(path)]
    if not found:
        raise ValueError(
            f"{root} holds no text; files in it count whose names end in"
            f" {', '.join(SUFFIXES)}"
        )
    return found


def read_lines(paths: Iterable[str], text_field: str = "text") -> Iterator[str]:
    """All lines of text that are not empty; plain documents may have any length."""
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
            longer than `MAX_LINE_BYTES`, `MAX_DOCUMENT_BYTES`, `MAX_DOCUMENT_LINES`.
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
            limit = ""
            if place + size - first > MAX_DOCUMENT_BYTES:
                limit = f"{MAX_DOCUMENT_BYTES / 2**20:.0f} MiB"
            if len(lines) > MAX_DOCUMENT_LINES:
                limit = f"{MAX_DOCUMENT_LINES:,} lines"
            if limit:
                raise ValueError(
                    f"{path}: a document of more than {limit} ends with line"
                    f" {number:,}; separate documents by empty lines"
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
        where = f"{path}, line {number}"
        text = _find_text(line, text_field, where)
        if text.count("\n") >= MAX_DOCUMENT_LINES:
            raise ValueError(
                f"{where}: a document of more than {MAX_DOCUMENT_LINES:,} lines; make"
                " several of it"
            )
        lines = [part for part in map(str.strip, text.split("\n")) if part]
        if lines:
            yield Document(place, place + size, lines)


def _find_text(line: str, text_field: str, where: str) -> str:
    """The text in a line of JSON; `where` is for messages."""
    try:
        value = _JSON.decode(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{where}: no JSON that can be read: {error}") from None
    if not isinstance(value, dict):
        got = "no object"
    elif text_field not in value:
        got = ", ".join(list(value)[:10]) or "no field"
    elif not isinstance(value[text_field], str):
        got = f"{_JSON_NAMES[type(value[text_field])]} in it"
    else:
        return _LONE_SURROGATE.sub("\ufffd", value[text_field])
    raise ValueError(
        f"{where}: expected an object with a text in {text_field!r}, got {got}; mend"
        " the line, or name the field with --text_field"
    )


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
                raise ValueError(
                    f"{path}, line {number}: the compressed file is damaged ({error});"
                    " fetch or compress it again"
                ) from None
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
