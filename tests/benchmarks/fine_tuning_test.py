"""The benchmarks of fine-tuning: what they read, and which runs they count as done."""

import importlib
import json
import re
import subprocess
import sys
import types
from unittest import mock

import numpy as np
import pytest

import squad_results
from benchmarks import fine_tuning, tables
from data import classification, glue, squad
from metrics import classification as classifier_metrics
from metrics import ner
from tests import scripts


def written_keys(command):
    """Names in the results file of a command, from the functions that score for it."""
    script = command.split(".py")[0]
    if script == "run_ner":
        return {f"eval_{key}" for key in ner.scores([["B-x"]], [["B-x"]])}
    if script == "run_squad":
        paragraph = squad.Paragraph.from_text("a b")
        example = squad.SquadExample("1", "?", paragraph, answers=("a",))
        answer = types.SimpleNamespace(
            example=example, text="a", best_text="a", null_odds=0.0
        )
        version_2 = "--version_2_with_negative" in command
        return set(squad_results.score([answer], version_2))
    names = ["accuracy"]
    if script == "run_classifier":
        name = re.search(r"--task_name=(\S+)", command).group(1)
        own = classification.OwnTask()
        names = own.metrics if name == "own" else glue.find_task(name).metrics
        names = [*names, "accuracy"]
    batch = {"logits": np.eye(2), "label_ids": np.arange(2), "losses": np.zeros(2)}
    return set(classifier_metrics.scores([batch], names))


@pytest.mark.parametrize("name", fine_tuning.TASKS)
def test_scores_are_called_as_in_the_results(name):
    task = fine_tuning.TASKS[name]
    assert set(task.scores.values()) <= written_keys(task.command)


def sst_rows(count):
    """A header and rows with what str.splitlines would end a line at."""
    return ["sentence\tlabel", *(f"a\x85b\u2028c {i}\t{i % 2}" for i in range(count))]


@pytest.fixture
def data_dir(tmp_path):
    """As much of the data as is prepared."""
    folder = tmp_path / "data"
    for part in ("glue/SST-2", "ner/wikigold", "squad"):
        (folder / part).mkdir(parents=True)
    for name, count in (("train", 6000), ("dev", 3), ("test", 3)):
        text = "\n".join(sst_rows(count)) + "\n"
        (folder / f"glue/SST-2/{name}.tsv").write_text(text, "utf-8")
    (folder / "ner/wikigold/wikigold.train.txt").write_text("a O\n\n-DOCSTART- O\n")
    for name in ("dev-v1.1.part", "dev-v2.0.part"):
        (folder / f"squad/{name}.json").write_text(json.dumps({"data": [1, 2, 3, 4]}))
    return folder


def test_rows_end_at_newlines_only(data_dir, tmp_path):
    fine_tuning.prepare(data_dir, tmp_path)
    for name, count in (("train", 5000), ("dev", 3)):
        text = (tmp_path / f"SST-2/{name}.tsv").read_text("utf-8")
        assert text.split("\n") == [*sst_rows(count), ""]


@pytest.fixture
def benchmark(data_dir, tmp_path, monkeypatch):
    """Function of flags, running the benchmark with commands that do nothing.

    Returns the commands that were run.
    """

    def run(**given):
        ran = []

        def finish(command, **_):
            ran.append(" ".join(command[1:]))
            folder = re.search(r"--output_dir=(\S+)", ran[-1]).group(1)
            with open(f"{folder}/eval_results.json", "w") as file:
                json.dump({"eval_matthews_correlation": 0.5}, file)

        monkeypatch.setattr(fine_tuning.subprocess, "run", finish)
        values = {
            "data_dir": data_dir,
            "output_dir": tmp_path / "out",
            "init_checkpoint": "bert",
            "tasks": ["cola"],
            "seeds": "12",
        }
        flags = types.SimpleNamespace(**values | given)
        monkeypatch.setattr(fine_tuning, "FLAGS", flags)
        fine_tuning.main()
        return ran

    return run


def test_runs_that_are_done_are_not_done_again(benchmark, data_dir, tmp_path):
    assert len(benchmark()) == 2
    assert benchmark() == []
    data_dir.rename(tmp_path / "moved")
    (tmp_path / "out").rename(tmp_path / "out_moved")
    assert benchmark(
        data_dir=tmp_path / "moved", output_dir=tmp_path / "out_moved", seeds="123"
    ) == [
        f"run_classifier.py --task_name=cola --data_dir={tmp_path}/moved/glue/CoLA "
        "--do_train --do_eval --eval_batch_size=32 --learning_rate=5e-5 "
        "--num_train_epochs=2 --precision=bfloat16 --init_checkpoint=bert "
        f"--output_dir={tmp_path}/out_moved/cola/3 --seed=3"
    ]
    assert "Matthews 50.0 ± 0.0" in (tmp_path / "out_moved/table.md").read_text()


