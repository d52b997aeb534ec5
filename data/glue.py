"""The files of GLUE (Wang et al. 2018) and XNLI (Conneau et al. 2018).

A task is one entry of `TASKS`; files, columns, labels and guids are those of the
original's run_classifier.py where it has the task. The .tsv files are read without
quoting.
"""

import dataclasses
import pathlib
from collections.abc import Iterator

from absl import logging

from data import classification, tables, targets


@dataclasses.dataclass(frozen=True)
class Layout:
    """One .tsv file of a task; columns count from 0, -1 is the last.

    Without a `guid` column, row numbers are used (a header is row 0); without a `label`
    column, the file has no labels. Only rows of the task's language are read if there
    is a `language` column. `other_file` is another name the file goes by. Rows of files
    that are known to be damaged in places are left out if they lack columns.
    """

    file: str
    text_a: int
    text_b: int | None = None
    label: int | None = None
    guid: int | None = None
    language: int | None = None
    header: bool = True
    other_file: str | None = None
    is_damaged: bool = False

    @property
    def width(self) -> int:
        """The least number of columns of a row."""
        columns = (self.text_a, self.text_b, self.label, self.guid, self.language)
        return max(c for c in columns if c is not None) + 1 + (self.label == -1)


@dataclasses.dataclass(frozen=True)
class Task:
    """A task with published files.

    Attributes:
        labels: in the order of the classes; the first stands in for unknown labels.
            Without any, the label is a number.
        layouts: by split; a split's name is also the first half of its guids.
        folder: its name in GLUE.
        metrics: the official ones; names of functions in metrics/classification.py.
        language: of XNLI.
        aliases: spellings of labels in the files that differ from `labels`.
    """

    labels: tuple[str, ...]
    layouts: dict[str, Layout]
    folder: str = ""
    metrics: tuple[str, ...] = ("accuracy",)
    language: str = "zh"
    aliases: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def kind(self) -> targets.Kind:
        """Of the labels."""
        return targets.Kind.CLASS if self.labels else targets.Kind.NUMBER

    def splits(self, kind: str) -> list[str]:
        """Names of the splits of a kind: "train", "dev" or "test"; MNLI has pairs."""
        return [name for name in self.layouts if name.startswith(kind)]

    def examples(
        self, data_dir: str | pathlib.Path, split: str
    ) -> list[classification.InputExample]:
        """Reads one split.

        Raises:
            FileNotFoundError: the folder or the file is not there.
            ValueError: the task has no such split; an empty file, invalid UTF-8, no
                header, other columns than those of the header, an unknown label, no
                number, an id that is there twice or no row of the language; file and
                line are named.
        """
        if split not in self.layouts:
            raise ValueError(
                f"this task has no {split} set, only {', '.join(self.layouts)}"
            )
        path = self._find(pathlib.Path(data_dir), split)
        layout, examples, languages, damaged = self.layouts[split], [], set(), 0
        lines = {}
        rows = enumerate(tables.read_tsv(path, skip_blank=layout.is_damaged))
        header = self._read_header(path, layout, rows) if layout.header else []
        for number, (line, row) in rows:
            if len(row) < layout.width and layout.is_damaged:
                damaged += 1
                continue
            _check_width(f"{path}, line {line}", layout, header, row)
            if layout.language is not None:
                languages.add(row[layout.language])
                if row[layout.language] != self.language:
                    continue
            examples.append(self._example(f"{path}, line {line}", split, number, row))
            tables.note_id(path, line, examples[-1].guid, lines)
        if damaged:
            logging.warning(
                "%s: left out %d rows that lack columns, %d are read",
                path,
                damaged,
                len(examples),
            )
        if not examples and languages:
            raise ValueError(
                f"{path} has no rows in the language "
                f"{tables.not_among(self.language, sorted(languages))}"
            )
        if not examples:
            raise ValueError(f"{path} has no rows below its header")
        return examples

    def _find(self, data_dir: pathlib.Path, split: str) -> pathlib.Path:
        """The file of a split."""
        if not data_dir.is_dir():
            raise FileNotFoundError(f"there is no folder {data_dir} to read data from")
        layout = self.layouts[split]
        names = [layout.file.format(language=self.language), layout.other_file]
        for name in filter(None, names):
            if (data_dir / name).is_file():
                return data_dir / name
        raise FileNotFoundError(
            f"{data_dir} has no {names[0]}, which holds the {split} set of this task"
        )

    def _read_header(
        self, path: pathlib.Path, layout: Layout, rows: Iterator[tuple]
    ) -> list[str]:
        """The first row, which must be no example: that would be lost."""
        _, (line, row) = next(rows, (0, (1, [])))
        if len(row) >= layout.width and self._is_example(layout, row):
            raise ValueError(
                f"{path}, line {line}: expected the names of the columns, got an "
                "example; put the header of the published file above it"
            )
        return row

    def _is_example(self, layout: Layout, row: list[str]) -> bool:
        if layout.label is None:
            return row[0].isdecimal()  # the index, which test sets begin with
        try:
            self._label("", layout, row)
        except ValueError:
            return False
        return True

    def _label(
        self, where: str, layout: Layout, row: list[str]
    ) -> targets.Label | None:
        if layout.label is None:
            return None
        cell = self.aliases.get(row[layout.label], row[layout.label])
        return targets.parse(where, cell, self.labels, self.kind)

    def _example(
        self, where: str, split: str, number: int, row: list[str]
    ) -> classification.InputExample:
        layout = self.layouts[split]
        label = self._label(where, layout, row)
        guid = number if layout.guid is None else row[layout.guid]
        text_b = None if layout.text_b is None else row[layout.text_b]
        return classification.InputExample(
            f"{split}-{guid}", row[layout.text_a], text_b, label
        )


