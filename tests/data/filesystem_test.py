"""Names of files, and files that are there whole or not at all."""

import errno
import os
import pathlib
import pickle

import pytest

from data import filesystem


def test_expand(tmp_path):
    for name in ("b1", "b2", "a[1]", ".b3.tmp-7", "c"):
        (tmp_path / name).write_text("x")
    found = filesystem.expand(f"{tmp_path}/b*, {tmp_path}/a[1],{tmp_path}/b2,")
    assert [pathlib.Path(path).name for path in found] == ["a[1]", "b1", "b2"]
    assert len(filesystem.expand(f"{tmp_path}/*")) == 4


@pytest.mark.parametrize(
    ("patterns", "error", "message"),
    [
        ("{}/b1,{}/missing*", FileNotFoundError, "no file matches '.*/missing\\*'"),
        ("{}/nowhere/b1", FileNotFoundError, "no file matches '.*/nowhere/b1'"),
        ("{}/empty", ValueError, "empty is empty"),
        ("{}/*", ValueError, "empty is empty"),
        ("{}/folder", ValueError, "is a folder; .* pass .*folder/\\*"),
        (" , ", ValueError, "expected file names"),
    ],
)
def test_names_that_stand_for_no_file_are_refused(patterns, error, message, tmp_path):
    (tmp_path / "b1").write_text("x")
    (tmp_path / "empty").touch()
    if "folder" in patterns:
        (tmp_path / "folder").mkdir()
    with pytest.raises(error, match=message):
        filesystem.expand(patterns.replace("{}", str(tmp_path)))


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "a"
    path.write_text("before")
    with filesystem.replacing(str(path)) as file:
        file.write(b"after")
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    with pytest.raises(OSError, match="no more"), filesystem.replacing(path) as file:
        file.write(b"half")
        raise OSError("no more")
    assert path.read_text() == "after"
    assert os.listdir(tmp_path) == ["a"]


def test_what_an_object_lacks_is_said_of_the_file(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"step": 3, "rate": 0.5, "name": null}')
    found = filesystem.read_object(str(path), step=int, rate=int | float)
    assert found == {"step": 3, "rate": 0.5, "name": None}
    assert found.get("labels") is None
    with pytest.raises(ValueError, match="a.json is damaged, .*: it has no 'labels'"):
        found["labels"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", r"expected an object, got \[1\]"),
        ("null", "expected an object, got None"),
        ("5", "expected an object, got 5"),
        ("{}", "it has no 'step'"),
        ('{"step": "a"}', "expected 'step' to be int, got 'a'"),
        ('{"step": 1, "rate": []}', r"expected 'rate' to be int \| float, got \[\]"),
        ("{", "Expecting property name"),
    ],
)
def test_an_object_of_another_shape_is_refused(tmp_path, text, message):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"a.json is damaged, remove it: {message}"):
        filesystem.read_object(str(path), step=int, rate=int | float)


def test_a_full_disk_is_told_with_the_file_that_is_written(tmp_path):
    path = str(tmp_path / "x")
    with (
        pytest.raises(OSError, match="No space") as caught,
        filesystem.replacing(path) as file,
    ):
        file.write(b"begun")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert pickle.loads(pickle.dumps(caught.value)).filename == path
    assert not list(tmp_path.iterdir())
