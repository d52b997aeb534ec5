"""What scripts have in common: what they will not do or write."""

import os
import pathlib
import re
import subprocess

import pytest
import tensorflow as tf

import command_line
from tests import scripts


def test_no_action_is_refused():
    values = {"do_train": False, "do_eval": False, "do_lower_case": True, "seed": 1}
    with pytest.raises(ValueError, match="^nothing to do: give --do_train or --do_eva"):
        command_line.check_actions(values)
    command_line.check_actions(values | {"do_eval": True})


def test_what_the_system_says_comes_with_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")
    full = pathlib.Path("/dev/full")
    for act, words in (
        (lambda: os.makedirs(tmp_path / "file", exist_ok=True), "name another, or mov"),
        (lambda: os.makedirs(tmp_path / "file/b"), "or on the way there"),
        (lambda: tmp_path.write_bytes(b""), "a file is needed there"),
        (lambda: full.write_bytes(b"a"), "make room and repeat"),
    ):
        with pytest.raises(OSError) as error:
            act()
        error.value.filename = error.value.filename or "f"
        assert words in command_line.sentence(error.value)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder to work in, with a file of each kind."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("text")
    (tmp_path / "link").symlink_to("in.txt")
    (tmp_path / "old").write_text("kept")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", ["in.txt", "./in.txt", "{}/in.txt", "link"])
def test_an_input_is_no_output(files, name):
    for inputs in (["other", "in.txt"], [None, f"{files}/folder/../in.txt"]):
        with pytest.raises(ValueError, match="is an input file; choose another --out"):
            command_line.prepare_output(name.format(files), inputs, True)


@pytest.mark.parametrize("name", ["folder", "folder/", "new/", "."])
def test_a_folder_is_no_output(files, name):
    with pytest.raises(ValueError, match=r"is a folder; --output_file must name a fil"):
        command_line.check_outputs(["a", name], [])
    assert not (files / "new").exists()


def test_a_file_is_kept_or_replaced_as_asked(files):
    with pytest.raises(ValueError, match="old exists; .* or pass --overwrite"):
        command_line.prepare_output("old", ["in.txt"], False)
    command_line.prepare_output("old", ["in.txt"], True)
    assert (files / "old").read_text() == "kept"


def test_the_folder_of_an_output_is_made(files):
    command_line.prepare_output("x/y/new", [None], False)
    assert os.listdir(files / "x/y") == []
    command_line.prepare_output("new", [], False)


def test_a_wrong_flag_is_one_line():
    for flag, message in (
        ("--dup_factor=3", "Unknown .* 'dup_factor'. Did you mean: dupe_factor"),
        ("--dupe_factor=x", "--dupe_factor must be a whole number, got 'x'$"),
        ("--dupe_factor=-1", "flag --dupe_factor=-1: .* range"),
        (f"--dupe_factor={10**23}", "flag --dupe_factor=10+: .* range"),
        ("--dupe_factor=3", "give --.*; give --input_file"),
    ):
        command = [*scripts.command("create_pretraining_data.py"), flag]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 1
        (line,) = result.stderr.splitlines()
        assert re.match(f"create_pretraining_data: error: .*{message}", line), line


@pytest.mark.parametrize("flag", ["--help", "--helpfull"])
def test_help_is_no_failure(flag):
    command = [*scripts.command("build_vocab.py"), flag]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert "--vocab_size" in result.stdout


def test_names_of_tensorflows_operations_are_not_shown():
    folder = "/proc/nowhere"
    with pytest.raises(tf.errors.OpError) as caught:
        tf.raw_ops.Save(
            filename=f"{folder}/file", tensor_names=["x"], data=[tf.zeros([])]
        )
    assert "function_node" in caught.value.message
    said = command_line.sentence(caught.value)
    assert folder in said
    assert not re.search(r"[{}\[\]]", said)


@pytest.mark.parametrize("error", [OverflowError("int"), MemoryError("array")])
def test_numbers_that_are_too_large_are_a_persons(error):
    assert command_line.is_users(error)
    assert "give smaller" in command_line.sentence(error)


@pytest.mark.parametrize(
    "flags",
    [
        {"help": True},
        {
            "mode": "audit",
            "input_file": scripts.ROOT / "sample_data/corpus.txt",
            "vocab_file": scripts.ROOT / "sample_data/vocab.txt",
        },
    ],
)
def test_output_that_nobody_reads_is_no_error(flags):
    command = scripts.command("build_vocab.py", **flags)
    reader, writer = os.pipe()
    os.close(reader)  # as `| head` does when it has seen enough
    result = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert result.returncode == 141
    assert not re.search("error|Traceback|ignored", result.stderr, re.I)


def test_output_that_cannot_be_written_is_an_error():
    command = scripts.command(
        "inspect_records.py",
        input_file=scripts.ROOT / "tests/golden/tiny_tf1_runs/pretraining/*.tfrecord",
    )
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert result.returncode == 1
    assert "No space left on device" in result.stderr
