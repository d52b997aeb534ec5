"""Scripts that other scripts run, in processes of their own and safe from kills."""

import fcntl
import os
import shlex
import subprocess
import time

from absl import logging


def wait_for_folder(output_dir):
    """Makes a folder this process's, as soon as no other is at work in it.

    Args:
        output_dir: str, made if it is not there.
    Returns:
        an open file; processes that it is passed to hold the folder, too, so that a run
        that outlives a killed script is waited for.
    """
    os.makedirs(output_dir, exist_ok=True)
    lock = open(os.path.join(output_dir, ".runs_lock"), "w")  # noqa: SIM115
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        logging.info(
            "waiting for the end of another process, or of a run that a killed one has "
            "left, in %s",
            output_dir,
        )
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def run(arguments, log_path, lock, show=None, environment=None):
    """Runs a command to its end; what it shows is added to a log.

    Args:
        arguments: list of str.
        log_path: str, in a folder that is there.
        lock: what `wait_for_folder` returned.
        show: function of no arguments, called now and then while it runs.
        environment: dict of str, added to that of this process.
    Returns:
        (int, the exit status; float, the CPU seconds it took).
    """
    with open(log_path, "a", encoding="utf-8") as log:
        log.write(f"$ {shlex.join(arguments)}\n")
        log.flush()
        process = subprocess.Popen(
            arguments,
            stdout=log,
            stderr=log,
            pass_fds=[lock.fileno()],
            env={**os.environ, **(environment or {})},
        )
        try:
            while process.returncode is None:
                time.sleep(0.2)
                # Not `poll`, which does not tell what this one process took.
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    process.returncode = os.waitstatus_to_exitcode(status)
                elif show:
                    show()
        finally:
            if process.returncode is None:
                process.terminate()
                process.wait()
    return process.returncode, usage.ru_utime + usage.ru_stime


def last_error(log_path):
    """The last line of a log that speaks of an error, "" if none does."""
    with open(log_path, encoding="utf-8", errors="replace") as log:
        return next((x for x in reversed(log.read().splitlines()) if "rror" in x), "")
