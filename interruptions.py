"""Notices that a process is asked to end, so that it can finish what it is doing."""

import contextlib
import signal
import threading

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Interruption:
    """What came of signals.

    Attributes:
        signal: signal.Signals, or 0 as long as none has come.
    """

    def __init__(self):
        self.signal = 0

    @property
    def status(self):
        """int, the exit status by which shells know the signal.

        Without one it is that of SIGTERM: another worker was asked to end.
        """
        return 128 + (self.signal or signal.SIGTERM)


@contextlib.contextmanager
def noticed():
    """Keeps the first SIGTERM or SIGINT within the `with` block from ending it.

    A second one acts as ever. Python hands signals to the main thread only: in others
    nothing is noticed.

    Yields:
        Interruption.
    """
    interruption, before = Interruption(), {}

    def note(number, _):
        interruption.signal = signal.Signals(number)
        restore()

    def restore():
        for number, handler in before.items():
            signal.signal(number, handler)

    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            before[number] = signal.signal(number, note)
    try:
        yield interruption
    finally:
        restore()
