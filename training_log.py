"""The progress of a training: on the screen, in train_log.jsonl, in TensorBoard."""

import datetime
import json
import math
import os
import time

import tensorflow as tf
from absl import logging

import run_directory
from data import filesystem


class TrainingLog:
    """Of several workers only the first keeps it.

    Args:
        output_dir: str.
        first_step: int, updates that were done before.
        num_train_steps: int.
        utilization: function of (sequences, positions, seconds), giving the share of
            the devices' rate that was reached; or None.
    """

    def __init__(self, output_dir, first_step, num_train_steps, utilization=None):
        self._path = os.path.join(output_dir, run_directory.LOG_FILE)
        self._num_train_steps, self._utilization = num_train_steps, utilization
        self._step, self._time = first_step, time.perf_counter()
        self._output_dir = output_dir
        if run_directory.is_first():
            self._drop_lines_after(first_step)

    def _drop_lines_after(self, step):
        """Forgets what a killed run logged after its last checkpoint."""
        if os.path.exists(self._path):
            log = run_directory.read_log(self._output_dir)
            kept = [line for logged, line in log if logged <= step]
            run_directory.write_text(self._path, "".join(kept))

    def restart_clock(self):
        """Leaves out what was done since the last line, such as saving."""
        self._time = time.perf_counter()

    def write(self, step, means, examples, counted):
        """Writes one line.

        Args:
            step: int, updates done.
            means: dict of name → float over the updates since the last line, such as
                loss and learning_rate.
            examples: int, examples since then.
            counted: dict of what there was since then: tokens (real ones), positions
                (with padding), sequences and skipped (updates left out), int.
        """
        if not run_directory.is_first():
            return
        now = time.perf_counter()
        seconds, steps = now - self._time, step - self._step
        self._step, self._time = step, now
        values = {
            **means,
            "examples_per_second": examples / seconds,
            "tokens_per_second": counted["tokens"] / seconds,
            "padding": 1 - counted["tokens"] / counted["positions"],
            "skipped_updates": counted["skipped"],
        }
        if self._utilization:
            share = self._utilization(
                counted["sequences"], counted["positions"], seconds
            )
            if share <= 1:  # or the machine was busy when its rate was measured
                values["model_flops_utilization"] = share
        # JSON has no NaN, which a mean of no updates is.
        numbers = {n: v if math.isfinite(v) else None for n, v in values.items()}
        with (
            filesystem.named_in_errors(self._path),
            open(self._path, "a", encoding="utf-8") as file,
        ):
            file.write(json.dumps({"step": step, **numbers}) + "\n")
        write_summaries(self._output_dir, step, values)
        self._show(step, values, seconds / steps * (self._num_train_steps - step))

    def _show(self, step, values, seconds_left):
        parts = [
            f"loss {values['loss']:.4f}",
            f"learning rate {values['learning_rate']:.3g}",
            f"{values['examples_per_second']:.1f} examples/s",
            f"{values['tokens_per_second']:.0f} tokens/s",
            f"{100 * values['padding']:.0f} % padding",
        ]
        if "model_flops_utilization" in values:
            share = 100 * values["model_flops_utilization"]
            parts.append(f"{share:.0f} % of the products' rate")
        if values["skipped_updates"]:
            parts.append(f"{values['skipped_updates']} updates left out")
        left = datetime.timedelta(seconds=round(seconds_left))
        logging.info(
            "step %d of %d: %s, %s left",
            step,
            self._num_train_steps,
            ", ".join(parts),
            left,
        )


_writers = {}  # folder → writer of the file of summaries of this process


def write_summaries(output_dir, step, values, prefix=""):
    """Writes numbers for TensorBoard; of several workers only the first does.

    Args:
        output_dir: str.
        step: int, updates done.
        values: dict of name → number; others are left out.
        prefix: str, before the names.
    """
    if not run_directory.is_first():
        return
    folder = os.path.join(output_dir, "tensorboard")
    if folder not in _writers:
        _writers[folder] = tf.summary.create_file_writer(folder)
    with _writers[folder].as_default(step=step):
        for name, value in values.items():
            if isinstance(value, int | float):
                tf.summary.scalar(prefix + name, value)
    _writers[folder].flush()
