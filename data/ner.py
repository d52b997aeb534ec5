"""Tags of words, such as named entities, as labels of word pieces (section 5.3).

Devlin et al. 2018: the label of a word is that of its first piece; the other pieces
have none. A sentence that is longer than the model's input is cut into windows that
overlap, and every word is labelled once, in the window that shows most around it.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import tqdm

from data import conll, features


def check_tagged(file: conll.File) -> None:
    """Raises ValueError if a file has no column of tags."""
    if file.layout.tag is None:
        raise ValueError(
            f"{file.path}, line {file.layout.first_line}: there is no column of tags, "
            f"only {file.layout.width} in all with the words in column "
            f"{file.layout.word}; see --tag_column"
        )


def check_documents(file: conll.File) -> None:
    """Raises ValueError if a file does not say where its documents start."""
    if file.sentences[-1].document == 0:
        raise ValueError(
            f"{file.path} has no {conll.DOCUMENT_START} lines, so its documents are "
            f"not known; put one before each document, or drop --document_context"
        )


def infer_labels(files: Iterable[conll.File]) -> tuple[str, ...]:
    """O, and then B- and I- of every type, sorted.

    Raises:
        ValueError: all words are O.
    """
    files = list(files)
    tags = {tag for file in files for s in file.sentences for tag in s.tags}
    types = sorted({tag[1:] for tag in tags - {"O"}})
    if not types:
        raise ValueError(
            f"{', '.join(file.path for file in files)}: every tag is O, so there is "
            "nothing to learn; see --tag_column"
        )
    return ("O", *(prefix + name for name in types for prefix in "BI"))


def check_labels(file: conll.File, labels: Sequence[str]) -> None:
    """Raises ValueError for the first tag that is none of the labels."""
    for sentence in file.sentences:
        for line, tag in zip(sentence.lines, sentence.tags or (), strict=False):
            if tag not in labels:
                raise ValueError(
                    f"{file.path}, line {line}: {tag} is not in the training data; the "
                    f"model's labels are {', '.join(labels)}"
                )


def unknown_tags(file: conll.File, labels: Sequence[str]) -> list[str]:
    """The tags of a file that are none of the labels, sorted."""
    tags = {tag for sentence in file.sentences for tag in sentence.tags or ()}
    return sorted(tags - set(labels))


def cut(start: int, end: int, low: int, high: int, room: int) -> list[tuple[int, int]]:
    """Windows of at most `room` pieces that overlap and together hold [start, end).

    As far as room is left they reach beyond it on both sides, within [low, high): a
    window beyond [start, end) is full, or it is all of [low, high).

    Returns:
        list of (first piece, piece after the last), from left to right.
    """
    if end - start <= room:
        spare = room - (end - start)
        before = min(start - low, max(spare // 2, spare - (high - end)))
        return [(start - before, min(high, end + spare - before))]
    # Words at the ends of a long sentence may look as far as those at a cut.
    low, high = max(low, start - room // 4), min(high, end + room // 4)
    surplus = high - low - room
    steps = -(-surplus // max(1, room // 2))
    starts = [low + surplus * step // steps for step in range(steps + 1)]
    return [(first, first + room) for first in starts]


def _owned(windows: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yields of each window the part that no other window shows more around.

    That is the lesser of what is shown to the left and to the right.
    """
    pairs = itertools.pairwise(windows)
    # Between two windows the best place to change is the middle of what they share.
    changes = [(start + end) // 2 for (_, end), (start, _) in pairs]
    yield from itertools.pairwise([windows[0][0], *changes, windows[-1][1]])


class _Pieces:
    """The pieces of the sentences of a document, of those that have words.

    Attributes:
        ids: list of int, of all sentences.
        words: for each sentence, the place in `ids` of the first piece of each word.
    """

    def __init__(self, tokenizer: features.Tokenizer):
        self._tokenizer = tokenizer
        self._unknown = tokenizer.convert_tokens_to_ids(["[UNK]"])
        self.ids, self.words = [], []

    def add(self, words: Iterable[str]) -> None:
        """Adds a sentence."""
        places = []
        for word in words:
            places.append(len(self.ids))
            # Of some words, such as a zero-width character, no piece is left.
            self.ids += self._tokenizer.encode(word) or self._unknown
        self.words.append(places)

    def windows(self, room: int) -> Iterator[tuple[list[int], list[int]]]:
        """Yields (ids, places in them of the words to label).

        Over all windows these are the words in order, each once.
        """
        size = len(self.ids)
        ends = [*(places[0] for places in self.words), size][1:]
        for places, end in zip(self.words, ends, strict=True):
            windows = cut(places[0], end, 0, size, room)
            for window, (low, high) in zip(windows, _owned(windows), strict=True):
                start, stop = window
                labelled = [place - start for place in places if low <= place < high]
                if labelled:
                    yield self.ids[start:stop], labelled


def document_windows(
    sentences: Iterable[Sequence[str]],
    max_seq_length: int,
    tokenizer: features.Tokenizer,
) -> list[tuple[list[int], list[int]]]:
    """Cuts a document into windows that together label every word once.

    Args:
        sentences: the words of each. A window labels words of one of them; the others
            fill what is left of it.
        max_seq_length: of a window, with [CLS] and [SEP].
        tokenizer: as for a classifier.

    Returns:
        (ids, places) of each window: its token ids, from [CLS] to [SEP], and where in
        them the words that it labels begin. Over all windows these are all words in
        order.

    Raises:
        ValueError: max_seq_length has no room for a piece.
    """
    if max_seq_length < 3:
        raise ValueError(
            "max_seq_length must be at least 3, for [CLS], a piece and [SEP], got "
            f"{max_seq_length}"
        )
    cls, sep = tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]"])
    pieces = _Pieces(tokenizer)
    for words in filter(len, sentences):
        pieces.add(words)
    return [
        ([cls, *ids, sep], [place + 1 for place in places])
        for ids, places in pieces.windows(max_seq_length - 2)
    ]


