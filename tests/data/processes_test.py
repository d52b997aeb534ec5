"""Calls in several processes; killed ones are tested with the script that uses them."""

import concurrent.futures
import os
import pathlib
import signal
import time

import pytest

from data import processes


class Worker:
    """Remembers its calls."""

    def __init__(self):
        self.calls = 0

    def double(self, number):
        self.calls += 1
        return 2 * number, self.calls, os.getpid()

    def touch(self, path):
        pathlib.Path(path).touch()

    def fail(self, number):
        raise ValueError(f"{number} is wrong")


@pytest.mark.parametrize("count", [1, 2])
def test_results_come_in_order(count):
    with processes.processes(Worker, count) as run:
        results = list(
            run("double", ((i,) for i in range(20)), 20, "doubling", "number")
        )
        again = list(run("double", [(7,)], 1, "doubling", "number"))
    assert [double for double, _, _ in results] == list(range(0, 40, 2))
    pids = {pid for _, _, pid in results}
    assert (os.getpid() in pids) == (count == 1)
    assert len(pids) <= count
    # A worker stays from call to call.
    assert sum(max(n for _, n, p in results if p == pid) for pid in pids) == 20
    assert again[0][1] > 1


@pytest.mark.parametrize("count", [1, 2])
def test_calls_without_a_number_are_all_made_before_the_first_result(count):
    made = []

    def calls():
        for number in range(100):
            made.append(number)
            yield (number,)
        if fails:
            raise ValueError("the last call is wrong")

    fails = False
    with processes.processes(Worker, count) as run:
        results = run("double", calls(), None, "doubling", "number")
        assert next(results)[0] == 0
        assert made == list(range(100))
        assert [r[0] for r in results] == list(range(2, 200, 2))
        fails = True
        with pytest.raises(ValueError, match="last call"):
            next(run("double", calls(), None, "doubling", "number"))


def test_the_first_calls_are_done_while_others_are_made(tmp_path):
    done = tmp_path / "done"

    def calls():
        yield (str(done),)
        for _ in range(1000):
            if done.exists():
                yield (str(tmp_path / "more"),)
                return
            time.sleep(0.01)

    with processes.processes(Worker, 2) as run:
        assert list(run("touch", calls(), None, "touching", "file")) == [None, None]


def test_an_error_is_told_while_other_calls_are_made():
    made = []

    def calls():
        for number in range(10_000):
            made.append(number)
            yield (number,)
            time.sleep(0.01)

    with (
        pytest.raises(ValueError, match="0 is wrong"),
        processes.processes(Worker, 2) as run,
    ):
        list(run("fail", calls(), None, "failing", "number"))
    assert len(made) < 1000


@pytest.mark.parametrize("count", [1, 2])
def test_errors_come_through(count):
    with (
        pytest.raises(ValueError, match="3 is wrong"),
        processes.processes(Worker, count) as run,
    ):
        list(run("fail", [(3,)], 1, "failing", "number"))


def die():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("pause", [0, 0.5], ids=["later", "before all are started"])
def test_a_process_that_is_killed_at_its_start_is_told(pause, monkeypatch):
    submit = concurrent.futures.ProcessPoolExecutor.submit

    def submit_slowly(pool, *args):
        future = submit(pool, *args)
        time.sleep(pause)
        return future

    monkeypatch.setattr(concurrent.futures.ProcessPoolExecutor, "submit", submit_slowly)
    with (
        pytest.raises(ChildProcessError, match="a worker was killed"),
        processes.processes(die, 2) as run,
    ):
        list(run("double", [(7,)], 1, "doubling", "number"))
