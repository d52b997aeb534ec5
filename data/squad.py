"""Questions about texts: SQuAD 1.1 and 2.0 files (Rajpurkar et al. 2016, 2018).

A file is JSON: {"data": [{"paragraphs": [{"context", "qas": [{"id", "question",
"answers": [{"text", "answer_start"}], "is_impossible"}]}]}]}. What is not listed here
is ignored. From questions to model inputs: squad_windows.py; back: squad_answers.py.
"""

import bisect
import collections
import dataclasses
import pathlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from absl import logging

from data import tables

# Only these end a word; a no-break space does not (as in the original).
_WORD = re.compile("[^ \t\r\n\u202f]+")


@dataclasses.dataclass(frozen=True, eq=False)
class Paragraph:
    """A text that questions are asked about.

    Attributes:
        text: the context.
        words: what stands between spaces.
        word_starts: the character of `text` where each word starts.
    """

    text: str
    words: list[str]
    word_starts: list[int]

    @classmethod
    def from_text(cls, text: str) -> "Paragraph":
        """Splits a context into words."""
        matches = list(_WORD.finditer(text))
        return cls(text, [m.group() for m in matches], [m.start() for m in matches])

    def word_at(self, character: int) -> int:
        """The word that holds a character, or comes before the space it is."""
        return max(0, bisect.bisect_right(self.word_starts, character) - 1)


@dataclasses.dataclass(frozen=True)
class SquadExample:
    """One question.

    Attributes:
        qas_id: its id.
        question_text: what is asked.
        paragraph: what it is asked about; shared by the questions of a paragraph.
        orig_answer_text, start_position, end_position: training only: the answer, its
            first and its last word; "", -1 and -1 if there is none.
        is_impossible: the text does not say; read in training only.
        answers: texts of all accepted answers; None if the file has no "answers" here.
    """

    qas_id: str
    question_text: str
    paragraph: Paragraph
    orig_answer_text: str | None = None
    start_position: int | None = None
    end_position: int | None = None
    is_impossible: bool = False
    answers: tuple[str, ...] | None = None

    @property
    def doc_tokens(self) -> list[str]:
        """The words of the context, by the original's name."""
        return self.paragraph.words


@dataclasses.dataclass(frozen=True)
class Questions:
    """What a file holds.

    Attributes:
        examples: the questions, in order.
        misplaced: ids of those left out in training, as their answer is not where
            answer_start says.
    """

    examples: list[SquadExample]
    misplaced: list[str]


def read_squad_examples(
    path: str | pathlib.Path,
    is_training: bool,
    version_2_with_negative: bool = False,
    several_answers: str = "refuse",
) -> Questions:
    """Reads a SQuAD file, perhaps gzipped.

    Args:
        path: the file.
        is_training: read where the answers are; every question must have exactly one,
            or none if it is impossible.
        version_2_with_negative: questions may be impossible.
        several_answers: what to do in training with a question that has more than one,
            as those of the dev sets: "refuse", or train on the "first".
    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no such JSON, or holds no question; in training, a question
            has no answer or too many. Names file and place.
    """
    examples, misplaced = [], []
    for where, paragraph, entry in _questions(path):
        example = _read_question(entry, paragraph, where)
        if is_training:
            impossible = version_2_with_negative and _get(
                entry, "is_impossible", bool, where, default=False
            )
            answer = None
            if not impossible:
                place = f"{path}, question {example.qas_id!r}"
                answer = _only_answer(entry, place, several_answers)
            qas_id, example = example.qas_id, _with_answer(example, answer)
            if example is None:
                misplaced.append(qas_id)
                continue
        examples.append(example)
    if not (examples or misplaced):
        raise ValueError(f"{path} holds no question")
    return Questions(examples, misplaced)


def read_training_set(
    paths: Iterable[str | pathlib.Path],
    version_2_with_negative: bool = False,
    several_answers: str = "refuse",
) -> list[SquadExample]:
    """The questions of several files to train on; see `read_squad_examples`.

    Warns of questions that are left out, and names them. Ids do not matter here.

    Raises:
        ValueError: as there; also, no question is left.
    """
    examples = []
    for path in paths:
        questions = read_squad_examples(
            path, True, version_2_with_negative, several_answers
        )
        examples += questions.examples
        if questions.misplaced:
            logging.warning(
                "%s: left out %d questions whose answer is not at its answer_start: %s",
                path,
                len(questions.misplaced),
                " ".join(questions.misplaced),
            )
    if not examples:
        names = ", ".join(map(str, paths))
        raise ValueError(f"there is no question to train on in {names or 'no file'}")
    return examples


