"""Many runs of run_classifier.py, each in a process of its own and safe from kills.

A row is a dict that describes a run, see glue_results.
"""

import os
import shlex
import shutil
import sys

from absl import logging

import child_runs
import glue_results
import non_finite
import run_directory
from data import glue

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run_classifier.py")
LOG = "log.txt"
DIVERGED = "diverged.txt"


class Diverged(ValueError):
    """The training of a run came to updates that are not finite."""


class Runner:
    """Runs rows.

    Args:
        data_dir: str, folder of GLUE's folders.
        common: dict of flag → value or None, for all runs.
        extra: str, further flags as on a command line.
        lock: what `child_runs.wait_for_folder` returned.
    """

    def __init__(self, data_dir, common, extra, lock):
        self._data_dir, self._common, self._lock = data_dir, common, lock
        self._extra = shlex.split(extra)

    def command(self, row, task_name, changes):
        """list of str, the run_classifier.py of a row; the task may be another one."""
        flags = {
            **self._common,
            "task_name": task_name,
            "data_dir": os.path.join(self._data_dir, glue.find_task(task_name).folder),
            "output_dir": row["folder"],
            "seed": row["seed"],
            **{name: row[name] for name in glue_results.SETTING},
            **changes,
        }
        given = [
            f"--{name}={value}" for name, value in flags.items() if value is not None
        ]
        return [sys.executable, SCRIPT, *self._extra, *given]

    def run(self, row, task_name, changes, show=None):
        """Runs a row to its end; what it shows goes to log.txt.

        Args:
            row: dict.
            task_name: str.
            changes: dict of flag → value.
            show: function of the updates done, called now and then; or None.
        Raises:
            Diverged: its updates were not finite.
            ValueError: it failed for another reason; says which.
        """
        os.makedirs(row["folder"], exist_ok=True)
        arguments = self.command(row, task_name, changes)
        path = os.path.join(row["folder"], LOG)
        update = show and (lambda: show(last_step(row["folder"])))
        status, _ = child_runs.run(arguments, path, self._lock, update)
        if status:
            last = child_runs.last_error(path) or f"exit status {status}"
            if non_finite.is_told(last):
                raise Diverged(last)
            raise ValueError(f"{last} (the whole log is {path})")

    def train(self, row, show):
        """Trains and evaluates a row and adds its scores to it."""
        changes = {"do_train": True, "do_eval": True}
        try:
            self.run(row, row["task"], changes, show)
        except Diverged as error:
            logging.warning("%s has diverged: %s", row["folder"], error)
            path = os.path.join(row["folder"], DIVERGED)
            run_directory.write_text(path, f"{error}\n")
        add_scores(row)


def add_scores(row):
    """Adds to a row what its run has scored, if it is finished."""
    if os.path.exists(os.path.join(row["folder"], DIVERGED)):
        row["degenerate"] = True
    else:
        task = glue.find_task(row["task"])
        row.update(glue_results.read_scores(row["folder"], task) or {})


def is_done(row):
    """Whether the run of a row is finished, as far as `add_scores` has seen."""
    return "degenerate" in row


def last_step(folder):
    """int, the updates that a run's train_log.jsonl tells of."""
    log = run_directory.read_log(folder)
    return log[-1][0] if log else 0


def remove_checkpoints(rows):
    """Frees the disk of what predictions cannot need of the runs of one task.

    While the task is at work, the best run of every setting may still be picked.
    """
    summaries = glue_results.summarize([row for row in rows if is_done(row)])
    if all(is_done(row) for row in rows):
        picked = [glue_results.pick(summaries, rows)]
    else:
        picked = [glue_results.pick([summary], rows) for summary in summaries]
    kept = {row["folder"] for _, row in filter(None, picked)}
    for row in rows:
        if is_done(row) and row["folder"] not in kept:
            _forget(row["folder"])


def _forget(folder):
    """Removes checkpoints and records of a run; its results stay."""
    shutil.rmtree(os.path.join(folder, "best"), ignore_errors=True)
    for name in os.listdir(folder):
        if name == "checkpoint" or name.startswith("model.ckpt-"):
            os.remove(os.path.join(folder, name))
        if name.endswith(".tf_record"):
            os.remove(os.path.join(folder, name))
