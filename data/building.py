"""Builds the record files of pre-training: in many processes, and resumably.

The work is done in three steps, whose results are files in a folder of their own beside
the outputs: chunks of text become token ids, passes over pools become parts with the
records for all shards, and parts become shards. A result is there whole or not at all,
and depends on the text and the settings alone. So a build that was killed goes on where
it stopped, and neither that nor the number of processes shows in the bytes.

A process holds a pool, that is about 250 MB, whatever the size of the corpus.
"""

import collections
import contextlib
import fcntl
import functools
import os
import shutil
from collections.abc import Callable, Iterable
from typing import Any

from data import build_steps, corpus, filesystem, processes


class Build:
    """A build, begun or taken up again; its folder is locked within a `with` block.

    Args:
        job: Job.
        manifest: dict of plain values: all that decides on the bytes.
        overwrite: whether what was begun with another manifest is thrown away.

    Raises:
        ValueError: it was begun with another manifest (says what differs); or another
            process is at work on it.
    """

    def __init__(
        self, job: build_steps.Job, manifest: dict[str, Any], overwrite: bool = False
    ):
        self.job = job
        self._result = f"{job.folder}/result.json"
        os.makedirs(job.folder, exist_ok=True)
        self._lock = os.open(job.folder, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"another process is building {job.outputs[0]}; wait for it, or choose "
                "another --output_file"
            ) from None
        path = f"{job.folder}/manifest.json"
        begun = filesystem.read_json(path) if os.path.exists(path) else None
        if begun not in (None, manifest):
            if not overwrite:
                os.close(self._lock)
                raise ValueError(
                    f"{job.outputs[0]} was begun with {difference(begun, manifest)}; "
                    "give the same to go on, or --overwrite to begin anew"
                )
            for name in os.listdir(job.folder):
                os.remove(f"{job.folder}/{name}")
        filesystem.write_json(path, manifest)

    def run(
        self, chunks: Iterable[corpus.Chunk], num_workers: int, show: Callable
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
            parts = self._make_parts(run, list(chunks), counts, show)
            shards = self._make_shards(run, parts)
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

    def _make_parts(self, run, chunks, counts, show):
        """Token ids and parts; list of (path, part) in the order of the records."""
        done = list(run("tokenize", [(c,) for c in chunks], "tokenizing", "chunk"))
        for chunk in done:
            counts.update(chunk)
        pools = corpus.plan_pools(
            [chunk["tokens"] for chunk in done], [chunk["documents"] for chunk in done]
        )
        calls = [
            (epoch, index, pool)
            for epoch in range(self.job.dupe_factor)
            for index, pool in enumerate(pools)
        ]
        parts = []
        for call, part in zip(
            calls, run("make_part", calls, "masking", "part"), strict=True
        ):
            if not parts:
                show(part["samples"])
            counts.update(part["counts"])
            parts.append((self.job.part(*call[:2]), part))
        if counts["instances"] < len(self.job.outputs):
            raise ValueError(
                f"every file needs a record, but there are {counts['instances']} for "
                f"{len(self.job.outputs)} files; name fewer files"
            )
        return parts

    def _make_shards(self, run, parts):
        """Joins the parts; dict of path, bytes, records and sha256 of each output."""
        # From the last to the first, for then a part can be cut off behind what is
        # still needed, and the records do not take their room twice.
        order = range(len(self.job.outputs) - 1, -1, -1)
        calls = [
            (i, [(path, *part["bounds"][i : i + 2]) for path, part in parts])
            for i in order
        ]
        shards = []
        for index, shard in zip(
            order, run("make_shard", calls, "joining", "file"), strict=True
        ):
            for path, part in parts:
                if os.path.getsize(path) > part["bounds"][index]:
                    os.truncate(path, part["bounds"][index])
            num_records = sum(part["records"][index] for _, part in parts)
            path = self.job.outputs[index]
            shards.append({"path": path, "records": num_records, **shard})
        return shards[::-1]

    def discard(self) -> None:
        """Throws the intermediate files away."""
        shutil.rmtree(self.job.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        os.close(self._lock)


def difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Names what differs in two manifests, in words."""
    key = next(k for k in sorted({*old, *new}) if old.get(k) != new.get(k))
    before, now = old.get(key), new.get(key)
    if key == "inputs":
        there = {entry["path"]: entry for entry in before}
        for entry in now:
            if entry != there.pop(entry["path"], None):
                return f"another {entry['path']}, or without it"
        return f"{', '.join(there)} too"
    return f"{key} {before}, not {now}"
