"""The folder of a run: files whole or absent, identity, results, log."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import run_directory
from tests import scripts

IDENTITY = {"config": {"hidden_size": 8, "vocab_size": 20}, "labels": ["a", "b"]}


def test_settings_are_those_of_the_last_run_until_one_trains(tmp_path):
    for seed in (1, 2):
        run_directory.claim(tmp_path, IDENTITY, {"seed": seed, "do_train": False})
        settings = json.loads((tmp_path / "settings.json").read_text())
        assert settings == {"seed": seed, "do_train": False}
    assert not (tmp_path / "settings_eval.json").exists()


def test_a_folder_is_claimed_and_claimed_again(tmp_path):
    out = tmp_path / "deep" / "out"
    run_directory.claim(out, IDENTITY, {"seed": 1, "do_train": True})
    run_directory.claim(out, IDENTITY, {"seed": 2, "do_train": False})
    assert json.loads((out / "model.json").read_text()) == IDENTITY
    # The settings of the training stay until there is another.
    settings = json.loads((out / "settings.json").read_text())
    assert settings == {"seed": 1, "do_train": True}
    settings = json.loads((out / "settings_eval.json").read_text())
    assert settings == {"seed": 2, "do_train": False}
    run_directory.claim(out, IDENTITY, {"seed": 3, "do_train": True})
    settings = json.loads((out / "settings.json").read_text())
    assert settings == {"seed": 1, "do_train": True}  # It may have nothing to do.
    run_directory.begin_training(out)
    settings = json.loads((out / "settings.json").read_text())
    assert settings == {"seed": 3, "do_train": True}
    assert not (out / "settings_eval.json").exists()
    run_directory.claim(out, IDENTITY, {"seed": 4, "do_train": False})
    run_directory.begin_training(out)
    assert json.loads((out / "settings.json").read_text()) == settings


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("precious")
    with pytest.raises(ValueError, match="is a file; name a folder"):
        run_directory.claim(tmp_path / "file", IDENTITY, {})
    assert (tmp_path / "file").read_text() == "precious"
    with pytest.raises(ValueError, match="--output_dir= is empty; name a folder"):
        run_directory.claim("", IDENTITY, {})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("model.json", "", "model.json is damaged"),
        ("model.json", '{"format": "layers-model"}', "model.json names no script"),
        ("settings.json", '{"a"', "settings.json is damaged"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, name, text, message):
    run_directory.claim(tmp_path, IDENTITY | {"script": "s"}, {"seed": 1})
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        run_directory.read(tmp_path, "s")


def test_changed_settings_are_said(tmp_path, caplog):
    run_directory.claim(tmp_path, IDENTITY, {"seed": 1, "rate": 2, "do_train": True})
    with caplog.at_level("INFO", logger="absl"):
        run_directory.claim(
            tmp_path, IDENTITY, {"seed": 1, "rate": 3, "do_train": True}
        )
    (message,) = [record.getMessage() for record in caplog.records]
    assert "--rate was 2" in message and "now it is 3" in message


def test_a_folder_belongs_to_one_process(tmp_path):
    run_directory.claim(tmp_path, IDENTITY, {})
    code = (
        "import sys, run_directory\n"
        "try: run_directory.claim(sys.argv[1], {}, {})\n"
        "except ValueError as error: print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, tmp_path],
        capture_output=True,
        text=True,
        check=True,
        cwd=scripts.ROOT,
    )
    assert "another process" in result.stdout and str(tmp_path) in result.stdout
    assert json.loads((tmp_path / "model.json").read_text()) == IDENTITY


def test_a_run_that_was_refused_leaves_the_folder_to_the_next(tmp_path):
    run_directory.claim(tmp_path, IDENTITY, {})
    run_directory.claim(tmp_path, IDENTITY | {"labels": ["c"]}, {})


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"labels": ["a", "c"]}, ["labels", "['a', 'b']", "['a', 'c']"]),
        ({"config": {"hidden_size": 8, "vocab_size": 30}}, ["vocab_size", "20", "30"]),
        ({"task": "mrpc"}, ["task", "None", "mrpc"]),
    ],
)
def test_another_model_is_refused_and_nothing_changes(tmp_path, changed, words):
    run_directory.claim(tmp_path, IDENTITY, {"seed": 1})
    (tmp_path / "checkpoint").touch()
    with pytest.raises(ValueError, match="another model") as caught:
        run_directory.claim(tmp_path, IDENTITY | changed, {"seed": 2})
    assert all(word in str(caught.value) for word in words)
    assert "hidden_size" not in str(caught.value)  # what agrees is not shown
    assert json.loads((tmp_path / "model.json").read_text()) == IDENTITY
    assert json.loads((tmp_path / "settings.json").read_text()) == {"seed": 1}


def test_a_text_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "file.txt"
    run_directory.write_text(path, "old\r\nö\n")
    assert path.read_bytes() == "old\r\nö\n".encode()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_directory.os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        run_directory.write_text(path, "new")
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]
    assert path.read_bytes() == "old\r\nö\n".encode()


def test_results_are_lines_and_json(tmp_path):
    results = {"loss": np.float32(0.1), "accuracy": 0.5, "global_step": 3}
    run_directory.write_results(tmp_path, "eval_results", results)
    text = (tmp_path / "eval_results.txt").read_text()
    assert text == "accuracy = 0.5\nglobal_step = 3\nloss = 0.1\n"
    plain = json.loads((tmp_path / "eval_results.json").read_text())
    assert plain == pytest.approx({"loss": 0.1, "accuracy": 0.5, "global_step": 3})


def test_tables_survive_any_cell(tmp_path):
    rows = [("id", "label"), ("a\tb", 'say "x"\n'), ("é", "")]
    run_directory.write_table(tmp_path / "t.tsv", rows)
    with open(tmp_path / "t.tsv", encoding="utf-8", newline="") as file:
        assert [tuple(row) for row in csv.reader(file, delimiter="\t")] == rows
    # Floats of NumPy look as the original wrote them.
    run_directory.write_table(tmp_path / "f.tsv", np.float32([[0.1, 1.0]]))
    assert (tmp_path / "f.tsv").read_text() == "0.1\t1.0\n"


def test_the_log_goes_to_a_file_and_to_tensorboard(tmp_path):
    log = run_directory.TrainingLog(tmp_path, 4, 10)
    log.write(6, {"loss": 2.0, "learning_rate": 0.1}, examples=8, tokens=100)
    log.write(8, {"loss": 1.0, "learning_rate": 0.1}, examples=8, tokens=100)
    lines = (tmp_path / "train_log.jsonl").read_text().splitlines()
    lines = [json.loads(line) for line in lines]
    assert [(line["step"], line["loss"]) for line in lines] == [(6, 2.0), (8, 1.0)]
    for line in lines:
        ratio = line["tokens_per_second"] / line["examples_per_second"]
        assert ratio == pytest.approx(100 / 8)
    (events,) = (tmp_path / "tensorboard").glob("events*")
    found = set()
    for event in tf.compat.v1.train.summary_iterator(str(events)):
        found |= {(event.step, value.tag) for value in event.summary.value}
    assert {(6, "loss"), (8, "loss"), (8, "tokens_per_second")} <= found


def test_what_a_folder_says_is_read(tmp_path):
    with pytest.raises(ValueError, match="no output folder of a run: .*model.json is"):
        run_directory.read(tmp_path, "run_x")
    identity = {**IDENTITY, "script": "run_x"}
    run_directory.claim(tmp_path, identity, {"seed": 1})
    assert run_directory.read(tmp_path, "run_x") == (identity, {"seed": 1})
    with pytest.raises(ValueError, match="is of run_x, where a run of run_y is"):
        run_directory.read(tmp_path, "run_y")
