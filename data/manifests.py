"""What create_pretraining_data.py wrote about its record files (NAME.manifest.json)."""

import contextlib
import dataclasses
import glob
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from data import filesystem

_ENDING = ".manifest.json"
_SHARD = re.compile(r"-\d{5}-of-\d{5}(?=\.|$)")  # in a name, see --num_output_shards


@dataclasses.dataclass(frozen=True)
class Manifest:
    """A manifest.

    Attributes:
        path: the file.
        flags: of the build, without dashes.
        vocabulary: path, bytes and sha256.
        outputs: name of the record file → path, bytes, records and sha256.
    """

    path: str
    flags: dict[str, Any]
    vocabulary: dict[str, Any]
    outputs: dict[str, dict[str, Any]]


def read(path: str) -> Manifest:
    """Reads a manifest.

    Raises:
        OSError: there is no such file.
        ValueError: it is none.
    """
    try:
        values = filesystem.read_json(path)
        outputs = zip(values["outputs"], values["result"]["outputs"], strict=True)
        return Manifest(
            path,
            {k.removeprefix("--"): v for k, v in values.items() if k.startswith("--")},
            dict(values["vocabulary"]),
            {name: dict(entry) for name, entry in outputs},
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError(
            f"{path} is no manifest of create_pretraining_data.py, or is cut off; "
            "remove it, or build the records again"
        ) from None


class Found(NamedTuple):
    """Manifests of record files.

    Attributes:
        manifest_of: file → the manifest that names it.
        strays: file → a manifest beside it that does not name it although it names
            others of the files, or has the name that one of this file would have.
    """

    manifest_of: dict[str, Manifest]
    strays: dict[str, Manifest]


def find(files: Iterable[str], given: Sequence[str] = ()) -> Found:
    """Looks for the manifests of record files.

    Args:
        files: record files.
        given: paths of manifests; besides, all that lie beside the files are looked at,
            where those of other programs are passed over.

    Raises:
        OSError: a manifest cannot be read.
        ValueError: one that is given is no manifest, or names none of the files.
    """
    files = list(files)
    folders = {os.path.dirname(path) for path in files if "://" not in path}
    beside = {folder: _read_folder(folder) for folder in folders}
    manifest_of = {}
    for file in files:
        for manifest in beside.get(os.path.dirname(file), ()):
            if os.path.basename(file) in manifest.outputs:
                manifest_of[file] = manifest
    for path in given:
        manifest = read(path)
        named = [file for file in files if os.path.basename(file) in manifest.outputs]
        if not named:
            raise ValueError(
                f"{path} names {', '.join(manifest.outputs)}, none of which is among "
                "the files of --input_file; give the manifest of these files"
            )
        manifest_of.update(dict.fromkeys(named, manifest))
    used = {manifest.path for manifest in manifest_of.values()}
    strays = {}
    for file in sorted(set(files) - set(manifest_of)):
        folder, name = os.path.split(file)
        own = _SHARD.sub("", name) + _ENDING
        for manifest in beside.get(folder, ()):
            if manifest.path in used or os.path.basename(manifest.path) == own:
                strays[file] = manifest
    return Found(manifest_of, strays)


def _read_folder(folder: str) -> list[Manifest]:
    """The manifests in a folder, without files that only have such a name."""
    found = []
    for path in sorted(glob.glob(f"{glob.escape(folder or '.')}/*{_ENDING}")):
        with contextlib.suppress(ValueError, IsADirectoryError):
            found.append(read(path))
    return found
