"""Requests that wait are joined, and each gets exactly its rows."""

import asyncio
import random
import threading
import types

import grpc
import numpy as np
import pytest
import tensorflow as tf

from server import batching, errors, monitoring
from tests import served


class Doubler:
    """A signature of one input that keeps what it ran, and fails at -1.

    It waits for `gate` before each run.
    """

    def __init__(self, dtype=None, is_joinable=True):
        self.name, self.inputs, self.is_joinable = "double", {"x": dtype}, is_joinable
        self.runs, self.gate = [], threading.Event()
        self.gate.set()

    def run(self, inputs):
        assert self.gate.wait(20)
        self.runs.append(inputs["x"])
        if inputs["x"].dtype != object and np.any(inputs["x"] == -1):
            raise tf.errors.InvalidArgumentError(None, None, "-1 is bad")
        return {"y": inputs["x"] + inputs["x"]}


def batcher(**changes):
    values = {
        "num_threads": 1,
        "max_batch_size": 8,
        "batch_timeout_s": 0.0,
        "max_queue": 1000,
        "monitor": monitoring.Monitor(),
    }
    return batching.Batcher(**{**values, **changes})


async def together(batcher, signature, arrays):
    """Runs requests that come while the first one runs; a list of arrays or errors."""
    signature.gate.clear()
    runs = [
        asyncio.ensure_future(batcher.run(signature, {"x": x}, len(x))) for x in arrays
    ]
    await asyncio.sleep(0.05)
    signature.gate.set()
    found = await asyncio.gather(*runs, return_exceptions=True)
    return [r["y"] if isinstance(r, dict) else r for r in found]


def sizes(signature):
    return [len(x) for x in signature.runs]


@pytest.mark.parametrize("seed", range(5))
def test_each_request_gets_its_rows_and_only_the_bad_fail(seed):
    rng, signature = random.Random(seed), Doubler()

    def rows(width):
        return np.array(
            [
                [rng.randrange(100) for _ in range(width)]
                for _ in range(rng.randint(1, 4))
            ]
        )

    arrays = [rows(rng.choice((1, 2))) for _ in range(40)]
    for place in rng.sample(range(1, 40), 3):
        arrays[place][0, 0] = -1
    found = asyncio.run(together(batcher(), signature, arrays))
    for sent, got in zip(arrays, found, strict=True):
        if np.any(sent == -1):
            assert isinstance(got, errors.RequestError) and "-1" in got.sentence
        else:
            np.testing.assert_array_equal(got, 2 * sent)
    assert max(sizes(signature)) <= 8
    assert len(signature.runs) < 40  # some did run together


def ones(*shapes):
    return [np.ones(shape, np.int64) for shape in shapes]


def test_what_runs_together():
    signature = Doubler()
    arrays = ones((1, 2), (1, 3), (2, 3), (1, 2), (3, 3), (9, 3), (3, 3))
    asyncio.run(together(batcher(), signature, arrays))
    # First whoever was alone; then in the order in which the oldest came, and no more
    # than 8 items; a larger request runs by itself.
    shapes = [x.shape for x in signature.runs]
    assert shapes == [(1, 2), (6, 3), (1, 2), (9, 3), (3, 3)]


def test_texts_of_very_different_lengths_run_apart():
    signature = Doubler()
    texts = ["a", "b" * 100, "c" * 1000, "d" * 120, "e" * 600, "", "f" * 60]
    arrays = [np.array([text], object) for text in texts]
    found = asyncio.run(together(batcher(), signature, arrays))
    assert [x.tolist() for x in found] == [[2 * text] for text in texts]
    ran = [[len(text) for text in x] for x in signature.runs]
    assert ran == [[1], [100, 120], [1000, 600], [0, 60]]


@pytest.mark.parametrize(
    ("signature", "limits"),
    [(Doubler(), {"max_batch_size": 1}), (Doubler(is_joinable=False), {})],
    ids=["off", "not_joinable"],
)
def test_nothing_is_joined_nor_waited_for(signature, limits):
    limits = {"batch_timeout_s": 10.0, **limits}

    async def run():
        sent = together(batcher(**limits), signature, ones(*[(1, 2)] * 5))
        await asyncio.wait_for(sent, 5)

    asyncio.run(run())
    assert sizes(signature) == [1] * 5


def test_inputs_of_different_numbers_of_rows_run_alone():
    signature = Doubler()
    signature.inputs = {"x": None, "other": None}
    x, other = ones((2,), (3,))

    async def run():
        waits = batcher()
        signature.gate.clear()
        runs = [
            asyncio.ensure_future(waits.run(signature, {"x": x, "other": other}, 3))
            for _ in range(3)
        ]
        await asyncio.sleep(0.05)
        signature.gate.set()
        return await asyncio.gather(*runs)

    assert [r["y"].tolist() for r in asyncio.run(run())] == [[2, 2]] * 3
    assert sizes(signature) == [2, 2, 2]


def test_outputs_with_other_rows_are_run_again_alone():
    signature = Doubler()
    signature.run = lambda inputs: {"y": inputs["x"].sum(keepdims=True)}
    found = asyncio.run(together(batcher(), signature, ones((2,), (3,), (4,))))
    assert [x.tolist() for x in found] == [[2], [3], [4]]


