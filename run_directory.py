"""The folder of a run: whose it is, its settings, its results.

Everything is written under a temporary name and then renamed, so a file is there whole
or not at all.
"""

import csv
import fcntl
import io
import json
import math
import os

from absl import logging

from data import filesystem, tables

# What makes a folder's checkpoints one model: these may not change on the way.
IDENTITY_FILE = "model.json"
SETTINGS_FILE = "settings.json"
EVALUATION_SETTINGS_FILE = "settings_eval.json"
LOG_FILE = "train_log.jsonl"  # see training_log.py

_locks = {}  # path → descriptor of the file that holds the lock
_sharing = {"worker": None}  # which of several that have the folder in common


def share(worker):
    """Says that several processes have the folder in common.

    Only the first of them, worker 0, writes what belongs to the run; in the others the
    functions of this module that write do nothing. None: this process is alone.
    """
    _sharing["worker"] = worker


def is_shared():
    """Whether several processes have the folder in common."""
    return _sharing["worker"] is not None


def is_first():
    """Whether this process writes what belongs to the run."""
    return not _sharing["worker"]


def own(output_dir):
    """The folder for files that every worker makes for itself, such as its records."""
    if is_first():
        return output_dir
    folder = os.path.join(output_dir, f"worker-{_sharing['worker']}")
    os.makedirs(folder, exist_ok=True)
    return folder


def write_text(path, text):
    """Writes a text file atomically.

    Args:
        path: str.
        text: str, written as UTF-8.
    Raises:
        OSError: it could not be written; what stood there before stays.
    """
    if not is_first():
        return
    try:
        filesystem.write_text(str(path), text)
    except OSError as error:
        raise OSError(f"{path} could not be written: {error.strerror}") from None


