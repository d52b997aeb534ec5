"""Runs in processes: order, resuming, what is recorded, what is refused."""

import json
import pathlib
import subprocess
import sys
import time

import pytest

import child_runs
from experiments import runs

# A script that adds to a log beside the folders and writes results, or fails.
SCRIPT = """
import json, os, pathlib, sys, time
out, *rest = sys.argv[1:]
out = pathlib.Path(out)
with open(out.parent / "log", "a") as log:
    log.write(out.name + "\\n")
if "fail" in rest and not (out.parent / "mended").exists():
    sys.exit("x: error: it is broken")
while time.process_time() < 0.15:
    pass
accuracy = float(rest[0])
results = {"accuracy": accuracy, "majority": 0.5}
(out / "results.json").write_text(json.dumps(results))
"""
SCORES = {"accuracy": ("results.json", "accuracy", runs.percent)}
TRAINING = {**SCORES, "majority": ("results.json", "majority", runs.percent)}


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


def make_step(script, name, *rest, needs=()):
    return runs.Step(name, (script, "{out}", *rest), needs)


def make_runs(script, fails=()):
    """Two pre-trainings, from each of which two tasks are learnt."""
    made = []
    for seed, variant in ((1, "a"), (1, "b")):
        first = make_step(script, f"first-{variant}-{seed}", "0")
        for task, accuracy in (("easy", "0.9"), ("hard", "0.505")):
            name = f"{task}-{variant}-{seed}"
            rest = [accuracy, *(["fail"] if name in fails else [])]
            step = make_step(script, name, *rest, needs=(first,))
            made.append(runs.Run("e", variant, task, seed, step, SCORES, TRAINING))
    return made


@pytest.fixture
def runner(tmp_path):
    results = str(tmp_path / "results.jsonl")
    with child_runs.wait_for_folder(str(tmp_path / "runs")) as lock:

        def make(num_processes=2, weights="/home/x/a/model"):
            folders = {"runs": str(tmp_path / "runs"), "init_checkpoint": weights}
            return runs.Runner(folders, results, num_processes, lock)

        yield make


def log(tmp_path):
    return (tmp_path / "runs/log").read_text().split()


@pytest.mark.parametrize("num_processes", [1, 2, 3])
def test_every_step_is_done_once_and_after_what_it_needs(
    script, runner, tmp_path, num_processes
):
    made = make_runs(script)
    runner(num_processes).do(made)
    done = log(tmp_path)
    assert sorted(done) == sorted(
        {s.name for r in made for s in (r.step, *r.step.needs)}
    )
    for run in made:
        assert done.index(run.step.needs[0].name) < done.index(run.step.name)
    lines = runs.read(tmp_path / "results.jsonl")
    assert {runs.key_of(line) for line in lines} == {run.key for run in made}
    for line in lines:
        accuracy = 90.0 if line["task"] == "easy" else 50.5
        assert line["scores"] == {"accuracy": accuracy}
        assert line["training"] == {"accuracy": accuracy, "majority": 50.0}
        # Not more than a point above always giving the most frequent label.
        assert line["degenerate"] == (line["task"] == "hard")
        assert line["cpu_seconds"] > 0
        assert len(line["commands"]) == 2 and "{out}" in line["commands"][0]


def test_what_is_recorded_is_not_done_again_even_without_its_folder(
    script, runner, tmp_path
):
    made = make_runs(script)
    runner().do(made[:2])
    before = log(tmp_path)
    for path in (tmp_path / "runs").glob("easy*/*"):
        path.unlink()
    runner().do(made)
    assert log(tmp_path)[: len(before)] == before
    assert sorted(log(tmp_path)[len(before) :]) == ["easy-b-1", "first-b-1", "hard-b-1"]
    assert len(runs.read(tmp_path / "results.jsonl")) == 4


def test_a_step_that_fails_is_named_and_done_again(script, runner, tmp_path):
    made = make_runs(script, fails=("hard-a-1",))
    with pytest.raises(ValueError, match=r"it is broken \(the whole log is .*hard-a-1"):
        runner(1).do(made)
    assert len(runs.read(tmp_path / "results.jsonl")) < 4
    (tmp_path / "runs/mended").touch()
    runner(1).do(made)
    lines = {runs.key_of(line): line for line in runs.read(tmp_path / "results.jsonl")}
    assert len(lines) == 4
    # Of what was begun twice the time of a part would mislead.
    assert lines["e", "a", "hard", 1]["cpu_seconds"] is None
    assert log(tmp_path).count("first-a-1") == 1


def test_other_commands_are_not_mixed(script, runner, tmp_path):
    made = make_runs(script)
    runner().do(made[:1])
    step = make_step(script, "easy-a-1", "0.8", needs=made[0].step.needs)
    other = runs.Run("e", "a", "easy", 1, step, SCORES)
    with pytest.raises(ValueError, match=r"results.jsonl has e, a, easy, 1 of other"):
        runner().do([other])
    (tmp_path / "results.jsonl").unlink()
    with pytest.raises(ValueError, match="easy-a-1 holds a run of another command"):
        runner().do([other])


def test_two_steps_of_one_name_are_refused(script, runner):
    made = [make_step(script, "same", "0.1"), make_step(script, "same", "0.2")]
    with pytest.raises(ValueError, match="two different steps are called same"):
        runner().do(
            [runs.Run("e", "a", str(i), 1, s, SCORES) for i, s in enumerate(made)]
        )


@pytest.mark.parametrize("line", ["{", '"x"', '{"experiment": "e"}', "[1]"])
def test_a_line_that_is_no_record_is_named(tmp_path, line):
    path = pathlib.Path(tmp_path / "results.jsonl")
    good = {"experiment": 1, "variant": 1, "task": 1, "seed": 1, "scores": {}}
    path.write_text(json.dumps(good) + "\n" + line + "\n")
    with pytest.raises(ValueError, match="results.jsonl, line 2: expected the record"):
        runs.read(path)


def test_weights_from_elsewhere_are_told_apart(script, runner):
    step = make_step(script, "one", "0.9", "{init_checkpoint}")
    run = runs.Run("e", "a", "t", 1, step, SCORES)
    runner().do([run])
    runner().do([run])
    with pytest.raises(ValueError, match="of other commands, such as .* 'a/model'"):
        runner(weights="/home/x/b/model").do([run])
    runner(weights="/elsewhere/a/model").do([run])  # the same, moved


@pytest.mark.slow
def test_two_at_once_do_and_record_every_run_once(script, tmp_path):
    """The second waits for the first and finds its records; a third is killed."""
    program = (
        "import sys; sys.path[:0] = sys.argv[1:2]\n"
        "import child_runs\n"
        "from experiments import runs\n"
        "from tests.experiments.runs_test import make_runs\n"
        "folder, script = sys.argv[2:]\n"
        "with child_runs.wait_for_folder(folder + '/runs') as lock:\n"
        "    folders = {'runs': folder + '/runs'}\n"
        "    results = folder + '/results.jsonl'\n"
        "    runs.Runner(folders, results, 2, lock).do(make_runs(script))\n"
    )
    command = [sys.executable, "-c", program, runs.ROOT, tmp_path, script]
    killed = subprocess.Popen(command)
    while not (tmp_path / "runs/log").exists():
        time.sleep(0.05)
    killed.kill()
    killed.wait()
    both = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    keys = [runs.key_of(line) for line in runs.read(tmp_path / "results.jsonl")]
    assert sorted(keys) == sorted(run.key for run in make_runs(script))
