"""The published tasks: the original's own reading of samples, and whole real sets."""

import collections
import json

import pytest

from data import glue, tables, targets
from data.classification import InputExample

MNLI_HEADER = (
    "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\t"
    "sentence1_parse\tsentence2_parse\tsentence1\tsentence2\tlabel1\tgold_label\n"
)
MNLI_ROW = "7\t1\t1c\tfiction\t\t\t\t\tA text.\tB text.\tneutral\t{}\n"


def golden_examples(golden):
    """(task, original's name of the split) → what the original read."""
    sets = collections.defaultdict(list)
    lines = (golden / "classifier_features.jsonl").read_text("utf-8").splitlines()
    for row in map(json.loads, lines):
        if row["max_seq_length"] == 128:
            sets[row["task"], row["split"]].append(row)
    return sets


def test_samples_are_read_as_the_original_read_them(golden):
    sets = golden_examples(golden)
    assert len(sets) == 3 + 3 + 3 + 2
    for (name, kind), rows in sets.items():
        task = glue.find_task(name)
        split = task.splits(kind)[0]
        folder = golden / "glue_samples" / ("XNLI" if name == "xnli" else name.upper())
        folder = golden / "glue_samples" / {"cola": "CoLA"}.get(name, folder.name)
        examples = task.examples(folder, split)
        assert list(task.labels) == rows[0]["labels"]
        assert [e.guid for e in examples] == [r["guid"] for r in rows]
        assert [e.text_a for e in examples] == [r["text_a"] for r in rows]
        assert [e.text_b for e in examples] == [r["text_b"] for r in rows]
        # The original gives test rows the first label instead of none.
        labels = [e.label or task.labels[0] for e in examples]
        assert labels == [r["label"] for r in rows]
        assert all((e.label is None) == (kind == "test") for e in examples)


def test_the_mismatched_sets_of_mnli(golden):
    folder = golden / "glue_samples" / "MNLI"
    task = glue.find_task("mnli")
    assert task.splits("dev") == ["dev_matched", "dev_mismatched"]
    assert task.splits("test") == ["test", "test_mismatched"]
    examples = task.examples(folder, "dev_mismatched")
    assert len(examples) == 8
    assert examples[0].guid == "dev_mismatched-0"
    assert examples[0].text_b == 'The train left "on time'
    assert examples[0].label == "entailment"


@pytest.mark.parametrize(
    ("folder", "name", "rows"),
    [
        ("CoLA", "cola", {"train": 8551, "dev": 1043, "test": 1063}),
        ("MRPC", "mrpc", {"train": 3668, "dev": 408, "test": 1725}),
        ("SST-2", "sst-2", {"train": 67349, "dev": 872, "test": 1821}),
        ("MNLI", "mnli", {"dev_matched": 3231, "dev_mismatched": 3136}),
        ("STS-B", "sts-b", {"train": 5749, "dev": 1500, "test": 1379}),
        ("RTE", "rte", {"train": 2490, "dev": 277, "test": 3000}),
        ("WNLI", "wnli", {"train": 635, "dev": 71, "test": 146}),
        ("QNLI", "qnli", {"dev": 5463, "test": 5463}),
    ],
)
def test_real_sets_are_read_whole(shared, folder, name, rows):
    task = glue.find_task(name)
    for split, count in rows.items():
        examples = task.examples(shared / "data" / "glue" / folder, split)
        assert len(examples) == count
        assert len({e.guid for e in examples}) == count
        assert all(e.text_a and e.text_b != "" for e in examples)


@pytest.mark.parametrize("folder", ["CoLA", "MRPC", "SST-2", "STS-B", "RTE", "WNLI"])
def test_columns_have_the_names_that_were_meant(shared, folder):
    """The header is read like a row, so the columns say what they are."""
    task = glue.find_task(folder)
    assert task.folder == folder
    for split, layout in task.layouts.items():
        if not layout.header:
            continue
        path = shared / "data" / "glue" / folder / layout.file
        header = next(tables.read_tsv(path))[1]
        texts = [header[i] for i in (layout.text_a, layout.text_b) if i is not None]
        pair = {"MRPC": ["#1 String", "#2 String"]}
        pair = pair.get(folder, ["sentence1", "sentence2"])
        assert texts == (["sentence"] if layout.text_b is None else pair)
        if split != "test":
            label = {"MRPC": "Quality", "STS-B": "score"}.get(folder, "label")
            assert header[layout.label] == label


@pytest.mark.parametrize(
    "folder", ["CoLA", "MRPC", "QNLI", "RTE", "SST-2", "STS-B", "WNLI"]
)
def test_the_index_of_a_test_row_is_its_place(shared, folder):
    """The leaderboard asks for the index; predictions are in the order of the file."""
    path = shared / "data" / "glue" / folder / "test.tsv"
    rows = [row for _, row in tables.read_tsv(path)][1:]
    assert [row[0] for row in rows] == [str(i) for i in range(len(rows))]


