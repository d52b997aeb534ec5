"""The steps of building record files of pre-training; see `data/building.py`.

Each step writes a file into the build's folder, whole or not at all, and does nothing
if the file is there. After a power cut, token ids and records of parts may be damaged;
then they are checked when the build goes on.
"""

import collections
import concurrent.futures
import contextlib
import dataclasses
import gzip
import hashlib
import os
import shutil
import zipfile
import zlib
from typing import IO, Any

import numpy as np

from data import corpus, filesystem, pretraining, pretraining_records, record_stream

_SAMPLES = 5  # instances that are shown
_COPY_BYTES = 2**20


@dataclasses.dataclass(frozen=True)
class Job:
    """What all processes know.

    Attributes:
        folder: str, of the intermediate files.
        text: how to read the text.
        settings: what instances look like.
        dupe_factor: int, passes over the text.
        outputs: tuple of paths of the record files; compressed where they end in .gz.
    """

    folder: str
    text: pretraining_records.Text
    settings: pretraining.Settings
    dupe_factor: int
    outputs: tuple[str, ...]

    def chunk(self, index: int) -> str:
        """Path of the token ids of a chunk."""
        return f"{self.folder}/chunk-{index:06d}.npz"

    def part(self, epoch: int, pool: int) -> str:
        """Path of the records of a pass over a pool."""
        return f"{self.folder}/part-{epoch:04d}-{pool:06d}.tfrecord"

    @staticmethod
    def ends(part: str) -> str:
        """Path of int64 [N + 1]: 0, and where in a part each record ends."""
        return f"{part}.ends.npy"

    def shard(self, index: int) -> str:
        """Path of a record file that is not published yet."""
        return f"{self.folder}/shard-{index:05d}"


