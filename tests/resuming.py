"""Kills a training script at random moments and compares what it ends with."""

import random
import signal
import subprocess
import time

import numpy as np

from modeling import checkpoint
from tests import scripts

KILLS = 3


def check(script, flags, folder):
    """Runs `script` whole and with kills; asserts bitwise equal checkpoints.

    Args:
        script: name of the script.
        flags: dict, without output_dir.
        folder: pathlib.Path for the outputs; `folder / "whole"` is the unbroken run.
    """
    whole, broken = folder / "whole", folder / "broken"
    scripts.succeed(script, **flags, output_dir=whole)
    lines = len((whole / "train_log.jsonl").read_text().splitlines())
    rng = random.Random(str(folder))
    for moment in sorted(rng.sample(range(1, lines), KILLS)):
        _run_and_kill(
            scripts.command(script, **flags, output_dir=broken), broken, moment
        )
    scripts.succeed(script, **flags, output_dir=broken)
    expected = checkpoint.read(whole, with_slots=True)
    values = checkpoint.read(broken, with_slots=True)
    assert set(values) == set(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(values[name], value, err_msg=name)


def _run_and_kill(command, output_dir, moment):
    """SIGKILLs the run when its log has `moment` lines or more."""
    log = output_dir / "train_log.jsonl"
    start = len(log.read_text().splitlines()) if log.exists() else 0
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            done = len(log.read_text().splitlines()) if log.exists() else 0
            if done > start and done >= moment:
                break
            time.sleep(0.002)
        assert process.poll() is None, "ended before it was killed"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
