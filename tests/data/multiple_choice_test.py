"""Choices: files of SWAG, CODAH and ARCT; what is refused; arrays."""

import csv
import dataclasses
import re

import numpy as np
import pytest

from data import multiple_choice, tokenization

HEADER = ["", "video-id", "startphrase", "sent1", "sent2", "gold-source"]
ARCT = ["#id", "warrant0", "warrant1", "correctLabelW0orW1", "reason", "claim"]


def swag_rows(num_choices=4, labelled=True):
    """A header and two rows in the columns of SWAG."""
    rows = [
        [*HEADER, *(f"ending{i}" for i in range(num_choices)), "label"],
        *(
            [*row, *(f"does {i}, {row[0]}." for i in range(num_choices)), label]
            for row, label in (
                (["7", "v", "He sat. She", "He sat.", "She", "gold"], "1"),
                (["9", "v", 'A "B"', 'A "B"', "", "gen"], "0"),
            )
        ),
    ]
    return rows if labelled else [row[:-1] for row in rows]


def write_csv(path, rows, delimiter=","):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    return path


def read(task, path, split="dev"):
    return multiple_choice.find_task(task).examples(path, split)


@pytest.mark.parametrize("num_choices", [2, 4, 5])
def test_swag_with_any_number_of_endings(tmp_path, num_choices):
    path = write_csv(tmp_path / "a.csv", swag_rows(num_choices))
    first, second = read("SWAG", path)
    numbers = range(num_choices)
    assert first == multiple_choice.ChoiceExample(
        "7", tuple(("He sat.", f"She does {i}, 7.") for i in numbers), 1
    )
    assert second.pairs == tuple(('A "B"', f" does {i}, 9.") for i in numbers)
    assert (second.guid, second.label) == ("9", 0)


def test_a_test_set_needs_no_labels(tmp_path):
    path = write_csv(tmp_path / "a.csv", swag_rows(labelled=False))
    assert [example.label for example in read("swag", path, "test")] == [None, None]
    path = write_csv(tmp_path / "b.csv", swag_rows())
    assert [example.label for example in read("swag", path, "test")] == [None, None]


def test_rows_without_ids_are_numbered(tmp_path):
    path = write_csv(tmp_path / "a.csv", [row[1:] for row in swag_rows()])
    assert [example.guid for example in read("swag", path)] == ["dev-1", "dev-2"]


@pytest.mark.parametrize(
    ("claim", "reason", "expected"),
    [
        ("It is so", "I say", "It is so. I say."),
        ("It is so.", "Who knows?", "It is so. Who knows?"),
        ('He said "no."', "'Really!'", "He said \"no.\" 'Really!'"),
        ('He said "no"', "or, not,", 'He said "no". or, not,.'),
    ],
)
def test_arct_claim_then_reason_as_sentences(tmp_path, claim, reason, expected):
    path = tmp_path / "dev.txt"
    cells = ["x1", 'the "one"', "the other", "1", reason, claim]
    lines = ["\t".join(row) for row in (ARCT, cells)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    pairs = ((expected, 'the "one"'), (expected, "the other"))
    assert read("arct", path) == [multiple_choice.ChoiceExample("x1", pairs, 1)]


def test_arct_with_quotes_is_called_csv(tmp_path):
    columns = [*ARCT[:3], "adversarial", *ARCT[3:]]
    cells = ["x1", 'the "one"', "the\tother", "True", "0", "I say.", "It is."]
    path = write_csv(tmp_path / "adv.csv", [columns, cells], delimiter="\t")
    pairs = (("It is. I say.", 'the "one"'), ("It is. I say.", "the\tother"))
    assert read("arct", path) == [multiple_choice.ChoiceExample("x1", pairs, 0)]


def test_another_pair_of_texts_can_be_made(tmp_path):
    task = multiple_choice.find_task("swag")
    task = dataclasses.replace(task, make_pair=lambda _, ending: (ending, ""))
    path = write_csv(tmp_path / "a.csv", swag_rows(2))
    expected = (("does 0, 7.", ""), ("does 1, 7.", ""))
    assert task.examples(path, "dev")[0].pairs == expected


def spoiled(row, column, cell):
    """Rows of SWAG with another cell; None drops the column."""
    rows = swag_rows()
    index = rows[0].index(column)
    rows[row][index : index + 1] = [] if cell is None else [cell]
    return rows


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (spoiled(2, "ending2", ""), "line 3: ending2 is empty; every row needs 4"),
        (spoiled(1, "ending0", "  "), "line 2: ending0 is empty"),
        (spoiled(2, "ending3", None), "line 3: expected the 11 columns .* got 10"),
        (spoiled(1, "label", "4"), "line 2: unknown label '4'; there are '0', .*'3'$"),
        (spoiled(1, "label", "gold"), "line 2: unknown label 'gold'"),
        (spoiled(1, "label", ""), "line 2: unknown label ''"),
        (spoiled(0, "label", "lable"), "line 1: no column 'label'; .* mean 'lable'"),
        (spoiled(0, "sent1", "sentence"), "line 1: no column 'sent1'"),
        (spoiled(0, "ending1", "end1"), "line 1: no column 'ending1'"),
        (swag_rows(0), "line 1: no column 'ending0'"),
        (swag_rows(1), "line 1: no column 'ending1'"),
        (spoiled(2, "", "7"), "line 3: the id '7' is that of line 2, too"),
        (swag_rows()[:1], "has no rows below its header"),
        ([["a sentence"], ["another"]], "line 1: no column 'sent1'"),
    ],
)
def test_bad_rows_are_refused(tmp_path, rows, message):
    path = write_csv(tmp_path / "val.csv", rows)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}.*{message}"):
        read("swag", path)


