"""Questions to model inputs: [CLS] question [SEP] part of the text [SEP].

Devlin et al. 2018, section 4.2. A text that is too long is read through a window that
moves on by `doc_stride` tokens. All of it takes time linear in the tokens of all
windows.
"""

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from data import features, squad, tokenization

FIRST_UNIQUE_ID = 1_000_000_000


@dataclasses.dataclass(frozen=True)
class WindowSizes:
    """How a question and its text share a sequence; all in tokens.

    Attributes:
        max_seq_length: of a sequence.
        doc_stride: from the start of one window to that of the next.
        max_query_length: of a question; a longer one is cut at its end.
    Raises:
        ValueError: no room is left for the text, or the windows do not move on.
    """

    max_seq_length: int = 384
    doc_stride: int = 128
    max_query_length: int = 64

    def __post_init__(self):
        if self.max_seq_length <= self.max_query_length + 3:
            raise ValueError(
                f"--max_seq_length is {self.max_seq_length}, but must be more than "
                f"--max_query_length + 3 = {self.max_query_length + 3}, for [CLS], two "
                "[SEP] and some of the text"
            )
        if self.doc_stride < 1:
            raise ValueError(
                f"--doc_stride must be 1 or more, got {self.doc_stride}: the windows "
                "have to move on"
            )


@dataclasses.dataclass(frozen=True, eq=False)
class TokenizedContext:
    """The tokens of a context, word by word.

    Attributes:
        ids: int32, [tokens].
        word_of_token: int32, [tokens].
        first_tokens: int32, [words + 1]: where the tokens of each word start, which may
            have none; the last entry is the number of tokens.
    """

    ids: np.ndarray
    word_of_token: np.ndarray
    first_tokens: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Window:
    """A question with a part of its text.

    Attributes:
        unique_id: counts all windows, from `FIRST_UNIQUE_ID`.
        example_index: the question's.
        doc_span_index: counts the windows of the question.
        query_ids: tokens of the question, with [CLS] and [SEP].
        context: all of the text.
        start, end: which tokens of it are in the window.
        is_max_context: bool, [end - start]: no other window has more of the text on
            both sides of this token.
        start_position, end_position: the answer in the sequence; 0 and 0 if the window
            does not hold all of it.
        is_impossible: the question has no answer in the text.
    """

    unique_id: int
    example_index: int
    doc_span_index: int
    query_ids: list[int]
    context: TokenizedContext
    start: int
    end: int
    is_max_context: np.ndarray
    start_position: int = 0
    end_position: int = 0
    is_impossible: bool = False

    @property
    def doc_offset(self) -> int:
        """Where in the sequence the text starts."""
        return len(self.query_ids)

    @property
    def input_ids(self) -> list[int]:
        """The sequence, not padded."""
        sep = self.query_ids[-1]
        return [*self.query_ids, *self.context.ids[self.start : self.end].tolist(), sep]


def make_windows(
    examples: Iterable[squad.SquadExample],
    tokenizer: tokenization.FullTokenizer,
    sizes: WindowSizes,
) -> Iterator[Window]:
    """Yields the windows of all questions in order.

    A text without tokens has none. Questions that were read for training get positions.
    """
    tokenize = functools.lru_cache(maxsize=64)(
        lambda paragraph: tokenize_context(paragraph.words, tokenizer)
    )
    cls, sep = tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]"])
    unique_id = FIRST_UNIQUE_ID
    for example_index, example in enumerate(examples):
        context = tokenize(example.paragraph)
        query = tokenizer.encode(example.question_text)[: sizes.max_query_length]
        query_ids = [cls, *query, sep]
        starts, ends = place_windows(
            len(context.ids), sizes.max_seq_length - len(query) - 3, sizes.doc_stride
        )
        best = best_windows(starts, ends)
        answer = _answer_tokens(example, context, tokenizer)
        for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
            positions = (0, 0)
            if answer and start <= answer[0] and answer[1] < end:
                shift = len(query_ids) - start
                positions = (answer[0] + shift, answer[1] + shift)
            yield Window(
                unique_id,
                example_index,
                index,
                query_ids,
                context,
                start,
                end,
                best[start:end] == index,
                *positions,
                example.is_impossible,
            )
            unique_id += 1


