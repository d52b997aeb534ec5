"""Files in CoNLL columns: what is inferred, what is refused, what is written back."""

import gzip
import itertools
import re

import pytest

from data import conll
from tests import conlleval

CONLL_2003 = """-DOCSTART- -X- -X- O

EU NNP I-NP I-ORG
rejects VBZ I-VP O
German JJ I-NP I-MISC

Peter NNP I-NP I-PER

-DOCSTART- -X- -X- O

BRUSSELS NNP I-NP I-LOC
"""
GERMEVAL = """#\thttp://example.org/a\t[2010-07-04]\t
1\tTSV\tB-ORG\tB-LOC
2\t#\tO\tO
3\tMünchen\tB-ORG\tO

#\tb\t[2010-07-05]\t
1\tgut\tO\tO
"""


@pytest.fixture
def write(tmp_path):
    """A function of a file's content that gives its path."""

    def write(content, name="x.conll"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def words(file):
    return [" ".join(sentence.words) for sentence in file.sentences]


def tags(file):
    return [" ".join(sentence.tags) for sentence in file.sentences]


def test_conll_2003(write):
    file = conll.read(write(CONLL_2003))
    assert words(file) == ["EU rejects German", "Peter", "BRUSSELS"]
    assert tags(file) == ["B-ORG O B-MISC", "B-PER", "B-LOC"]
    assert [s.document for s in file.sentences] == [1, 1, 2]
    assert [s.lines for s in file.sentences] == [(3, 4, 5), (7,), (11,)]
    assert file.scheme == "IO"
    path = re.escape(file.path)
    pattern = f"{path}: 3 sentences, 5 words in column 0, IO tags in column 3"
    assert re.fullmatch(pattern, str(file))


def test_another_column_of_tags(write):
    for column in (2, -2):
        file = conll.read(write(CONLL_2003), tag_column=column)
        assert tags(file) == ["B-NP B-VP B-NP", "B-NP", "B-NP"]


def test_germeval(write):
    file = conll.read(write(GERMEVAL))
    assert words(file) == ["TSV # München", "gut"]
    assert tags(file) == ["B-ORG O B-ORG", "O"]  # the outer ones
    assert tags(conll.read(write(GERMEVAL), tag_column=3)) == ["B-LOC O O", "O"]
    assert conll.read(write(GERMEVAL), word_column=0).sentences[0].words[2] == "3"


@pytest.mark.parametrize(
    "content",
    [
        "a\tO\nb c\tB-X\n\nd\tO\n",  # a word may hold a space where tabs separate
        "a\tO\r\nb c\tB-X\r\n\r\nd\tO\r\n",
        "\ufeffa\tO\nb c\tB-X\n\t\nd\tO",  # WNUT-17 ends sentences so
        "\n\n# 1\na\tO\nb c\tB-X\n\n\n \n#\n# text = a b\nd\tO\n\n\n",
        "-DOCSTART-\n\na\tO\nb c\tB-X\n\n-DOCSTART-\tO\nd\tO\n",
    ],
    ids=["plain", "windows", "bom", "comments", "documents"],
)
def test_line_ends_and_what_stands_between(write, content):
    file = conll.read(write(content))
    assert [s.words for s in file.sentences] == [("a", "b c"), ("d",)]
    assert tags(file) == ["O B-X", "O"]


def test_gzip(write):
    file = conll.read(write(gzip.compress(CONLL_2003.encode()), "x.txt.gz"))
    assert words(file) == words(conll.read(write(CONLL_2003)))


def test_any_blanks_separate_where_there_are_no_tabs_in_the_first_line(write):
    file = conll.read(write("a  NN   O\nb\u00a0c NN\tB-X \n"))
    assert [s.words for s in file.sentences] == [("a", "b\u00a0c")]
    assert tags(file) == ["O B-X"]


def test_a_hash_may_be_a_word(write):
    file = conll.read(write("#\tO\n#tag\tB-X\n# 1\n#\tB-X\n"))
    assert words(file) == ["# #tag #"]
    assert words(conll.read(write("#\tO\n"))) == ["#"]
    assert words(conll.read(write("# O\n# x y\na O\n"))) == ["# a"]


def test_an_empty_word_stays(write):
    file = conll.read(write("a\tO\n\tO\n \tB-X\n\u200b\tO\n"))
    assert file.sentences[0].words == ("a", "", "", "\u200b")


def test_files_without_tags(write):
    for content in ("a\nb\n\nc\n", "1\ta\n2\tb\n\n1\tc\n", "1 a\n2 b\n\n1 c\n"):
        file = conll.read(write(content))
        assert words(file) == ["a b", "c"]
        assert [s.tags for s in file.sentences] == [None, None]
        assert "no tags" in str(file)
    file = conll.read(write("a NN\nb NN\n\nc NN\n"), tag_column=3)
    assert words(file) == ["a b", "c"]
    assert file.layout.tag is None


def test_numbers_may_be_words(write):
    file = conll.read(write("1 O\n2 O\n3 B-X\n"))
    assert words(file) == ["1 2 3"]
    file = conll.read(write("1 CD O\n5 CD O\n"))
    assert words(file) == ["1 5"]


@pytest.mark.parametrize(
    ("content", "flags", "message"),
    [
        ("", {}, "x.conll is empty"),
        ("\n\n-DOCSTART- O\n\n", {}, "x.conll has no words"),
        ("a O\nb\n", {}, "line 2: expected 2 columns as in line 1, got 1"),
        ("a O\n\nb x O\n", {}, "line 3: expected 2 columns as in line 1, got 3"),
        ("a\tO\nb O\n", {}, "line 2: expected 2 columns as in line 1, got 1"),
        ("a O\nb NN\n", {}, "line 2: column 1 holds 'NN', which is no tag.*tag_column"),
        ("a S-X\n", {}, "line 1: column 1 holds 'S-X', .* not BIOES"),
        ("a\tO\nb\tO\t\n", {}, "line 2: expected 2 columns as in line 1, got 3"),
        ("a O B-X\n", {"word_column": 3}, "line 1: there is no column 3 .*only 3"),
        (b"a O\nb\xe9 O\n", {}, "line 2: the byte at offset 5 .* is not UTF-8"),
        ("a B-X\n\nb I-X\nc B-X\n", {}, "line 3: .*--allow_mixed_tags"),
    ],
)
def test_bad_files_are_refused_with_their_line(write, content, flags, message):
    path = write(content)
    with pytest.raises(ValueError, match=message) as error:
        conll.read(path, **flags)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        conll.read(tmp_path / "nowhere")


def test_mixed_tags_are_read_by_the_rules_of_conlleval(write):
    file = conll.read(write("a B-X\n\nb I-X\nc B-X\nd I-Y\n"), allow_mixed=True)
    assert tags(file) == ["B-X", "B-X B-X B-Y"]
    assert file.scheme == "mixed"


def added(file, tag):
    """The lines with this tag predicted for every word."""
    return list(conll.add_tags(file, itertools.repeat(tag)))


def test_columns_are_added(write):
    lines = added(conll.read(write(CONLL_2003)), "B-X")
    assert lines == [
        *("-DOCSTART- O O O O O", ""),
        "EU NNP I-NP I-ORG B-ORG B-X",
        "rejects VBZ I-VP O O B-X",
        *("German JJ I-NP I-MISC B-MISC B-X", ""),
        *("Peter NNP I-NP I-PER B-PER B-X", ""),
        *("-DOCSTART- O O O O O", ""),
        *("BRUSSELS NNP I-NP I-LOC B-LOC B-X", ""),
    ]
    lines = added(conll.read(write(GERMEVAL)), "O")
    assert lines[:2] == ["1\tTSV\tB-ORG\tB-LOC\tB-ORG\tO", "2\t#\tO\tO\tO\tO"]
    assert len(lines) == 6  # without the comments
    assert added(conll.read(write("-DOCSTART-\n\na\n\nb \n")), "O") == [
        *("-DOCSTART- O", "", "a O", "", "b O", "")
    ]


def test_what_was_added_can_be_read_and_scored(write):
    file = conll.read(write(CONLL_2003))
    lines = added(file, "B-PER")
    again = conll.read(write("\n".join(lines)), tag_column=-2)
    assert (words(again), tags(again)) == (words(file), tags(file))
    counts = conlleval.score(lines)
    assert counts["wanted"].total() == 4
    assert counts["correct"] == {"PER": 1}
    # -DOCSTART- counts as a word there, outside of entities.
    assert counts["words"][""] == 5 + 2


def readme_blocks(shared):
    """{file name: blocks between blank lines} as data/README.md gives them."""
    text = (shared / "data/README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ner/(\S+) \| \d+ \| (\d+) blocks", text, re.M)
    return {name: int(number) for name, number in rows}


SCHEMES = {"wikigold/wikigold.train.txt": "IO"}
ENTITIES = {"wnut17/wnut17train.conll": 1975, "wnut17/emerging.dev.conll": 836}


def test_published_sets_are_read_whole(shared):
    blocks = readme_blocks(shared)
    assert len(blocks) == 9
    for name, number in blocks.items():
        path = shared / "data/ner" / name
        file = conll.read(path)
        documents = file.sentences[-1].document
        assert len(file.sentences) + documents == number, name
        assert file.scheme == SCHEMES.get(name, "BIO"), name
        assert documents == (118 if "wikigold" in name else 0)
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8") as lines:
            rows = [x for x in lines if x.strip() and not x.startswith("-DOCSTART-")]
        if "germeval" in name:
            rows = [row for row in rows if not row.startswith("#")]
        assert sum(len(s.words) for s in file.sentences) == len(rows)
        starts = sum(tag[0] == "B" for s in file.sentences for tag in s.tags)
        assert starts == ENTITIES.get(name, starts)


def test_both_columns_of_germeval(shared):
    path = shared / "data/ner/germeval2014/NER-de-dev.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [x.rstrip("\n").split("\t") for x in lines if x[0].isdecimal()]
    for flag, column in ((None, 2), (3, 3)):
        file = conll.read(path, tag_column=flag)
        assert [word for s in file.sentences for word in s.words] == [
            r[1] for r in rows
        ]
        assert [t for s in file.sentences for t in s.tags] == [r[column] for r in rows]
