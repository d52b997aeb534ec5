"""Files in CoNLL columns: a word a line, blank lines between sentences.

Columns stand apart by tabs, or else by spaces. `-DOCSTART-` lines start documents. The
scheme of the tags is found out, and they become BIO (see tag_schemes.py).
"""

import dataclasses
import itertools
import pathlib
import re
from collections.abc import Iterator, Sequence

from data import tables, tag_schemes

DOCUMENT_START = "-DOCSTART-"

_Line = tuple[int, str]  # number from 1, text without its end


@dataclasses.dataclass(frozen=True)
class Layout:
    """The columns of a file.

    Attributes:
        separator: a tab, or a space, which stands for any spaces and tabs.
        first_line: the number of the line that this was seen from.
        width: the number of columns.
        word, tag: where the words and the tags are; `tag` is None without tags.
        has_index: the first column counts the words of a sentence, as in GermEval.
    """

    separator: str
    first_line: int
    width: int
    word: int
    tag: int | None
    has_index: bool


@dataclasses.dataclass(frozen=True)
class Sentence:
    """Words with their tags in BIO, or None where there are none.

    Attributes:
        document: the number of `-DOCSTART-` lines before it.
        lines: the numbers of the words' lines, and
        rows: these lines as they stand.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None
    document: int
    lines: tuple[int, ...]
    rows: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class File:
    """A file that was read; `scheme` is BIO, IOB1, IO, mixed, or None without tags."""

    path: str
    layout: Layout
    scheme: str | None
    sentences: tuple[Sentence, ...]

    def __str__(self) -> str:
        words = sum(len(sentence.words) for sentence in self.sentences)
        tags = (
            "no tags"
            if self.layout.tag is None
            else (f"{self.scheme or 'only O'} tags in column {self.layout.tag}")
        )
        return (
            f"{self.path}: {len(self.sentences)} sentences, {words} words in column "
            f"{self.layout.word}, {tags}"
        )


def read(
    path: str | pathlib.Path,
    word_column: int | None = None,
    tag_column: int | None = None,
    allow_mixed: bool = False,
) -> File:
    """Reads a file, perhaps with .gz.

    Lines that start with "#" and cannot be a word's are comments.

    Args:
        path: the file.
        word_column: counts from 0, negative from the end. By default the first; the
            second if the first counts words.
        tag_column: likewise. By default the last; of the two of GermEval the first, the
            outer tags. A file that does not reach so far has no tags.
        allow_mixed: accept a mixture of BIO and IOB1.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: what `tables.read_lines` raises, no words, a line with more or fewer
            columns than the first, what is no tag, a mixture of schemes. Names the
            file and the line.
    """
    lines = [(n, line.rstrip("\r\n")) for n, line in tables.read_lines(path)]
    layout = _find_layout(path, lines, word_column, tag_column)
    sentences = tuple(_sentences(path, lines, layout))
    if layout.tag is None:
        return File(str(path), layout, None, sentences)
    tagged = [(sentence.tags, sentence.lines) for sentence in sentences]
    scheme = tag_schemes.find_scheme(path, tagged, allow_mixed)
    sentences = tuple(
        dataclasses.replace(sentence, tags=tag_schemes.to_bio(sentence.tags))
        for sentence in sentences
    )
    return File(str(path), layout, scheme, sentences)


def _cells(line: str, separator: str) -> list[str]:
    if separator == "\t":
        return [cell.strip() for cell in line.split("\t")]
    # Only these: a word may hold another of Unicode's spaces.
    return re.split("[ \t]+", line.strip(" \t"))


def _may_be_comment(line: str) -> bool:
    return line.startswith(("# ", "#\t")) or line == "#"


def _is_document_start(line: str) -> bool:
    return line.split(maxsplit=1)[:1] == [DOCUMENT_START]


def _find_layout(
    path: str | pathlib.Path,
    lines: Sequence[_Line],
    word_column: int | None,
    tag_column: int | None,
) -> Layout:
    """Infers what is not given from the lines that are words for sure."""
    words = [
        (n, line) for n, line in lines if line.strip() and not _is_document_start(line)
    ]
    words = [x for x in words if not _may_be_comment(x[1])] or words
    if not words:
        raise ValueError(f"{path} has no words, only blank lines and -DOCSTART-")
    first_line, line = words[0]
    separator = "\t" if "\t" in line else " "
    rows = [_cells(line, separator) for _, line in words]
    width = len(rows[0])

    def holds_tags(column: int) -> bool:
        return all(
            len(row) > column and tag_schemes.is_tag(row[column]) for row in rows
        )

    has_index = width > 1 and _counts([row[0] for row in rows])
    has_index = has_index and not (width == 2 and holds_tags(1))
    word = _place(width, has_index if word_column is None else word_column)
    if word is None:
        raise ValueError(
            f"{path}, line {first_line}: there is no column {word_column} (they count "
            f"from 0), only {width}; change --word_column"
        )
    if tag_column is not None:
        tag = _place(width, tag_column)
    elif has_index and width == 4 and holds_tags(2) and holds_tags(3):
        tag = 2
    else:
        tag = width - 1 if width > 1 + has_index else None
    return Layout(
        separator, first_line, width, word, None if tag == word else tag, has_index
    )


def _place(width: int, column: int) -> int | None:
    """A column's number from the start, None if there is no such column."""
    return column % width if -width <= column < width else None


