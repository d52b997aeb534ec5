"""Texts as questions to a language model: which words at these positions?

A [MASK] of the text, each token in turn (Salazar et al. 2020, "Masked Language Model
Scoring"), each token from those before it, or whether a sentence follows another.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from data import classification, features, tokenization

MASK = "[MASK]"


class Row(NamedTuple):
    """A sequence, without padding, and what is asked about it.

    Attributes:
        input_ids, segment_ids: list of int, of the tokens.
        masked_lm_positions: list of int, where the model is asked.
        masked_lm_ids: list of int, the token whose probability is asked at each.
    """

    input_ids: list[int]
    segment_ids: list[int]
    masked_lm_positions: list[int]
    masked_lm_ids: list[int]


def encode(text: str, tokenizer: features.Tokenizer) -> list[int]:
    """The ids of a text in which "[MASK]" stands for that token."""
    (mask_id,) = tokenizer.convert_tokens_to_ids([MASK])
    first, *others = map(tokenizer.encode, text.split(MASK))
    ids = [*first]
    for part in others:
        ids += [mask_id, *part]
    return ids


def of_masks(
    example: classification.InputExample,
    max_seq_length: int,
    tokenizer: features.Tokenizer,
) -> Row:
    """A text, or a pair, asked for what stands at each [MASK].

    Raises:
        ValueError: it has no [MASK], or is too long; does not say where it is.
    """
    ids, segments = _join(example, max_seq_length, tokenizer)
    (mask_id,) = tokenizer.convert_tokens_to_ids([MASK])
    row = _asked(ids, segments, lambda token: token == mask_id)
    if not row.masked_lm_positions:
        raise ValueError(f"there is no {MASK} to fill; put one in place of a word")
    return row


def of_tokens(
    example: classification.InputExample,
    max_seq_length: int,
    tokenizer: features.Tokenizer,
) -> Row:
    """A text, or a pair, asked for each of its tokens but [CLS] and [SEP].

    Raises:
        ValueError: it has a [MASK], or is too long; does not say where it is.
    """
    ids, segments = _join(example, max_seq_length, tokenizer)
    special = tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]", MASK])
    if special[-1] in ids:
        raise ValueError(f"{MASK} has no probability; give a text without it")
    return _asked(ids, segments, lambda token: token not in special)


def of_pair(
    example: classification.InputExample,
    max_seq_length: int,
    tokenizer: features.Tokenizer,
) -> Row:
    """A pair, asked at [CLS] whether the second text follows the first.

    Raises:
        ValueError: one of them is absent or empty, or they are too long; does not say
            where they are.
    """
    ids, segments = _join(example, max_seq_length, tokenizer)
    if segments.count(0) < 3 or 1 not in segments:
        raise ValueError(
            "a pair is needed, TEXT_A ||| TEXT_B, with a word in each at least"
        )
    return Row(ids, segments, [0], ids[:1])


def _join(
    example: classification.InputExample,
    max_seq_length: int,
    tokenizer: features.Tokenizer,
) -> tuple[list[int], list[int]]:
    """Token ids and segment ids, refused if they are too many."""
    ids_a, ids_b = (
        encode(t or "", tokenizer) for t in (example.text_a, example.text_b)
    )
    size = len(ids_a) + len(ids_b) + (3 if ids_b else 2)
    if size > max_seq_length:
        raise ValueError(
            f"there are {size} tokens with [CLS] and [SEP], but at most "
            f"{max_seq_length} fit (max_seq_length); cut it into shorter ones"
        )
    return features.join_segments(ids_a, ids_b, size, tokenizer)


def _asked(ids: list[int], segments: list[int], is_asked: Callable[[int], bool]) -> Row:
    positions = [place for place, token in enumerate(ids) if is_asked(token)]
    return Row(ids, segments, positions, [ids[place] for place in positions])


def mask_each(
    row: Row, tokenizer: tokenization.FullTokenizer, within_words: bool = False
) -> Iterator[Row]:
    """Yields the sequence once for each token asked for, with that token masked.

    Args:
        row: of `of_tokens`.
        tokenizer: FullTokenizer.
        within_words: mask the later pieces of the same word too, so that they do not
            give it away (Kauf and Ivanova 2023, "A Better Way to Do Masked Language
            Model Scoring").
    """
    mask_id = tokenizer.vocab[MASK]
    for place, token in zip(row.masked_lm_positions, row.masked_lm_ids, strict=True):
        masked = list(row.input_ids)
        masked[place] = mask_id
        after = place + 1
        while within_words and tokenizer.inv_vocab[masked[after]].startswith("##"):
            masked[after] = mask_id
            after += 1
        yield Row(masked, row.segment_ids, [place], [token])


def ask_before(row: Row) -> Row:
    """The same tokens, each asked for at the position before it.

    So a model is asked that sees nothing behind a position and predicts the next token.
    """
    return row._replace(masked_lm_positions=[p - 1 for p in row.masked_lm_positions])


def to_batch(rows: Sequence[Row]) -> dict[str, np.ndarray]:
    """Pads rows to the longest and to the most that is asked of one.

    Returns:
        int32: input_ids, input_mask and segment_ids [rows, seq_length];
        masked_lm_positions and masked_lm_ids [rows, positions], 0 where nothing is
        asked.
    """
    longest = max(len(row.input_ids) for row in rows)
    batch = features.pad([row[:2] for row in rows], len(rows), longest)
    most = max(len(row.masked_lm_positions) for row in rows)
    for name in ("masked_lm_positions", "masked_lm_ids"):
        batch[name] = np.zeros((len(rows), most), np.int32)
        for values, row in zip(batch[name], rows, strict=True):
            asked = getattr(row, name)
            values[: len(asked)] = asked
    return batch
