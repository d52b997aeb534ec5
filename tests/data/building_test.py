"""Beginning a build, going on with it, and what differs between two."""

import fcntl
import os
import pathlib
import shutil

import numpy as np
import pytest

from data import build_folder, build_steps, building, filesystem


@pytest.fixture
def job(tmp_path):
    outputs = tuple(str(tmp_path / name) for name in "ab")
    return build_steps.Job(str(tmp_path / ".build"), None, None, 1, outputs)


def test_a_finished_build_is_published_whatever_was_killed(job):
    result = {"counts": {}, "outputs": []}
    with building.Build(job, {"x": 1}) as build:
        for index in range(2):
            with open(job.shard(index), "w", encoding="utf-8") as file:
                file.write(f"shard {index}")
        filesystem.write_json(f"{job.folder}/result.json", result)
        assert build.run([], 1, None) == result
        os.replace(job.shard(0), job.outputs[0])  # and here it was killed
    with building.Build(job, {"x": 1}) as build:
        assert build.run([], 1, None) == result
        assert build.publish() == result
        contents = [pathlib.Path(path).read_text() for path in job.outputs]
        assert contents == ["shard 0", "shard 1"]
        os.remove(job.outputs[1])
        with pytest.raises(ValueError, match="b was built and is gone"):
            build.publish()
    assert not os.path.exists(job.folder)


def test_another_manifest_is_refused_or_begins_anew(job):
    with building.Build(job, {"--seed": 1}):
        open(job.shard(0), "w").close()
    with pytest.raises(ValueError, match="begun with --seed 1, not 2; .* --overwrite"):
        building.Build(job, {"--seed": 2})
    with building.Build(job, {"--seed": 1}):
        assert os.path.exists(job.shard(0))
    with building.Build(job, {"--seed": 2}, overwrite=True):
        assert not os.path.exists(job.shard(0))


def test_a_build_at_work_is_not_disturbed(job):
    with (
        building.Build(job, {}),
        pytest.raises(ValueError, match="another process is building .*a;"),
    ):
        building.Build(job, {"other": 1}, overwrite=True)
    with building.Build(job, {}):
        pass


def test_a_folder_that_goes_away_is_not_locked(job, monkeypatch):
    """Another build ends, and a third begins, between `open` and `flock`."""
    flock, others = fcntl.flock, []

    def slow_flock(*arguments):
        if not others:
            others.append(None)
            shutil.rmtree(job.folder)
            others[0] = building.Build(job, {"--seed": 3})
        return flock(*arguments)

    monkeypatch.setattr(fcntl, "flock", slow_flock)
    with pytest.raises(ValueError, match="another process is building"):
        building.Build(job, {"--seed": 3})
    with others[0]:
        assert filesystem.read_json(f"{job.folder}/manifest.json") == {"--seed": 3}
    with building.Build(job, {"--seed": 3}) as build:
        assert build.goes_on


def remains(job, *names):
    for name in names:
        pathlib.Path(job.folder, name).write_text("{}")


@pytest.mark.parametrize("killed_after", range(4))
def test_a_kill_while_an_old_build_is_cleared(job, killed_after, monkeypatch):
    """Nothing of the old settings may look as if it were of the new ones."""
    with building.Build(job, {"--seed": 1}):
        remains(
            job, "chunk-000000.npz", "part-0000-000000.tfrecord.json", "shard-00000"
        )
    remove, left = os.remove, [killed_after]

    def remove_some(path):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        remove(path)

    monkeypatch.setattr(os, "remove", remove_some)
    with pytest.raises(KeyboardInterrupt):
        building.Build(job, {"--seed": 2}, overwrite=True)
    monkeypatch.undo()
    with building.Build(job, {"--seed": 2}, overwrite=True):
        assert sorted(os.listdir(job.folder)) == ["manifest.json", "start"]
        assert filesystem.read_json(f"{job.folder}/manifest.json") == {"--seed": 2}


def test_files_without_a_manifest_are_of_nobody(job):
    os.makedirs(job.folder)
    remains(job, "result.json", "chunk-000000.npz")
    with building.Build(job, {"--seed": 2}):
        assert sorted(os.listdir(job.folder)) == ["manifest.json", "start"]


def test_a_kill_while_all_is_thrown_away(job, monkeypatch):
    with building.Build(job, {"--seed": 1}) as build:
        remains(job, "result.json", "part-0000-000000.tfrecord.json")
        monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
        build.discard()
    monkeypatch.undo()
    assert not os.path.exists(job.folder)
    build_folder.remove_leftovers(job.folder)
    with building.Build(job, {"--seed": 1}):
        assert sorted(os.listdir(job.folder)) == ["manifest.json", "start"]
    assert os.listdir(os.path.dirname(job.folder)) == [".build"]


def test_whether_a_build_is_being_published(job):
    assert not building.is_publishing(job.folder, {"--seed": 1})
    with building.Build(job, {"--seed": 1}):
        assert not building.is_publishing(job.folder, {"--seed": 1})
        remains(job, "result.json")
        assert building.is_publishing(job.folder, {"--seed": 1})
        assert not building.is_publishing(job.folder, {"--seed": 2})


@pytest.mark.parametrize("num_shards", [1, 2, 7, 40])
def test_shares_are_equal(num_shards):
    rng = np.random.default_rng(num_shards)
    given = np.zeros(num_shards, np.int64)
    for count in rng.integers(0, 50, 200).tolist():
        shares = building.share(count, given)
        assert shares.sum() == count
        assert shares.min() >= 0
        given += shares
        assert given.max() - given.min() <= 1