def test_runs_of_another_command_are_refused(benchmark, tmp_path, monkeypatch):
    benchmark()
    before = (tmp_path / "out/table.md").read_text()
    with pytest.raises(ValueError, match="out/cola/1 holds a run of another command "):
        benchmark(init_checkpoint="another", seeds="31")
    assert not (tmp_path / "out/cola/3").exists()
    task = fine_tuning.TASKS["cola"]
    other = fine_tuning.dataclasses.replace(task, command=task.command + " --nopad")
    monkeypatch.setitem(fine_tuning.TASKS, "cola", other)
    with pytest.raises(ValueError, match="delete it, or give another --output_dir"):
        benchmark()
    assert (tmp_path / "out/table.md").read_text() == before


@pytest.fixture
def peer(monkeypatch):
    """benchmarks.transformers_fine_tuning, for which torch is not needed here."""
    for name in ("torch", "transformers"):
        monkeypatch.setitem(sys.modules, name, mock.MagicMock(__version__="0"))
    name = "benchmarks.transformers_fine_tuning"
    monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module(name)
    yield module
    del sys.modules[name]


def test_rows_of_the_peer_end_at_newlines_only(peer, data_dir):
    texts, labels = peer.read_sst(data_dir / "glue", "dev")
    assert texts == [f"a\x85b\u2028c {i}" for i in range(3)]
    assert labels == ["0", "1", "0"]


def test_the_peer_counts_runs_with_the_same_settings(
    peer, tmp_path, monkeypatch, capsys
):
    def measure(name, seed, arguments):
        ran.append((name, seed))
        settings = peer.settings_of(name, seed, arguments)
        return {**settings, "score": arguments.max_steps / 100 + 0.5, "cpu_seconds": 60}

    monkeypatch.setattr(peer, "measure", measure)

    def run(*more, checkpoint="bert"):
        ran.clear()
        words = ["--prepared_dir=x", f"--output_file={tmp_path}/rows.jsonl"]
        words += [f"--init_checkpoint={checkpoint}", "--tasks=sst-2", *more]
        monkeypatch.setattr(sys, "argv", ["x", *words])
        peer.main()
        return capsys.readouterr().out

    ran = []
    run("--max_steps=40", "--seeds=1,2")
    assert "| sst-2 | accuracy 50.0 ± 0.0 | 1.0 |" in run("--seeds=1")
    assert ran == [("sst-2", 1)]
    run("--seeds=1")
    assert ran == []
    run("--seeds=1", checkpoint="another")
    assert ran == [("sst-2", 1)]
    assert "| sst-2 | accuracy 90.0 ± 0.0 | 1.0 |" in run("--max_steps=40", "--seeds=2")
    assert ran == []


def test_tables_have_means_and_sample_deviations():
    scores = {"EM": [1.0, 3.0], "F1": [5.0]}
    rows = [
        {"what": "x", "scores": scores, "cpu_minutes": [2.0, 4.0]},
        {"what": "y", "scores": {"F1": [7.25]}, "cpu_minutes": []},
    ]
    assert tables.markdown(rows).splitlines() == [
        "| task | mean ± sd | CPU minutes a seed |",
        "| --- | --- | --- |",
        "| x | EM 2.0 ± 1.4, F1 5.0 ± 0.0 | 3.0 |",
        "| y | F1 7.2 ± 0.0 | ? |",
    ]


@pytest.mark.parametrize(
    "name, given, words",
    [
        ("fine_tuning", [], r"give --data_dir"),
        ("fine_tuning", ["--data_dir=DATA"], r"DATA is no folder; --help says what"),
        ("pretraining_data", ["--input_file=NO"], r"NO"),
        ("novels", ["--input_dirs=NO"], r"Unknown .* Did you mean: input_dir"),
        ("squad_features", ["--input_file=NO"], r"^NO: No such file"),
        ("tokenizer", ["--input_file=NO"], r"^NO: No such file"),
    ],
)
def test_a_mistake_of_a_benchmarks_flags_is_one_sentence(name, given, words, tmp_path):
    if name == "fine_tuning" and given:
        given = [*given, "--init_checkpoint=bert", f"--output_dir={tmp_path}"]
    result = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *given],
        cwd=scripts.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    line = result.stderr.splitlines()[-1]
    start = f"{name}: error: "
    assert line.startswith(start)
    assert re.search(words, line.removeprefix(start)), line
