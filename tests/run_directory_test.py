"""The folder of a run: files whole or absent, identity, results, log."""

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pytest

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
        ("model.json", '{"script": []}', "model.json names no script"),
        ("model.json", "[]", "model.json is damaged, .* an object"),
        ("model.json", '{"script": "s"}', "model.json is damaged, .* no 'config'"),
        ("settings.json", "5", "settings.json is damaged, .* an object"),
        ("settings.json", "{}", "settings.json is damaged, .* no 'seed'"),
        ("settings.json", '{"seed": "x"}', "settings.json is damaged, .* to be int"),
        ("settings.json", '{"a"', "settings.json is damaged"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, name, text, message):
    run_directory.claim(tmp_path, IDENTITY | {"script": "s"}, {"seed": 1})
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        run_directory.read(tmp_path, "s", seed=int)


@pytest.mark.parametrize("name", ["model.json", "settings.json"])
@pytest.mark.parametrize("text", ["null", "[]", "5"])
def test_a_folder_with_a_damaged_file_is_not_claimed(tmp_path, name, text):
    run_directory.claim(tmp_path, IDENTITY, {"seed": 1})
    (tmp_path / "checkpoint").touch()
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=f"{name} is damaged, remove it"):
        run_directory.claim(tmp_path, IDENTITY, {"seed": 1})
    assert (tmp_path / name).read_text() == text


def test_another_script_is_named_before_what_else_differs(tmp_path):
    run_directory.claim(tmp_path, {**IDENTITY, "script": "run_x"}, {})
    (tmp_path / "checkpoint").touch()
    with pytest.raises(ValueError, match="there 'script' is run_x, this run's run_y"):
        run_directory.claim(tmp_path, {"config": {}, "script": "run_y"}, {})


def test_the_log_is_read_up_to_its_last_whole_line(tmp_path):
    assert run_directory.read_log(tmp_path) == []
    path = tmp_path / "train_log.jsonl"
    path.write_text('{"step": 2}\n{"step": 4, "loss": null}\n{"step": 6, "lo')
    log = [(2, '{"step": 2}\n'), (4, '{"step": 4, "loss": null}\n')]
    assert run_directory.read_log(tmp_path) == log
    for line in ("[]", "5", "{}", '{"step": "a"}', "x"):
        path.write_text(f'{{"step": 2}}\n{line}\n')
        with pytest.raises(ValueError, match="train_log.jsonl, line 2 is "):
            run_directory.read_log(tmp_path)


def test_a_full_disk_is_said_of_the_file(tmp_path):
    path = tmp_path / "results.txt"
    path.write_text("before")
    (tmp_path / f".results.txt.tmp-{os.getpid()}").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"results\.txt could not be written: No space"):
        run_directory.write_text(str(path), "after")
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["results.txt"]


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
        ({"task": "mrpc"}, ["task", "the usual", "mrpc"]),
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
    # Tools that read JSON know neither NaN nor Infinity.
    results = {"a": np.float32("nan"), "b": float("inf"), "c": 2}
    run_directory.write_results(tmp_path, "x", results)
    text = (tmp_path / "x.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail) == {
        "a": None,
        "b": None,
        "c": 2,
    }
    assert (tmp_path / "x.txt").read_text() == "a = nan\nb = inf\nc = 2\n"


def test_tables_survive_any_cell(tmp_path):
    rows = [("id", "label"), ("a\tb", 'say "x"\n'), ("é", ""), ("c\rd", "\r\n")]
    run_directory.write_table(tmp_path / "t.tsv", rows)
    with open(tmp_path / "t.tsv", encoding="utf-8", newline="") as file:
        assert [tuple(row) for row in csv.reader(file, delimiter="\t")] == rows
    # Floats of NumPy look as the original wrote them.
    run_directory.write_table(tmp_path / "f.tsv", np.float32([[0.1, 1.0]]))
    assert (tmp_path / "f.tsv").read_text() == "0.1\t1.0\n"


def test_of_several_workers_only_the_first_writes(tmp_path):
    run_directory.share(1)
    try:
        run_directory.claim(tmp_path, IDENTITY, {"do_train": True})
        run_directory.write_results(tmp_path, "eval_results", {"loss": 1.0})
        run_directory.write_table(tmp_path / "t.tsv", [("a", "b")])
        run_directory.begin_training(tmp_path)
        assert not list(tmp_path.iterdir())
        folder = run_directory.own(tmp_path)
        assert folder == str(tmp_path / "worker-1")
        assert os.path.isdir(folder)
    finally:
        run_directory.share(None)
    assert run_directory.own(tmp_path) == tmp_path
    run_directory.write_text(tmp_path / "x", "y")
    assert (tmp_path / "x").read_text() == "y"


def test_what_a_folder_says_is_read(tmp_path):
    with pytest.raises(ValueError, match="no output folder of a run: .*model.json is"):
        run_directory.read(tmp_path, "run_x")
    identity = {**IDENTITY, "script": "run_x"}
    run_directory.claim(tmp_path, identity, {"seed": 1})
    assert run_directory.read(tmp_path, "run_x") == (identity, {"seed": 1})
    with pytest.raises(ValueError, match="is of run_x, where a run of run_y is"):
        run_directory.read(tmp_path, "run_y")


def test_what_a_folder_does_not_speak_of_is_shown_as_the_usual(tmp_path):
    run_directory.claim(str(tmp_path), {"script": "x", "config": {"a": 1}}, {})
    (tmp_path / "checkpoint").touch()
    for identity, words in (
        (
            {"config": {"a": 1, "b": 2}},
            "there 'config' is {b: the usual}, this run's {b: 2}",
        ),
        ({"config": {"a": 1}, "more": 3}, "there 'more' is the usual, this run's 3"),
    ):
        with pytest.raises(ValueError, match=words):
            run_directory.claim(str(tmp_path), {"script": "x", **identity}, {})
