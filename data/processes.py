"""Calls methods in several processes, with progress."""

import concurrent.futures
import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import tqdm


@contextlib.contextmanager
def processes(make_worker: Callable[[], Any], count: int) -> Iterator[Callable]:
    """Gives a function that has methods of a worker called and yields the results.

    The function takes the name of the method, the arguments of each call, and two words
    for the progress. Results come in the order of the calls.

    Args:
        make_worker: called once in every process; can be pickled.
        count: processes; if 1, this one does the work.

    Raises:
        ChildProcessError: one was killed.
    """
    if count == 1:
        worker = make_worker()

        def run(method, calls, title, unit):
            for call in tqdm.tqdm(calls, desc=title, unit=f" {unit}s", delay=1):
                yield getattr(worker, method)(*call)

        yield run
        return
    # Fresh processes, for forks would inherit the parent's locks and threads.
    pool = concurrent.futures.ProcessPoolExecutor(
        count, multiprocessing.get_context("spawn"), _start, (make_worker,)
    )

    def run(method, calls, title, unit):
        futures = [pool.submit(_call, method, call) for call in calls]
        with tqdm.tqdm(total=len(calls), desc=title, unit=f" {unit}s", delay=1) as bar:
            for future in futures:
                future.add_done_callback(lambda _: bar.update())
            for future in futures:
                yield future.result()

    try:
        yield run
    except concurrent.futures.process.BrokenProcessPool:
        raise ChildProcessError(
            "a worker was killed, perhaps for want of memory; give fewer --num_workers "
            "and repeat the command: it goes on where it stopped"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


_worker = None  # of this process


def _start(make_worker: Callable[[], Any]) -> None:
    """Prepares a process."""
    global _worker  # noqa: PLW0603
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent deals with it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker = make_worker()


def _end_with_parent() -> None:
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)


def _call(method: str, arguments: tuple) -> Any:
    return getattr(_worker, method)(*arguments)
