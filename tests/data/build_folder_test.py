"""Who may work in the folder of a build, and what is left there."""

import fcntl
import os
import shutil

import pytest

from data import build_folder


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / ".x.build")


def test_one_at_a_time(folder, monkeypatch):
    monkeypatch.setattr(build_folder, "_SECONDS_TO_END", 0.2)
    first = build_folder.lock(folder)
    with pytest.raises(BlockingIOError):
        build_folder.lock(folder)
    os.close(first)
    os.close(build_folder.lock(folder))


def test_the_lock_is_on_the_folder_that_is_there(folder, monkeypatch):
    """Another build takes its folder away between `open` and `flock`."""
    flock, calls = fcntl.flock, []

    def slow_flock(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            shutil.rmtree(folder)
        return flock(*arguments)

    monkeypatch.setattr(fcntl, "flock", slow_flock)
    found = build_folder.lock(folder)
    assert len(calls) == 2
    assert os.path.samestat(os.fstat(found), os.stat(folder))
    os.close(found)


def test_files_are_doubtful_after_a_start_of_the_machine(folder):
    os.mkdir(folder)
    assert build_folder.is_doubtful(folder)  # nothing is known
    build_folder.note_start(folder)
    assert not build_folder.is_doubtful(folder)
    path = os.path.join(folder, "start")
    with open(path, encoding="utf-8") as file:
        noted = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(noted[::-1])
    assert build_folder.is_doubtful(folder)


def test_what_a_kill_leaves_of_a_removal(folder, tmp_path, monkeypatch):
    os.mkdir(folder)
    (tmp_path / ".x.build/part").touch()
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    build_folder.remove(folder)
    monkeypatch.undo()
    [left] = os.listdir(tmp_path)
    assert left != ".x.build"
    (tmp_path / ".xy.build.done-1").mkdir()  # of another build
    build_folder.remove_leftovers(folder)
    assert os.listdir(tmp_path) == [".xy.build.done-1"]
