"""What create_pretraining_data.py wrote about its record files (NAME.manifest.json)."""

import dataclasses
import glob
import os
from collections.abc import Iterable, Sequence
from typing import Any

from data import filesystem

_ENDING = ".manifest.json"


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


def find(files: Iterable[str], given: Sequence[str] = ()) -> dict[str, Manifest]:
    """Manifests that name the files.

    Args:
        files: record files.
        given: paths of manifests; besides, all that lie beside the files are looked at.

    Returns:
        file → Manifest, of the files that have one.

    Raises:
        OSError: one that is given cannot be read.
        ValueError: one is no manifest, or one that is given names none of the files.
    """
    files = list(files)
    found = {}
    for folder in sorted(
        {os.path.dirname(path) for path in files if "://" not in path}
    ):
        pattern = f"{glob.escape(folder or '.')}/*{_ENDING}"
        for path in sorted(glob.glob(pattern)):
            manifest = read(path)
            for file in files:
                same_folder = os.path.dirname(file) == folder
                if same_folder and os.path.basename(file) in manifest.outputs:
                    found[file] = manifest
    for path in given:
        manifest = read(path)
        named = [file for file in files if os.path.basename(file) in manifest.outputs]
        if not named:
            raise ValueError(
                f"{path} names {', '.join(manifest.outputs)}, none of which is among "
                "the files of --input_file; give the manifest of these files"
            )
        found.update(dict.fromkeys(named, manifest))
    return found
