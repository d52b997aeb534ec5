"""Builds the record files of pre-training: in many processes, and resumably.

The work is done in three steps, whose results are files in a folder of their own beside
the outputs: chunks of text become token ids, passes over pools become parts with the
records for all shards, and parts become shards. A result is there whole or not at all,
and depends on the text and the settings alone. So a build that was killed goes on where
it stopped, and neither that nor the number of processes shows in the bytes.

A process holds a pool, whatever the size of the corpus.
"""

import collections
import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from data import (
    build_folder,
    build_manifests,
    build_steps,
    corpus,
    filesystem,
    processes,
)


class Build:
    """A build, begun or taken up again; its folder is locked within a `with` block.

    Args:
        job: Job.
        manifest: from `build_manifests.describe`: all that decides on the bytes.
        overwrite: whether what was begun with another manifest is thrown away.

    Attributes:
        goes_on: bool, whether it was taken up again.

    Raises:
        ValueError: it was begun with another manifest (says what differs); or another
            process is at work on it.
    """

    def __init__(
        self, job: build_steps.Job, manifest: dict[str, Any], overwrite: bool = False
    ):
        self.job = job
        self._manifest = manifest
        self._result = f"{job.folder}/{_RESULT}"
        self.goes_on = self._is_doubtful = False
        try:
            self._lock = build_folder.lock(job.folder)
        except BlockingIOError:
            raise ValueError(
                f"another process is building {job.outputs[0]}; wait for it, or choose "
                "another --output_file"
            ) from None
        try:
            self._begin(manifest, overwrite)
        except BaseException:
            os.close(self._lock)
            raise

    def _begin(self, manifest: dict[str, Any], overwrite: bool) -> None:
        """Empties the folder of what is not of this build."""
        begun = _begun(self.job.folder)
        if begun is not None:
            difference = build_manifests.difference(begun, manifest)
            if not difference:
                self.goes_on = True
                self._is_doubtful = build_folder.is_doubtful(self.job.folder)
                return
            if not overwrite:
                raise ValueError(
                    f"{self.job.outputs[0]} was begun with {difference}; give the same "
                    "to go on, or --overwrite to begin anew"
                )
        names = set(os.listdir(self.job.folder)) - {_MANIFEST}
        # The manifest last: as long as it is there, the other files are known by it.
        for name in (*names, _MANIFEST):
            with contextlib.suppress(FileNotFoundError):
                os.remove(f"{self.job.folder}/{name}")
        build_folder.note_start(self.job.folder)
        filesystem.write_json(f"{self.job.folder}/{_MANIFEST}", manifest)

    def run(
        self,
        chunks: Iterable[corpus.Chunk],
        num_workers: int,
        show: Callable[[list[str]], None],
    ) -> dict[str, Any]:
        """Makes the record files, or what of them is missing.

        Args:
            chunks: of the corpus.
            num_workers: processes.
            show: called with the samples of the first part as soon as it is made.

        Returns:
            dict with counts and, for each output, its path, bytes, records and sha256.

        Raises:
            ValueError: there is too little text.
            OSError: the disk is full, or a process was killed; try again.
        """
        if os.path.exists(self._result):
            return filesystem.read_json(self._result)
        make_worker = functools.partial(build_steps.Worker, self.job)
        with processes.processes(make_worker, num_workers) as run:
            counts = collections.Counter()
            pools = self._tokenize(run, chunks, counts)
            parts, bounds, num_records = self._make_parts(run, pools, counts, show)
            shards = self._make_shards(run, parts, bounds)
        for shard, records in zip(shards, num_records.tolist(), strict=True):
            shard["records"] = records
        result = {"counts": dict(counts), "outputs": shards}
        # From here on shards are moved away, and parts are no longer whole.
        filesystem.write_json(self._result, result)
        return result

    def publish(self) -> dict[str, Any]:
        """Puts the record files in their places; returns what `run` returned.

        Raises:
            ValueError: one was moved before a kill, and is not there any more.
        """
        for index, path in enumerate(self.job.outputs):
            with contextlib.suppress(FileNotFoundError):  # moved before a kill
                os.replace(self.job.shard(index), path)
            if not os.path.exists(path):
                self.discard()
                raise ValueError(f"{path} was built and is gone; repeat the command")
        return filesystem.read_json(self._result)

    def discard(self) -> None:
        """Throws the intermediate files away."""
        build_folder.remove(self.job.folder)

    def _tokenize(
        self,
        run: Callable,
        chunks: Iterable[corpus.Chunk],
        counts: collections.Counter,
    ) -> list[range]:
        """Makes the token ids of all chunks; returns the pools."""
        chunks, unpacked = self._unpack(run, chunks)
        calls = ((chunk,) for chunk in chunks)
        done = list(run("tokenize", calls, None, "tokenizing", "chunk"))
        for chunk in done:
            counts.update(chunk)
        del counts["size"]
        for path in unpacked:
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)
        return corpus.plan_pools(
            [chunk["size"] for chunk in done],
            [chunk["documents"] for chunk in done],
            self.job.settings.least_documents,
        )

    def _unpack(
        self, run: Callable, chunks: Iterable[corpus.Chunk]
    ) -> tuple[Iterable[corpus.Chunk], list[str]]:
        """Unpacks what is compressed, for chunks begin anywhere in it.

        Returns:
            the chunks, of the unpacked files where there are such, and these files.
        """
        if not any(text["path"].endswith(".gz") for text in self._manifest["inputs"]):
            return chunks, []  # which are not read before they are asked for
        chunks = list(chunks)
        missing = [c for c in chunks if not os.path.exists(self.job.chunk(c.index))]
        paths = {place.path for chunk in missing for place in chunk.ranges}
        unpacked = {}
        for number, path in enumerate(sorted(p for p in paths if p.endswith(".gz"))):
            name = os.path.basename(path).removesuffix(".gz")
            unpacked[path] = f"{self.job.folder}/text-{number:06d}-{name}"
        calls = [(path, name, self._is_doubtful) for path, name in unpacked.items()]
        list(run("unpack", calls, len(calls), "unpacking", "file"))

        def moved(place: corpus.Range) -> corpus.Range:
            path = unpacked.get(place.path, place.path)
            return dataclasses.replace(place, path=path)

        chunks = [
            dataclasses.replace(chunk, ranges=tuple(map(moved, chunk.ranges)))
            for chunk in chunks
        ]
        return chunks, list(unpacked.values())

    def _make_parts(
        self,
        run: Callable,
        pools: Sequence[range],
        counts: collections.Counter,
        show: Callable[[list[str]], None],
    ) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Makes the parts.

        Returns:
            their paths in the order of the records, int64 [parts, shards + 1], where in
            each the records of each shard begin, and int64 [shards], how many it gets.
        """
        calls = [
            (epoch, index, pool, self._is_doubtful)
            for epoch in range(self.job.dupe_factor)
            for index, pool in enumerate(pools)
        ]
        bounds = np.zeros((len(calls), len(self.job.outputs) + 1), np.int64)
        num_records = np.zeros(len(self.job.outputs), np.int64)
        parts = run("make_part", calls, len(calls), "masking", "part")
        for number, part in enumerate(parts):
            if number == 0:
                show(part["samples"])
            counts.update(part["counts"])
            shares = share(part["counts"]["instances"], num_records)
            num_records += shares
            path = self.job.part(*calls[number][:2])
            ends = np.load(self.job.ends(path), mmap_mode="r")
            bounds[number] = ends[np.concatenate([[0], np.cumsum(shares)])]
        if num_records.min() < 1:
            raise ValueError(
                f"every file needs a record, but there are {counts['instances']} for "
                f"{len(self.job.outputs)} files; name fewer files"
            )
        return [self.job.part(*call[:2]) for call in calls], bounds, num_records

    def _make_shards(
        self, run: Callable, parts: list[str], bounds: np.ndarray
    ) -> list[dict[str, Any]]:
        """Joins the parts; path, bytes and sha256 of each output."""
        # From the last to the first, for then a part can be cut off behind what is
        # still needed, and the records do not take their room twice.
        order = range(len(self.job.outputs) - 1, -1, -1)
        calls = ((i, parts, bounds[:, i : i + 2].tolist()) for i in order)
        shards = []
        made = run("make_shard", calls, len(order), "joining", "file")
        for index, shard in zip(order, made, strict=True):
            for path, start in zip(parts, bounds[:, index].tolist(), strict=True):
                if os.path.getsize(path) > start:
                    os.truncate(path, start)
            shards.append({"path": self.job.outputs[index], **shard})
        return shards[::-1]

    def __enter__(self) -> "Build":
        return self

    def __exit__(self, *_) -> None:
        os.close(self._lock)


_MANIFEST, _RESULT = "manifest.json", "result.json"


def share(count: int, before: np.ndarray) -> np.ndarray:
    """Shares records out among shards.

    Args:
        count: of the records.
        before: int [shards], what they were given before.

    Returns:
        int64 [shards], for each what makes them equal, or almost: the sums with
        `before`, if that came from here, differ by one at most.
    """
    first = before.sum() % len(before)  # where the last time ended
    turns = (np.arange(len(before)) - first) % len(before)
    return count // len(before) + (turns < count % len(before))


def is_publishing(folder: str, manifest: dict[str, Any]) -> bool:
    """Whether a build was stopped when all was made: its outputs may be there."""
    begun = _begun(folder)
    is_same = begun is not None and not build_manifests.difference(begun, manifest)
    return is_same and os.path.exists(f"{folder}/{_RESULT}")


def _begun(folder: str) -> dict[str, Any] | None:
    """What was begun in a folder, if something was."""
    path = f"{folder}/{_MANIFEST}"
    if not os.path.exists(path):
        return None
    return filesystem.read_object(path)