def test_scores_of_sts_b_are_numbers(shared):
    task = glue.find_task("STS-B")
    assert (task.labels, task.kind) == ((), targets.Kind.NUMBER)
    examples = task.examples(shared / "data/glue/STS-B", "train")
    # The same benchmark in another layout, as its authors give it away.
    other = shared / "data/glue/STS-B/original/sts-train.csv"
    rows = [row for _, row in tables.read_tsv(other)]
    assert [e.label for e in examples] == [float(row[4]) for row in rows]
    texts = [e.text_a.strip() for e in examples]
    assert texts == [row[5].strip() for row in rows]
    assert {type(e.label) for e in examples} == {float}


def test_published_label_counts(shared):
    def count(folder, name, split, labels=("1", "0")):
        path = shared / "data" / "glue" / folder
        examples = glue.find_task(name).examples(path, split)
        return [sum(e.label == label for e in examples) for label in labels]

    two_way = ("entailment", "not_entailment")
    assert count("RTE", "rte", "train", two_way) == [1249, 1241]
    assert count("WNLI", "wnli", "train", ("0", "1")) == [323, 312]
    assert sum(count("QNLI", "qnli", "dev", two_way)) == 5463

    assert count("CoLA", "cola", "train") == [6023, 2528]
    assert count("CoLA", "cola", "dev") == [721, 322]
    assert count("SST-2", "sst-2", "train") == [37569, 29780]
    assert count("SST-2", "sst-2", "dev") == [444, 428]
    assert count("MRPC", "mrpc", "train")[0] == 2474
    assert count("MRPC", "mrpc", "dev")[0] == 279


QQP_HEADER = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"


def test_qqp_in_its_official_layout(tmp_path):
    task = glue.find_task("QQP")
    rows = '9\t1\t2\tHow is it?\tWhat is it?\t0\n4\t5\t6\tIs it?\tIs "it?\t1\n'
    (tmp_path / "train.tsv").write_text(QQP_HEADER + rows, "utf-8")
    (tmp_path / "dev.tsv").write_text(QQP_HEADER + rows, "utf-8")
    test = "id\tquestion1\tquestion2\n0\tIs it?\tWas it?\n"
    (tmp_path / "test.tsv").write_text(test, "utf-8")
    expected = [
        InputExample("train-1", "How is it?", "What is it?", "0"),
        InputExample("train-2", "Is it?", 'Is "it?', "1"),
    ]
    assert task.examples(tmp_path, "train") == expected
    assert [e.label for e in task.examples(tmp_path, "dev")] == ["0", "1"]
    expected = [InputExample("test-1", "Is it?", "Was it?")]
    assert task.examples(tmp_path, "test") == expected


def test_damaged_rows_of_qqp_are_left_out_and_counted(tmp_path, caplog):
    task = glue.find_task("qqp")
    # One question holds a line break, as in the published file.
    rows = "9\t1\t2\tA?\tB\n\nC?\t0\n4\t5\t6\tIs it?\tWas it?\t1\n"
    (tmp_path / "train.tsv").write_text(QQP_HEADER + rows, "utf-8")
    with caplog.at_level("WARNING", logger="absl"):
        (example,) = task.examples(tmp_path, "train")
    assert (example.text_a, example.label) == ("Is it?", "1")
    assert "left out 2 rows that lack columns, 1 are read" in caplog.text
    # In a test set every row counts.
    (tmp_path / "test.tsv").write_text("id\tquestion1\tquestion2\n0\tA?\n", "utf-8")
    with pytest.raises(ValueError, match="test.tsv, line 2: expected at least 3 col"):
        task.examples(tmp_path, "test")


@pytest.mark.parametrize("file", ["diagnostic.tsv", "AX.tsv"])
def test_the_diagnostic_set_has_the_labels_of_mnli(tmp_path, file):
    text = "index\tsentence1\tsentence2\n0\tIt rains.\tIt pours.\n1\tA.\tB.\n"
    (tmp_path / file).write_text(text, "utf-8")
    task = glue.find_task("ax")
    assert task.labels == glue.find_task("mnli").labels
    assert task.splits("test") == ["test_ax"]
    assert task.splits("train") == task.splits("dev") == []
    assert task.examples(tmp_path, "test_ax") == [
        InputExample("test_ax-1", "It rains.", "It pours."),
        InputExample("test_ax-2", "A.", "B."),
    ]
    with pytest.raises(ValueError, match="this task has no train set, only test_ax"):
        task.examples(tmp_path, "train")


def test_official_metrics():
    """Wang et al. 2018, table 1."""
    metrics = {name: task.metrics for name, task in glue.TASKS.items() if task.folder}
    names = ("sst-2", "mnli", "qnli", "rte", "wnli", "ax")
    accuracy = dict.fromkeys(names, ("accuracy",))
    assert metrics == accuracy | {
        "cola": ("matthews_correlation",),
        "mrpc": ("accuracy", "f1"),
        "qqp": ("accuracy", "f1"),
        "sts-b": ("pearson", "spearmanr"),
    }