def tokenize_context(
    words: Sequence[str], tokenizer: tokenization.FullTokenizer
) -> TokenizedContext:
    """Tokenizes each word by itself."""
    ids = [tokenizer.encode(word) for word in words]
    lengths = [len(word_ids) for word_ids in ids]
    return TokenizedContext(
        ids=np.array(list(itertools.chain.from_iterable(ids)), np.int32),
        word_of_token=np.repeat(np.arange(len(words), dtype=np.int32), lengths),
        first_tokens=np.cumsum([0, *lengths], dtype=np.int32),
    )


def place_windows(
    num_tokens: int, room: int, doc_stride: int
) -> tuple[list[int], list[int]]:
    """Where windows of at most `room` tokens start and end, until all is covered."""
    starts, ends = [], []
    start = end = 0
    while end < num_tokens:
        end = min(start + room, num_tokens)
        starts.append(start)
        ends.append(end)
        start += min(room, doc_stride)
    return starts, ends


def best_windows(starts: Sequence[int], ends: Sequence[int]) -> np.ndarray:
    """For each token the window that shows most of what is around it.

    That is the window with the largest min(tokens to the left, tokens to the right) +
    0.01 * its length; the first of equals. Only windows that hold a token are asked.

    Returns:
        int32, [tokens].
    """
    num_tokens = ends[-1] if ends else 0
    best = np.zeros(num_tokens, np.int32)
    best_score = np.full(num_tokens, -1.0)
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        left = np.arange(end - start)
        score = np.minimum(left, left[::-1]) + 0.01 * (end - start)
        better = score > best_score[start:end]
        best[start:end][better] = index
        best_score[start:end][better] = score[better]
    return best


def _answer_tokens(
    example: squad.SquadExample,
    context: TokenizedContext,
    tokenizer: tokenization.FullTokenizer,
) -> tuple[int, int] | None:
    """First and last token of the answer to train on, if there is one."""
    if example.start_position is None or example.is_impossible:
        return None
    start = int(context.first_tokens[example.start_position])
    end = int(context.first_tokens[example.end_position + 1]) - 1
    if end < start:  # its words are of characters that are dropped
        return None
    # From the whole words to the answer itself: "(1821-1887)," to "1887".
    ids = np.array(tokenizer.encode(example.orig_answer_text), np.int32)
    first = _find(context.ids[start : end + 1], ids)
    if first < 0:
        return start, end
    return start + first, start + first + len(ids) - 1


def _find(values: np.ndarray, part: np.ndarray) -> int:
    """Where `part`, int32 as `values`, first stands in it; -1 if nowhere or empty."""
    # Bytes are searched in linear time, whatever repeats.
    haystack, needle, size = values.tobytes(), part.tobytes(), values.itemsize
    place = haystack.find(needle) if needle else -1
    while place > 0 and place % size:
        place = haystack.find(needle, place + 1)
    return place // size


def to_arrays(windows: Sequence[Window], max_seq_length: int) -> dict[str, np.ndarray]:
    """Windows as a batch of `records.squad_spec`.

    Returns:
        int32 arrays: input_ids, input_mask, segment_ids [windows, max_seq_length]; and
        unique_ids, start_positions, end_positions, is_impossible [windows].
    """
    shape = (len(windows), max_seq_length)
    arrays = {name: np.zeros(shape, np.int32) for name in features.INPUTS}
    for row, window in enumerate(windows):
        ids = window.input_ids
        arrays["input_ids"][row, : len(ids)] = ids
        arrays["input_mask"][row, : len(ids)] = 1
        arrays["segment_ids"][row, window.doc_offset : len(ids)] = 1
    columns = {
        "unique_ids": "unique_id",
        "start_positions": "start_position",
        "end_positions": "end_position",
        "is_impossible": "is_impossible",
    }
    for name, attribute in columns.items():
        values = [getattr(window, attribute) for window in windows]
        arrays[name] = np.array(values, np.int32)
    return arrays


def batched_arrays(
    windows: Iterable[Window], max_seq_length: int, batch_size: int = 256
) -> Iterator[dict[str, np.ndarray]]:
    """Yields `to_arrays` of `batch_size` windows at a time."""
    windows = iter(windows)
    while batch := list(itertools.islice(windows, batch_size)):
        yield to_arrays(batch, max_seq_length)
