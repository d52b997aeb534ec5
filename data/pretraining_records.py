"""Text to token ids, and token ids to records, as values.

What `data/build_steps.py` writes to files and a Beam pipeline hands on. The results
depend on the arguments alone, so each can be made anywhere and in any order.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import IO

import numpy as np

from data import (
    corpus,
    masking,
    pretraining,
    records,
    sentences,
    text_files,
    tokenization,
)


@dataclasses.dataclass(frozen=True)
class Text:
    """How to read the text.

    Attributes:
        vocab_file: str.
        do_lower_case: see `tokenization.FullTokenizer`.
        split_sentences: whether a line is a paragraph, to be cut into sentences.
        pre_segmented: whether spaces separate all words, as they should stay together
            in whole-word masking, also where the tokenizer cuts them apart (Chinese).
        text_field: see `text_files.read_documents`.
    """

    vocab_file: str
    do_lower_case: bool
    split_sentences: bool = False
    pre_segmented: bool = False
    text_field: str = "text"


class Reader:
    """Reads text and turns it into token ids.

    Args:
        text: how to read.
        open_file: path -> binary file.

    Attributes:
        tokenizer: tokenization.FullTokenizer.
    """

    def __init__(
        self, text: Text, open_file: Callable[[str], IO[bytes]] = text_files.open_local
    ):
        self.tokenizer = tokenization.FullTokenizer(text.vocab_file, text.do_lower_case)
        self._text = text
        self._open_file = open_file

    def read(self, chunk: corpus.Chunk) -> tuple[corpus.Tokens, dict[str, int]]:
        """The token ids of a chunk, and how many of what there are."""
        tokens = corpus.tokenize(
            chunk,
            self._encode_words if self._text.pre_segmented else self._encode,
            sentences.split if self._text.split_sentences else None,
            self._text.text_field,
            self._open_file,
        )
        ids = tokens.token_ids & ~np.int32(masking.CONTINUES)
        unknown = ids == self.tokenizer.vocab["[UNK]"]
        return tokens, {
            "documents": len(tokens.document_lengths),
            "sentences": len(tokens.sentence_lengths),
            "tokens": len(tokens.token_ids),
            "unknown": int(unknown.sum()),
        }

    def _encode(self, sentence: str) -> list[int]:
        return self.tokenizer.encode(sentence)

    def _encode_words(self, sentence: str) -> list[int]:
        """Ids of words between white space, marked for `masking.by_marked_word`."""
        ids = []
        for word in sentence.split():
            first, *rest = self.tokenizer.encode(word) or [None]
            if first is not None:
                ids += [first, *(i | masking.CONTINUES for i in rest)]
        return ids


def layout(settings: pretraining.Settings) -> records.Spec:
    """The layout of the records."""
    return records.pretraining_spec(
        settings.max_seq_length, settings.scheme.max_predictions_per_seq
    )


def make(
    pool: corpus.Pool, epoch: int, settings: pretraining.Settings
) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]]:
    """The instances of a pass over a pool.

    Yields:
        Some at a time: as a batch, and what `records.encode` makes of it, the bytes
        uint8 [total] and int64 [N], where in them each record ends.
    """
    pairs, keys = pretraining.sample_pairs(pool, epoch, settings)
    for batch in pretraining.make_instances(pool, pairs, keys, settings):
        yield batch, *records.encode(batch, layout(settings))


def count(batch: dict[str, np.ndarray]) -> dict[str, int]:
    """How many instances, and of what in them, a batch holds."""
    return {
        "instances": len(batch["input_ids"]),
        "positions": int(batch["input_mask"].sum()),
        "masked": int(batch["masked_lm_weights"].sum()),
        "random_next": int(batch["next_sentence_labels"].sum()),
    }