class Worker:
    """Does one piece of the work at a time; there is one in every process."""

    def __init__(self, job: Job):
        self.job = job
        self.reader = pretraining_records.Reader(job.text)
        self._pool = None  # the last that was used

    def tokenize(self, chunk: corpus.Chunk) -> dict[str, int]:
        """Writes the token ids of a chunk, unless they are there.

        Returns:
            counts, and "size", see `corpus.Tokens`.
        """
        path = self.job.chunk(chunk.index)
        with contextlib.suppress(*_DAMAGE):  # or it is not there
            return _read_counts(path)
        tokens, counts = self.reader.read(chunk)
        counts["size"] = tokens.size
        with filesystem.replacing(path, is_lasting=False) as file:
            np.savez(file, **vars(tokens), **counts)
        return counts

    def unpack(self, path: str, unpacked: str, is_doubtful: bool = False) -> None:
        """Writes a compressed file as it was before, unless it is there for sure."""
        if is_doubtful or not os.path.exists(unpacked):
            with (
                gzip.open(path) as source,
                filesystem.replacing(unpacked, is_lasting=False) as file,
            ):
                shutil.copyfileobj(source, file, _COPY_BYTES)

    def _load_pool(self, index: int, chunks: range) -> corpus.Pool:
        if self._pool and self._pool.index == index:
            return self._pool
        self._pool, parts = None, []  # the old one goes before the new one comes
        for path in map(self.job.chunk, chunks):
            try:
                with np.load(path) as there:
                    fields = dataclasses.fields(corpus.Tokens)
                    parts.append(corpus.Tokens(*(there[f.name] for f in fields)))
            except _DAMAGE as error:
                raise OSError(
                    f"{path} was damaged since it was written ({error}); repeat the "
                    "command, which makes it again"
                ) from None
        self._pool = corpus.make_pool(index, parts)
        return self._pool

    def make_part(
        self, epoch: int, index: int, chunks: range, is_doubtful: bool = False
    ) -> dict[str, Any]:
        """Writes the records of a pass over a pool, unless they are there.

        Args:
            epoch: the number of the pass.
            index: that of the pool.
            chunks: of the pool.
            is_doubtful: whether what is there may be damaged.

        Returns:
            dict with "counts" and "samples", some instances of the first part as text.
        """
        path = self.job.part(epoch, index)
        if os.path.exists(f"{path}.json") and not (is_doubtful and _is_damaged(path)):
            return filesystem.read_json(f"{path}.json")
        ends, size = [np.zeros(1, np.int64)], 0
        counts, samples = collections.Counter(), []
        with filesystem.replacing(path, is_lasting=False) as file:
            for batch, content, batch_ends in pretraining_records.make(
                self._load_pool(index, chunks), epoch, self.job.settings
            ):
                file.write(content)
                ends.append(size + batch_ends)
                size += len(content)
                if epoch == index == 0:
                    samples = samples or self._to_text(batch)
                counts.update(pretraining_records.count(batch))
        with filesystem.replacing(self.job.ends(path)) as file:
            np.save(file, np.concatenate(ends))
        part = {"samples": samples, "counts": counts}
        filesystem.write_json(f"{path}.json", part)
        return part

    def _to_text(self, batch: dict[str, np.ndarray]) -> list[str]:
        """The first instances, readable."""

        def words(ids, is_real):
            names = self.reader.tokenizer.inv_vocab
            return " ".join(names.get(i, "?") for i in ids[is_real == 1].tolist())

        texts = []
        for row in range(min(_SAMPLES, len(batch["input_ids"]))):
            one = {name: values[row] for name, values in batch.items()}
            kind = "random" if one["next_sentence_labels"][0] else "true"
            seen = words(one["input_ids"], one["input_mask"])
            hidden = words(one["masked_lm_ids"], one["masked_lm_weights"])
            texts.append(f"{kind} next sentence: {seen}\nto predict: {hidden}")
        return texts

    def make_shard(
        self, index: int, parts: list[str], bounds: list[tuple[int, int]]
    ) -> dict[str, Any]:
        """Joins pieces of parts, given by start and end; returns size and checksum."""
        path = self.job.shard(index)
        if os.path.exists(path):
            checksum = _checksum(path)
        else:
            with filesystem.replacing(path) as file:
                self._join(index, parts, bounds, file)
                file.flush()
                # The disk writes while the checksum is computed.
                with concurrent.futures.ThreadPoolExecutor(1) as pool:
                    written = pool.submit(os.fsync, file.fileno())
                    checksum = _checksum(file.name)
                    written.result()
        return {"bytes": os.path.getsize(path), "sha256": checksum}

    def _join(
        self,
        index: int,
        parts: list[str],
        bounds: list[tuple[int, int]],
        file: IO[bytes],
    ) -> None:
        """Writes the content of a shard."""
        with contextlib.ExitStack() as stack:
            if self.job.outputs[index].endswith(".gz"):
                # Without name and time, so that equal records are equal files.
                file = stack.enter_context(
                    gzip.GzipFile("", "wb", 6, fileobj=file, mtime=0)
                )
            for name, (start, end) in zip(parts, bounds, strict=True):
                with open(name, "rb") as part:
                    part.seek(start)
                    for place in range(start, end, _COPY_BYTES):
                        size = min(_COPY_BYTES, end - place)
                        content = part.read(size)
                        if len(content) < size:
                            raise ValueError(f"{name} is cut off; start anew")
                        file.write(content)


# What comes of a file of arrays that is not there, or damaged.
_DAMAGE = OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error


def _is_damaged(path: str) -> bool:
    """Whether a part is not whole, or its records have not their checksums."""
    try:
        if os.path.getsize(path) != np.load(Job.ends(path))[-1]:
            return True
        for _ in record_stream.Source(path).blocks():
            pass
    except (record_stream.Damage, *_DAMAGE):
        return True
    return False


def _checksum(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_counts(path: str) -> dict[str, int]:
    """What is counted in a chunk; raises one of `_DAMAGE` if it is damaged."""
    with open(path, "rb") as file, np.load(file) as there:
        for name in there.files:
            there[name]  # so that checksums are compared
        names = ("documents", "sentences", "tokens", "size", "unknown")
        return {name: int(there[name]) for name in names}