def _check_width(where: str, layout: Layout, header: list[str], row: list[str]) -> None:
    """Refuses a row with a tab too few or too many, which shifts its texts."""
    problem = None
    if len(row) < layout.width:
        problem = f"at least {layout.width} columns separated by tabs"
    elif header and len(row) != len(header) and not layout.is_damaged:
        problem = f"the {len(header)} columns of the header"
    if problem:
        raise ValueError(f"{where}: expected {problem}, got {len(row)}")


_NLI_LABELS = ("contradiction", "entailment", "neutral")
_TWO_WAY_NLI_LABELS = ("entailment", "not_entailment")


def _mnli(file: str, label: int | None = -1) -> Layout:
    return Layout(file, text_a=8, text_b=9, label=label, guid=0)


def _xnli(file: str) -> Layout:
    return Layout(file, text_a=6, text_b=7, label=1, language=0)


def _layouts(text_a: int, text_b: int | None = None, **options) -> dict[str, Layout]:
    """Of tasks whose train.tsv, dev.tsv and test.tsv have the texts in one place."""
    labelled = {
        name: Layout(f"{name}.tsv", text_a, text_b, **options)
        for name in ("train", "dev")
    }
    return labelled | {"test": Layout("test.tsv", text_a, text_b)}


TASKS = {
    "cola": Task(
        labels=("0", "1"),
        layouts={
            "train": Layout("train.tsv", text_a=3, label=1, header=False),
            "dev": Layout("dev.tsv", text_a=3, label=1, header=False),
            "test": Layout("test.tsv", text_a=1),
        },
        folder="CoLA",
        metrics=("matthews_correlation",),
    ),
    "mnli": Task(
        labels=_NLI_LABELS,
        layouts={
            "train": _mnli("train.tsv"),
            "dev_matched": _mnli("dev_matched.tsv"),
            "dev_mismatched": _mnli("dev_mismatched.tsv"),
            # The original gives the matched test set guids without "_matched".
            "test": _mnli("test_matched.tsv", label=None),
            "test_mismatched": _mnli("test_mismatched.tsv", label=None),
        },
        folder="MNLI",
    ),
    # The diagnostic set, for models of MNLI.
    "ax": Task(
        labels=_NLI_LABELS,
        layouts={
            "test_ax": Layout("diagnostic.tsv", text_a=1, text_b=2, other_file="AX.tsv")
        },
        folder="diagnostic",
    ),
    "mrpc": Task(
        labels=("0", "1"),
        layouts=_layouts(3, 4, label=0),
        folder="MRPC",
        metrics=("accuracy", "f1"),
    ),
    "qnli": Task(
        labels=_TWO_WAY_NLI_LABELS, layouts=_layouts(1, 2, label=-1), folder="QNLI"
    ),
    "qqp": Task(
        labels=("0", "1"),
        layouts=_layouts(3, 4, label=5, is_damaged=True)
        | {"test": Layout("test.tsv", text_a=1, text_b=2)},
        folder="QQP",
        metrics=("accuracy", "f1"),
    ),
    "rte": Task(
        labels=_TWO_WAY_NLI_LABELS, layouts=_layouts(1, 2, label=-1), folder="RTE"
    ),
    "sst-2": Task(
        labels=("0", "1"),
        layouts=_layouts(0, label=1) | {"test": Layout("test.tsv", text_a=1)},
        folder="SST-2",
    ),
    "sts-b": Task(
        labels=(),
        layouts=_layouts(7, 8, label=-1),
        folder="STS-B",
        metrics=("pearson", "spearmanr"),
    ),
    "wnli": Task(labels=("0", "1"), layouts=_layouts(1, 2, label=-1), folder="WNLI"),
    "xnli": Task(
        labels=_NLI_LABELS,
        layouts={
            "train": Layout(
                "multinli/multinli.train.{language}.tsv", text_a=0, text_b=1, label=2
            ),
            "dev": _xnli("xnli.dev.tsv"),
            "test": _xnli("xnli.test.tsv"),
        },
        aliases={"contradictory": "contradiction"},
    ),
}
# Without a hyphen, as in TensorFlow Datasets.
_OTHER_NAMES = {"sst2": "sst-2", "stsb": "sts-b"}


def canonical_name(name: str) -> str:
    """The key of `TASKS` that a name in any case stands for."""
    name = _OTHER_NAMES.get(name.lower(), name.lower())
    if name not in TASKS:
        raise ValueError(f"unknown task {tables.not_among(name, TASKS)}")
    return name


def find_task(name: str, language: str = "zh") -> Task:
    """The task of that name in any case; `language` chooses among the sets of XNLI."""
    return dataclasses.replace(TASKS[canonical_name(name)], language=language)
