"""Rows of text files: .tsv without quoting, .csv and .jsonl, each perhaps gzipped.

All are UTF-8, with or without a byte order mark. Only "\n" ends a line, as in the
original (`str.splitlines` would also cut at U+2028, which occurs in real text); a
"\r" before it is dropped. Another "\r" is refused in the first line: where lines end
so, that one would be the whole file. Every error names the file and, where there is
one, the line.
"""

import csv
import difflib
import gzip
import json
import pathlib
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

FORMATS = (".tsv", ".csv", ".jsonl")


def not_among(word: str, known: Iterable[str]) -> str:
    """End of a message about an unknown word: it, what is known, what is nearest."""
    known = list(known)
    listed = ", ".join(map(repr, known[:100])) + (", …" if known[100:] else "")
    close = difflib.get_close_matches(word, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"{word!r}; there are {listed}{hint}"


def _open(path: pathlib.Path) -> BinaryIO:
    if path.is_dir():
        raise ValueError(f"{path} is a folder where a file was expected")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _decode(path: pathlib.Path, number: int, offset: int, line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}, line {number}: the byte at offset {offset + error.start} "
            f"(0x{line[error.start]:02x}) is not UTF-8; save the file as UTF-8"
        ) from None


def read_lines(path: str | pathlib.Path) -> Iterator[tuple[int, str]]:
    """Yields (line number from 1, line with its line end).

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is empty, not UTF-8 (the byte's offset is named; in a
            gzip file it counts in the unpacked text), or damaged gzip; its lines seem
            to end with CR alone.
    """
    path = pathlib.Path(path)
    offset = 0
    try:
        with _open(path) as file:
            for number, line in enumerate(file, start=1):
                text = _decode(path, number, offset, line)
                offset += len(line)
                if number == 1 and "\r" in text.removesuffix("\n").removesuffix("\r"):
                    raise ValueError(
                        f"{path}, line 1: a CR stands within the line; if lines end "
                        "with CR alone, save the file with LF at the end of lines"
                    )
                yield number, text.removeprefix("\ufeff") if number == 1 else text
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is not a whole gzip file: {error}") from None
    if not offset:
        raise ValueError(f"{path} is empty")


def _without_blank_end(
    path: str | pathlib.Path, rows: Iterable[tuple[int, Any]], blank: Any
) -> Iterator[tuple[int, Any]]:
    """Drops blank lines at the end; refuses others, which would shift row numbers."""
    first_blank = None
    for number, row in rows:
        if row == blank:
            first_blank = first_blank or number
        elif first_blank:
            raise ValueError(
                f"{path}, line {first_blank} is empty but rows follow; delete the line"
            )
        else:
            yield number, row


def _stripped_lines(path: str | pathlib.Path) -> Iterator[tuple[int, str]]:
    for number, line in read_lines(path):
        yield number, line.removesuffix("\n").removesuffix("\r")


