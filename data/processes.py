"""Calls methods in several processes, with progress."""

import collections
import concurrent.futures
import contextlib
import ctypes
import itertools
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import tqdm

_CALLS_AHEAD = 8  # of each process
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


Run = Callable[..., Iterator[Any]]  # see `processes`


@contextlib.contextmanager
def processes(make_worker: Callable[[], Any], count: int) -> Iterator[Run]:
    """Gives a function that has methods of a worker called and yields the results.

    The function takes the name of the method, the arguments of each call, the number of
    calls, and two words for the progress. Results come in the order of the calls. Few
    calls are prepared before their time; all are if their number is None, to learn it,
    while other processes do the first ones. To be used before there are threads, and
    before TensorFlow is loaded: a fork has what they held, without them.

    Args:
        make_worker: called once in every process; can be pickled.
        count: processes; if 1, this one does the work.

    Raises:
        ChildProcessError: one was killed.
    """
    if count == 1:
        _keep_freed_memory()
        yield _run_here(make_worker())
        return
    # On Linux they are forks, which are there at once and share what is loaded.
    pool = concurrent.futures.ProcessPoolExecutor(
        count, initializer=_start, initargs=(make_worker,)
    )
    try:
        for _ in range(count):  # elsewhere they start while calls are prepared
            pool.submit(os.getpid)
        yield _run_in(pool, count)
    except concurrent.futures.process.BrokenProcessPool:
        raise ChildProcessError(
            "a worker was killed, perhaps for want of memory; give fewer --num_workers "
            "and repeat the command: it goes on where it stopped"
        ) from None
    except BaseException:
        # What they are at is not needed any more, and a second interruption would find
        # us waiting for them.
        for child in multiprocessing.active_children():
            child.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _run_here(worker: Any) -> Run:
    """Calls this worker."""

    def run(method, calls, total, title, unit):
        if total is None:
            calls = list(calls)
            total = len(calls)
        for call in tqdm.tqdm(calls, title, total, unit=f" {unit}s", delay=1):
            yield getattr(worker, method)(*call)

    return run


def _run_in(pool: concurrent.futures.ProcessPoolExecutor, count: int) -> Run:
    """Calls the workers of a pool of so many processes."""

    def run(method, calls, total, title, unit):
        futures = (pool.submit(_call, method, call) for call in calls)
        if total is None:
            futures = list(_unless_one_fails(futures))
            total = len(futures)
        futures, running = iter(futures), collections.deque()
        with tqdm.tqdm(None, title, total, unit=f" {unit}s", delay=1) as bar:
            while True:
                ahead = _CALLS_AHEAD * count - len(running)
                for future in itertools.islice(futures, ahead):
                    future.add_done_callback(lambda _: bar.update())
                    running.append(future)
                if not running:
                    return
                yield running.popleft().result()

    return run


def _unless_one_fails(
    futures: Iterator[concurrent.futures.Future],
) -> Iterator[concurrent.futures.Future]:
    """The same; raises what one of them raised before the next is made."""
    unknown = collections.deque()
    for future in futures:
        yield future
        unknown.append(future)
        while unknown and unknown[0].done():
            unknown.popleft().result()


_worker = None  # of this process


def _start(make_worker: Callable[[], Any]) -> None:
    """Prepares a process."""
    global _worker  # noqa: PLW0603
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent deals with it
    _keep_freed_memory()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker = make_worker()


def _keep_freed_memory() -> None:
    """Has the C library keep what large arrays leave free for the next ones.

    To give it back and get it again page by page takes a third of the time.
    """
    with contextlib.suppress(AttributeError, OSError):  # not the GNU C library
        library = ctypes.CDLL(None)
        for option in (_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD):
            library.mallopt(option, 2**25)


def _end_with_parent() -> None:
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)


def _call(method: str, arguments: tuple) -> Any:
    return getattr(_worker, method)(*arguments)
