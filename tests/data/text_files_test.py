"""Finding and reading text."""

import gzip
import os
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


def test_numbers_of_json_lines_may_be_long(write):
    line = b'{"text": "a", "id": ' + b"9" * 5000 + b', "x": -1.5e999}'
    assert read(write("a.jsonl", line)) == [["a"]]


def test_half_characters_of_json_lines_are_replaced(write):
    path = write("a.jsonl", rb'{"text": "a\ud83d b\ude00\n\ud83d\ude00\ud83d"}')
    assert read(path) == [["a\ufffd b\ufffd", "\U0001f600\ufffd"]]
    assert list(text_files.read_lines([str(path)])) == read(path)[0]


BAD = {
    "Latin-1": ("a.txt", b"a\n\nGem\xe4lde\n", r"a\.txt.*, line 3, byte 4: .*iconv"),
    "binary": ("a.txt", b"a\n\x7fELF\0\0", r"a\.txt.*, line 2: .*no text file"),
    "no JSON": ("a.jsonl", b'{"text": "a"}\na\n', r"a\.jsonl.*, line 2: no JSON"),
    "other field": (
        "a.jsonl",
        b'{"id": 1, "body": "a"}',
        "got id, body; .*--text_field",
    ),
    "no field": ("a.jsonl", b"{}", "got no field; .*--text_field"),
    "no object": ("a.jsonl", b"[1]", "got no object"),
    "null": ("a.jsonl", b'{"text": null}', r"line 1: .* in 'text', got null in it"),
    "number": ("a.jsonl", b'{"text": 1}', "got a number in it"),
    "truth": ("a.jsonl", b'{"text": true}', "got a truth value in it"),
    "list": ("a.jsonl", b'{"text": ["a"]}', "got a list in it"),
    "object": ("a.jsonl", b'{"text": {"a": "b"}}', "got an object in it"),
    "too deep": ("a.jsonl", b"\n" + b"[" * 100_000, r"a\.jsonl.*, line 2: no JSON"),
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


def test_documents_of_too_many_lines_are_located(write, monkeypatch):
    monkeypatch.setattr(text_files, "MAX_DOCUMENT_LINES", 3)
    assert read(write("a.txt", b"a\na\na\n\na\n")) == [["a"] * 3, ["a"]]
    path = write("b.txt", b"a\n\na\na\na\na\n")
    with pytest.raises(ValueError, match="more than 3 lines ends with line 6; .*empty"):
        read(path)
    assert list(text_files.read_lines([str(path)])) == ["a"] * 5
    content = b'{"text": "a\\na\\na"}\n{"text": "a\\na\\na\\na"}'
    with pytest.raises(ValueError, match="line 2: a document of more than 3 lines"):
        read(write("c.jsonl", content))


def test_a_compressed_file_that_is_cut_off(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"abc\n" * 100)[:-5])
    with pytest.raises(ValueError, match=r"a\.txt\.gz, line .*damaged.*compress it ag"):
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


def fill(folder, *names):
    """Writes files with text."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


def test_a_file_with_several_names_counts_once(tmp_path, monkeypatch):
    fill(tmp_path, "in/a.txt", "in/b.txt")
    (tmp_path / "in/c.txt").symlink_to("a.txt")
    monkeypatch.chdir(tmp_path)
    for patterns in ("in,./in,{}/in", "in,in/*.txt,in/../in/b.txt", "in,in/c.txt"):
        found = text_files.find(patterns.format(tmp_path))
        assert found == ["in/a.txt", "in/b.txt"]
    assert text_files.find("./in/b.txt,in") == ["./in/b.txt", "in/a.txt"]


def test_linked_folders_are_searched_once(tmp_path):
    fill(tmp_path, "in/a.txt", "out/b/c.txt")
    (tmp_path / "in/d").symlink_to("../out")
    (tmp_path / "in/e").symlink_to("../out")
    (tmp_path / "in/f").symlink_to("../out/b")
    (tmp_path / "out/up").symlink_to("../in")
    found = text_files.find(f"{tmp_path}/in")
    assert [os.path.realpath(path) for path in found] == [
        f"{tmp_path}/in/a.txt",
        f"{tmp_path}/out/b/c.txt",
    ]


def test_hidden_folders_are_passed_over(tmp_path):
    fill(tmp_path, "in/a.txt", "in/.ipynb_checkpoints/a.txt", "in/b/.git/c/a.txt")
    assert text_files.find(f"{tmp_path}/in") == [f"{tmp_path}/in/a.txt"]


def test_names_in_a_folder_may_be_odd(tmp_path):
    names = ["x,y.txt", " z .txt", "[1].txt", "*.txt", "1.txt"]
    fill(tmp_path, *names)
    found = text_files.find(str(tmp_path))
    assert found == sorted(f"{tmp_path}/{name}" for name in names)


def test_folders_that_cannot_be_read_are_told(tmp_path, monkeypatch):
    fill(tmp_path, "a.txt", "b/c.txt")
    scandir = os.scandir

    def refuse(path):  # root may read everything, and tests may run as root
        if path == f"{tmp_path}/b":
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(PermissionError, match=f"{tmp_path}/b"):
        text_files.find(str(tmp_path))