def read_tsv(
    path: str | pathlib.Path, skip_blank: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yields (line number, cells). A quotation mark is an ordinary character.

    A blank line before others is refused, or passed over with `skip_blank`.
    """
    lines = _stripped_lines(path)
    if skip_blank:
        lines = ((number, line) for number, line in lines if line)
    for number, line in _without_blank_end(path, lines, ""):
        yield number, line.split("\t")


def read_csv(
    path: str | pathlib.Path, delimiter: str = ","
) -> Iterator[tuple[int, list[str]]]:
    """Yields (number of the row's first line, cells), with the quoting of RFC 4180."""
    csv.field_size_limit(sys.maxsize)  # a cell may be a whole document

    def rows() -> Iterator[tuple[int, list[str]]]:
        lines = (line for _, line in read_lines(path))
        reader = csv.reader(lines, strict=True, delimiter=delimiter)
        while True:
            number = reader.line_num + 1
            try:
                row = next(reader, None)
            except csv.Error as error:
                raise ValueError(
                    f"{path}, line {number}: {error}; a cell with quotation marks, "
                    'commas or line breaks stands in "…", with "" for each inner "'
                ) from None
            if row is None:
                return
            yield number, row

    yield from _without_blank_end(path, rows(), [])


def parse_json(where: str | pathlib.Path, text: str) -> Any:
    """What a text in JSON says; ValueError, with where it stands, if it is none."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if "\n" in text.strip() else ""
        what = f"{error.msg.removesuffix(' at')} at {line}column {error.colno}"
    except RecursionError:
        what = "its brackets are nested too deeply"
    raise ValueError(f"{where} is not JSON: {what}")


def read_json(path: str | pathlib.Path) -> Any:
    """What a JSON file holds; raises as `read_lines` and `parse_json`."""
    return parse_json(path, "".join(line for _, line in read_lines(path)))


def read_jsonl(path: str | pathlib.Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields (line number, object); every line holds one JSON object."""
    for number, line in _without_blank_end(path, _stripped_lines(path), ""):
        row = parse_json(f"{path}, line {number}", line)
        if not isinstance(row, dict):
            raise ValueError(
                f"{path}, line {number}: expected a JSON object, got {line[:40]!r}"
            )
        yield number, row


def _json_cell(where: str, row: dict[str, Any], name: str) -> str:
    if name not in row:
        raise ValueError(f"{where}: no column {not_among(name, row)}")
    value = row[name]
    if value is None:
        return ""
    if isinstance(value, dict | list):
        raise ValueError(
            f"{where}: {name!r} must be a string or a number, got {value!r:.60}"
        )
    text = value if isinstance(value, str) else json.dumps(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{where}: {name!r} holds {text[error.start]!a}, half of a character that "
            "JSON writes as a pair; remove it"
        ) from None
    return text


def _column_indices(
    where: str, header: list[str] | None, columns: Sequence[str]
) -> list[int]:
    """Positions of the columns in a row; without a header they are numbers."""
    if header is None:
        return [int(name) for name in columns]
    for name in columns:
        if name not in header:
            raise ValueError(f"{where}: no column {not_among(name, header)}")
        if header.count(name) > 1:
            raise ValueError(
                f"{where}: {header.count(name)} columns are called {name!r}, which is "
                "to be read; rename the others"
            )
    return [header.index(name) for name in columns]


def select(
    path: str | pathlib.Path,
    rows: Iterator[tuple[int, list[str]]],
    columns: Sequence[str],
) -> Iterator[tuple[int, int, list[str]]]:
    """Picks columns from what `read_tsv` or `read_csv` yields; see `read_columns`."""
    has_header = not all(name.isdecimal() for name in columns)
    line, header = next(rows, (1, columns)) if has_header else (1, None)
    indices = _column_indices(f"{path}, line {line}", header, columns)
    for number, (line, row) in enumerate(rows, start=int(has_header)):
        if header and len(row) != len(header):
            raise ValueError(
                f"{path}, line {line}: expected the {len(header)} columns of the "
                f"header, got {len(row)}"
            )
        if len(row) <= max(indices):
            raise ValueError(
                f"{path}, line {line}: expected at least {max(indices) + 1} columns, "
                f"got {len(row)}"
            )
        yield line, number, [row[index] for index in indices]


def note_id(
    path: str | pathlib.Path, line: int, name: str, lines: dict[str, int]
) -> None:
    """Adds the line of an id to `lines`.

    Raises:
        ValueError: another line has the same.
    """
    if lines.setdefault(name, line) != line:
        raise ValueError(
            f"{path}, line {line}: the id {name!r} is that of line {lines[name]}, too; "
            "predictions would be told apart by it"
        )


def read_columns(
    path: str | pathlib.Path, columns: Sequence[str]
) -> Iterator[tuple[int, int, list[str]]]:
    """Yields (line number, row number, one string a column) of any of the formats.

    Args:
        path: ends in .tsv, .csv or .jsonl, perhaps followed by .gz.
        columns: names from the header line (.jsonl: keys). If all are numbers, the
            .tsv or .csv file has no header and they count its columns from 0. Numbers
            and booleans of .jsonl become their JSON spelling, null becomes "".

    Row numbers count from 0, the header included, as the original's guids do.

    Raises:
        ValueError: another extension, a column that is not there or is there twice, a
            text that is not all characters, a row of another width, no rows at all,
            and what `read_lines` raises.
    """
    path = pathlib.Path(path)
    suffix = pathlib.Path(path.name.removesuffix(".gz")).suffix
    if suffix not in FORMATS:
        raise ValueError(
            f"{path}: the name must end in one of {', '.join(FORMATS)} (or these with "
            ".gz), which says how to read it"
        )
    empty = True
    if suffix == ".jsonl":
        for number, (line, row) in enumerate(read_jsonl(path)):
            empty = False
            where = f"{path}, line {line}"
            yield line, number, [_json_cell(where, row, name) for name in columns]
    else:
        rows = read_tsv(path) if suffix == ".tsv" else read_csv(path)
        for cells in select(path, rows, columns):
            empty = False
            yield cells
    if empty:
        raise ValueError(f"{path} has no rows")
