"""Twenty kills of pre-training, on one device, two replicas and two workers."""

import json
import os
import random
import signal
import subprocess
import time

import numpy as np
import pytest

from modeling import checkpoint
from tests import resuming, scripts, trainer_test

STEPS = 600


class Fleet:
    """The processes of one run, which may be killed and started again.

    Args:
        flags: dict, of run_pretraining.py.
        workers: int, processes; 0 for one that is no worker of a cluster.
    """

    def __init__(self, flags, workers):
        self.folder, self._workers = flags["output_dir"], workers
        self._command = scripts.command("run_pretraining.py", **flags)

    def start(self):
        configs = trainer_test.cluster(self._workers) if self._workers else [None]
        self._processes = [
            subprocess.Popen(
                self._command,
                env={**os.environ, **({"TF_CONFIG": config} if config else {})},
                stderr=subprocess.PIPE,
                text=True,
            )
            for config in configs
        ]

    def step(self):
        lines = resuming.read_log(self.folder)
        return json.loads(lines[-1])["step"] if lines else 0

    def kill(self, victim, after):
        """Kills one process once a step is logged; the others must end by themselves.

        Returns:
            what they showed, list of str.
        """
        while self.step() < after:
            assert all(p.poll() is None for p in self._processes), self.end()
            time.sleep(0.002)
        time.sleep(random.Random(after).uniform(0, 0.1))
        self._processes[victim].send_signal(signal.SIGKILL)
        killed = self._processes[victim].communicate()[1]
        others = [p for p in self._processes if p is not self._processes[victim]]
        shown = [p.communicate(timeout=120)[1] for p in others]
        assert self._processes[victim].returncode == -signal.SIGKILL
        for process, text in zip(others, shown, strict=True):
            assert process.returncode == 1, text
            assert "Traceback" not in text
            last = text.rstrip().rpartition("\n")[2]
            assert "another worker ended or cannot be reached" in last
        return [killed, *shown]

    def end(self):
        """Waits until all have ended by themselves; what they showed."""
        return [p.communicate(timeout=600)[1] for p in self._processes]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kills", "workers", "more"),
    [
        (8, 0, {}),
        (6, 0, {"distribution_strategy": "mirrored", "num_devices": 2}),
        (6, 2, {"distribution_strategy": "multi_worker"}),
    ],
    ids=["one device", "two replicas", "two workers"],
)
def test_kills_at_random_moments_change_no_bit(golden, tmp_path, kills, workers, more):
    flags = {
        **scripts.short_pretraining(golden),
        "num_train_steps": STEPS,
        "save_checkpoints_steps": 7,
        **more,
    }
    whole = Fleet({**flags, "output_dir": tmp_path / "whole"}, workers)
    whole.start()
    whole.end()
    broken = Fleet({**flags, "output_dir": tmp_path / "broken"}, workers)
    rng = random.Random(kills)
    for number in range(kills):
        broken.start()
        first, last = (int(STEPS * (number + i) / (kills + 1)) for i in (0.5, 1.0))
        shown = broken.kill(rng.randrange(workers or 1), rng.randint(first, last))
        if number:
            assert all("resuming from" in text for text in shown)
    broken.start()
    broken.end()
    expected, found = (
        checkpoint.read(str(fleet.folder), with_slots=True) for fleet in (whole, broken)
    )
    assert expected["global_step"] == STEPS
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
