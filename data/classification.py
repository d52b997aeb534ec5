"""Classifying a sentence or a pair: examples, one's own files, sets of labels.

The published tasks are in glue.py. `OwnTask` here reads anybody's .tsv, .csv or .jsonl.
Both kinds of task offer `labels`, `kind`, `metrics`, `splits` and `examples`.
"""

import dataclasses
import json
import os
import pathlib
from collections.abc import Iterable, Sequence

from data import tables, targets


@dataclasses.dataclass(frozen=True)
class InputExample:
    """One text, or pair of texts, to classify. `label` is None where it is unknown."""

    guid: str
    text_a: str
    text_b: str | None = None
    label: targets.Label | None = None


@dataclasses.dataclass(frozen=True)
class OwnTask:
    """Anybody's data: a folder with {train,dev,test}.{tsv,csv,jsonl}, perhaps .gz.

    Attributes:
        text_a, text_b, label, guid: names of columns, or numbers if the files have no
            header; see `tables.read_columns`. `text_b` and `guid` may be None.
        kind: of the labels.
        separator: between the labels of an example that may have several.
        labels: the classes in order; empty until they are known: `with_labels`.
    """

    text_a: str = "text"
    text_b: str | None = None
    label: str = "label"
    guid: str | None = None
    kind: targets.Kind = targets.Kind.CLASS
    separator: str = ","
    labels: tuple[str, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of functions in metrics/classification.py."""
        return {
            targets.Kind.CLASS: ("accuracy", "f1_macro"),
            targets.Kind.MULTI_LABEL: ("f1_micro", "f1_macro", "accuracy"),
            targets.Kind.NUMBER: ("pearson", "spearmanr"),
        }[self.kind]

    def splits(self, kind: str) -> list[str]:
        """The one split of a kind: "train", "dev" or "test"."""
        return [kind]

    def with_labels(self, labels: Iterable[str]) -> "OwnTask":
        """The same task with its classes known."""
        return dataclasses.replace(self, labels=tuple(labels))

    def examples(self, data_dir: str | pathlib.Path, split: str) -> list[InputExample]:
        """Reads one split. Labels of a test set are not read and need not be there.

        Raises:
            FileNotFoundError, ValueError: as `tables.read_columns`; also an id that is
                there twice, an empty label, or one that is not in `labels`, unless
                these are not yet known.
        """
        path = find_table(data_dir, split)
        names = {"text_a": self.text_a, "text_b": self.text_b, "guid": self.guid}
        if split != "test":
            names["label"] = self.label
        names = {key: name for key, name in names.items() if name is not None}
        examples, lines = [], {}
        for line, number, cells in tables.read_columns(path, list(names.values())):
            row = {"guid": f"{split}-{number}", **dict(zip(names, cells, strict=True))}
            tables.note_id(path, line, row["guid"], lines)
            if "label" in row:
                row["label"] = targets.parse(
                    f"{path}, line {line}",
                    row["label"],
                    self.labels,
                    self.kind,
                    self.separator,
                )
            examples.append(InputExample(**row))
        return examples


def find_table(data_dir: str | pathlib.Path, split: str) -> pathlib.Path:
    """The one file of that split in a folder, such as train.csv or train.tsv.gz."""
    data_dir = pathlib.Path(data_dir)
    if not data_dir.is_dir():
        raise FileNotFoundError(f"there is no folder {data_dir} to read data from")
    names = [split + form + zipped for form in tables.FORMATS for zipped in ("", ".gz")]
    found = [name for name in names if (data_dir / name).is_file()]
    if not found:
        raise FileNotFoundError(
            f"{data_dir} has no {split} set; one of {', '.join(names)} is needed"
        )
    if len(found) > 1:
        raise ValueError(
            f"{data_dir} holds both {found[0]} and {found[1]}; leave one of them"
        )
    return data_dir / found[0]


def infer_labels(examples: Iterable[InputExample]) -> tuple[str, ...]:
    """The distinct labels, sorted: by value if all are integers, else by spelling.

    Raises:
        ValueError: there are fewer than two.
    """
    labels = set()
    for example in examples:
        several = isinstance(example.label, tuple)
        labels.update(example.label if several else (example.label,))
    if len(labels) < 2:
        only = "only " + "".join(map(repr, labels)) if labels else "none"
        raise ValueError(
            f"a classifier needs two labels or more, but the training set has {only}"
        )
    if all(label.removeprefix("-").isdecimal() for label in labels):
        return tuple(sorted(labels, key=lambda label: (int(label), label)))
    return tuple(sorted(labels))


def write_labels(path: str | pathlib.Path, labels: Sequence[str]) -> None:
    """Writes a JSON list, whole or not at all."""
    path = pathlib.Path(path)
    unfinished = path.with_name(path.name + ".tmp")
    text = json.dumps(list(labels), ensure_ascii=False, indent=1) + "\n"
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)


def read_labels(path: str | pathlib.Path, at_least: int = 2) -> tuple[str, ...]:
    """Reads what `write_labels` wrote.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is not a list of distinct strings, at least so many.
    """
    labels = tables.read_json(path)
    if (
        not isinstance(labels, list)
        or not all(isinstance(label, str) for label in labels)
        or not at_least <= len(labels) == len(set(labels))
    ):
        raise ValueError(
            f"{path} must be a JSON list of {at_least} or more distinct strings"
        )
    return tuple(labels)
