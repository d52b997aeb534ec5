"""What a build of record files is made from, and how two such builds differ."""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from data import corpus

# Of what `describe` returns, for `filesystem.read_object`.
SHAPE = {"inputs": list, "vocabulary": dict, "outputs": list}


def describe(
    inputs: Iterable[dict[str, Any]],
    vocabulary: dict[str, Any],
    outputs: Iterable[str],
    folder: str,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """All that decides on the bytes of record files, as JSON can hold it.

    Args:
        inputs: `checksum` of the files of the corpus, in order.
        vocabulary: that of the vocabulary.
        outputs: the record files.
        folder: where the manifest will lie; they are named as seen from there.
        settings: of the flags that matter, without dashes.
    """
    return {
        "inputs": list(inputs),
        "vocabulary": vocabulary,
        "outputs": [os.path.relpath(path, folder) for path in outputs],
        "tokens of a pool": corpus.POOL_TOKENS,
        **{f"--{name}": value for name, value in settings.items()},
    }


def checksum(path: str) -> dict[str, Any]:
    """Path, size and SHA-256 of a file."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"path": path, "bytes": os.path.getsize(path), "sha256": digest}


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Names what differs between two descriptions, in words; "" if nothing does.

    What counts is what is in files, not what they are called.
    """
    for key in sorted({*old, *new}):
        before, now = old.get(key), new.get(key)
        if key == "inputs":
            before, now = ([x["sha256"] for x in d["inputs"]] for d in (old, new))
            if before != now:
                gone = [x["path"] for x in old["inputs"] if x["sha256"] not in now]
                come = [x["path"] for x in new["inputs"] if x["sha256"] not in before]
                return _other_text(gone, come)
        elif key == "vocabulary":
            if before["sha256"] != now["sha256"]:
                return f"another vocabulary, {before['path']}, not {now['path']}"
        elif before != now:
            return f"{key} {_shown(before)}, not {_shown(now)}"
    return ""


def _other_text(gone: Sequence[str], come: Sequence[str]) -> str:
    """What is said of two lists of inputs that differ."""
    if gone:
        return f"other text: {_shown(gone)} is different now, or missing"
    if come:
        return f"other text: without {_shown(come)}"
    return "the same files in another order"


def _shown(value: Any) -> str:
    if not isinstance(value, list | tuple):
        return str(value)
    rest = f" and {len(value) - 3} more" if len(value) > 3 else ""
    return ", ".join(value[:3]) + rest
