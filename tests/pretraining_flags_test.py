"""Which record files the scripts that make them will not write."""

import os
import types

import pytest

import pretraining_flags


def output_files(names, num_output_shards=None):
    return pretraining_flags.output_files(
        {"output_file": names, "num_output_shards": num_output_shards}
    )


def test_names_of_shards():
    assert output_files(" a, b/c ,") == ("a", "b/c")
    assert output_files("b/a.tfrecord.gz", 2) == (
        "b/a-00000-of-00002.tfrecord.gz",
        "b/a-00001-of-00002.tfrecord.gz",
    )


@pytest.mark.parametrize(
    ("names", "count", "message"),
    [
        ("b/", None, "^b/ is a folder; --output_file must name a file"),
        ("a,b/", None, "^b/ is a folder"),
        ("b/", 3, "^b/ is a folder"),
        (",", None, "--output_file must name a file, got ','"),
        ("a,b", 3, "needs one name in --output_file, got 2"),
        ("a,./a", None, "must differ"),
    ],
)
def test_names_that_are_none_are_refused(names, count, message):
    with pytest.raises(ValueError, match=message):
        output_files(names, count)


def test_outputs_elsewhere_are_refused():
    with pytest.raises(ValueError, match=r"^gs://b/a is not on this .*_beam\.py"):
        pretraining_flags.check_outputs(["a", "gs://b/a"], [])


def test_inputs_and_the_vocabulary_are_no_outputs(tmp_path):
    for name in ("text.txt", "vocab.txt"):
        (tmp_path / name).touch()
    files = [f"{tmp_path}/text.txt", f"{tmp_path}/vocab.txt"]
    for path in files:
        with pytest.raises(ValueError, match=f"^{path} is an input file"):
            pretraining_flags.check_outputs([f"{tmp_path}/a", path], files)
    pretraining_flags.check_outputs([f"{tmp_path}/a"], files)


def test_outputs_are_on_one_file_system(tmp_path, monkeypatch):
    (tmp_path / "mounted").mkdir()
    stat = os.stat

    def other_device(path, **options):
        is_other = str(path).startswith(f"{tmp_path}/mounted")
        found = stat(path, **options)
        return types.SimpleNamespace(st_mode=found.st_mode, st_dev=int(is_other))

    monkeypatch.setattr(os, "stat", other_device)
    here, there = f"{tmp_path}/x/y/a", f"{tmp_path}/mounted/x/y/b"
    message = f"^{there} and {here} are on different file systems; .* move them"
    with pytest.raises(ValueError, match=message):
        pretraining_flags.check_outputs([here, there], [])
    pretraining_flags.check_outputs([here, f"{tmp_path}/b"], [])
    pretraining_flags.check_outputs([there, f"{tmp_path}/mounted/c"], [])
    assert os.listdir(tmp_path) == ["mounted"]


def test_relative_names_are_in_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pretraining_flags.check_outputs(["a", "x/b", f"{tmp_path}/c"], [])
