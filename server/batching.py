"""Runs models in threads, and joins requests that wait into one run.

Everything but `_run` is of the event loop's thread.
"""

import asyncio
import dataclasses
from concurrent import futures

import numpy as np

from server import errors

_SHORT = 64  # bytes; all shorter texts may run together


@dataclasses.dataclass(eq=False)
class _Waiting:
    """A request: what to run, when it came, and whoever waits for its outputs."""

    signature: object
    inputs: dict
    num_items: int
    arrival: float
    outputs: asyncio.Future


class Batcher:
    """A queue before a few threads.

    A request starts at once if a thread is free and nothing could join it. Those that
    wait join if they are for the same signature, have rows of equal shapes and, so that
    short ones are not padded much, texts of roughly equal lengths (powers of 2).

    Args:
        num_threads: int, runs at the same time.
        max_batch_size: int, items of joined requests; 1 joins none. A request of more
            items runs by itself.
        batch_timeout_s: float, how long a request waits for others to join it.
        max_queue: int, requests that may wait.
        monitor: monitoring.Monitor.
    """

    def __init__(
        self, num_threads, max_batch_size, batch_timeout_s, max_queue, monitor
    ):
        self._pool = futures.ThreadPoolExecutor(num_threads, "model")
        self._num_free = num_threads
        self._max_batch_size, self._max_queue = max_batch_size, max_queue
        self._batch_timeout_s = batch_timeout_s
        self._groups = {}  # key → list of _Waiting, oldest first
        self._num_waiting, self._timer = 0, None
        self._runs = set()  # The event loop itself keeps no task alive.
        self._is_closed = self._has_refused = False
        self._monitor = monitor

    async def run(self, signature, inputs, num_items):
        """Runs a request, perhaps with others.

        Args:
            signature: signatures.Signature.
            inputs: dict of name → np.ndarray that the signature has checked.
            num_items: int.
        Returns:
            dict of name → np.ndarray.
        Raises:
            errors.RequestError: the queue is full, the model refuses or fails, or
                `close` was called before the run.
        """
        if self._is_closed:
            raise self._refusal()
        if self._num_waiting >= self._max_queue:
            raise errors.busy(
                f"{self._num_waiting} requests wait already; try again later"
            )
        loop = asyncio.get_running_loop()
        request = _Waiting(
            signature, inputs, num_items, loop.time(), loop.create_future()
        )
        key = self._key(request)
        self._groups.setdefault(key, []).append(request)
        self._count(1)
        self._start()
        try:
            return await request.outputs
        finally:
            if request in self._groups.get(key, ()):  # The client went, or its time.
                self._take(key, [request])

    def close(self):
        """Starts no more runs, and refuses who waits; what runs goes on.

        Returns:
            bool, whether nothing runs and, now or before, nobody was refused.
        """
        self._is_closed = True
        for key, requests in list(self._groups.items()):
            self._take(key, requests)
            for request in requests:
                if not request.outputs.done():  # Somebody waits still.
                    request.outputs.set_exception(self._refusal())
        self._pool.shutdown(wait=False)
        return not (self._runs or self._has_refused)

    def _refusal(self):
        self._has_refused = True
        return errors.stopping()

    def _key(self, request):
        """Requests of equal keys may join."""
        arrays = [request.inputs[name] for name in request.signature.inputs]
        if (
            self._max_batch_size == 1
            or not request.signature.is_joinable
            or len({len(array) for array in arrays}) > 1
        ):
            return request
        lengths = [
            (max(map(len, array.flat)) // _SHORT).bit_length()
            for array in arrays
            if array.dtype == object and array.size
        ]
        shapes = [array.shape[1:] for array in arrays]
        return request.signature, tuple(shapes), tuple(lengths)

    def _due(self, key):
        """When a group should start: when it is full, or its oldest waited enough."""
        group = self._groups[key]
        is_full = sum(r.num_items for r in group) >= self._max_batch_size
        is_single = isinstance(key, _Waiting)
        wait = 0.0 if is_full or is_single else self._batch_timeout_s
        return group[0].arrival + wait

    def _start(self):
        """Starts what is due, while threads are free."""
        loop = asyncio.get_running_loop()
        if self._timer:
            self._timer.cancel()
            self._timer = None
        while self._num_free and self._groups:
            key = min(self._groups, key=self._due)
            if self._due(key) > loop.time():
                self._timer = loop.call_at(self._due(key), self._start)
                return
            requests, num_items = [], 0
            for request in self._groups[key]:
                num_items += request.num_items
                if requests and num_items > self._max_batch_size:
                    break
                requests.append(request)
            self._take(key, requests)
            self._num_free -= 1
            run = loop.create_task(self._execute(requests))
            self._runs.add(run)
            run.add_done_callback(self._runs.discard)

    async def _execute(self, requests):
        loop = asyncio.get_running_loop()
        try:
            self._monitor.batch_items.observe(sum(r.num_items for r in requests))
            results = await loop.run_in_executor(self._pool, _run, requests)
        finally:
            self._num_free += 1
        for request, result in zip(requests, results, strict=True):
            if request.outputs.done():  # Nobody waits any more.
                continue
            if isinstance(result, errors.RequestError):
                request.outputs.set_exception(result)
            else:
                request.outputs.set_result(result)
        self._start()

    def _take(self, key, requests):
        """Removes requests from the queue."""
        self._groups[key] = [r for r in self._groups[key] if r not in requests]
        if not self._groups[key]:
            del self._groups[key]
        self._count(-len(requests))

    def _count(self, change):
        self._num_waiting += change
        self._monitor.waiting.set(self._num_waiting)


def _run(requests):
    """Runs requests of one key.

    Returns:
        list of dict or errors.RequestError, one for each. If they fail together, each
        runs by itself, so that it fails for its own inputs only.
    """
    if len(requests) > 1:
        try:
            return _run_joined(requests)
        except Exception:
            return [_run_alone(request) for request in requests]
    return [_run_alone(requests[0])]


def _run_alone(request):
    try:
        return request.signature.run(request.inputs)
    except Exception as error:
        return errors.of_model(error)


def _run_joined(requests):
    signature = requests[0].signature
    outputs = signature.run(
        {
            name: np.concatenate([request.inputs[name] for request in requests])
            for name in signature.inputs
        }
    )
    *ends, total = np.cumsum([request.num_items for request in requests])
    if any(len(array) != total for array in outputs.values()):
        raise ValueError("the outputs have other rows than the inputs")
    parts = {name: np.split(array, ends) for name, array in outputs.items()}
    return [
        {name: parts[name][place] for name in parts} for place in range(len(requests))
    ]
