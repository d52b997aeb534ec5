"""One's own data sets: columns, labels, errors; several real sets read whole."""

import collections
import json
import random

import pytest

from data import classification, targets
from data.classification import InputExample

PAIRS = classification.OwnTask(text_a="a", text_b="b", label="y", guid="key")


def write(folder, name, text):
    (folder / name).write_text(text, "utf-8")
    return folder


def test_all_formats_give_the_same_examples(tmp_path):
    write(tmp_path, "train.tsv", 'key\ta\tb\ty\nk1\tA "x\tB\tyes\nk2\tC\tD\tno\n')
    write(tmp_path, "dev.csv", 'key,a,b,y\nk1,"A ""x",B,yes\nk2,C,D,no\n')
    rows = [
        {"key": "k1", "a": 'A "x', "b": "B", "y": "yes"},
        {"key": "k2", "a": "C", "b": "D", "y": "no"},
    ]
    write(tmp_path, "test.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    expected = [
        InputExample("k1", 'A "x', "B", "yes"),
        InputExample("k2", "C", "D", "no"),
    ]
    assert PAIRS.examples(tmp_path, "train") == expected
    assert PAIRS.examples(tmp_path, "dev") == expected
    # Labels of a test set are not looked at.
    assert PAIRS.examples(tmp_path, "test") == [
        InputExample("k1", 'A "x', "B"),
        InputExample("k2", "C", "D"),
    ]


def test_a_single_text_without_ids(tmp_path):
    task = classification.OwnTask()
    write(tmp_path, "train.csv", "label,text\n0,first\n1,second\n")
    write(tmp_path, "test.csv", "text\nthird\n")
    assert task.examples(tmp_path, "train") == [
        InputExample("train-1", "first", label="0"),
        InputExample("train-2", "second", label="1"),
    ]
    assert task.examples(tmp_path, "test") == [InputExample("test-1", "third")]
    assert task.splits("dev") == ["dev"]


def test_files_without_a_header(tmp_path):
    task = classification.OwnTask(text_a="1", label="0")
    write(tmp_path, "dev.tsv", "x\tfirst\ny\tsecond\n")
    assert task.examples(tmp_path, "dev") == [
        InputExample("dev-0", "first", label="x"),
        InputExample("dev-1", "second", label="y"),
    ]


def test_several_labels_of_a_text(tmp_path):
    kind = targets.Kind.MULTI_LABEL
    task = classification.OwnTask(kind=kind, separator="|")
    write(tmp_path, "train.csv", "text,label\nfirst,b | a\nsecond,\nthird,c\n")
    examples = task.examples(tmp_path, "train")
    assert [e.label for e in examples] == [("b", "a"), (), ("c",)]
    assert classification.infer_labels(examples) == ("a", "b", "c")
    write(tmp_path, "dev.csv", "text,label\nfirst,a|d\n")
    with pytest.raises(ValueError, match="dev.csv, line 2: unknown label 'd'"):
        task.with_labels("abc").examples(tmp_path, "dev")
    write(tmp_path, "train.csv", "text,label\nfirst,\nsecond,\n")
    with pytest.raises(ValueError, match="two labels or more, .* set has none"):
        classification.infer_labels(task.examples(tmp_path, "train"))


def test_numbers_as_labels(tmp_path):
    task = classification.OwnTask(kind=targets.Kind.NUMBER)
    write(tmp_path, "train.jsonl", '{"text": "a", "label": 1.5}\n')
    (example,) = task.examples(tmp_path, "train")
    assert example.label == 1.5
    write(tmp_path, "dev.csv", "text,label\na,high\n")
    with pytest.raises(ValueError, match="dev.csv, line 2: .* a number, got 'high'"):
        task.examples(tmp_path, "dev")


def test_every_kind_of_label_has_metrics():
    assert [classification.OwnTask(kind=kind).metrics[0] for kind in targets.Kind] == [
        "accuracy",
        "f1_micro",
        "pearson",
    ]