def test_names_in_any_case():
    assert glue.find_task("MRPC") == glue.find_task("mrpc")
    assert glue.find_task("STSB") == glue.find_task("STS-B")
    message = "unknown task 'cora'; there are 'cola', .*; did you mean 'cola'"
    with pytest.raises(ValueError, match=message):
        glue.find_task("CoRA")


def xnli_row(language, label, a, b):
    return "\t".join([language, label, "", "", "", "", a, b, "0"]) + "\n"


def test_languages_of_xnli(tmp_path):
    header = "language\tgold_label\tp\tp\tp\tp\tsentence1\tsentence2\tpromptID\n"
    rows = [
        xnli_row("de", "neutral", "Ein Hund.", "Eine Katze."),
        xnli_row("en", "entailment", "A dog.", "An animal."),
        xnli_row("de", "contradiction", "Ja.", "Nein."),
    ]
    (tmp_path / "xnli.test.tsv").write_text(header + "".join(rows), "utf-8")
    (tmp_path / "multinli").mkdir()
    train = "premise\thypo\tlabel\nEs ist so.\tEs ist nicht so.\tcontradictory\n"
    (tmp_path / "multinli" / "multinli.train.de.tsv").write_text(train, "utf-8")

    task = glue.find_task("xnli", language="de")
    examples = task.examples(tmp_path, "test")
    assert [(e.guid, e.text_a, e.text_b, e.label) for e in examples] == [
        ("test-1", "Ein Hund.", "Eine Katze.", "neutral"),
        ("test-3", "Ja.", "Nein.", "contradiction"),
    ]
    (example,) = task.examples(tmp_path, "train")
    assert example.label == "contradiction"

    message = "no rows in the language 'fr'; there are 'de', 'en'"
    with pytest.raises(ValueError, match=message):
        glue.find_task("xnli", language="fr").examples(tmp_path, "test")


def test_a_byte_order_mark_is_not_part_of_the_first_cell(tmp_path):
    (tmp_path / "dev.tsv").write_text("\ufeffgj04\t1\t\tFine.\n", "utf-8")
    (example,) = glue.find_task("cola").examples(tmp_path, "dev")
    assert example.text_a == "Fine."
    # Without a header, the mark stands before the label itself.
    layout = glue.Layout("dev.tsv", text_a=1, label=0, header=False)
    task = glue.Task(labels=("0", "1"), layouts={"dev": layout})
    (tmp_path / "dev.tsv").write_text("\ufeff1\tFine.\n", "utf-8")
    assert task.examples(tmp_path, "dev")[0].label == "1"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        (MNLI_HEADER, "has no rows below its header"),
        (MNLI_HEADER + MNLI_ROW.format("neutral") + "7\t1\tx\n", "line 3: expected at "
         "least 11 columns separated by tabs, got 3"),
        (MNLI_HEADER + "\t".join("abcdefghij"), "at least 11 columns .*, got 10"),
        (MNLI_HEADER + MNLI_ROW.format("netural"), "line 2: unknown label 'netural'; "
         "there are 'contradiction', 'entailment', 'neutral'; did you mean 'neutral'"),
        (MNLI_HEADER + MNLI_ROW.format("x\tneutral"), "line 2: expected the 12 columns "
         "of the header, got 13"),
        (MNLI_HEADER + "\n" + MNLI_ROW.format("neutral"), "line 2 is empty but rows"),
        (MNLI_HEADER + 2 * MNLI_ROW.format("neutral"), "line 3: the id 'train-7' is "
         "that of line 2, too"),
    ],
)  # fmt: skip
def test_errors_say_where(tmp_path, content, message):
    path = tmp_path / "train.tsv"
    path.write_text(content, "utf-8")
    with pytest.raises(ValueError, match=message) as caught:
        glue.find_task("mnli").examples(tmp_path, "train")
    assert str(path) in str(caught.value)


def test_a_file_without_its_header_would_lose_its_first_example(tmp_path):
    labelled = {"rte": "0\tA.\tB.\tentailment", "sts-b": "\t".join("0gfyossAB2")}
    for split, rows in (("train", labelled), ("test", {"rte": "0\tA.\tB."})):
        for name, row in rows.items():
            (tmp_path / f"{split}.tsv").write_text(f"{row}\n" * 2, "utf-8")
            with pytest.raises(ValueError, match="line 1: expected the names of the "):
                glue.find_task(name).examples(tmp_path, split)


def test_invalid_utf8(tmp_path):
    (tmp_path / "dev.tsv").write_bytes(b"gj04\t1\t\tFine.\ngj04\t1\t\tcaf\xe9\n")
    with pytest.raises(ValueError, match=r"dev.tsv, line 2: .* offset 25 \(0xe9\)"):
        glue.find_task("cola").examples(tmp_path, "dev")


def test_no_folder_and_no_file(tmp_path):
    task = glue.find_task("mnli")
    with pytest.raises(FileNotFoundError, match="there is no folder .*nowhere"):
        task.examples(tmp_path / "nowhere", "train")
    message = "has no dev_mismatched.tsv, which holds the dev_mismatched set"
    with pytest.raises(FileNotFoundError, match=message):
        task.examples(tmp_path, "dev_mismatched")
