"""What is large goes to a thread, and what is not stays."""

import asyncio
import threading

import numpy as np
import pytest

from server import aside


def call(**sizes):
    """Whether a call of these sizes runs in the thread of the event loop."""

    def work(number):
        assert number == 3
        return threading.current_thread()

    return asyncio.run(aside.call(work, 3, **sizes)) is threading.current_thread()


def test_what_takes_a_moment_stays():
    assert call() and call(num_bytes=1000, num_values=100)


def test_what_takes_longer_goes():
    assert not call(num_bytes=1 << 20)
    assert not call(num_values=1 << 15)


def test_errors_come_back():
    with pytest.raises(ZeroDivisionError):
        asyncio.run(aside.call(lambda: 1 / 0, num_bytes=1 << 20))


def test_the_values_of_arrays():
    assert aside.size({"a": np.zeros([2, 3]), "b": np.array([b"x"], object)}) == 7
