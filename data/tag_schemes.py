"""Tags of entities: the three schemes of O, B-TYPE and I-TYPE.

    BIO  (IOB2): every entity starts with B-;
    IOB1:        only one that follows another of its type starts with B-;
    IO:          none does, so neighbours of one type are one entity.

What an entity is, is the same: in all three, and for the official scorer, conlleval,
one starts at a B- and at an I- that does not continue its like. So all can become BIO,
which is what figure 4 (d) of Devlin et al. 2018 shows. A tag may also be B or I alone,
where entities have no types.
"""

import itertools
import pathlib
import re
from collections.abc import Iterable, Sequence

_TAG = re.compile(r"O|[BI](-.+)?", re.DOTALL)


def is_tag(text: str) -> bool:
    """Whether it is O, B-TYPE or I-TYPE, or B or I where there is only one type."""
    return _TAG.fullmatch(text) is not None


def starts_entity(previous: str, tag: str) -> bool:
    """Whether an entity starts at `tag`; `previous` is O at the start of a sentence."""
    if tag == "O":
        return False
    return tag[0] == "B" or previous == "O" or previous[1:] != tag[1:]


def to_bio(tags: Sequence[str]) -> tuple[str, ...]:
    """The same entities in BIO, from any of the three schemes."""
    return tuple(
        "B" + tag[1:] if starts_entity(previous, tag) else tag
        for previous, tag in itertools.pairwise(["O", *tags])
    )


def find_scheme(
    path: str | pathlib.Path,
    sentences: Iterable[tuple[Sequence[str], Sequence[int]]],
    allow_mixed: bool = False,
) -> str | None:
    """The scheme of a file's tags: BIO, IOB1, IO, mixed, or None if all are O.

    Args:
        path: the file, to be named in errors.
        sentences: (tags, number of the line of each) of every sentence.
        allow_mixed: accept what is in none of the schemes.

    Raises:
        ValueError: two lines contradict each other; names the one of the rarer kind.
    """
    lines = {"I": [], "B": []}  # of entities that BIO and IOB1 start differently
    repeats = False
    for tags, numbers in sentences:
        pairs = itertools.pairwise(["O", *tags])
        for (previous, tag), number in zip(pairs, numbers, strict=True):
            if tag[0] == "B" and previous[1:] == tag[1:] and previous != "O":
                repeats = True
            elif starts_entity(previous, tag):
                lines[tag[0]].append(number)
    if lines["B"] and lines["I"]:
        if allow_mixed:
            return "mixed"
        rare, common = sorted(lines, key=lambda prefix: len(lines[prefix]))
        names = {"B": "BIO", "I": "IOB1 or IO"}
        raise ValueError(
            f"{path}, line {lines[rare][0]}: an entity starts with {rare}- as in "
            f"{names[rare]}, but {len(lines[common])} start with {common}- as in "
            f"{names[common]}, first in line {lines[common][0]}; correct the tags, or "
            "take them as they are with --allow_mixed_tags"
        )
    if lines["I"]:
        return "IOB1" if repeats else "IO"
    return "BIO" if lines["B"] else None
