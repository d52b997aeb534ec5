"""Names of files, and files that are there whole or not at all."""

import os
import pathlib

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
