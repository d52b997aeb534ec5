"""Versions come and go as their folders do."""

import asyncio
import contextlib
import gc
import os
import shutil
import weakref

import numpy as np
import pytest

from server import errors, repository
from tests import served


def test_flags():
    assert repository.parse(["a=x/y", "b.c-d_1=k=v"]) == {"a": "x/y", "b.c-d_1": "k=v"}
    for flag in ("a", "a=", "=x", "../a=x", "a/b=x", "a:b=x", "ä=x"):
        with pytest.raises(ValueError, match="must be NAME=FOLDER"):
            repository.parse([flag])
    with pytest.raises(ValueError, match="two models are called a: x and y"):
        repository.parse(["a=x", "a=y"])


def saved_model(path):
    path.mkdir(parents=True)
    (path / "saved_model.pb").write_bytes(b"")


def test_which_folders_are_versions(tmp_path):
    for name in ("1", "007", "12", "v3", "4.tmp", "-5", "9" * 19):
        saved_model(tmp_path / "model" / name)
    (tmp_path / "model/20").mkdir()
    found = repository.find_versions(str(tmp_path / "model"))
    assert {number: os.path.basename(path) for number, path in found.items()} == {
        1: "1",
        7: "007",
        12: "12",
    }
    saved_model(tmp_path / "alone")
    alone = str(tmp_path / "alone")
    assert repository.find_versions(alone) == {1: alone}
    twelve = str(tmp_path / "model/12")
    assert repository.find_versions(twelve) == {12: twelve}


def test_folders_without_a_model(tmp_path):
    with pytest.raises(OSError, match="nothing"):
        repository.Repository({"a": str(tmp_path / "nothing")})
    with pytest.raises(ValueError, match="has no SavedModel for --model=a"):
        repository.Repository({"a": str(tmp_path)})
    saved_model(tmp_path / "3")
    with pytest.raises(ValueError, match="3 cannot be loaded as a SavedModel"):
        repository.Repository({"a": str(tmp_path)})


def test_if_the_highest_is_damaged_the_next_is_served(toy, tmp_path):
    add(tmp_path, 2, toy / "1")
    saved_model(tmp_path / "1")
    saved_model(tmp_path / "3")
    models = repository.Repository({"a": str(tmp_path)})
    assert models.find("a").number == 2
    assert {n: state for n, (state, _) in models.states("a").items()} == {
        3: "END",
        2: "AVAILABLE",
    }


def test_the_highest_is_found(toy):
    models = repository.Repository({"toy": str(toy)})
    assert models.find("toy").number == models.find("toy", 1).number == 1
    for arguments in (("other",), ("toy", 2), ("", None), ("../toy",)):
        with pytest.raises(errors.RequestError) as error:
            models.find(*arguments)
        assert error.value.code.name == "NOT_FOUND"
    assert models.states("toy") == {1: ("AVAILABLE", "")}


def add(models, number, source):
    """Adds a version as the exporter does."""
    shutil.copytree(source, models / f"{number}.tmp")
    os.rename(models / f"{number}.tmp", models / str(number))


def ask(version):
    inputs = {"ids": np.array([[1]], np.int32), "is_negative": np.array([False])}
    return version.signatures["look_up"].run(inputs)["sum"].tolist()


def test_versions_that_appear_break_and_go(toy, tmp_path):
    second = tmp_path / "second"
    served.export_toy(second, shift=1)
    folder = tmp_path / "toy"
    add(folder, 1, toy / "1")
    models = repository.Repository({"toy": str(folder)})

    async def reach(condition):
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.01)

    def state(number):
        return models.states("toy").get(number, ("",))[0]

    async def run():
        watch = asyncio.create_task(models.watch(0.01))
        first = models.find("toy")
        with first.in_use():
            add(folder, 2, second)
            await reach(lambda: state(2) == "AVAILABLE")
            assert ask(models.find("toy")) == [11]
            # A request is under way: it still gets its answer.
            await asyncio.sleep(0.1)
            assert state(1) == "UNLOADING"
            assert ask(first) == [10]
        gone = weakref.ref(first)
        del first
        await reach(lambda: state(1) == "END")
        gc.collect()
        assert gone() is None
        # One that is damaged, then mended.
        shutil.copytree(toy / "1", folder / "3", ignore=lambda *_: ["variables"])
        (folder / "3/saved_model.pb").write_bytes(b"damaged")
        await reach(lambda: state(3) == "END")
        assert "cannot be loaded" in models.states("toy", 3)[3][1]
        assert models.find("toy").number == 2
        shutil.rmtree(folder / "3")
        await asyncio.sleep(0.05)
        assert models.find("toy").number == 2
        add(folder, 3, toy / "1")
        await reach(lambda: state(3) == "AVAILABLE")
        # Back to an older one; and the folder may even be away.
        shutil.rmtree(folder / "3")
        await reach(lambda: models.find("toy").number == 2)
        shutil.rmtree(folder)
        await asyncio.sleep(0.05)
        assert ask(models.find("toy")) == [11]
        assert not watch.done()
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch

    asyncio.run(run())
