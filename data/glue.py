"""The files of GLUE (Wang et al. 2018) and XNLI (Conneau et al. 2018).

A task is one entry of `TASKS`; files, columns, labels and guids are those of the
original's run_classifier.py. The .tsv files are read without quoting.
"""

import dataclasses
import pathlib

from data import classification, tables


@dataclasses.dataclass(frozen=True)
class Layout:
    """One .tsv file of a task; columns count from 0, -1 is the last.

    Without a `guid` column, row numbers are used (a header is row 0); without a `label`
    column, the file has no labels. Only rows of the task's language are read if there
    is a `language` column.
    """

    file: str
    text_a: int
    text_b: int | None = None
    label: int | None = None
    guid: int | None = None
    language: int | None = None
    header: bool = True

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
        layouts: by split; a split's name is also the first half of its guids.
        metrics: names of functions in metrics/classification.py.
        language: of XNLI.
        aliases: spellings of labels in the files that differ from `labels`.
    """

    labels: tuple[str, ...]
    layouts: dict[str, Layout]
    metrics: tuple[str, ...] = ("accuracy",)
    language: str = "zh"
    aliases: dict[str, str] = dataclasses.field(default_factory=dict)

    def splits(self, kind: str) -> list[str]:
        """Names of the splits of a kind: "train", "dev" or "test"; MNLI has pairs."""
        return [name for name in self.layouts if name.startswith(kind)]

    def examples(
        self, data_dir: str | pathlib.Path, split: str
    ) -> list[classification.InputExample]:
        """Reads one split.

        Raises:
            FileNotFoundError: the folder or the file is not there.
            ValueError: an empty file, invalid UTF-8, too few columns, an unknown label
                or no row of the language; file and line are named.
        """
        layout = self.layouts[split]
        data_dir = pathlib.Path(data_dir)
        if not data_dir.is_dir():
            raise FileNotFoundError(f"there is no folder {data_dir} to read data from")
        path = data_dir / layout.file.format(language=self.language)
        if not path.is_file():
            raise FileNotFoundError(
                f"{data_dir} has no {path.relative_to(data_dir)}, which holds the "
                f"{split} set of this task"
            )
        examples, languages = [], set()
        for number, (line, row) in enumerate(tables.read_tsv(path)):
            if number == 0 and layout.header:
                continue
            if len(row) < layout.width:
                raise ValueError(
                    f"{path}, line {line}: expected at least {layout.width} columns "
                    f"separated by tabs, got {len(row)}"
                )
            if layout.language is not None:
                languages.add(row[layout.language])
                if row[layout.language] != self.language:
                    continue
            examples.append(self._example(f"{path}, line {line}", split, number, row))
        if not examples and languages:
            raise ValueError(
                f"{path} has no rows in the language "
                f"{tables.not_among(self.language, sorted(languages))}"
            )
        if not examples:
            raise ValueError(f"{path} has no rows below its header")
        return examples

    def _example(
        self, where: str, split: str, number: int, row: list[str]
    ) -> classification.InputExample:
        layout = self.layouts[split]
        label = None
        if layout.label is not None:
            label = self.aliases.get(row[layout.label], row[layout.label])
            classification.check_label(where, label, self.labels)
        guid = number if layout.guid is None else row[layout.guid]
        text_b = None if layout.text_b is None else row[layout.text_b]
        return classification.InputExample(
            f"{split}-{guid}", row[layout.text_a], text_b, label
        )


_NLI_LABELS = ("contradiction", "entailment", "neutral")


def _mnli(file: str, label: int | None = -1) -> Layout:
    return Layout(file, text_a=8, text_b=9, label=label, guid=0)


def _mrpc(file: str, label: int | None = 0) -> Layout:
    return Layout(file, text_a=3, text_b=4, label=label)


def _xnli(file: str) -> Layout:
    return Layout(file, text_a=6, text_b=7, label=1, language=0)


TASKS = {
    "cola": Task(
        labels=("0", "1"),
        layouts={
            "train": Layout("train.tsv", text_a=3, label=1, header=False),
            "dev": Layout("dev.tsv", text_a=3, label=1, header=False),
            "test": Layout("test.tsv", text_a=1),
        },
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
    ),
    "mrpc": Task(
        labels=("0", "1"),
        layouts={
            "train": _mrpc("train.tsv"),
            "dev": _mrpc("dev.tsv"),
            "test": _mrpc("test.tsv", label=None),
        },
        metrics=("accuracy", "f1"),
    ),
    "sst-2": Task(
        labels=("0", "1"),
        layouts={
            "train": Layout("train.tsv", text_a=0, label=1),
            "dev": Layout("dev.tsv", text_a=0, label=1),
            "test": Layout("test.tsv", text_a=1),
        },
    ),
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


def find_task(name: str, language: str = "zh") -> Task:
    """The task of that name in any case; `language` chooses among the sets of XNLI."""
    if name.lower() not in TASKS:
        raise ValueError(f"unknown task {tables.not_among(name.lower(), TASKS)}")
    return dataclasses.replace(TASKS[name.lower()], language=language)
