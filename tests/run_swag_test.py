"""run_swag.py: a task anybody can learn, several numbers of choices, bad input."""

import csv
import json
import random

import numpy as np
import pytest

from data import record_reading, records
from modeling import checkpoint
from tests import resuming, scripts

RUN = "run_swag.py"
HEADER = ["", "sent1", "sent2", "ending0", "ending1", "ending2", "ending3", "label"]


def rows_of(num_rows, seed):
    """Rows whose right ending is a vowel, and the others are not."""
    rng = random.Random(seed)
    rows = [HEADER]
    for number in range(num_rows):
        letters = rng.sample("bcdfgh", 4)
        label = rng.randrange(4)
        letters[label] = rng.choice("aeiou")
        rows.append([f"id{number}", "the .", "is", *letters, label])
    return rows


def write_rows(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.fixture
def flags(golden, tmp_path):
    """Flags of a run_swag.py that works."""
    for name, num_rows in (("train", 400), ("val", 40), ("test", 13)):
        write_rows(tmp_path / f"{name}.csv", rows_of(num_rows, name))
    return {
        "task_name": "swag",
        "data_dir": tmp_path,
        "bert_config_file": golden / "tiny_tf1/bert_config.json",
        "vocab_file": golden / "tiny_tf1/vocab.txt",
        "max_seq_length": 12,
        "output_dir": tmp_path / "out",
    }


def read_predictions(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_the_right_choice_is_learnt(flags, tmp_path):
    scripts.succeed(
        RUN,
        **flags,
        do_train=True,
        do_eval=True,
        do_predict=True,
        train_batch_size=16,
        learning_rate=2e-3,
        num_train_epochs=8,
    )
    results = scripts.read_results(tmp_path / "out/eval_results.txt")
    assert results["eval_accuracy"] == 1.0
    assert results["global_step"] == 200
    predictions = read_predictions(tmp_path / "out/predictions.tsv")
    expected = rows_of(13, "test")[1:]
    assert [row["id"] for row in predictions] == [row[0] for row in expected]
    assert [int(row["label"]) for row in predictions] == [row[-1] for row in expected]
    for row in predictions:
        probabilities = [float(row[f"probability{i}"]) for i in range(4)]
        assert sum(probabilities) == pytest.approx(1, abs=1e-5)
        assert max(probabilities) == probabilities[int(row["label"])] > 0.5
    assert list(predictions[0])[2:] == [f"probability{i}" for i in range(4)]

    path = str(tmp_path / "out/predict.tf_record")
    arrays = record_reading.read_all([path], records.multiple_choice_spec(4, 12))
    assert arrays["input_ids"].shape == (13, 4, 12)

    # The same model on another number of choices, in another process.
    two = [row[:5] for row in rows_of(13, "test")]
    write_rows(tmp_path / "two.csv", two)
    scripts.succeed(RUN, **flags, do_predict=True, predict_file="two.csv")
    fewer = read_predictions(tmp_path / "out/predictions.tsv")
    assert list(fewer[0])[2:] == ["probability0", "probability1"]
    for row, of_four in zip(fewer, predictions, strict=True):
        first, second = (float(of_four[f"probability{i}"]) for i in range(2))
        share = float(row["probability0"])
        assert share == pytest.approx(first / (first + second), abs=1e-3)


def test_arct_has_two_choices(flags, tmp_path):
    header = "#id\twarrant0\twarrant1\tcorrectLabelW0orW1\treason\tclaim"
    row = "x{}\tthe a\tthe b\t{}\tis a\tb is"
    lines = [header, *(row.format(i, i % 2) for i in range(10))]
    (tmp_path / "train-full.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "dev-full.txt").write_text("\n".join(lines) + "\n")
    scripts.succeed(
        RUN,
        **{**flags, "task_name": "ARCT"},
        do_train=True,
        do_eval=True,
        train_batch_size=4,
        num_train_epochs=1,
        pad_to_max=True,
    )
    results = scripts.read_results(tmp_path / "out/eval_results.txt")
    assert results["eval_accuracy"] == 0.5  # of ten equal rows half have label 0
    refusal = scripts.refusal(RUN, **flags, do_eval=True)
    assert "holds the run of another model: there 'task' is arct" in refusal


def test_the_best_is_kept_and_frozen_layers_stay(flags, golden, tmp_path):
    source = golden / "tiny_tf1_runs/classifier_mrpc"  # its head has two outputs
    flags |= {
        "init_checkpoint": source,
        "do_train": True,
        "do_eval": True,
        "do_predict": True,
        "predict_file": "two.csv",
        "keep_best": True,
        "patience": 2,
        "freeze_layers": 1,
        "train_batch_size": 16,
        "learning_rate": 2e-3,
        "num_train_epochs": 40,
        "save_checkpoints_steps": 25,
    }
    write_rows(tmp_path / "two.csv", [row[:5] for row in rows_of(9, "two")])
    complaint = scripts.refusal("run_swag.py", **flags)
    assert "output_weights" in complaint
    scripts.succeed(RUN, **flags, skip_mismatched_heads=True)

    lines = (tmp_path / "out/validation.jsonl").read_text().splitlines()
    found = [(x["eval_accuracy"], -x["step"]) for x in map(json.loads, lines)]
    best, step = max(found)
    assert len(found) == found.index((best, step)) + 3 < 40  # two more, and it stopped
    results = scripts.read_results(tmp_path / "out/eval_results.txt")
    assert (results["eval_accuracy"], results["global_step"]) == (best, -step)
    assert len(read_predictions(tmp_path / "out/predictions.tsv")) == 9

    before, after = checkpoint.read(source), checkpoint.read(tmp_path / "out")
    same = {n for n in before if np.array_equal(before[n], after[n])}
    lower = ("bert/embeddings/", "bert/encoder/layer_0/")
    assert same == {name for name in before if name.startswith(lower)}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["is empty"]),
        ("sentence,ending0\n", ["line 1", "no column 'sent1'"]),
        (",sent1,sent2,ending0,ending1,label\n1,a,b,c,,0\n", ["line 2", "ending1"]),
        (",sent1,sent2,ending0,ending1,label\n1,a,b,c,d,2\n", ["line 2", "label '2'"]),
    ],
)
def test_bad_data_is_refused(flags, tmp_path, content, words):
    path = tmp_path / "val.csv"
    path.write_text(content)
    flags |= {"train_batch_size": 8, "num_train_epochs": 0.1}
    refusal = scripts.refusal(RUN, **flags, do_train=True, do_eval=True)
    assert [word for word in [str(path), *words] if word not in refusal] == []
    assert not (tmp_path / "out").exists()


def test_bad_flags_are_refused(flags):
    unknown = {**flags, "task_name": "swagg"}
    assert "mean 'swag'" in scripts.refusal(RUN, **unknown, do_eval=True)
    too_long = {**flags, "max_seq_length": 65}
    assert "64 positions" in scripts.refusal(RUN, **too_long, do_eval=True)


@pytest.mark.slow
def test_killed_three_times_it_ends_with_the_same_bits(flags, tmp_path):
    del flags["output_dir"]
    flags |= {
        "do_train": True,
        "train_batch_size": 8,
        "num_train_epochs": 4,
        "save_checkpoints_steps": 12,
    }
    resuming.check(RUN, flags, tmp_path)