def test_labels_that_training_does_not_have(tmp_path):
    task = classification.OwnTask()
    write(tmp_path, "train.csv", "text,label\nfirst,good\nsecond,bad\n")
    write(tmp_path, "dev.csv", "text,label\nfirst,good\nsecond,badd\n")
    labels = classification.infer_labels(task.examples(tmp_path, "train"))
    assert labels == ("bad", "good")
    message = "dev.csv, line 3: unknown label 'badd'; there are 'bad', 'good'; did you"
    with pytest.raises(ValueError, match=message):
        task.with_labels(labels).examples(tmp_path, "dev")


def test_an_empty_label(tmp_path):
    write(tmp_path, "train.csv", "text,label\nfirst,good\nsecond,\n")
    with pytest.raises(ValueError, match="train.csv, line 3: the label is empty"):
        classification.OwnTask().examples(tmp_path, "train")


def test_an_id_that_is_there_twice(tmp_path):
    write(tmp_path, "test.csv", "key,a,b\nk1,A,B\nk2,C,D\nk1,E,F\n")
    with pytest.raises(ValueError, match="test.csv, line 4: the id 'k1' .* of line 2"):
        PAIRS.examples(tmp_path, "test")


def test_a_wrong_column(tmp_path):
    write(tmp_path, "train.csv", "sentence,category\nfirst,good\n")
    message = (
        "no column 'sentense'; there are 'sentence', 'category'; did you mean 'sen"
    )
    with pytest.raises(ValueError, match=message):
        classification.OwnTask(text_a="sentense").examples(tmp_path, "train")
    # Only the label column is wrong, and only test sets may lack it.
    task = classification.OwnTask(text_a="sentence")
    with pytest.raises(
        ValueError, match="no column 'label'; there are 'sentence', 'ca"
    ):
        task.examples(tmp_path, "train")


