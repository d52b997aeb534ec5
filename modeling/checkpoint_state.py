"""Which checkpoint of a folder is the newest: TensorFlow 1's file `checkpoint`.

Where that file is lost, damaged, or names what is gone, the numbers in the names of the
checkpoints tell: a run must not begin anew over them.
"""

import glob
import json
import os
import pathlib
import re

from absl import logging
from google.protobuf import text_format
from tensorflow.python.training import checkpoint_state_pb2  # has no public name

FILE = "checkpoint"
PARTIAL = ".partial-"  # beginning of the names of what is being written
_NUMBERED = re.compile(r"model\.ckpt-(\d+)")


def latest(folder):
    """The newest TF1 checkpoint of a folder, or None.

    Args:
        folder: str.
    Returns:
        str, prefix: what the state file names, or else the model.ckpt-N of the highest
        number, with a warning.
    Raises:
        FileNotFoundError: the state file names a checkpoint that is not there, nor is
            any with a number.
        ValueError: the same of a state file that cannot be read.
    """
    folder = os.fspath(folder)
    path = os.path.join(folder, FILE)
    is_lost, named, numbered = not os.path.exists(path), None, _numbered(folder)
    if state := _read(path):
        # Only the name counts, so that a run may be moved to another place.
        name = os.path.basename(state.model_checkpoint_path)
        named = os.path.join(folder, name)
        if is_there(named):
            return named
    elif is_lost and len(numbered) != len(_indexes(folder)):
        return None  # there are others, of which a person names one
    why = f"names {named}, which is not there" if named else "cannot be read"
    if numbered:
        if path not in _warned:
            why = "is missing" if is_lost else why
            logging.warning("%s %s; %s is the newest", path, why, numbered[-1])
            _warned.add(path)
        return numbered[-1]
    if is_lost:
        return None
    kind = FileNotFoundError if named else ValueError
    raise kind(
        f"{path} {why}, and there is no model.ckpt-N beside it; bring the checkpoint "
        "back, or remove the file to name another checkpoint by hand"
    )


_warned = set()  # paths of state files


def _indexes(folder):
    return glob.glob(os.path.join(glob.escape(folder), "*.index"))


def is_there(prefix):
    """Whether the files of a TF1 checkpoint are there."""
    has_data = glob.glob(f"{glob.escape(prefix)}.data-*-of-*")
    return bool(has_data) and os.path.isfile(f"{prefix}.index")


def _numbered(folder):
    """Prefixes of the checkpoints with a number, in its order."""
    found = {}
    for path in _indexes(folder):
        prefix = path.removesuffix(".index")
        match = _NUMBERED.fullmatch(os.path.basename(prefix))
        if match and is_there(prefix):
            found[int(match[1])] = prefix
    return [found[number] for number in sorted(found)]


def _read(path):
    """The CheckpointState in a file, or None if it is not there or damaged."""
    try:
        text = pathlib.Path(path).read_text("utf-8")
        state = text_format.Parse(text, checkpoint_state_pb2.CheckpointState())
    except (OSError, ValueError, text_format.ParseError):
        return None
    return state if state.model_checkpoint_path else None


def update(folder, name):
    """Makes a checkpoint the newest of the state file, and drops those that are gone.

    Args:
        folder: str.
        name: str, of the checkpoint in it.
    Returns:
        list of str, the names that are in the file now, the newest last.
    Raises:
        OSError: the file could not be written; it is as before.
    """
    state = _read(os.path.join(folder, FILE))
    paths = state.all_model_checkpoint_paths if state else _numbered(folder)
    names = [n for n in map(os.path.basename, paths) if n != name] + [name]
    names = [n for n in names if os.path.isfile(os.path.join(folder, f"{n}.index"))]
    lines = [("model_checkpoint_path", name)]
    lines += [("all_model_checkpoint_paths", path) for path in names]
    quoted = [f"{k}: {json.dumps(v, ensure_ascii=False)}\n" for k, v in lines]
    partial = pathlib.Path(folder, f"{PARTIAL}{FILE}")
    try:
        partial.write_text("".join(quoted), "utf-8")
        os.replace(partial, os.path.join(folder, FILE))
    except OSError as error:
        reason = f"could not be written: {error.strerror}"
        raise OSError(f"{folder}/{FILE} {reason}") from None
    finally:
        partial.unlink(missing_ok=True)
    return names
