"""Kills a training script at random moments and compares what it ends with."""

import json
import os
import random
import re
import signal
import subprocess
import time

import numpy as np

from modeling import checkpoint
from tests import scripts


def check(script, flags, folder):
    """Runs `script` whole and with three kills; asserts bitwise equal checkpoints.

    Two kills come some time after a line of the log, the third while a checkpoint is
    being written. Every restart must go on from a checkpoint, not from the start.

    Args:
        script: name of the script.
        flags: dict, without output_dir.
        folder: pathlib.Path for the outputs; `folder / "whole"` is the unbroken run.
    """
    whole, broken = folder / "whole", folder / "broken"
    scripts.succeed(script, **flags, output_dir=whole)
    steps = [json.loads(x)["step"] for x in read_log(whole)]
    rng = random.Random(script)
    # Not too late: there must be saves left for the third to fall into.
    candidates = steps[len(steps) // 5 : len(steps) * 3 // 5]
    first, second, third = sorted(rng.sample(candidates, 3))
    command = scripts.command(script, **flags, output_dir=broken)
    shown = []
    for step, in_save in ((first, False), (second, False), (third, True)):
        with open(folder / "shown.txt", "w", encoding="utf-8") as screen:
            process = subprocess.Popen(command, stderr=screen)
        try:
            _wait(process, broken, step)
            if in_save:
                _wait_for_save(process, broken)
            else:
                time.sleep(rng.uniform(0, 0.02))
            assert process.poll() is None, "ended before it was killed"
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        shown.append((folder / "shown.txt").read_text())
    shown.append(scripts.succeed(script, **flags, output_dir=broken))
    for text in shown[1:]:
        assert re.search(r"resuming from .* at step [1-9]", text), text
    expected = checkpoint.read(whole, with_slots=True)
    values = checkpoint.read(broken, with_slots=True)
    assert set(values) == set(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(values[name], value, err_msg=name)


def read_log(output_dir):
    """Whole lines of a run's log."""
    path = output_dir / "train_log.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [line for line in lines if line.endswith("\n")]


def _wait(process, output_dir, step):
    """Waits until the run has logged the step, or has ended."""
    while process.poll() is None:
        lines = read_log(output_dir)
        if lines and json.loads(lines[-1])["step"] >= step:
            return
        time.sleep(0.002)


def _wait_for_save(process, output_dir):
    """Waits until a checkpoint is being written, or the run has ended."""
    while process.poll() is None:
        if any(name.startswith(".partial-") for name in os.listdir(output_dir)):
            return