def test_which_file_is_read(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder .*nowhere"):
        classification.find_table(tmp_path / "nowhere", "dev")
    message = "has no dev set; one of dev.tsv, dev.tsv.gz, dev.csv, .* is needed"
    with pytest.raises(FileNotFoundError, match=message):
        classification.find_table(tmp_path, "dev")
    write(tmp_path, "dev.jsonl", "{}")
    assert classification.find_table(tmp_path, "dev") == tmp_path / "dev.jsonl"
    write(tmp_path, "dev.csv.gz", "")
    with pytest.raises(ValueError, match=r"both dev.csv.gz and dev.jsonl; leave one"):
        classification.find_table(tmp_path, "dev")


@pytest.mark.parametrize("seed", range(10))
def test_labels_do_not_depend_on_the_order_of_examples(seed):
    def infer(labels):
        labels = labels * 3
        random.Random(seed).shuffle(labels)
        return classification.infer_labels(
            InputExample("", "", label=x) for x in labels
        )

    assert infer(["10", "9", "-1", "2"]) == ("-1", "2", "9", "10")
    assert infer(["10", "9", "x"]) == ("10", "9", "x")
    assert infer(["b", "B", "é", "a b"]) == ("B", "a b", "b", "é")
    # Two spellings of one number are two labels.
    assert infer(["1", "01", "0"]) == ("0", "01", "1")


def test_one_label_is_not_enough():
    with pytest.raises(ValueError, match="needs two labels .* only 'x'"):
        classification.infer_labels([InputExample("", "", label="x")] * 3)


def test_label_files_round_trip(tmp_path):
    labels = ("b", "a\nb", 'é"', "😀")
    classification.write_labels(tmp_path / "labels.json", labels)
    assert classification.read_labels(tmp_path / "labels.json") == labels
    assert json.loads((tmp_path / "labels.json").read_bytes()) == list(labels)
    classification.write_labels(tmp_path / "labels.json", ["x", "y"])
    assert classification.read_labels(tmp_path / "labels.json") == ("x", "y")
    assert [path.name for path in tmp_path.iterdir()] == ["labels.json"]


@pytest.mark.parametrize(
    "text", ["[", '"ab"', '["a", 1]', '["a", "a"]', '["a"]', "[]", '{"a": 1, "b": 2}']
)
def test_files_that_hold_no_labels(tmp_path, text):
    write(tmp_path, "labels.json", text)
    with pytest.raises(
        ValueError, match="labels.json (is not JSON|must be a JSON list)"
    ):
        classification.read_labels(tmp_path / "labels.json")


def test_no_label_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file .*labels.json"):
        classification.read_labels(tmp_path / "labels.json")


def read_real(shared, tmp_path, path, task):
    """Reads a file of any name as the dev set of a folder."""
    path = shared / "data" / path
    suffixes = "".join(
        s for s in path.suffixes if s in {".tsv", ".csv", ".jsonl", ".gz", ".txt"}
    )
    suffixes = suffixes.replace(".txt", ".tsv")
    if "original" in path.parts:  # of STS-B, with tabs in spite of its name
        suffixes = ".tsv"
    (tmp_path / f"dev{suffixes}").symlink_to(path)
    return task.examples(tmp_path, "dev")


@pytest.mark.parametrize(
    ("path", "columns", "rows", "labels"),
    [
        ("classification/banking77/train.csv", ("text", None, "category"), 10003, 77),
        ("xnli/xnli.en.dev.tsv", ("sentence1", "sentence2", "label"), 2490, 3),
        ("xnli/xnli.zh.dev.tsv", ("text_a", "text_b", "label"), 2490, 3),
        ("xnli/xnli.sw.dev.tsv.gz", ("sentence1_sw", "sentence2_sw", "label"), 2490, 3),
        ("xnli/xnli.ur.dev.tsv.gz", ("sentence1_ur", "sentence2_ur", "label"), 2490, 3),
        ("snli/snli_1.0_test_hard.jsonl.gz",
         ("sentence1", "sentence2", "gold_label"), 3261, 3),
        ("snli/snli_1.0_dev.part.jsonl.gz",  # "-" where annotators did not agree
         ("sentence1", "sentence2", "gold_label"), 1289, 4),
        ("hans/mnli_contradicting_examples.tsv", ("0", "1", "2"), 261, 2),
        ("hans/regenerated_evaluation_set.txt.gz",
         ("sentence1", "sentence2", "gold_label"), 6000, 2),
        ("hans/regenerated_train_set.txt.gz",
         ("sentence1", "sentence2", "gold_label"), 9000, 2),
        ("glue/MRPC/msr_paraphrase_train.txt",
         ("#1 String", "#2 String", "Quality"), 4076, 2),
        ("glue/STS-B/original/sts-dev.csv", ("5", "6", "4"), 1500, None),
        ("glue/STS-B/original/sts-train.csv", ("5", "6", "4"), 5749, None),
        ("glue/RTE/train.tsv", ("sentence1", "sentence2", "label"), 2490, 2),
        ("glue/WNLI/train.tsv", ("sentence1", "sentence2", "label"), 635, 2),
        ("glue/QNLI/dev.tsv", ("question", "sentence", "label"), 5463, 2),
    ],
)  # fmt: skip
def test_real_sets_are_read_whole(shared, tmp_path, path, columns, rows, labels):
    text_a, text_b, label = columns
    task = classification.OwnTask(text_a=text_a, text_b=text_b, label=label)
    examples = read_real(shared, tmp_path, path, task)
    assert len(examples) == rows
    if labels:  # not numbers
        assert len(classification.infer_labels(examples)) == labels
    assert all(e.text_a and (e.text_b or text_b is None) for e in examples)
    if path.startswith("xnli"):
        assert set(collections.Counter(e.label for e in examples).values()) == {830}


def test_intents_of_banking77_are_the_published_ones(shared, tmp_path):
    task = classification.OwnTask(label="category")
    path = "classification/banking77/train.csv"
    labels = classification.infer_labels(read_real(shared, tmp_path, path, task))
    published = shared / "data" / "classification" / "banking77" / "categories.json"
    assert sorted(json.loads(published.read_text())) == list(labels)
