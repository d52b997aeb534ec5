"""Files of rows, each format checked against Python's own reader of another kind."""

import csv
import gzip
import io
import json
import random

import pytest

from data import tables

# Everything that str.splitlines or csv could mistake for an end of line or a quote.
ALPHABET = "ab\"', \u2028\u0085\x0b\x1cé中😀"


def random_text(rng):
    return "x" + "".join(rng.choice(ALPHABET) for _ in range(rng.randrange(8)))


def write(path, content):
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def values(path, columns):
    return [cells for _, _, cells in tables.read_columns(path, columns)]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["t.tsv", "t.tsv.gz"])
def test_tsv_gives_back_what_was_joined(tmp_path, seed, ending, name):
    rng = random.Random(seed)
    rows = [[random_text(rng) for _ in range(3)] for _ in range(5)]
    lines = ["\t".join(row) + ending for row in [["a", "b", "c"], *rows]]
    if seed % 2:
        lines[-1] = lines[-1].removesuffix(ending)
    bom = "\ufeff" if seed % 3 else ""
    path = write(tmp_path / name, bom + "".join(lines))
    assert values(path, ["a", "b", "c"]) == rows
    assert values(path, ["c", "a"]) == [[row[2], row[0]] for row in rows]
    assert values(path, ["1"]) == [["b"], *([row[1]] for row in rows)]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_csv_gives_back_what_csv_wrote(tmp_path, seed, name):
    rng = random.Random(seed)
    rows = [[random_text(rng) + rng.choice(["", "\n", "\r\n", ","])] for _ in range(5)]
    rows = [[*row, random_text(rng)] for row in rows]
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows([["a", "b"], *rows])
    path = write(tmp_path / name, "\ufeff" + buffer.getvalue())
    assert values(path, ["a", "b"]) == rows


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz"])
def test_jsonl_gives_back_what_json_wrote(tmp_path, name):
    rng = random.Random(0)
    rows = [[random_text(rng) + "\t\n", random_text(rng)] for _ in range(50)]
    objects = [{"a": a, "unused": [], "b": b} for a, b in rows]
    text = "".join(json.dumps(o, ensure_ascii=False) + "\r\n" for o in objects)
    path = write(tmp_path / name, text)
    assert values(path, ["b", "a"]) == [[b, a] for a, b in rows]


def test_jsonl_values_other_than_strings(tmp_path):
    path = write(tmp_path / "t.jsonl", '{"a": 3, "b": true, "c": null, "d": 1.5}')
    assert values(path, ["a", "b", "c", "d"]) == [["3", "true", "", "1.5"]]


def test_rows_and_lines_are_numbered(tmp_path):
    path = write(tmp_path / "t.csv", 'a,b\n"1\n2",3\n4,5\n')
    assert list(tables.read_columns(path, ["a"])) == [(2, 1, ["1\n2"]), (4, 2, ["4"])]
    path = write(tmp_path / "t.tsv", "1\t2\n3\t4\n\n\r\n")
    assert list(tables.read_columns(path, ["0"])) == [(1, 0, ["1"]), (2, 1, ["3"])]


