"""The steps of `data/corpus.py` for where files and chunks lie on many machines.

Each file is scanned by itself, and what is left of it, a few bytes a document, is put
together to the chunks that `corpus.make_chunks` makes of the files themselves. Chunks
in any order are sorted into the pools that `corpus.plan_pools` makes of them in theirs.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, NamedTuple

import numpy as np

from data import corpus, text_files

Numbered = tuple[int, corpus.Tokens]  # a chunk: its index and its token ids


class Places(NamedTuple):
    """The N documents of a file.

    Attributes:
        path: of the file.
        bounds: int64 [N, 2], where they begin and end.
        digests: `corpus.DIGEST_BYTES` of each; empty if nobody asked for them.
    """

    path: str
    bounds: np.ndarray
    digests: bytes


def scan(
    path: str,
    text_field: str,
    with_digests: bool,
    open_file: Callable[[str], IO[bytes]] = text_files.open_local,
) -> Places:
    """Reads a file; errors and arguments as in `text_files.read_documents`."""
    bounds, digests = [], []
    for document in text_files.read_documents(path, text_field, open_file=open_file):
        bounds.append((document.start, document.end))
        if with_digests:
            digests.append(corpus.digest(document))
    return Places(path, np.array(bounds, np.int64).reshape(-1, 2), b"".join(digests))


def make_chunks(
    files: Iterable[Places], deduplicator: corpus.Deduplicator | None = None
) -> Iterator[corpus.Chunk]:
    """The chunks of a corpus.

    Args:
        files: all, in any order.
        deduplicator: asked which documents to take, if there is one; for that, the
            places need digests.
    """
    in_order = sorted(files, key=lambda file: file.path)
    yield from corpus.make_chunks(
        ((file.path, _documents(file)) for file in in_order),
        (lambda document: deduplicator.is_new(bytes.fromhex(document.lines[0])))
        if deduplicator
        else None,
    )


def _documents(file: Places) -> Iterator[text_files.Document]:
    for number, (start, end) in enumerate(file.bounds.tolist()):
        place = corpus.DIGEST_BYTES * number
        # The digest stands for the lines.
        digest = file.digests[place : place + corpus.DIGEST_BYTES].hex()
        yield text_files.Document(start, end, [digest])


def measure(chunk: Numbered) -> tuple[int, int, int]:
    """The index of a chunk, its size, and how many documents it has."""
    index, tokens = chunk
    return index, tokens.size, len(tokens.document_lengths)


def plan_pools(
    measures: Iterable[tuple[int, int, int]], least_documents: int = 2
) -> list[range]:
    """Which chunks are in which pool, see `corpus.plan_pools`; all, in any order."""
    rows = np.array(sorted(measures), np.int64).reshape(-1, 3)
    sizes, num_documents = rows[:, 1].tolist(), rows[:, 2].tolist()
    return corpus.plan_pools(sizes, num_documents, least_documents)


def find_pool(chunk: Numbered, pools: Sequence[range]) -> int:
    """The index of the pool that a chunk is in."""
    return next(index for index, pool in enumerate(pools) if chunk[0] in pool)


def make_pool(index: int, chunks: Iterable[Numbered]) -> corpus.Pool:
    """Joins the chunks of a pool, in any order."""
    tokens = dict(chunks)
    return corpus.make_pool(index, [tokens[number] for number in sorted(tokens)])
