"""The folder of a run: whose it is, its settings, its results, its log.

Everything is written under a temporary name and then renamed, so a file is there whole
or not at all.
"""

import csv
import io
import json
import os
import pathlib
import time

import tensorflow as tf
from absl import logging

# What makes a folder's checkpoints one model: these may not change on the way.
IDENTITY_FILE = "model.json"
SETTINGS_FILE = "settings.json"


def write_text(path, text):
    """Writes a text file atomically.

    Args:
        path: str.
        text: str, written as UTF-8.
    """
    temporary = f"{path}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        pathlib.Path(temporary).unlink(missing_ok=True)
        raise


def write_json(path, value):
    """Writes `value` as JSON, indented and with sorted keys, atomically."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True) + "\n")


def copy(path, output_dir, name):
    """Copies a text file into the folder, atomically."""
    with open(path, encoding="utf-8", newline="") as file:
        write_text(os.path.join(output_dir, name), file.read())


def write_table(path, rows):
    """Writes rows of cells with tabs between, atomically; quoted only where needed."""
    text = io.StringIO()
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows(rows)
    write_text(path, text.getvalue())


def claim(output_dir, identity, settings):
    """Makes the folder, or checks that it belongs to the same model.

    Args:
        output_dir: str.
        identity: dict of plain values, such as the config, the task and its labels.
        settings: dict of flag name → value, written to settings.json.
    Raises:
        ValueError: the folder holds the run of another model; says what differs.
    """
    os.makedirs(output_dir, exist_ok=True)
    path = os.path.join(output_dir, IDENTITY_FILE)
    identity = json.loads(json.dumps(identity))
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            there = json.load(file)
        for key in sorted({*identity, *there}):
            old, new = there.get(key), identity.get(key)
            if old != new:
                raise ValueError(
                    f"{output_dir} holds the run of another model: its {key} is "
                    f"{_difference(old, new)}; choose another --output_dir"
                )
    write_json(path, identity)
    write_json(os.path.join(output_dir, SETTINGS_FILE), settings)


def _difference(old, new):
    """Shows where two values differ; only the differing keys of two dicts."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [key for key in {*old, *new} if old.get(key) != new.get(key)]
        old, new = ({key: d.get(key) for key in sorted(keys)} for d in (old, new))
    return f"{old!s:.200}, this run's {new!s:.200}"


def write_results(output_dir, name, results):
    """Writes results as `key = value` lines, sorted, and as JSON; shows them.

    Args:
        output_dir: str.
        name: str, such as "eval_results".
        results: dict of name → number.
    """
    lines = [f"{key} = {results[key]!s}" for key in sorted(results)]
    for line in lines:
        logging.info("%s: %s", name, line)
    write_text(os.path.join(output_dir, f"{name}.txt"), "\n".join(lines) + "\n")
    plain = {
        key: getattr(value, "item", lambda v=value: v)()
        for key, value in results.items()
    }
    write_json(os.path.join(output_dir, f"{name}.json"), plain)


class TrainingLog:
    """Shows progress, and keeps it in train_log.jsonl and for TensorBoard.

    Args:
        output_dir: str.
        first_step: int, updates that were done before.
        num_train_steps: int.
    """

    def __init__(self, output_dir, first_step, num_train_steps):
        self._path = os.path.join(output_dir, "train_log.jsonl")
        self._summaries = tf.summary.create_file_writer(
            os.path.join(output_dir, "tensorboard")
        )
        self._num_train_steps = num_train_steps
        self._step, self._time = first_step, time.perf_counter()

    def write(self, step, values, examples, tokens):
        """Writes one line.

        Args:
            step: int, updates done.
            values: dict of name → float, such as loss and learning_rate.
            examples: int, examples since the last line.
            tokens: int, real tokens since the last line.
        """
        now = time.perf_counter()
        seconds, steps = now - self._time, step - self._step
        left = seconds / steps * (self._num_train_steps - step)
        self._step, self._time = step, now
        values = {
            **values,
            "examples_per_second": examples / seconds,
            "tokens_per_second": tokens / seconds,
        }
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **values}) + "\n")
        with self._summaries.as_default(step=step):
            for name, value in values.items():
                tf.summary.scalar(name, value)
        self._summaries.flush()
        logging.info(
            "step %d of %d: loss %.4f, learning rate %.3g, %.1f examples/s, "
            "%.0f tokens/s, %s left",
            step,
            self._num_train_steps,
            values["loss"],
            values["learning_rate"],
            values["examples_per_second"],
            values["tokens_per_second"],
            time.strftime("%H:%M:%S", time.gmtime(left)),
        )
