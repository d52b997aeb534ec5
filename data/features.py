"""Texts to model inputs: [CLS] A [SEP] B [SEP] (Devlin et al. 2018, figure 2)."""

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import tqdm

from data import classification, targets

# What every model takes: int32, [batch, seq_length], or [batch, choices, seq_length].
INPUTS = ("input_ids", "input_mask", "segment_ids")


class Tokenizer(Protocol):
    """What featurising needs of a tokenizer."""

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without special tokens."""

    def convert_tokens_to_ids(self, tokens: Sequence[str]) -> list[int]:
        """The ids of tokens."""


def truncate_pair(ids_a: list[int], ids_b: list[int], room: int) -> None:
    """Cuts both in place until they fit: always the longer, at its end; B on a tie."""
    while len(ids_a) + len(ids_b) > room:
        longer = ids_a if len(ids_a) > len(ids_b) else ids_b
        longer.pop()


def join_segments(
    ids_a: list[int],
    ids_b: list[int],
    max_seq_length: int,
    tokenizer: Tokenizer,
) -> tuple[list[int], list[int]]:
    """Token ids and segment ids of a text or a pair, not padded.

    A pair without room for B, or whose B is empty, becomes a single text.
    """
    cls, sep = tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]"])
    ids_a, ids_b = list(ids_a), list(ids_b)
    truncate_pair(ids_a, ids_b, max_seq_length - (3 if ids_b else 2))
    ids = [cls, *ids_a, sep]
    segments = [0] * len(ids)
    if ids_b:
        ids += [*ids_b, sep]
        segments += [1] * (len(ids_b) + 1)
    return ids, segments


def example_ids(
    example: classification.InputExample, max_seq_length: int, tokenizer: Tokenizer
) -> tuple[list[int], list[int]]:
    """Token ids and segment ids of one example, truncated and not padded.

    Raises:
        ValueError: max_seq_length has no room for the special tokens of a pair.
    """
    if max_seq_length < 3:
        raise ValueError(
            "max_seq_length must be at least 3, for [CLS] and two [SEP], got "
            f"{max_seq_length}"
        )
    ids_a = tokenizer.encode(example.text_a)
    ids_b = tokenizer.encode(example.text_b) if example.text_b else []
    return join_segments(ids_a, ids_b, max_seq_length, tokenizer)


def examples_to_arrays(
    examples: Sequence[classification.InputExample],
    labels: Sequence[str],
    max_seq_length: int,
    tokenizer: Tokenizer,
    kind: targets.Kind = targets.Kind.CLASS,
) -> dict[str, np.ndarray]:
    """Featurizes a data set, showing progress.

    Returns:
        int32 arrays: input_ids, input_mask and segment_ids [examples, max_seq_length];
        is_real_example [examples]; and label_ids, see `targets.encode`.
    """
    progress = tqdm.tqdm(examples, desc="tokenizing", unit=" examples", delay=1)
    rows = (example_ids(example, max_seq_length, tokenizer) for example in progress)
    return {
        **pad(rows, len(examples), max_seq_length),
        "label_ids": targets.encode([e.label for e in examples], labels, kind),
        "is_real_example": np.ones(len(examples), np.int32),
    }


def pad(
    rows: Iterable[tuple[Sequence[int], Sequence[int]]], num_rows: int, length: int
) -> dict[str, np.ndarray]:
    """Token ids and segment ids of `num_rows` sequences to what a model takes.

    Returns:
        int32 arrays input_ids, input_mask and segment_ids [num_rows, length].
    """
    arrays = {name: np.zeros((num_rows, length), np.int32) for name in INPUTS}
    for index, (ids, segments) in enumerate(rows):
        size = len(ids)
        arrays["input_ids"][index, :size] = ids
        arrays["input_mask"][index, :size] = 1
        arrays["segment_ids"][index, :size] = segments
    return arrays