def test_a_request_waits_for_others_so_long_and_no_longer():
    signature = Doubler()

    async def run():
        waits = batcher(batch_timeout_s=0.5, max_batch_size=3)
        loop, started = asyncio.get_running_loop(), []

        async def one():
            await waits.run(signature, {"x": np.ones((1, 2))}, 1)
            started.append(loop.time())

        began = loop.time()
        # Three are full at once; the fourth waits its time for nobody.
        await asyncio.gather(*(one() for _ in range(4)))
        return [time - began for time in started]

    times = asyncio.run(run())
    assert sizes(signature) == [3, 1]
    assert max(times[:3]) < 0.5 <= times[3]


def test_a_full_queue_refuses_and_what_is_cancelled_leaves():
    signature = Doubler()

    async def run():
        waits = batcher(max_queue=2, max_batch_size=1)
        signature.gate.clear()

        def send(value):
            x = np.full((1,), value)
            return asyncio.ensure_future(waits.run(signature, {"x": x}, 1))

        first, second, third = send(1), send(2), send(3)
        await asyncio.sleep(0.05)
        with pytest.raises(errors.RequestError, match="2 requests wait"):
            await send(4)
        second.cancel()
        await asyncio.sleep(0)
        fifth = send(5)
        await asyncio.sleep(0.05)
        signature.gate.set()
        await asyncio.gather(first, third, fifth)

    asyncio.run(asyncio.wait_for(run(), 20))
    assert [x.tolist() for x in signature.runs] == [[1], [3], [5]]


def refused(found):
    """Whether a result is that the server stops."""
    return isinstance(found, errors.RequestError) and (
        (found.code, found.sentence)
        == (grpc.StatusCode.UNAVAILABLE, "the server is stopping; try again later")
    )


@pytest.mark.parametrize("num_threads", [1, 2])
def test_who_waits_when_the_batcher_is_closed_is_told(num_threads):
    signature = Doubler(is_joinable=False)
    signature.gate.clear()
    monitor = monitoring.Monitor()

    async def run():
        waits = batcher(num_threads=num_threads, monitor=monitor)
        sent = [
            asyncio.ensure_future(waits.run(signature, {"x": np.array([value])}, 1))
            for value in range(4)
        ]
        await asyncio.sleep(0.05)
        sent[3].cancel()  # It is out of the queue only when its task has its turn.
        assert not waits.close()
        found = await asyncio.gather(*sent[num_threads:3], return_exceptions=True)
        assert found and all(map(refused, found))
        with pytest.raises(errors.RequestError) as error:
            await waits.run(signature, {"x": np.array([9])}, 1)
        assert refused(error.value)
        signature.gate.set()
        found = await asyncio.gather(*sent[:num_threads])
        await asyncio.sleep(0)
        assert not waits.close()  # Some were refused.
        return [outputs["y"].tolist() for outputs in found]

    problems = []

    async def watched():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: problems.append(context))
        return await asyncio.wait_for(run(), 20)

    assert asyncio.run(watched()) == [[2 * value] for value in range(num_threads)]
    assert sorted(x.tolist() for x in signature.runs) == [
        [value] for value in range(num_threads)
    ]
    assert problems == []
    assert b"serving_waiting_requests 0.0" in monitor.text()


def test_who_waits_for_others_when_the_batcher_is_closed_is_told():
    signature = Doubler()

    async def run():
        waits = batcher(batch_timeout_s=10.0)
        sent = asyncio.ensure_future(waits.run(signature, {"x": np.ones(1)}, 1))
        await asyncio.sleep(0.05)
        waits.close()
        return await asyncio.gather(sent, return_exceptions=True)

    [found] = asyncio.run(asyncio.wait_for(run(), 5))
    assert refused(found) and signature.runs == []


def test_a_batcher_that_has_answered_all_closes_well():
    before, waits = set(threading.enumerate()), batcher()

    async def run():
        await waits.run(Doubler(), {"x": np.ones(1)}, 1)
        await asyncio.sleep(0)
        return waits.close(), waits.close()

    assert asyncio.run(run()) == (True, True)
    served.wait_for(lambda: set(threading.enumerate()) <= before)  # No thread is left.


def test_several_threads_run_at_the_same_time():
    signature = types.SimpleNamespace(inputs={"x": None}, is_joinable=False)
    barrier = threading.Barrier(3, timeout=20)

    def run(inputs):
        barrier.wait()
        return {"y": inputs["x"]}

    signature.run = run

    async def send():
        waits = batcher(num_threads=3)
        await asyncio.gather(
            *(waits.run(signature, {"x": np.ones(1)}, 1) for _ in range(6))
        )

    asyncio.run(send())


def test_a_failure_of_the_model_is_no_fault_of_the_client():
    signature = Doubler()
    signature.run = None  # cannot be called
    with pytest.raises(errors.RequestError, match="the model failed") as error:
        asyncio.run(batcher().run(signature, {"x": np.ones(1)}, 1))
    assert error.value.code.name == "INTERNAL"
