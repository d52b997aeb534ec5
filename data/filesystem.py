"""Names of files, and writing them whole or not at all."""

import contextlib
import glob
import json
import os
from collections.abc import Iterator
from typing import IO, Any


@contextlib.contextmanager
def named_in_errors(path: str) -> Iterator[None]:
    """Errors within the `with` block that name no file, as of a full disk, name this.

    Args:
        path: the file that is written.
    """
    try:
        yield
    except OSError as error:
        if error.errno and not error.filename:
            error.filename = path
        raise


@contextlib.contextmanager
def replacing(path: str, is_lasting: bool = True) -> Iterator[IO[bytes]]:
    """Opens a file to write to, which takes its name when the `with` block ends well.

    If it does not, nothing is left and what stood there before stays.

    Args:
        path: the file.
        is_lasting: whether a power cut soon after must not leave an empty file.
    """
    # A hidden name, which `expand` passes over, should a kill leave the file behind.
    folder, name = os.path.split(os.path.abspath(path))
    temporary = f"{folder}/.{name}.tmp-{os.getpid()}"
    try:
        with named_in_errors(path):
            with open(temporary, "wb") as file:
                yield file
                if is_lasting:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)


def expand(patterns: str) -> list[str]:
    """Files that a comma list of globs names, sorted, each once; no hidden ones.

    Raises:
        FileNotFoundError: a pattern matches nothing.
        ValueError: a file is empty, or a folder, or there is no pattern.
    """
    found = set()
    for pattern in filter(None, (part.strip() for part in patterns.split(","))):
        matches = [pattern]  # a name may hold brackets, which a glob reads otherwise
        if "://" in pattern:
            matches = _expand_remote(pattern)
        elif not os.path.exists(pattern):
            matches = glob.glob(pattern)  # leaves hidden files out
        if not matches:
            raise FileNotFoundError(f"no file matches {pattern!r}")
        found.update(matches)
    if not found:
        raise ValueError(f"expected file names, separated by commas, got {patterns!r}")
    for path in found:
        if os.path.isdir(path):
            raise ValueError(f"{path} is a folder; for the files in it pass {path}/*")
        if "://" not in path and os.path.getsize(path) == 0:
            raise ValueError(f"{path} is empty")
    return sorted(found)


def _expand_remote(pattern: str) -> list[str]:
    import tensorflow as tf  # only here: it is large, and many processes do without

    return [p for p in tf.io.gfile.glob(pattern) if not is_hidden(p)]


def check_folder(flag: str, path: str) -> None:
    """Refuses what cannot be the name of a folder to write to.

    Args:
        flag: that gave it, such as "--output_dir".
        path: may be there or not.

    Raises:
        ValueError: it is empty, or a file.
    """
    if os.path.isfile(path) or not path:
        what = "a file" if path else "empty"
        raise ValueError(f"{flag}={path} is {what}; name a folder")


def is_hidden(path: str) -> bool:
    """Whether a file's own name starts with a dot."""
    return os.path.basename(path).startswith(".")


def read_json(path: str) -> Any:
    """What a JSON file holds.

    Raises:
        OSError: there is no such file.
        ValueError: it is damaged.
    """
    with open(path, encoding="utf-8") as file:
        try:
            return json.load(file)
        except (ValueError, RecursionError) as error:
            raise _damaged(path, error) from None


def _damaged(where: str, problem: Any) -> ValueError:
    return ValueError(f"{where} is damaged, remove it: {problem}")


class JsonObject(dict):
    """An object of a JSON file. To ask for what it lacks is a ValueError."""

    def __init__(self, where: str, values: dict[str, Any]):
        super().__init__(values)
        self.where = where

    def __missing__(self, name: str) -> Any:
        raise _damaged(self.where, f"it has no {name!r}")


def check_object(where: str, value: Any, **types: Any) -> JsonObject:
    """What was read from JSON, if it has the shape that is expected.

    Args:
        where: the file, perhaps with the line, for messages.
        value: what was read there.
        types: name → type, or union of types, of what the object must have.

    Raises:
        ValueError: it is no object, or lacks one of these.
    """
    if not isinstance(value, dict):
        raise _damaged(where, f"expected an object, got {value!r:.60}")
    found = JsonObject(where, value)
    for name, kind in types.items():
        if not isinstance(found[name], kind):
            what = f"expected {name!r} to be {getattr(kind, '__name__', kind)}"
            raise _damaged(where, f"{what}, got {found[name]!r:.60}")
    return found


def read_object(path: str, **types: Any) -> JsonObject:
    """The object that a JSON file holds; raises as `read_json` and `check_object`."""
    return check_object(path, read_json(path), **types)


def write_text(path: str, text: str) -> None:
    """Writes a text file in UTF-8, whole or not at all."""
    with replacing(path) as file:
        file.write(text.encode())


def write_json(path: str, value: Any) -> None:
    """Writes a JSON file, whole or not at all."""
    write_text(path, json.dumps(value, indent=1))