def test_ids_of_a_training_set_may_be_there_twice(tmp_path):
    """As in ARCT's train-w-swap-full.txt; nothing is predicted for them."""
    path = write_csv(tmp_path / "train.csv", spoiled(2, "", "7"))
    assert [example.guid for example in read("swag", path, "train")] == ["7", "7"]


def test_bad_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file .*none.csv"):
        read("swag", tmp_path / "none.csv")
    path = tmp_path / "empty.csv"
    path.touch()
    with pytest.raises(ValueError, match=r"empty\.csv is empty"):
        read("swag", path)
    path = tmp_path / "blank.csv"
    path.write_text("\n\n")
    with pytest.raises(ValueError, match=r"blank\.csv has no rows"):
        read("swag", path)
    path = tmp_path / "latin.txt"
    path.write_bytes("\t".join(ARCT).encode() + b"\nx\tcaf\xe9\tb\t0\tc\td\n")
    with pytest.raises(ValueError, match=r"latin\.txt, line 2: .* is not UTF-8"):
        read("arct", path)
    with pytest.raises(ValueError, match="unknown task 'swagg'.* mean 'swag'"):
        multiple_choice.find_task("swagg")


def test_arrays_hold_a_sequence_for_every_choice(golden):
    tokenizer = tokenization.FullTokenizer(golden / "tiny_tf1" / "vocab.txt")
    examples = [
        multiple_choice.ChoiceExample("1", (("a", "b c"), ("a", "d"), ("a", "")), 2),
        multiple_choice.ChoiceExample("2", (("a b c d", "x"), ("", "y"), ("e", "f"))),
    ]
    arrays = multiple_choice.to_arrays(examples, 7, tokenizer)
    tokens = [
        [
            tokenizer.convert_ids_to_tokens(ids[mask == 1].tolist())
            for ids, mask in zip(*rows, strict=True)
        ]
        for rows in zip(arrays["input_ids"], arrays["input_mask"], strict=True)
    ]
    assert [[" ".join(words) for words in row] for row in tokens] == [
        ["[CLS] a [SEP] b c [SEP]", "[CLS] a [SEP] d [SEP]", "[CLS] a [SEP]"],
        [
            "[CLS] a b c [SEP] x [SEP]",
            "[CLS] [SEP] y [SEP]",
            "[CLS] e [SEP] f [SEP]",
        ],
    ]
    assert arrays["segment_ids"][:, 0].tolist() == [
        [0, 0, 0, 1, 1, 1, 0],
        [0, 0, 0, 0, 0, 1, 1],
    ]
    assert arrays["label_ids"].tolist() == [2, 0]
    assert arrays["is_real_example"].tolist() == [1, 1]
    for name, array in arrays.items():
        assert array.dtype == np.int32
        assert array.shape == ((2, 3, 7) if array.ndim == 3 else (2,)), name


PUBLISHED = [
    ("swag", "swag/swag_sample.csv", 10, 4),
    ("swag", "swag/codah/as_swag_train.csv", 1555, 4),
    ("swag", "swag/codah/as_swag_val.csv", 389, 4),
    ("arct", "arct/train-full.txt", 1210, 2),
    ("arct", "arct/train-w-swap-full.txt", 2420, 2),
    ("arct", "arct/dev-full.txt", 316, 2),
    ("arct", "arct/dev-only-data.txt", 316, 2),
    ("arct", "arct/test-only-data.txt", 444, 2),
    ("arct", "arct/adversarial/dev-adv-negated.csv", 632, 2),
    ("arct", "arct/adversarial/train-adv-negated.csv", 2420, 2),
    ("arct", "arct/adversarial/train-swapped.csv", 2420, 2),
]


@pytest.mark.parametrize(("task", "file", "rows", "choices"), PUBLISHED)
def test_published_files_are_read_whole(shared, task, file, rows, choices):
    split = "test" if "only-data" in file else "train" if "train" in file else "dev"
    examples = read(task, shared / "data" / file, split)
    assert len(examples) == rows
    assert {len(example.pairs) for example in examples} == {choices}
    # ARCT: no quotation mark of the file's quoting is left at the ends of a text.
    texts = [text for example in examples for pair in example.pairs for text in pair]
    assert not [text for text in texts if re.search('^".*""|"".*"$', text)]


def test_labels_of_arct_are_those_of_the_file_of_labels(shared):
    lines = (shared / "data/arct/dev-only-labels.txt").read_text("utf-8").splitlines()
    expected = dict(line.split("\t") for line in lines[1:])
    examples = read("arct", shared / "data/arct/dev-full.txt")
    assert {example.guid: str(example.label) for example in examples} == expected
