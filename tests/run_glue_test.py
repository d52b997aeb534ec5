"""run_glue.py over small samples: grid, resuming, the choice, the zip, bad input."""

import csv
import io
import json
import os
import random
import signal
import statistics
import subprocess
import time
import zipfile

import pytest

import glue_runs
from tests import scripts

RUN = "run_glue.py"
SIZES = {"STS-B": 5, "WNLI": 6, "MNLI": 3}  # of the made-up test sets


def write(path, *rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def write_sts_b(folder):
    head = ["index", "genre", "filename", "year", "old_index", "source1", "source2"]
    head += ["sentence1", "sentence2"]
    for split, size in (("train", 16), ("dev", 6), ("test", SIZES["STS-B"])):
        end = [] if split == "test" else ["score"]
        rows = [
            [
                str(i),
                *["none"] * 6,
                "the cat sat",
                "a cat" * i,
                *[f"{i % 6}.5" for _ in end],
            ]
            for i in range(size)
        ]
        write(folder / "STS-B" / f"{split}.tsv", head + end, *rows)


def write_wnli(folder):
    head = ["index", "sentence1", "sentence2"]
    rows = [[str(i), "the cat", "a cat", "1" if i < 5 else "0"] for i in range(8)]
    for split in ("train", "dev"):
        write(folder / "WNLI" / f"{split}.tsv", [*head, "label"], *rows)
    rows = [row[:3] for row in rows[: SIZES["WNLI"]]]
    write(folder / "WNLI" / "test.tsv", head, *rows)


@pytest.fixture
def glue_dir(golden, tmp_path):
    """Samples of CoLA and MRPC, and a made-up STS-B and WNLI."""
    folder = tmp_path / "glue"
    folder.mkdir()
    for name in ("CoLA", "MRPC"):
        os.symlink(golden / "glue_samples" / name, folder / name)
    write_sts_b(folder)
    write_wnli(folder)
    return folder


@pytest.fixture
def flags(golden, glue_dir, tmp_path):
    return {
        "data_dir": glue_dir,
        "output_dir": tmp_path / "runs",
        "bert_config_file": golden / "tiny_tf1/bert_config.json",
        "vocab_file": golden / "tiny_tf1/vocab.txt",
        "init_checkpoint": golden / "tiny_tf1/bert_model.ckpt",
        "max_seq_length": 32,
        "batch_sizes": 8,
        "learning_rates": 1e-3,
        "epochs": 1,
        "seeds": 1,
    }


def read_jsonl(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_zip(path):
    """{name: rows of the table}."""
    with zipfile.ZipFile(path) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    return {
        name: list(csv.DictReader(io.StringIO(text), delimiter="\t"))
        for name, text in texts.items()
    }


def results_of(folder):
    """{run: bytes of its results} of a folder of runs."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.glob("*/*/eval_results*.json")
    }


@pytest.mark.slow
def test_a_grid_over_three_tasks(flags):
    flags |= {"tasks": "CoLA,mrpc,stsb", "learning_rates": "1e-3,1e-4", "seeds": "0,1"}
    out = flags["output_dir"]
    shown = scripts.succeed(RUN, **flags, do_predict=True)
    assert "run 12 of 12, sts-b" in shown
    rows = read_jsonl(out / "results.jsonl")
    assert len(rows) == 12 == len(results_of(out))
    for row in rows:
        with open(f"{row['folder']}/eval_results.json") as file:
            results = json.load(file)
        for name, value in row.items():
            assert results.get(f"eval_{name}", value) == value
        with open(f"{row['folder']}/eval_predictions.tsv", newline="") as file:
            said = [r.get("label") for r in csv.DictReader(file, delimiter="\t")]
        if row["task"] != "sts-b":
            assert row["degenerate"] == (len(set(said)) == 1)

    summaries = read_jsonl(out / "results_summary.jsonl")
    assert len(summaries) == 6
    for summary in summaries:
        scores = [
            row["score"]
            for row in rows
            if all(row[n] == summary[n] for n in ("task", "learning_rate"))
        ]
        found = summary["metrics"]["score"]
        assert found["mean"] == pytest.approx(statistics.mean(scores))
        assert found["sd"] == pytest.approx(statistics.stdev(scores))
    assert (out / "results.md").read_text().count("| sts-b | pearson |") == 1 + 2

    # Checkpoints of the picked runs only, one a task.
    kept = [path.parent for path in out.glob("*/*/checkpoint")]
    assert sorted(path.parent.name for path in kept) == ["cola", "mrpc", "sts-b"]
    tables = read_zip(out / "submission.zip")
    assert "it lacks SST-2.tsv, QQP.tsv, MNLI-m.tsv" in shown
    assert sorted(tables) == ["CoLA.tsv", "MRPC.tsv", "STS-B.tsv", "WNLI.tsv"]
    for name, table in tables.items():
        assert [row["index"] for row in table] == [str(i) for i in range(len(table))], (
            name
        )
    assert [row["prediction"] for row in tables["WNLI.tsv"]] == ["1"] * SIZES["WNLI"]
    assert len(tables["STS-B.tsv"]) == SIZES["STS-B"]
    for folder in kept:
        with open(folder / "predictions.tsv", newline="") as file:
            said = [r.get("label") for r in csv.DictReader(file, delimiter="\t")]
        if folder.parent.name == "mrpc":
            assert [row["prediction"] for row in tables["MRPC.tsv"]] == said

    # Once more: nothing is left to do, and nothing changes.
    before = results_of(out), (out / "submission.zip").read_bytes()
    logs = {path: path.read_bytes() for path in out.glob("*/*/log.txt")}
    scripts.succeed(RUN, **flags, do_predict=True)
    assert (results_of(out), (out / "submission.zip").read_bytes()) == before
    assert {path: path.read_bytes() for path in out.glob("*/*/log.txt")} == logs


def write_mnli(folder):
    """Both dev and test sets, and the diagnostic set, each of another size."""
    labels = ("entailment", "neutral", "contradiction")
    head = [f"c{i}" for i in range(8)] + ["sentence1", "sentence2"]
    sizes = {"train": 24, "dev_matched": 6, "dev_mismatched": 7}
    for split, size in (sizes | MNLI_TESTS).items():
        ends = [[], []] if split in MNLI_TESTS else [["l1", "gold_label"], ["-", ""]]
        rows = []
        for i in range(size):
            row = [str(i), *["none"] * 7, "the cat sat", "a cat " * (1 + i % 3)]
            rows.append(row + [end or labels[i % 3] for end in ends[1]])
        write(folder / "MNLI" / f"{split}.tsv", head + ends[0], *rows)
    rows = [[str(i), "the cat sat", "a cat"] for i in range(5)]
    path = folder / "diagnostic/diagnostic.tsv"
    write(path, ["index", "sentence1", "sentence2"], *rows)


MNLI_TESTS = {"test_matched": 8, "test_mismatched": 9}


@pytest.mark.slow
def test_the_files_of_mnli_and_the_diagnostic_set(flags, glue_dir):
    write_mnli(glue_dir)
    scripts.succeed(RUN, **flags, tasks="mnli", do_predict=True)
    tables = read_zip(flags["output_dir"] / "submission.zip")
    sizes = {name: len(table) for name, table in tables.items()}
    assert sizes == {"MNLI-m.tsv": 8, "MNLI-mm.tsv": 9, "AX.tsv": 5, "WNLI.tsv": 6}
    (row,) = read_jsonl(flags["output_dir"] / "results.jsonl")
    files = {"MNLI-m.tsv": "", "MNLI-mm.tsv": "_mismatched", "AX.tsv": "_ax"}
    for file, suffix in files.items():
        with open(f"{row['folder']}/predictions{suffix}.tsv", newline="") as table:
            said = [r["label"] for r in csv.DictReader(table, delimiter="\t")]
        assert [r["prediction"] for r in tables[file]] == said
        assert set(said) <= {"entailment", "neutral", "contradiction"}


def kill_when(command, moment, folder):
    """Starts a process and kills it and what it started at that moment of the runs.

    Args:
        command: list of str.
        moment: int, so many lines of all the runs' logs must be there.
        folder: of the runs.
    """
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while process.poll() is None:
            logs = [path.read_text() for path in folder.glob("*/*/train_log.jsonl")]
            if sum(log.count("\n") for log in logs) >= moment:
                break
            time.sleep(0.01)
        assert process.poll() is None, "ended before it was killed"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.mark.slow
def test_killed_it_goes_on_and_comes_to_the_same(flags):
    flags |= {"tasks": "mrpc", "seeds": "1,2", "epochs": 20, "do_predict": True}
    out = flags["output_dir"]
    whole = out.parent / "whole"
    scripts.succeed(RUN, **{**flags, "output_dir": whole})
    lines = sum(
        path.read_text().count("\n") for path in whole.glob("*/*/train_log.jsonl")
    )
    rng = random.Random(0)
    for moment in sorted(rng.sample(range(1, lines), 2)):
        kill_when(scripts.command(RUN, **flags), moment, out)
    # The run that the last kill left behind is waited for, or over already.
    scripts.succeed(RUN, **flags)
    assert results_of(out) == results_of(whole)
    submission = (whole / "submission.zip").read_bytes()
    assert (out / "submission.zip").read_bytes() == submission
    # Weights that were removed come back the same.
    (path,) = out.glob("*/*/predictions.tsv")
    path.unlink()
    for name in [*path.parent.glob("model.ckpt*"), path.parent / "checkpoint"]:
        name.unlink()
    (out / "submission.zip").unlink()
    scripts.succeed(RUN, **flags)
    assert (out / "submission.zip").read_bytes() == submission


@pytest.mark.slow
def test_a_run_that_diverges_is_counted_and_does_not_stop_the_others(flags):
    flags |= {"tasks": "mrpc", "learning_rates": "1e38,1e-4", "epochs": 2}
    out = flags["output_dir"]
    shown = scripts.succeed(RUN, **flags)
    assert "has diverged" in shown
    bad, good = read_jsonl(out / "results_summary.jsonl")
    assert (bad["degenerate"], bad["metrics"], bad["runs"]) == (1, {}, 1)
    assert good["metrics"]["accuracy"]["mean"] > 0
    assert "| mrpc | diverged | 8 | 1e+38 |" in (out / "results.md").read_text()
    scripts.succeed(RUN, **flags)  # and is not tried again
    log = (out / "mrpc/batch8_rate1e+38_epochs2_seed1/log.txt").read_text()
    assert log.count("$ ") == 1
    flags |= {"learning_rates": "1e38", "do_predict": True}
    assert "no run can predict, as all diverged" in scripts.refusal(RUN, **flags)
    assert not (out / "submission.zip").exists()


def test_one_run(flags):
    shown = scripts.succeed(RUN, **flags, tasks="mrpc")
    assert "run 1 of 1, mrpc" in shown
    (row,) = read_jsonl(flags["output_dir"] / "results.jsonl")
    assert row["score"] == pytest.approx((row["accuracy"] + row["f1"]) / 2)
    # The same folder for another model is refused.
    sentence = scripts.refusal(RUN, **{**flags, "max_seq_length": 16}, tasks="mrpc")
    assert "there 'max_seq_length' is 32, this run's 16" in sentence


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tasks": "cola,rte"}, ["there is no folder", "glue/RTE"]),
        ({"tasks": "xnli"}, ["xnli is no task of GLUE"]),
        ({"tasks": "ax"}, ["ax is no task of GLUE to train on"]),
        ({"tasks": "mrcp"}, ["'mrcp'", "did you mean 'mrpc'"]),
        ({"tasks": "mrpc", "seeds": "1,1"}, ["--seeds", "different", "'1,1'"]),
        ({"tasks": "mrpc", "learning_rates": "fast"}, ["--learning_rates", "'fast'"]),
        ({"tasks": ""}, ["--tasks names no task"]),
        ({"tasks": "mrpc", "epochs": "3,inf"}, ["--epochs", "'3,inf'"]),
        ({"tasks": "mrpc", "batch_sizes": 0}, ["--batch_sizes", "1 or more", "'0'"]),
    ],
)
def test_what_cannot_be_run(flags, changes, words):
    sentence = scripts.refusal(RUN, **{**flags, **changes})
    assert all(word in sentence for word in words), sentence
    assert not flags["output_dir"].exists()


def test_what_stops_a_run_is_said(flags):
    changes = {"tasks": "mrpc", "classifier_flags": "--freeze_layer=1"}
    sentence = scripts.refusal(RUN, **flags, **changes)
    assert "freeze_layer" in sentence and "log.txt" in sentence


def test_a_task_at_work_keeps_the_best_of_every_setting(tmp_path):
    """And a finished one only what is picked."""
    rows = []
    for rate, seed, score in (
        (1e-5, 1, 0.6),
        (1e-5, 2, 0.8),
        (1e-4, 1, 0.5),
        (1e-4, 2, None),
    ):
        folder = tmp_path / f"{rate}_{seed}"
        (folder / "best").mkdir(parents=True)
        for name in ("checkpoint", "model.ckpt-3.index", "train.tf_record", "log.txt"):
            (folder / name).write_text("")
        row = {
            "task": "rte",
            "train_batch_size": 8,
            "learning_rate": rate,
            "seed": seed,
        }
        row |= {"num_train_epochs": 1.0, "folder": str(folder)}
        if score:
            row |= {"accuracy": score, "score": score, "degenerate": False}
        rows.append(row)

    def kept():
        return [path.parent.name for path in sorted(tmp_path.glob("*/checkpoint"))]

    glue_runs.remove_checkpoints(rows)
    assert kept() == ["0.0001_1", "0.0001_2", "1e-05_2"]
    assert [p.name for p in (tmp_path / "1e-05_1").iterdir()] == ["log.txt"]
    rows[-1] |= {"accuracy": 0.7, "score": 0.7, "degenerate": False}
    glue_runs.remove_checkpoints(rows)
    assert kept() == ["1e-05_2"]
