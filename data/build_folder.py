"""The folder of a build: who works in it, and what kills and power cuts leave there."""

import contextlib
import fcntl
import glob
import os
import shutil
import time

from data import filesystem

_DONE = ".done-"  # of the name of a folder that is being removed
_START = "start"  # of the machine, when the build was begun
_SECONDS_TO_END = 2  # of a process whose parent was killed; more than enough


def lock(folder: str) -> int:
    """Makes the folder and locks it.

    Returns:
        the file descriptor that holds the lock, also in processes that inherit it.
    Raises:
        BlockingIOError: another process holds it.
    """
    end = time.monotonic() + _SECONDS_TO_END
    while True:
        os.makedirs(folder, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another build may have ended meanwhile, and taken its folder away.
            if os.path.samestat(os.fstat(descriptor), os.stat(folder)):
                return descriptor
        except FileNotFoundError:
            pass
        except BlockingIOError:
            # The workers of a killed build hold the lock, too, for a moment.
            if time.monotonic() > end:
                os.close(descriptor)
                raise
        os.close(descriptor)
        time.sleep(0.05)


def note_start(folder: str) -> None:
    """Notes in the folder which start of the machine it is from."""
    filesystem.write_text(f"{folder}/{_START}", _this_start())


def is_doubtful(folder: str) -> bool:
    """Whether the machine was started since: files may not have reached the disk."""
    with contextlib.suppress(FileNotFoundError):
        return _read(f"{folder}/{_START}") != _this_start()
    return True


def _this_start() -> str:
    with contextlib.suppress(FileNotFoundError):
        return _read("/proc/sys/kernel/random/boot_id")
    return f"unknown, at {time.time()}"  # not Linux


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def remove(folder: str) -> None:
    """Removes it, or, if it is killed, leaves what `remove_leftovers` removes."""
    # In one step, or a kill might leave some that look like a build to go on with.
    done = f"{folder}{_DONE}{os.getpid()}"
    os.rename(folder, done)
    shutil.rmtree(done, ignore_errors=True)  # another build may be at it, too


def remove_leftovers(folder: str) -> None:
    """Removes what a killed `remove` left beside the folder."""
    for left in glob.glob(f"{glob.escape(folder)}{_DONE}*"):
        shutil.rmtree(left, ignore_errors=True)
