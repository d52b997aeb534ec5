"""docs/tutorial.md: each command in it, in order, and what the text says of each."""

import contextlib
import csv
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading

import pytest

from tests import scripts

TEXT = (scripts.ROOT / "docs/tutorial.md").read_text("utf-8")
# ```sh: commands. ```text: lines that the commands before it print.
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.M | re.S)
PORT = "8501"


def lay_out(folder, golden):
    """Makes a folder like a checkout, with a stand-in for a released BERT.

    Returns:
        dict, an environment in which `python` is the one of this test.
    """
    for path in scripts.ROOT.iterdir():
        if not path.name.startswith((".", "my_")):
            (folder / path.name).symlink_to(path)
    shutil.copytree(golden / "tiny_tf1", folder / "released_bert")
    python = folder / "bin/python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "no_proxy": "127.0.0.1"}


def run(commands, folder, environment):
    """Runs a block of commands; returns what it printed."""
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, f"{commands}\n{result.stdout}{result.stderr}"
    return result.stdout


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


@contextlib.contextmanager
def serving(command, port, folder, environment):
    """Keeps the server running as in another terminal, and ends it as Ctrl-C does."""
    with subprocess.Popen(
        ["bash", "-c", f"exec {command.strip()} --rest_port={port} --grpc_port=0"],
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        lines, has_come = [], threading.Event()

        def read():
            for line in process.stderr:
                lines.append(line)
                if line == f"REST at http://127.0.0.1:{port}\n":
                    has_come.set()
            has_come.set()

        reader = threading.Thread(target=read)
        reader.start()
        try:
            assert has_come.wait(300) and process.poll() is None, lines
            yield
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0, lines
        finally:
            process.kill()
            reader.join()


def results(path):
    return scripts.read_results(path / "eval_results.txt")


def claim(pattern):
    """A number that the text gives."""
    found = re.search(pattern, " ".join(TEXT.split()))
    assert found, pattern
    return float(found[1].replace(",", ""))


def check_pretraining(folder):
    """What the sections on pre-training say, as far as any seed and CPU bear it out."""
    scores = results(folder / "my_bert/pretrained")
    said = claim(r"guesses about (\d+) % of the masked words") / 100
    assert scores["masked_lm_accuracy"] == pytest.approx(said, abs=0.06)
    said = claim(r"and (\d+) % of the next sentences") / 100
    assert scores["next_sentence_accuracy"] == pytest.approx(said, abs=0.08)
    assert (folder / "my_bert/adapted/model.ckpt-100.index").exists()
    words = read_json_lines(folder / "my_bert/words.jsonl")
    gaps = [mask["words"][:2] for row in words for mask in row["masks"]]
    assert ["card" in best for best in gaps] == [True, True]
    lines = read_json_lines(folder / "my_bert/scores.jsonl")
    question, shuffled, foreign = (row["pseudo_perplexity"] for row in lines)
    assert 1.2 * question < shuffled < foreign / 5
    assert question < 100


def read_json_lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def check_fine_tuning(folder, answers):
    """What the sections on the classifier, its export and its server say."""
    scores = results(folder / "my_bert/intents")
    said = claim(r"About (\d+) % of the questions") / 100
    assert scores["eval_accuracy"] == pytest.approx(said, abs=0.06)
    with open(folder / "my_bert/intents/predictions.tsv", newline="") as file:
        labels = [row["label"] for row in csv.DictReader(file, delimiter="\t")]
    assert len(labels) == 10
    assert labels[7] == "terminate_account"
    assert (folder / "my_bert/intents/eval_predictions.tsv").exists()
    card = (folder / "my_bert/serving/intents/1/model_card.md").read_text("utf-8")
    for title in ("Model", "Results", "Training", "Sizes", "Labels", "Signatures"):
        assert f"\n## {title}" in card
    rows = [line.split() for line in answers.splitlines()]
    assert [label for label, _ in rows] == ["lost_or_stolen_phone", "terminate_account"]
    assert all(0.05 < float(score) < 1 for _, score in rows)


@pytest.mark.slow
def test_every_command_of_the_tutorial_does_what_it_says(tmp_path, golden):
    environment, port, printed = lay_out(tmp_path, golden), free_port(), ""
    with contextlib.ExitStack() as servers:
        for kind, text in BLOCKS:
            if kind == "text":
                assert set(text.splitlines()) <= set(printed.splitlines())
            elif text.startswith("python serve.py"):
                server = serving(text, port, tmp_path, environment)
                servers.enter_context(server)
            else:
                commands = text.replace(f"127.0.0.1:{PORT}", f"127.0.0.1:{port}")
                printed = run(commands, tmp_path, environment)
    check_pretraining(tmp_path)
    check_fine_tuning(tmp_path, printed)


def test_blocks_are_commands_or_what_they_print():
    kinds = [kind for kind, _ in BLOCKS]
    assert set(kinds) == {"sh", "text"}
    assert kinds[0] == "sh"
    assert TEXT.count("```") == 2 * len(BLOCKS)
    servers = [i for i, (_, text) in enumerate(BLOCKS) if "python serve.py" in text]
    assert servers == [len(BLOCKS) - 2]
    assert "http://127.0.0.1:8501/" in BLOCKS[-1][1]
