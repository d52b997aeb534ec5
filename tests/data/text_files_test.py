"""Finding and reading text."""

import gzip
import re

import pytest

from data import text_files


def read(path, **options):
    return [doc.lines for doc in text_files.read_documents(str(path), **options)]


@pytest.fixture(params=["", ".gz"])
def write(request, tmp_path):
    """Function of a name and bytes that writes a file, plain and compressed."""

    def write(name, content):
        path = tmp_path / (name + request.param)
        is_zipped = request.param == ".gz"
        path.write_bytes(gzip.compress(content) if is_zipped else content)
        return path

    return write


def test_empty_lines_separate_documents(write):
    text = "\n \na bb\nccc\n\n\u3000\n\ndddd\n".encode()
    assert read(write("a.txt", text)) == [["a bb", "ccc"], ["dddd"]]


def test_line_ends_and_byte_order_mark_are_no_text(write):
    text = "\ufeffa bb\r\n\r\nccc\ufeff\r\n".encode()
    assert read(write("a.txt", text)) == [["a bb"], ["ccc\ufeff"]]


def test_only_line_feeds_end_lines(write):
    [[line]] = read(write("a.txt", "a\u2028bb\x0bccc\x85dddd\n".encode()))
    assert line == "a\u2028bb\x0bccc\x85dddd"


def test_a_document_can_be_read_from_its_place(write):
    content = "äa\nb\n\n\n \nc\n\nd\ne\n\n".encode()
    path = str(write("a.txt", content))
    whole = list(text_files.read_documents(path))
    assert [doc.lines for doc in whole] == [["äa", "b"], ["c"], ["d", "e"]]
    for first in range(3):
        for last in range(first, 3):
            part = text_files.read_documents(
                path, start=whole[first].start, end=whole[last].end
            )
            assert list(part) == whole[first : last + 1]


def test_json_lines(write):
    lines = b'{"id": 1, "text": "a \\n\\n b"}\n\n{"text": " \\n"}\n{"text": "c"}'
    path = write("a.jsonl", lines)
    assert read(path) == [["a", "b"], ["c"]]
    [_, second] = text_files.read_documents(str(path))
    assert read(path, start=second.start, end=second.end) == [["c"]]
    path = write("b.jsonl", b'{"body": "c"}')
    assert read(path, text_field="body") == [["c"]]
    assert list(text_files.read_lines([str(path)], "body")) == ["c"]


BAD = {
    "Latin-1": ("a.txt", b"a\n\nGem\xe4lde\n", r"a\.txt.*, line 3, byte 4: .*iconv"),
    "binary": ("a.txt", b"a\n\x7fELF\0\0", r"a\.txt.*, line 2: .*no text file"),
    "no JSON": ("a.jsonl", b'{"text": "a"}\na\n', r"a\.jsonl.*, line 2: no JSON"),
    "other field": (
        "a.jsonl",
        b'{"id": 1, "body": "a"}',
        "got id, body; .*--text_field",
    ),
    "no object": ("a.jsonl", b"[1]", "got no object"),
    "no string": ("a.jsonl", b'{"text": 1}', "expected an object with a text"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_text_is_located(name, write):
    name, content, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        read(write(name, content))


def test_too_long_lines_and_documents_are_located(write, monkeypatch):
    monkeypatch.setattr(text_files, "MAX_LINE_BYTES", 100)
    monkeypatch.setattr(text_files, "MAX_DOCUMENT_BYTES", 250)
    line = b"x" * 99 + b"\n"
    assert read(write("a.txt", line + line + b"\n" + line)) == [
        ["x" * 99] * 2,
        ["x" * 99],
    ]
    path = str(write("d.txt", b"a\n\n" + line * 3))
    assert list(text_files.read_lines([path])) == ["a", *["x" * 99] * 3]
    with pytest.raises(ValueError, match=r"line 2: the line is longer than"):
        read(write("b.txt", line + b"y" + line))
    with pytest.raises(ValueError, match="a document .* with line 5; .* empty lines"):
        read(write("c.txt", b"a\n\n" + line * 3))


def test_a_compressed_file_that_is_cut_off(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"abc\n" * 100)[:-5])
    with pytest.raises(ValueError, match=r"a\.txt\.gz, line"):
        read(path)
    path.write_bytes(b"plain")
    with pytest.raises(ValueError, match=r"a\.txt\.gz, line 1: .*gzip"):
        read(path)


def test_folders_are_searched(tmp_path):
    names = ("b.txt", "a/c.jsonl.gz", "a/d/e.txt.gz", "notes.md", ".f.txt")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "empty.txt").touch()
    (tmp_path / "none").mkdir()
    found = text_files.find(f"{tmp_path},{tmp_path}/notes.md")
    assert found == sorted(f"{tmp_path}/{name}" for name in names[:4])
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path}/none holds no text")):
        text_files.find(f"{tmp_path}/none")
    with pytest.raises(FileNotFoundError, match="no file matches"):
        text_files.find(f"{tmp_path}/missing")
    with pytest.raises(ValueError, match="expected file names"):
        text_files.find(",")
