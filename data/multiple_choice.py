"""Choosing among texts: SWAG (Zellers et al. 2018) and ARCT (Habernal et al. 2018).

Every choice becomes a pair of texts, and a sequence of its own; an example has the
sequences of all of its choices. Files in the columns of either task are read, with as
many choices as they have: CODAH (Chen et al. 2019) comes in those of SWAG.
"""

import dataclasses
import itertools
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from data import classification, features, tables, targets

Row = Mapping[str, str]  # column → cell


@dataclasses.dataclass(frozen=True)
class ChoiceExample:
    """Pairs of texts, one of which is right. `label` is None where it is unknown."""

    guid: str
    pairs: tuple[tuple[str, str], ...]
    label: int | None = None


def continuations(row: Row, ending: str) -> tuple[str, str]:
    """SWAG: the first sentence, and the second with its ending."""
    return row["sent1"], f"{row['sent2']} {ending}"


def warrants(row: Row, warrant: str) -> tuple[str, str]:
    """ARCT: claim and reason as sentences, and the warrant (Niven and Kao 2019)."""
    return f"{_sentence(row['claim'])} {_sentence(row['reason'])}", warrant


def _sentence(text: str) -> str:
    """The text with a full stop if it has no mark at its end."""
    return text if text.rstrip("\"'").endswith((".", "!", "?")) else f"{text}."


def _read_arct_rows(path: pathlib.Path) -> Iterator[tuple[int, list[str]]]:
    # The adversarial sets (Niven and Kao 2019) have quotes and are called .csv.
    if path.suffix == ".csv":
        return tables.read_csv(path, delimiter="\t")
    return tables.read_tsv(path)


@dataclasses.dataclass(frozen=True)
class Task:
    """A layout of files.

    Attributes:
        files: published name of the file, by "train", "dev" and "test".
        read_rows: function of a path, giving line numbers and rows, header first.
        guid: column of the id; rows are numbered in files without it.
        context: columns of what all choices share.
        choices: columns of the choices without their numbers, which count from 0.
        label: column of the number of the right choice.
        make_pair: function of a row and a choice, giving the two texts of a sequence.
    """

    files: Mapping[str, str]
    read_rows: Callable[[pathlib.Path], Iterator[tuple[int, list[str]]]]
    guid: str
    context: tuple[str, ...]
    choices: str
    label: str
    make_pair: Callable[[Row, str], tuple[str, str]]

    def examples(self, path: str | pathlib.Path, split: str) -> list[ChoiceExample]:
        """Reads a file. Labels of a test set are not read and need not be there.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: a column is missing, a choice is empty, a label is not the
                number of a choice, an id is there twice (unless in training), there
                are no rows, or what `tables` raises; file and line are named.
        """
        path = pathlib.Path(path)
        rows = self.read_rows(path)
        first = list(itertools.islice(rows, 1))
        header = first[0][1] if first else []
        choices = self._choice_columns(header)
        columns = [*self.context, *choices]
        if self.guid in header:
            columns.append(self.guid)
        if split != "test":
            columns.append(self.label)
        examples, lines = [], {}
        rows = itertools.chain(first, rows)
        for line, number, cells in tables.select(path, rows, columns):
            row = {self.guid: f"{split}-{number}"}
            row |= dict(zip(columns, cells, strict=True))
            # ARCT's train-w-swap-full.txt has every id twice, its warrants swapped.
            if split != "train":
                tables.note_id(path, line, row[self.guid], lines)
            examples.append(self._example(f"{path}, line {line}", row, choices))
        if not examples:
            raise ValueError(f"{path} has no rows below its header")
        return examples

    def _choice_columns(self, header: Sequence[str]) -> list[str]:
        """Names of the choices; two at least, so that a header without is refused."""
        pattern = re.compile(rf"{self.choices}\d+")
        number = sum(1 for name in header if pattern.fullmatch(name))
        return [f"{self.choices}{index}" for index in range(max(number, 2))]

    def _example(self, where: str, row: Row, choices: Sequence[str]) -> ChoiceExample:
        for name in choices:
            if not row[name].strip():
                raise ValueError(
                    f"{where}: {name} is empty; every row needs {len(choices)} choices"
                )
        label = None
        if self.label in row:
            numbers = [str(index) for index in range(len(choices))]
            targets.check(where, row[self.label], numbers)
            label = int(row[self.label])
        pairs = tuple(self.make_pair(row, row[name]) for name in choices)
        return ChoiceExample(row[self.guid], pairs, label)


TASKS = {
    "swag": Task(
        files={"train": "train.csv", "dev": "val.csv", "test": "test.csv"},
        read_rows=tables.read_csv,
        guid="",  # the first column has no name
        context=("sent1", "sent2"),
        choices="ending",
        label="label",
        make_pair=continuations,
    ),
    "arct": Task(
        files={
            "train": "train-full.txt",
            "dev": "dev-full.txt",
            "test": "test-only-data.txt",
        },
        read_rows=_read_arct_rows,
        guid="#id",
        context=("claim", "reason"),
        choices="warrant",
        label="correctLabelW0orW1",
        make_pair=warrants,
    ),
}


def find_task(name: str) -> Task:
    """The task of that name, in any case."""
    if name.lower() not in TASKS:
        raise ValueError(f"unknown task {tables.not_among(name.lower(), TASKS)}")
    return TASKS[name.lower()]


def to_arrays(
    examples: Sequence[ChoiceExample],
    max_seq_length: int,
    tokenizer: features.Tokenizer,
) -> dict[str, np.ndarray]:
    """Featurizes a data set whose examples have equally many choices.

    Returns:
        int32 arrays: input_ids, input_mask and segment_ids [examples, choices,
        max_seq_length]; label_ids, 0 where unknown, and is_real_example [examples].
    """
    texts = [
        classification.InputExample(example.guid, *pair)
        for example in examples
        for pair in example.pairs
    ]
    arrays = features.examples_to_arrays(texts, (), max_seq_length, tokenizer)
    shape = (len(examples), -1, max_seq_length)
    label_ids = np.array([example.label or 0 for example in examples], np.int32)
    return {
        **{name: arrays[name].reshape(shape) for name in features.INPUTS},
        "label_ids": label_ids,
        "is_real_example": np.ones_like(label_ids),
    }