def write_json(path, value):
    """Writes `value` as JSON, indented and with sorted keys, atomically."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True) + "\n")


def copy(path, output_dir, name):
    """Copies a text file into the folder, atomically."""
    with open(path, encoding="utf-8", newline="") as file:
        write_text(os.path.join(output_dir, name), file.read())


def write_table(path, rows):
    """Writes rows of cells with tabs between, atomically; quoted only where needed."""
    write_text(path, "".join(map(_table_line, rows)))


def _table_line(cells):
    text = io.StringIO()
    # Cells are quoted that hold a part of the line end, so this one has both.
    csv.writer(text, delimiter="\t", lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n") + "\n"


def claim(output_dir, identity, settings):
    """Makes the folder this process's, or checks that it belongs to the same model.

    The folder stays locked until the process ends. Settings that differ from those of
    the training before are logged. settings.json has those of the last run that
    trained, see `begin_training`, and settings_eval.json those of others; if none
    trained, settings.json has those of the last run.

    Args:
        output_dir: str.
        identity: dict of plain values, such as the config, the task and its labels.
        settings: dict of flag name → value.
    Raises:
        ValueError: the folder holds checkpoints or results of another model (says what
            differs), or another process is at work in it.
    """
    if not is_first():
        return
    filesystem.check_folder("--output_dir", output_dir)
    os.makedirs(output_dir, exist_ok=True)
    _lock(output_dir)
    path = os.path.join(output_dir, IDENTITY_FILE)
    identity = json.loads(json.dumps(identity))
    there = _read_object(path)
    if there is not None and _holds_a_run(output_dir):
        # The script first: if it is another, what else differs says less.
        for key in sorted({*identity, *there}, key=lambda key: (key != "script", key)):
            old, new = there.get(key), identity.get(key)
            if old != new:
                raise ValueError(
                    f"{output_dir} holds the run of another model: there {key!r} is "
                    f"{_difference(old, new)}; choose another --output_dir"
                )
    write_json(path, identity)
    path = os.path.join(output_dir, SETTINGS_FILE)
    before = _read_object(path) or {}
    if before.get("do_train"):
        if settings.get("do_train"):
            _log_changes(before, json.loads(json.dumps(settings)))
        path = os.path.join(output_dir, EVALUATION_SETTINGS_FILE)
    write_json(path, settings)


def begin_training(output_dir):
    """Says that updates are about to be done by the settings that `claim` was given.

    So a run that finds nothing to do does not change how the model was trained.
    """
    if not is_first():
        return
    path = os.path.join(output_dir, EVALUATION_SETTINGS_FILE)
    settings = _read_object(path) or {}
    if settings.get("do_train"):
        os.replace(path, os.path.join(output_dir, SETTINGS_FILE))


def read(output_dir, script, **types):
    """What the folder of a run says of its model, and how it was trained.

    Args:
        output_dir: str.
        script: str, the script whose run it must be, such as "run_classifier".
        types: of settings that it must have, see `filesystem.check_object`.
    Returns:
        (identity, settings), the dicts that `claim` was given.
    Raises:
        ValueError: it is not the folder of a run of that script, or damaged.
    """
    identity = _read_or_refuse(output_dir, IDENTITY_FILE)
    if identity["script"] != script:
        raise ValueError(
            f"{output_dir} is of {identity['script']}, where a run of {script} is "
            "expected"
        )
    path = os.path.join(output_dir, IDENTITY_FILE)
    filesystem.check_object(path, identity, config=dict)
    return identity, _read_or_refuse(output_dir, SETTINGS_FILE, **types)


def read_script(output_dir):
    """The name of the script whose run is in the folder, such as "run_classifier".

    Raises:
        ValueError: it is not the folder of a run.
    """
    return _read_or_refuse(output_dir, IDENTITY_FILE)["script"]


def _read_or_refuse(output_dir, name, **types):
    """The object in a JSON file that is in the folder of every run."""
    path = os.path.join(output_dir, name)
    value = _read_object(path)
    if value is None:
        raise ValueError(
            f"{output_dir} is no output folder of a run: {path} is missing"
        )
    if name == IDENTITY_FILE and not isinstance(value.get("script"), str):
        raise ValueError(
            f"{output_dir} is no output folder of a run: {path} names no script"
        )
    return filesystem.check_object(path, value, **types)


def read_log(output_dir):
    """What train_log.jsonl holds, without a last line that was cut off.

    Args:
        output_dir: str.
    Returns:
        list of (step, line): int, updates done, and str, the line as it stands.
    Raises:
        ValueError: it is damaged; names the line.
    """
    path = os.path.join(output_dir, LOG_FILE)
    if not os.path.exists(path) or not os.path.getsize(path):
        return []
    log = []
    for number, line in tables.read_lines(path):
        if line.endswith("\n"):
            where = f"{path}, line {number}"
            entry = tables.parse_json(where, line)
            log.append((filesystem.check_object(where, entry, step=int)["step"], line))
    return log


def _lock(output_dir):
    """Keeps other processes out; the lock goes with the process, however it ends."""
    path = os.path.realpath(output_dir)
    if path in _locks:
        return
    # A bare descriptor: it stays open until the process ends, which releases the lock.
    descriptor = os.open(os.path.join(path, ".lock"), os.O_WRONLY | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise ValueError(
            f"another process is at work in {output_dir}; wait for it or give another "
            "--output_dir"
        ) from None
    _locks[path] = descriptor


def _read_object(path):
    """The object in a JSON file, or None if there is no such file."""
    return filesystem.read_object(path) if os.path.exists(path) else None


def _holds_a_run(output_dir):
    """Whether there is something in the folder that another model would spoil."""
    names = os.listdir(output_dir)
    return any(
        name.startswith(("checkpoint", "model.ckpt-")) or "results" in name
        for name in names
    )


def _log_changes(before, settings):
    """Says which settings differ from those of the training that is resumed."""
    for name in sorted(before.keys() & settings.keys()):
        if before[name] != settings[name]:
            logging.info(
                "--%s was %s when this folder was used before, now it is %s",
                name,
                before[name],
                settings[name],
            )


def _difference(old, new):
    """Shows where two values differ; only the differing keys of two dicts."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [key for key in {*old, *new} if old.get(key) != new.get(key)]
        old, new = ({key: d.get(key) for key in sorted(keys)} for d in (old, new))
    return f"{_shown(old):.200}, this run's {_shown(new):.200}"


def _shown(value):
    """A value in words; what stands in no file is as it usually is."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_shown(v)}" for k, v in value.items()) + "}"
    return "the usual" if value is None else str(value)


def write_results(output_dir, name, results):
    """Writes results as `key = value` lines, sorted, and as JSON; shows them.

    JSON has no number for what is not finite: that is null.

    Args:
        output_dir: str.
        name: str, such as "eval_results".
        results: dict of name → number.
    """
    lines = [f"{key} = {results[key]!s}" for key in sorted(results)]
    for line in lines:
        logging.info("%s: %s", name, line)
    write_text(os.path.join(output_dir, f"{name}.txt"), "\n".join(lines) + "\n")
    numbers = {
        key: getattr(value, "item", lambda v=value: v)()
        for key, value in results.items()
    }
    plain = {key: n if math.isfinite(n) else None for key, n in numbers.items()}
    write_json(os.path.join(output_dir, f"{name}.json"), plain)
