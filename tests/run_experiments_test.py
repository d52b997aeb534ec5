"""run_experiments.py: what it refuses, and a small experiment from end to end."""

import dataclasses
import json

import pytest

import child_runs
from experiments import miniatures, preparation, runs
from tests import scripts

RUN = "run_experiments.py"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"suites": "table_9"}, ["'table_9' is none of table_5, "]),
        ({"suites": "table_5_real"}, ["table_5_real needs --data_dir"]),
        ({"suites": "table_7", "data_dir": "/x"}, ["table_7 needs --init_checkpoint"]),
        ({"suites": "table_5", "seeds": "1,x"}, ["--seeds", "'1,x'"]),
        ({"suites": "table_5", "seeds": 2**32}, ["--seeds", "below 2^32"]),
        ({"suites": ""}, ["--suites names none of table_5, "]),
        ({"suites": "table_5", "page": "a.html"}, ["--page", "'a.html'"]),
        (
            {"suites": "table_5_real", "data_dir": "/nowhere"},
            ["table_5_real needs /nowhere/glue/MRPC/train.tsv", "not there"],
        ),
    ],
)
def test_what_cannot_be_run_is_refused(tmp_path, flags, words):
    message = scripts.refusal(RUN, **flags, output_dir=tmp_path / "out")
    assert all(word in message for word in words), message


def test_recorded_runs_make_a_page_and_nothing_else_is_done(tmp_path):
    with open(tmp_path / "results.jsonl", "w") as file:
        for run in miniatures.table_6((1,)):
            line = {
                "experiment": run.experiment,
                "variant": run.variant,
                "task": run.task,
                "seed": run.seed,
                "scores": dict.fromkeys(run.scores, 50.0),
                "cpu_seconds": None,
            }
            file.write(json.dumps(line) + "\n")
    scripts.succeed(
        RUN,
        suites="table_6",
        seeds=1,
        output_dir=tmp_path / "out",
        results_file=tmp_path / "results.jsonl",
        page=tmp_path / "page.md",
    )
    assert "| L4 H64 | 50.0 | 50.0 |" in (tmp_path / "page.md").read_text()
    assert not (tmp_path / "out").exists()


def test_records_of_other_commands_are_refused_though_nothing_is_missing(tmp_path):
    with open(tmp_path / "results.jsonl", "w") as file:
        for run in miniatures.table_8((1,)):
            names = ("experiment", "variant", "task", "seed")
            line = dict(zip(names, run.key, strict=True))
            line |= {"scores": {}, "commands": ["run_ner.py --learning_rate=9"]}
            file.write(json.dumps(line) + "\n")
    message = scripts.refusal(
        RUN,
        suites="table_8",
        seeds=1,
        output_dir=tmp_path / "out",
        results_file=tmp_path / "results.jsonl",
    )
    assert "of other commands, such as run_ner.py --learning_rate=9" in message


@pytest.mark.slow
def test_an_experiment_from_text_to_scores(tmp_path, monkeypatch):
    """Commands of table 5 with few updates, and of figure 5 from their checkpoints."""
    flags = miniatures.GRAMMAR.training_flags.replace("=2000", "=8").replace(
        "=250", "=1"
    )
    small = dataclasses.replace(miniatures.GRAMMAR, training_flags=flags)
    monkeypatch.setattr(miniatures, "GRAMMAR", small)
    monkeypatch.setattr(miniatures, "STEPS", 8)
    folders = preparation.prepare(tmp_path / "prepared", None, [])
    folders["runs"] = str(tmp_path / "runs")
    results = str(tmp_path / "results.jsonl")
    wanted = [*miniatures.table_5((1,)), *miniatures.figure_5((1,))]
    kept = {"LTR", "LTR + BiLSTM", "LTR, step 4"}
    wanted = [run for run in wanted if run.variant in kept]
    with child_runs.wait_for_folder(folders["runs"]) as lock:
        runs.Runner(folders, results, 2, lock).do(wanted)
    lines = runs.read(results)
    assert {runs.key_of(line) for line in lines} == {run.key for run in wanted}
    for line in lines:
        assert line["cpu_seconds"] > 1
        assert "degenerate" in line or line["task"] == "held-out text"
        name = "perplexity" if line["task"] == "held-out text" else None
        if name:  # about the vocabulary, as it has hardly learnt
            assert 50 < line["scores"][name] < 1000