def test_cells_larger_than_the_limit_of_csv(tmp_path):
    text = "word " * 100_000
    path = write(tmp_path / "t.csv", f"text\n{text}\n")
    assert values(path, ["text"]) == [[text]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.tsv", "", "t.tsv is empty"),
        ("t.tsv", "a\tb\n", "t.tsv has no rows"),
        ("t.tsv", "\n\n", "t.tsv has no rows"),
        ("t.csv", "a,b\r\n", "t.csv has no rows"),
        ("t.jsonl", "\n", "t.jsonl has no rows"),
        ("t.txt", "a\n", "must end in one of .tsv, .csv, .jsonl"),
        (
            "t.tsv",
            "a\tb\n1\t2\n1\n",
            "line 3: expected the 2 columns of the header, got 1",
        ),
        (
            "t.tsv",
            "a\tb\n1\t2\t3\n",
            "line 2: expected the 2 columns of the header, got 3",
        ),
        ("t.csv", 'a,b\n"1\n",2\n3\n', "line 4: expected the 2 columns"),
        ("t.tsv", "a\tb\n\n1\t2\n", "line 2 is empty but rows follow"),
        ("t.csv", "a,b\n1,2\n\n\n1,2\n", "line 3 is empty but rows follow"),
        ("t.csv", 'a,b\n"1,2\n3,4\n', "line 2: unexpected end of data"),
        ("t.csv", 'a,b\n1,2\n"1"x,2\n', "line 3: .* expected after"),
        (
            "t.tsv",
            "b\taa\n1\t2\n",
            "line 1: no column 'a'; there are 'b', 'aa'; did you",
        ),
        ("t.csv", "a,b,a\n1,2,3\n", "line 1: 2 columns are called 'a', .*; rename"),
        ("t.tsv", "a\ta\tb\n1\t2\t3\n", "line 1: 2 columns are called 'a'"),
        ("t.tsv", "a\tb\r1\t2\r3\t4\r", "line 1: a CR .* save the file with LF"),
        ("t.csv", "a,b\r1,2\r3,4\r\n", "line 1: a CR .* save the file with LF"),
        ("t.jsonl.gz", '{"a": 1}\r{"a": 2}', "line 1: a CR .* save the file with LF"),
        (
            "t.jsonl",
            '{"a": "1"}\n{"a": "\\ud83d."}',
            r"line 2: 'a' holds '\\ud83d', half",
        ),
        ("t.jsonl", '{"a": 1}\n{"b": 1}\n', "line 2: no column 'a'; there are 'b'"),
        ("t.jsonl", '{"a": 1}\n[1]\n', r"line 2: expected a JSON object, got '\[1\]'"),
        ("t.jsonl", '{"a": 1}\n{"a": 1\n', "line 2 is not JSON: .* at column 8"),
        ("t.jsonl", '{"a": 1}\n' + "[" * 100_000, "line 2 is not JSON: .* too deeply"),
        (
            "t.jsonl",
            '{"a": [1]}\n',
            r"line 1: 'a' must be a string or a number, got \[1",
        ),
        ("t.tsv", b"a\tb\nx\ty\nx\t\xe9\n", r"line 3: the byte at offset 10 \(0xe9\)"),
        ("t.csv", b"\xef\xbb\xbfa\n\xff\n", r"line 2: the byte at offset 5 \(0xff\)"),
        ("t.tsv.gz", b"a\n\xff\n", r"line 2: the byte at offset 2 \(0xff\)"),
    ],
)
def test_errors_say_where(tmp_path, name, content, message):
    path = write(tmp_path / name, content)
    with pytest.raises(ValueError, match=message) as caught:
        list(tables.read_columns(path, ["a"]))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_fault(tmp_path):
    """A CR within a later line, columns of one name that are not read, an emoji."""
    path = write(tmp_path / "t.tsv", "a\tb\tb\r\n1\r2\t3\t4\r\n")
    assert values(path, ["a"]) == [["1\r2"]]
    path = write(tmp_path / "t.jsonl", '{"a": "\\ud83d\\ude00", "b": "\\ud83d"}')
    assert values(path, ["a"]) == [["\U0001f600"]]


def test_a_column_number_beyond_the_row(tmp_path):
    path = write(tmp_path / "t.tsv", "1\t2\t3\n1\t2\n")
    with pytest.raises(ValueError, match="line 2: expected at least 3 columns, got 2"):
        list(tables.read_columns(path, ["0", "2"]))


@pytest.mark.parametrize("cut", [5, 30])
def test_a_torn_gzip_file(tmp_path, cut):
    path = write(tmp_path / "t.tsv.gz", "a\n" + "b\n" * 10_000)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ValueError, match="t.tsv.gz is not a whole gzip file"):
        list(tables.read_columns(path, ["a"]))


def test_a_file_that_only_claims_to_be_gzip(tmp_path):
    path = tmp_path / "t.tsv.gz"
    path.write_bytes(b"a\nb\n")
    with pytest.raises(ValueError, match="t.tsv.gz is not a whole gzip file"):
        list(tables.read_columns(path, ["a"]))


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file .*t.tsv"):
        list(tables.read_columns(tmp_path / "t.tsv", ["a"]))
    (tmp_path / "t.tsv").mkdir()
    with pytest.raises(ValueError, match="t.tsv is a folder"):
        list(tables.read_columns(tmp_path / "t.tsv", ["a"]))


def test_quoting_with_another_delimiter(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('id\ttext\n1\t"a ""b"", c"\n2\td, e\n', encoding="utf-8")
    rows = [cells for _, cells in tables.read_csv(path, delimiter="\t")]
    assert rows == [["id", "text"], ["1", 'a "b", c'], ["2", "d, e"]]


def test_blank_lines_that_may_be_skipped(tmp_path):
    write(tmp_path / "t.tsv", "\na\tb\n\n1\t2\n\n")
    rows = list(tables.read_tsv(tmp_path / "t.tsv", skip_blank=True))
    assert rows == [(2, ["a", "b"]), (4, ["1", "2"])]
