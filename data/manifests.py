"""What create_pretraining_data.py wrote about its record files (NAME.manifest.json)."""

import contextlib
import dataclasses
import glob
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from data import filesystem

ENDING = ".manifest.json"  # of the name, after that of the record files
_SHARD = re.compile(r"-\d{5}-of-\d{5}(?=\.|$)")  # in a name, see --num_output_shards


@dataclasses.dataclass(frozen=True)
class Manifest:
    """A manifest.

    Attributes:
        path: the file.
        flags: of the build, without dashes.
        vocabulary: path, bytes and sha256.
        outputs: name of the record file, as seen from the folder of the manifest →
            path, bytes, records and sha256.
    """

    path: str
    flags: dict[str, Any]
    vocabulary: dict[str, Any]
    outputs: dict[str, dict[str, Any]]

    def entry(self, file: str) -> dict[str, Any]:
        """What it says of a record file, which may have been moved to other folders.

        Raises:
            KeyError: it does not name the file.
        """
        name = os.path.relpath(file, os.path.dirname(self.path) or ".")
        if name in self.outputs:
            return self.outputs[name]
        by_name = {os.path.basename(name): e for name, e in self.outputs.items()}
        return by_name[os.path.basename(file)]


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
    named = {}  # place → manifest
    for folder, found in beside.items():
        for manifest in found:
            for name in manifest.outputs:
                named[os.path.realpath(os.path.join(folder, name))] = manifest
    places = {file: os.path.realpath(file) for file in files if "://" not in file}
    manifest_of = {f: named[place] for f, place in places.items() if place in named}
    for path in given:
        manifest = read(path)
        names = set(map(os.path.basename, manifest.outputs))
        its_files = [file for file in files if os.path.basename(file) in names]
        if not its_files:
            raise ValueError(
                f"{path} names {', '.join(manifest.outputs)}, none of which is among "
                "the files of --input_file; give the manifest of these files"
            )
        manifest_of.update(dict.fromkeys(its_files, manifest))
    used = {manifest.path for manifest in manifest_of.values()}
    strays = {}
    for file in sorted(set(files) - set(manifest_of)):
        folder, name = os.path.split(file)
        own = _SHARD.sub("", name) + ENDING
        for manifest in beside.get(folder, ()):
            if manifest.path in used or os.path.basename(manifest.path) == own:
                strays[file] = manifest
    return Found(manifest_of, strays)


def _read_folder(folder: str) -> list[Manifest]:
    """The manifests in a folder, without files that only have such a name."""
    found = []
    for path in sorted(glob.glob(f"{glob.escape(folder or '.')}/*{ENDING}")):
        with contextlib.suppress(ValueError, IsADirectoryError):
            found.append(read(path))
    return found