def read_prediction_set(path: str | pathlib.Path) -> list[SquadExample]:
    """The questions of a file to answer; see `read_squad_examples`.

    Raises:
        ValueError: as there; also, questions have the same id.
    """
    examples = read_squad_examples(path, is_training=False).examples
    counts = collections.Counter(example.qas_id for example in examples)
    repeated = [qas_id for qas_id, count in counts.items() if count > 1]
    if repeated:
        raise ValueError(
            f"{path}: {len(repeated)} ids belong to several questions, such as "
            f"{repeated[0]!r}; every question to answer needs an id of its own"
        )
    return examples


def has_answers(
    examples: Iterable[SquadExample], version_2_with_negative: bool
) -> bool:
    """Whether answers can be scored: accepted ones are known for every question.

    In SQuAD 2.0 there may be none: the answer should be "".
    """
    if version_2_with_negative:
        return all(example.answers is not None for example in examples)
    return all(example.answers for example in examples)


def _read_question(entry: Any, paragraph: Paragraph, where: str) -> SquadExample:
    """A question without what training adds."""
    qas_id = str(_get(entry, "id", (str, int), where))
    answers = None
    if "answers" in entry:
        answers = tuple(
            _get(answer, "text", str, f"{where}.answers")
            for answer in _get(entry, "answers", list, where)
        )
    return SquadExample(
        qas_id=qas_id,
        question_text=_get(entry, "question", str, where),
        paragraph=paragraph,
        answers=answers,
    )


def _with_answer(
    example: SquadExample, answer: tuple[str, int] | None
) -> SquadExample | None:
    """The question with its (text, first character), or none; None if misplaced."""
    if answer is None:
        return dataclasses.replace(
            example,
            orig_answer_text="",
            start_position=-1,
            end_position=-1,
            is_impossible=True,
        )
    text, start = answer
    paragraph, end = example.paragraph, start + len(text)
    if not (text.strip() and start >= 0 and end <= len(paragraph.text)):
        return None
    first, last = paragraph.word_at(start), paragraph.word_at(end - 1)
    # Whole words do, as the offsets of some files are off by a few characters.
    there = " ".join(paragraph.words[first : last + 1])
    # The original went by this alone, and lost answers with a no-break space in them.
    if " ".join(text.split()) not in there and text != paragraph.text[start:end]:
        return None
    return dataclasses.replace(
        example, orig_answer_text=text, start_position=first, end_position=last
    )


def _only_answer(
    entry: dict[str, Any], where: str, several_answers: str
) -> tuple[str, int]:
    """Text and first character of the one answer a question to train on must have."""
    answers = entry.get("answers", [])
    if not answers:
        raise ValueError(
            f"{where} has no answer to train on; questions without an answer need "
            '--version_2_with_negative and "is_impossible": true'
        )
    if len(answers) > 1 and several_answers != "first":
        raise ValueError(
            f"{where} has {len(answers)} answers, but training takes one; pass "
            "--several_answers=first to train on the first of them"
        )
    return answers[0]["text"], _get(answers[0], "answer_start", int, where)


def _questions(
    path: str | pathlib.Path,
) -> Iterator[tuple[str, Paragraph, dict[str, Any]]]:
    """Yields (where it stands, its paragraph, its entry) for every question."""
    for i, article in enumerate(_get(tables.read_json(path), "data", list, str(path))):
        where = f"{path}, data[{i}]"
        for j, entry in enumerate(_get(article, "paragraphs", list, where)):
            place = f"{where}.paragraphs[{j}]"
            paragraph = Paragraph.from_text(_get(entry, "context", str, place))
            for k, question in enumerate(_get(entry, "qas", list, place)):
                yield f"{place}.qas[{k}]", paragraph, question


_NAMES = {str: "a string", list: "a list", int: "a whole number", bool: "true or false"}


def _get(entry: Any, key: str, kind: Any, where: str, default: Any = None) -> Any:
    """entry[key], or ValueError if it is not of that kind."""
    if not isinstance(entry, dict):
        raise ValueError(f"{where}: expected an object with {key!r}, got {entry!r:.50}")
    if key not in entry:
        if default is not None:
            return default
        raise ValueError(
            f"{where} has no {key!r}, only {', '.join(map(repr, entry)) or 'nothing'}; "
            "is it a SQuAD file?"
        )
    value = entry[key]
    # For Python, true is a whole number.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(_NAMES[k] for k in kinds)
        raise ValueError(f"{where}: {key!r} must be {wanted}, got {value!r:.50}")
    return value
