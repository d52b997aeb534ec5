"""A corpus becomes chunks of text, chunks token ids, and ids pools (A.2 of the paper).

A chunk is about a megabyte of consecutive documents: what is tokenized at once. A pool
is consecutive chunks with up to `POOL_TOKENS` tokens: what the instances see, so a
random next sentence comes from any document of the same pool. A smaller corpus is one
pool, as in the original. If a larger one is sorted by topic, shuffle its documents
first.

Where chunks and pools begin depends on the text alone, and each can be worked on by
itself. So any number of processes, in any order, come to the same.
"""

import array
import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO

import numpy as np

from data import text_files

CHUNK_BYTES = 2**20
POOL_TOKENS = 5 * 2**20  # about 20 MB of English
DIGEST_BYTES = 12
LEAST_TOKENS = 8  # that a sentence counts for in a pool, for it takes room of its own

Scan = tuple[str, Iterable[text_files.Document]]  # a file and its documents


@dataclasses.dataclass(frozen=True)
class Range:
    """Consecutive documents of a file: the places where they begin and end."""

    path: str
    start: int
    end: int


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Consecutive documents, perhaps of several files."""

    index: int
    ranges: tuple[Range, ...]


@dataclasses.dataclass(frozen=True)
class Tokens:
    """The documents of a chunk in ids; sentences and documents without any are gone.

    Attributes:
        token_ids: int32 [tokens].
        sentence_lengths: int32 [sentences], in tokens.
        document_lengths: int32 [documents], in sentences.
    """

    token_ids: np.ndarray
    sentence_lengths: np.ndarray
    document_lengths: np.ndarray

    @property
    def size(self) -> int:
        """What it takes of the room of a pool, in tokens."""
        return max(len(self.token_ids), LEAST_TOKENS * len(self.sentence_lengths))


@dataclasses.dataclass(frozen=True)
class Pool:
    """Consecutive documents.

    Attributes:
        index: the number of the pool in the corpus.
        token_ids: int32 [tokens].
        sentence_starts: int64 [sentences + 1], places in token_ids, the last is its
            end.
        document_starts: int64 [documents + 1], places in sentence_starts.
    """

    index: int
    token_ids: np.ndarray
    sentence_starts: np.ndarray
    document_starts: np.ndarray


def digest(document: text_files.Document) -> bytes:
    """Tells documents with other lines apart."""
    text = "\n".join(document.lines).encode()
    return hashlib.blake2b(text, digest_size=DIGEST_BYTES).digest()


class Deduplicator:
    """Tells what came before; takes about 100 bytes for each document.

    Attributes:
        num_repeated: int, digests that were not new.
    """

    def __init__(self):
        self._seen, self.num_repeated = set(), 0

    def is_new(self, digest: bytes) -> bool:
        """Whether nobody asked about this `digest` before."""
        is_new = digest not in self._seen
        self._seen.add(digest)
        self.num_repeated += not is_new
        return is_new


def make_chunks(
    scans: Iterable[Scan], keep: Callable[[text_files.Document], bool] | None = None
) -> Iterator[Chunk]:
    """Gathers documents until they are `CHUNK_BYTES`.

    Args:
        scans: the files of the corpus and their documents, in order.
        keep: which documents to take; all if None.
    """
    index, ranges, size = 0, [], 0
    for path, documents in scans:
        is_next = False  # whether the document follows the last range
        for document in documents:
            if keep and not keep(document):
                is_next = False
                continue
            start = ranges.pop().start if is_next and ranges else document.start
            ranges.append(Range(path, start, document.end))
            is_next = True
            size += document.end - document.start
            if size >= CHUNK_BYTES:
                yield Chunk(index, tuple(ranges))
                index, ranges, size = index + 1, [], 0
    if ranges:
        yield Chunk(index, tuple(ranges))


def tokenize(
    chunk: Chunk,
    encode: Callable[[str], list[int]],
    split: Callable[[str], list[str]] | None = None,
    text_field: str = "text",
    open_file: Callable[[str], IO[bytes]] = text_files.open_local,
) -> Tokens:
    """Reads a chunk.

    Args:
        chunk: from `make_chunks`.
        encode: sentence -> token ids.
        split: line -> its sentences, if a line is not one.
        text_field: see `text_files.read_documents`.
        open_file: likewise.
    """
    # Arrays: lists of Python's integers would take ten times the room.
    token_ids, sentence_lengths, document_lengths = (array.array("i") for _ in range(3))
    for where in chunk.ranges:
        for document in text_files.read_documents(
            where.path, text_field, where.start, where.end, open_file
        ):
            before = len(sentence_lengths)
            for line in document.lines:
                for sentence in split(line) if split else (line,):
                    if ids := encode(sentence):
                        token_ids.extend(ids)
                        sentence_lengths.append(len(ids))
            if len(sentence_lengths) > before:
                document_lengths.append(len(sentence_lengths) - before)
    found = token_ids, sentence_lengths, document_lengths
    return Tokens(*(np.array(values, np.int32) for values in found))


def plan_pools(
    sizes: Sequence[int], num_documents: Sequence[int], least_documents: int = 2
) -> list[range]:
    """Which chunks are in which pool: about equal sizes of pools.

    Args:
        sizes: of each chunk, see `Tokens`.
        num_documents: of each chunk.
        least_documents: that a pool needs: two for random next sentences, else one.

    Raises:
        ValueError: there are fewer documents in all.
    """
    if not sum(num_documents):
        raise ValueError("there are no words in the text; name files that have some")
    if sum(num_documents) < least_documents:
        raise ValueError(
            "next-sentence prediction needs two documents or more, but the text holds"
            " 1; separate documents by empty lines, or give --nosegment_pairs"
        )
    total = np.cumsum(sizes)
    num_pools = max(1, -(-int(total[-1]) // POOL_TOKENS))
    # A chunk goes where its middle is.
    middles = total - np.asarray(sizes) / 2
    numbers = np.minimum(middles * num_pools // max(1, total[-1]), num_pools - 1)
    pools = []
    for number in range(num_pools):
        begin, end = np.searchsorted(numbers, (number, number + 1)).tolist()
        # Very long documents may leave a pool with too few of them.
        if pools and sum(num_documents[i] for i in pools[-1]) < least_documents:
            begin = pools.pop().start
        if end > begin:
            pools.append(range(begin, end))
    if len(pools) > 1 and sum(num_documents[i] for i in pools[-1]) < least_documents:
        end = pools.pop().stop
        pools[-1] = range(pools[-1].start, end)
    return pools


def make_pool(index: int, chunks: Sequence[Tokens]) -> Pool:
    """Joins the chunks of a pool."""

    def starts(name):
        lengths = np.concatenate([getattr(chunk, name) for chunk in chunks])
        return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])

    return Pool(
        index,
        np.concatenate([chunk.token_ids for chunk in chunks]),
        starts("sentence_lengths"),
        starts("document_lengths"),
    )
