"""Beginning a build, going on with it, and what differs between two."""

import os
import pathlib

import pytest

from data import build_steps, building, filesystem


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


def entry(path, size=1):
    return {"path": path, "bytes": size}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ({"--a": 1, "--b": 2}, {"--a": 1, "--b": 3}, "--b 2, not 3"),
        ({"--a": 1}, {"--a": 1, "--b": 3}, "--b None, not 3"),
        (
            {"inputs": [entry("x")]},
            {"inputs": [entry("x", 2)]},
            "another x, or without",
        ),
        ({"inputs": []}, {"inputs": [entry("x")]}, "another x, or without"),
        ({"inputs": [entry("x"), entry("y")]}, {"inputs": [entry("x")]}, "y too"),
    ],
)
def test_differences_are_told(old, new, words):
    assert building.difference(old, new).startswith(words)