def _documents(
    files: Iterable[conll.File], document_context: bool
) -> Iterator[Sequence[conll.Sentence]]:
    """Yields the sentences that may look at one another."""
    for file in files:
        if document_context:
            groups = itertools.groupby(file.sentences, lambda s: s.document)
            yield from (list(group) for _, group in groups)
        else:
            yield from ([sentence] for sentence in file.sentences)


def files_to_arrays(
    files: Sequence[conll.File],
    labels: Sequence[str],
    max_seq_length: int,
    tokenizer: features.Tokenizer,
    document_context: bool = False,
) -> dict[str, np.ndarray]:
    """Turns sentences into windows, showing progress.

    Args:
        files: what `conll.read` gave.
        labels: tags in BIO.
        max_seq_length: of a window, with [CLS] and [SEP].
        tokenizer: as for a classifier.
        document_context: fill the windows with the sentences before and after, of the
            same document ("the maximal document context provided by the data").

    Returns:
        int32 arrays [windows, max_seq_length]: input_ids, input_mask, segment_ids,
        label_ids, label_mask. The mask is 1 at the first pieces of the words that the
        window labels: `array[label_mask == 1]` has an entry for every word of the
        files, in order. label_ids are 0 elsewhere, in files without tags, and where a
        tag is none of the labels.

    Raises:
        ValueError: as `document_windows`.
    """
    documents = list(_documents(files, document_context))
    windows = []
    for document in tqdm.tqdm(documents, "tokenizing", unit=" documents", delay=1):
        sentences = [sentence.words for sentence in document]
        windows += document_windows(sentences, max_seq_length, tokenizer)
    names = (*features.INPUTS, "label_ids", "label_mask")
    shape = (len(windows), max_seq_length)
    arrays = {name: np.zeros(shape, np.int32) for name in names}
    for row, (ids, places) in enumerate(windows):
        arrays["input_ids"][row, : len(ids)] = ids
        arrays["input_mask"][row, : len(ids)] = 1
        arrays["label_mask"][row, places] = 1
    numbers = {label: number for number, label in enumerate(labels)}
    arrays["label_ids"][arrays["label_mask"] == 1] = [
        numbers.get(tag, 0)
        for file in files
        for sentence in file.sentences
        for tag in sentence.tags or [None] * len(sentence.words)
    ]
    return arrays


def split(
    sentences: Iterable[conll.Sentence], tags: Iterable[str]
) -> list[tuple[str, ...]]:
    """Cuts the tags of all words into those of each sentence."""
    rest = iter(tags)
    return [tuple(itertools.islice(rest, len(s.words))) for s in sentences]
