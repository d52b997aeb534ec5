r"""Turns text into TFRecords for masked LM and next sentence prediction.

    python create_pretraining_data.py --input_file=sample_data/corpus.txt \
        --output_file=records.tfrecord --vocab_file=sample_data/vocab.txt \
        --dupe_factor=5

The text is UTF-8, one sentence a line, with an empty line between documents; or JSON
lines, a document each (.jsonl); or prose with a paragraph a line (--split_sentences).
All may be compressed (.gz). --input_file may name folders.

The work is shared by --num_workers processes, each with up to 300 MB of memory at any
size of the corpus. A build that was killed goes on where it was if the same command is
given again. Equal flags and texts give equal bytes, however many processes there were
and however often they were killed. What was built, from which files and with which
flags, is kept in OUTPUT.manifest.json.
"""

import concurrent.futures
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

from absl import flags, logging
from tqdm import tqdm

import command_line
import pretraining_flags
from data import (
    build_folder,
    build_manifests,
    build_steps,
    building,
    corpus,
    filesystem,
    manifests,
    text_files,
    tokenization,
)

LONG_DOCUMENT = 1000  # lines

# With this text and these flags.
_NEVER_DONE = (ValueError, OverflowError, MemoryError)

# Flags that builds of before lack, which did what these values say.
_SINCE = {"segment_pairs": True, "masking_mix": ["80", "10", "10"]}
# What does not decide on the bytes, or is described by its contents.
_NO_SETTINGS = {"input_file", "output_file", "num_workers", "overwrite", "vocab_file"}


def define_flags() -> None:
    pretraining_flags.define()
    flags.adopt_module_key_flags(pretraining_flags)
    flags.DEFINE_integer(
        "num_workers",
        None,
        "Processes, by default one for each CPU; the bytes do not depend on it.",
        1,
        1024,
    )


def scan(inputs: list[str], text_field: str) -> Iterator[corpus.Scan]:
    """The files and their documents; warns of files that lack empty lines."""
    for path in inputs:
        count, lines = 0, 0

        def documents(path=path):
            nonlocal count, lines
            for document in text_files.read_documents(path, text_field):
                count, lines = count + 1, len(document.lines)
                yield document

        yield path, documents()
        is_plain = not path.removesuffix(".gz").endswith(".jsonl")
        if is_plain and count == 1 and lines >= LONG_DOCUMENT and len(inputs) > 1:
            logging.warning(
                "%s holds no empty line, so its %s lines are one document", path, lines
            )


def num_workers(values: dict[str, Any]) -> int:
    """Processes, or threads where these do."""
    return values["num_workers"] or len(os.sched_getaffinity(0))


def make_checksums(inputs: list[str], num_threads: int) -> list[dict[str, Any]]:
    """Those of the corpus; threads are enough, and are gone before processes fork."""
    with concurrent.futures.ThreadPoolExecutor(num_threads) as pool:
        made = pool.map(build_manifests.checksum, inputs)
        bar = tqdm(made, "checksums", len(inputs), unit=" files", delay=1)
        return list(bar)


def make_chunks(
    inputs: list[str], text_field: str, deduplicate: bool
) -> Iterator[corpus.Chunk]:
    """Reads all text once, so that what is wrong with it shows soon."""
    deduplicator = corpus.Deduplicator()

    def is_new(document):
        return deduplicator.is_new(corpus.digest(document))

    keep = is_new if deduplicate else None
    chunks = corpus.make_chunks(scan(inputs, text_field), keep)
    yield from tqdm(chunks, desc="reading", unit="MB", delay=1)
    if deduplicate:
        logging.info("left out %d repeated documents", deduplicator.num_repeated)


def show_samples(samples: list[str]) -> None:
    """Logs some instances as text."""
    for number, sample in enumerate(samples):
        logging.info("instance %d, %s", number, sample)


def is_done(
    manifest_file: str, manifest: dict[str, Any], outputs: Sequence[str]
) -> bool:
    """Whether the outputs are there, as large as they were built, by this manifest.

    Raises:
        ValueError: some are there, but others.
    """
    there = [path for path in outputs if os.path.exists(path)]
    stale = find_stale(manifest_file, outputs)
    built = read_built(manifest_file)
    if there and not stale and built:
        result = built.pop("result")
        sizes = [entry["bytes"] for entry in result["outputs"]]
        are_whole = sizes == list(map(os.path.getsize, there))
        if are_whole and not build_manifests.difference(built, manifest):
            return True
    if found := [*there, *stale]:
        raise ValueError(
            f"{found[0]} exists; choose another --output_file or pass --overwrite"
        )
    return False


def read_built(manifest_file: str) -> dict[str, Any]:
    """The manifest of an earlier build of the same name, {} if there was none."""
    if not os.path.exists(manifest_file):
        return {}
    return filesystem.read_object(manifest_file, **build_manifests.SHAPE, result=dict)


def find_stale(manifest_file: str, outputs: Sequence[str]) -> list[str]:
    """Record files of an earlier build of the same name that would be left over."""
    folder = os.path.dirname(manifest_file)
    names = read_built(manifest_file).get("outputs", [])
    paths = [os.path.realpath(os.path.join(folder, name)) for name in names]
    kept = set(map(os.path.realpath, outputs))
    return [path for path in paths if os.path.exists(path) and path not in kept]


def build_records(
    job: build_steps.Job,
    manifest: dict[str, Any],
    manifest_file: str,
    values: dict[str, Any],
    inputs: list[str],
) -> dict[str, int]:
    """Makes the record files and their manifest; returns counts."""
    chunks = make_chunks(inputs, values["text_field"], values["deduplicate"])
    with building.Build(job, manifest, values["overwrite"]) as build:
        if build.goes_on:
            logging.info("going on with the build that was begun in %s", job.folder)
        try:
            result = build.run(chunks, num_workers(values), show_samples)
        except _NEVER_DONE:
            build.discard()
            raise
        build.publish()
        for path in find_stale(manifest_file, job.outputs):
            os.remove(path)
        filesystem.write_json(manifest_file, {**manifest, "result": result})
        build.discard()
    return result["counts"]


def main() -> None:
    start, values = time.perf_counter(), command_line.values()
    vocab = tokenization.load_vocab(values["vocab_file"])
    inputs = text_files.find(values["input_file"])
    outputs = pretraining_flags.output_files(values)
    pretraining_flags.check_outputs(outputs, [*inputs, values["vocab_file"]])
    for path in outputs:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    settings = pretraining_flags.make_settings(values, vocab)
    first, *_ = values["output_file"].split(",")
    folder, name = os.path.split(os.path.abspath(first.strip()))
    manifest_file = f"{folder}/{name}{manifests.ENDING}"
    manifest = build_manifests.describe(
        make_checksums(inputs, num_workers(values)),
        build_manifests.checksum(values["vocab_file"]),
        outputs,
        folder,
        {
            name: value
            for name, value in values.items()
            if name not in _NO_SETTINGS and _SINCE.get(name) != value
        },
    )
    job = build_steps.Job(
        f"{folder}/.{name}.build",
        pretraining_flags.make_text(values),
        settings,
        values["dupe_factor"],
        outputs,
    )
    build_folder.remove_leftovers(job.folder)
    may_replace = values["overwrite"] or building.is_publishing(job.folder, manifest)
    if not may_replace and is_done(manifest_file, manifest, outputs):
        logging.info("%s is built already: nothing to do", outputs[0])
        return
    counts = build_records(job, manifest, manifest_file, values, inputs)
    pretraining_flags.show_summary(values, counts, time.perf_counter() - start)


if __name__ == "__main__":
    command_line.run(main, define_flags)
