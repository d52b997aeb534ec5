"""Text files become documents, and documents pools (Devlin et al. 2018, A.2).

Memory does not grow with the corpus: what the instances need to see at once, random
next sentences and the shuffling, stays within a pool of consecutive documents. A corpus
of up to `POOL_TOKENS` tokens is one pool, so all of it is mixed, as in the original. In
a larger one a random next sentence comes from the surrounding `POOL_TOKENS` tokens, and
the instances of one pool stand together. Shuffle the documents first if they are sorted
by topic. Two pools and the longest document are held at once.

What a pool holds depends on the text alone, so pools can be worked on in any order.
"""

import array
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

POOL_TOKENS = 2**21


@dataclasses.dataclass(frozen=True)
class Document:
    """Token ids of all sentences in a row, the lengths of the sentences (none is 0)
    and the number of bytes the text took."""

    token_ids: Sequence[int]
    sentence_lengths: Sequence[int]
    num_bytes: int


@dataclasses.dataclass(frozen=True)
class Pool:
    """Consecutive documents.

    Attributes:
        index: the number of the pool in the corpus.
        token_ids: int32 [tokens].
        sentence_starts: int64 [sentences + 1], places in token_ids, the last is its
            end.
        document_starts: int64 [documents + 1], places in sentence_starts.
        num_bytes: of the text.
    """

    index: int
    token_ids: np.ndarray
    sentence_starts: np.ndarray
    document_starts: np.ndarray
    num_bytes: int


def read_documents(
    files: Iterable[str], encode: Callable[[str], list[int]]
) -> Iterator[Document]:
    """Reads text with one sentence a line and an empty line between documents.

    A new file starts a new document. A line without tokens is skipped; it does not end
    a document unless it is blank.

    Args:
        files: paths of UTF-8 text files.
        encode: sentence -> token ids.

    Yields:
        The documents that have tokens.

    Raises:
        ValueError: where a file is not UTF-8, with file, line and byte.
    """
    for path in files:
        token_ids, lengths, num_bytes = array.array("i"), array.array("i"), 0
        for line, size in _lines(path):
            num_bytes += size
            if line:
                sentence = encode(line)
                token_ids.extend(sentence)
                if sentence:
                    lengths.append(len(sentence))
            elif lengths:
                yield Document(token_ids, lengths, num_bytes)
                token_ids, lengths, num_bytes = array.array("i"), array.array("i"), 0
        if lengths:
            yield Document(token_ids, lengths, num_bytes)


def _lines(path: str) -> Iterator[tuple[str, int]]:
    """Yields the stripped lines of a file and their sizes in bytes."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{path}, line {number}, byte {error.start + 1}: the text must be"
                    f" UTF-8, but there is a byte 0x{line[error.start]:02x} that is"
                    " not; convert the file (for instance with iconv)"
                ) from None
            if number == 1:
                text = text.removeprefix("\ufeff")  # a byte order mark is not text
            yield text.strip(), len(line)


def make_pools(
    documents: Iterable[Document], pool_tokens: int = POOL_TOKENS
) -> Iterator[Pool]:
    """Gathers documents in pools of at least two documents and `pool_tokens` tokens.

    The last documents join the pool before them when they are less than half a pool.

    Raises:
        ValueError: where there are fewer than two documents in all.
    """
    index, complete = 0, []
    current, num_tokens = [], 0
    for document in documents:
        current.append(document)
        num_tokens += len(document.token_ids)
        if len(current) >= 2 and num_tokens >= pool_tokens:
            # One pool is held back, for what is left at the end may have to join it.
            if complete:
                yield _make_pool(index, complete)
                index += 1
            complete, current, num_tokens = current, [], 0
    if complete and len(current) >= 2 and num_tokens >= pool_tokens // 2:
        yield _make_pool(index, complete)
        index, complete = index + 1, []
    if len(complete + current) < 2:
        raise ValueError(
            "next-sentence prediction needs two documents or more, but the text holds"
            f" {len(complete + current)}; separate documents by empty lines"
        )
    yield _make_pool(index, complete + current)


def _make_pool(index: int, documents: list[Document]) -> Pool:
    def starts(lengths):
        return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])

    return Pool(
        index,
        np.concatenate([np.asarray(d.token_ids, np.int32) for d in documents]),
        starts(np.concatenate([np.asarray(d.sentence_lengths) for d in documents])),
        starts([len(d.sentence_lengths) for d in documents]),
        sum(d.num_bytes for d in documents),
    )