def _counts(cells: Sequence[str]) -> bool:
    """Whether they are numbers that go up by one, and start again at 0 or 1."""
    if not all(cell.isdecimal() for cell in cells):
        return False
    pairs = itertools.pairwise([-1, *map(int, cells)])
    return all(b in (0, 1) or b == a + 1 for a, b in pairs)


def _is_comment(line: str, cells: Sequence[str], layout: Layout) -> bool:
    """Whether it is a comment; "#" may be a word too."""
    if layout.has_index:
        return line.startswith("#")
    if not _may_be_comment(line):
        return False
    if len(cells) != layout.width:
        return True
    return layout.tag is not None and not tag_schemes.is_tag(cells[layout.tag])


def _sentences(
    path: str | pathlib.Path, lines: Sequence[_Line], layout: Layout
) -> Iterator[Sentence]:
    """Yields the sentences with their tags as they stand."""
    document, words = 0, []
    for number, line in [*lines, (0, "")]:
        if line.strip() and not _is_document_start(line):
            cells = _cells(line, layout.separator)
            if not _is_comment(line, cells, layout):
                _check_row(f"{path}, line {number}", cells, layout)
                words.append((number, line, cells))
            continue
        if words:
            numbers, rows, cells = zip(*words, strict=True)
            texts, tags = tuple(row[layout.word] for row in cells), None
            if layout.tag is not None:
                tags = tuple(row[layout.tag] for row in cells)
            yield Sentence(texts, tags, document, numbers, rows)
            words = []
        document += bool(line.strip())


def _check_row(where: str, cells: Sequence[str], layout: Layout) -> None:
    if len(cells) != layout.width:
        raise ValueError(
            f"{where}: expected {layout.width} columns as in line {layout.first_line}, "
            f"got {len(cells)}"
        )
    if layout.tag is not None and not tag_schemes.is_tag(cells[layout.tag]):
        raise ValueError(
            f"{where}: column {layout.tag} holds {cells[layout.tag]!r}, which is no "
            "tag; tags are O, B-TYPE and I-TYPE (IO, IOB1 or BIO, not BIOES), and "
            "--tag_column says where they are"
        )


def add_tags(file: File, predicted: Iterator[str]) -> Iterator[str]:
    """Yields the lines of a file, without comments, and with columns added.

    These are its own tags in BIO, if it has any, and the predicted ones: what conlleval
    reads.

    Args:
        file: what `read` gave.
        predicted: gives at least a tag for every word of the file, in order.
    """
    separator = file.layout.separator
    blanks = " \t" if separator == " " else ""
    document, filling = 0, ["O"] * (file.layout.width + (file.layout.tag is not None))
    for sentence in file.sentences:
        if sentence.document != document:
            document = sentence.document
            yield from (separator.join([DOCUMENT_START, *filling]), "")
        gold = [(tag,) for tag in sentence.tags or ()] or [()] * len(sentence.rows)
        for row, tags in zip(sentence.rows, gold, strict=True):
            yield separator.join([row.strip(blanks), *tags, next(predicted)])
        yield ""
