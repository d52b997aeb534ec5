"""The text that goes with an exported model: what it is, and how it came about."""

import glob
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess

import run_directory
from data import filesystem

_MOST_LABELS = 100  # that are listed
_PACKAGES = ("tensorflow", "tensorflow-text", "keras", "numpy")
_FOLDER = pathlib.Path(__file__).parent


def of_run(model_dir, script):
    """The sections of a card that tell of a fine-tuned model.

    Args:
        model_dir: str, output folder of a script.
        script: str, its name, such as "run_classifier".
    Returns:
        dict of title → dict of name → value.
    """
    identity, settings = run_directory.read(model_dir, script)
    model = {k: v for k, v in identity.items() if k not in ("config", "labels")}
    sections = {"Model": model}
    for path in sorted(glob.glob(f"{glob.escape(str(model_dir))}/*_results*.json")):
        name = os.path.basename(path).removesuffix(".json")
        sections[f"Results ({name})"] = filesystem.read_json(path)
    # Where files lay on that machine is nobody's business.
    sections["Training"] = {
        name: short_path(value) if name == "init_checkpoint" else value
        for name, value in settings.items()
        if value is not None and not name.endswith(("_dir", "_file"))
    }
    sections["Sizes"] = identity["config"]
    return sections


def short_path(path):
    """The end of a path that says which checkpoint it is."""
    return "/".join(pathlib.Path(path).parts[-2:])


def text(name, sections, labels, signatures, methods):
    """A card in Markdown.

    Args:
        name: str, of the model.
        sections: dict of title → dict of name → value.
        labels: names of the outputs, empty if they have none.
        signatures: dict of name → function, those of the SavedModel.
        methods: dict of name → method of TensorFlow Serving, of signatures that are
            not for Predict.
    Returns:
        str.
    """
    lines = [f"# {name}", ""]
    for title, values in sections.items():
        rows = [(key, _plain(value)) for key, value in sorted(values.items())]
        lines += [f"## {title}", "", *_table(("name", "value"), rows), ""]
    if labels:
        rows = [(str(i), label) for i, label in enumerate(labels[:_MOST_LABELS])]
        if len(rows) < len(labels):
            rows.append(("...", f"all {len(labels)} are in assets/labels.txt"))
        lines += ["## Labels", "", *_table(("output", "label"), rows), ""]
    rows = [
        (
            signature,
            methods.get(signature, "predict").rpartition("/")[2],
            _specs(function.structured_input_signature[1]),
            _specs(function.structured_outputs),
        )
        for signature, function in sorted(signatures.items())
    ]
    head = ("signature", "method", "takes", "gives")
    lines += ["## Signatures", "", *_table(head, rows), ""]
    lines += ["## Made by", "", *_table(("what", "version"), _versions()), ""]
    return "\n".join(lines)


def _versions():
    """Rows of what made the export."""
    rows = [(package, importlib.metadata.version(package)) for package in _PACKAGES]
    return [
        ("commit of this code", _commit()),
        ("Python", platform.python_version()),
        *rows,
    ]


def _commit():
    """The commit of this code, with -dirty if files differ from it, or "unknown"."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        result = subprocess.run(
            command, cwd=_FOLDER, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):  # no git, or no repository
        return "unknown"
    return result.stdout.strip()


def _plain(value):
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _specs(specs):
    """Names, types and shapes of tensors."""
    return ", ".join(
        f"{name}: {spec.dtype.name} [{', '.join(map(_size, spec.shape))}]"
        for name, spec in sorted(specs.items())
    )


def _size(size):
    return "any" if size is None else str(size)


def _table(head, rows):
    """Lines of a table."""
    rule = ["---"] * len(head)
    return [f"| {' | '.join(map(_cell, row))} |" for row in (head, rule, *rows)]


def _cell(value):
    """A text on one line in which nothing ends a cell."""
    return " ".join(value.split()).replace("|", "\\|")
