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

import hashlib
import os
import time
from collections.abc import Iterator
from typing import Any

from absl import flags, logging
from tqdm import tqdm

import command_line
import pretraining_flags
from data import (
    build_steps,
    building,
    corpus,
    filesystem,
    text_files,
    tokenization,
)

FLAGS = flags.FLAGS

LONG_DOCUMENT = 1000  # lines


def define_flags() -> None:
    pretraining_flags.define()
    flags.adopt_module_key_flags(pretraining_flags)
    flags.DEFINE_integer(
        "num_workers",
        None,
        "Processes, by default one for each CPU; the bytes do not depend on it.",
        1,
    )


def make_manifest(
    inputs: list[str], outputs: tuple[str, ...], values: dict[str, Any]
) -> dict:
    """All that decides on the bytes of the outputs."""

    def describe(path):
        with open(path, "rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
        return {"path": path, "bytes": os.path.getsize(path), "sha256": checksum}

    ignored = {"input_file", "output_file", "num_workers", "overwrite", "vocab_file"}
    settings = {
        f"--{name}": value for name, value in values.items() if name not in ignored
    }
    files = tqdm(inputs, desc="checksums", unit=" files", delay=1)
    return {
        "inputs": [describe(path) for path in files],
        "vocabulary": describe(FLAGS.vocab_file),
        "outputs": [os.path.basename(path) for path in outputs],
        **settings,
    }


def scan(inputs: list[str]) -> Iterator[corpus.Scan]:
    """The files and their documents; warns of files that lack empty lines."""
    for path in inputs:
        count, lines = 0, 0

        def documents(path=path):
            nonlocal count, lines
            for document in text_files.read_documents(path, FLAGS.text_field):
                count, lines = count + 1, len(document.lines)
                yield document

        yield path, documents()
        if count == 1 and lines >= LONG_DOCUMENT and len(inputs) > 1:
            logging.warning(
                "%s holds no empty line, so its %s lines are one document", path, lines
            )


def make_chunks(inputs: list[str]) -> list[corpus.Chunk]:
    """Reads all text once, so that what is wrong with it shows at the beginning."""
    deduplicator = corpus.Deduplicator() if FLAGS.deduplicate else None
    chunks = corpus.make_chunks(
        scan(inputs), deduplicator.is_new if deduplicator else None
    )
    chunks = list(tqdm(chunks, desc="reading", unit="MB", delay=1))
    if deduplicator:
        logging.info("left out %d repeated documents", deduplicator.num_repeated)
    return chunks


def show_samples(samples: list[str]) -> None:
    """Logs some instances as text."""
    for number, sample in enumerate(samples):
        logging.info("instance %d, %s", number, sample)


def is_done(manifest_file: str, manifest: dict, outputs: tuple[str, ...]) -> bool:
    """Whether the outputs are there and are what they would be again.

    Raises:
        ValueError: they are there, but others.
    """
    there = [path for path in outputs if os.path.exists(path)]
    if not there or FLAGS.overwrite:
        return False
    built = {}
    if os.path.exists(manifest_file):
        built = filesystem.read_json(manifest_file)
    same = {k: v for k, v in built.items() if k != "result"} == manifest
    sizes = {
        path: entry["bytes"]
        for path, entry in zip(
            outputs, built.get("result", {}).get("outputs", []), strict=False
        )
    }
    if same and all(
        os.path.exists(p) and os.path.getsize(p) == sizes[p] for p in sizes
    ):
        return True
    raise ValueError(
        f"{there[0]} exists; choose another --output_file or pass --overwrite"
    )


def main() -> None:
    start, values = time.perf_counter(), command_line.values()
    vocab = tokenization.load_vocab(FLAGS.vocab_file)
    inputs = text_files.find(FLAGS.input_file)
    outputs = pretraining_flags.output_files(values)
    pretraining_flags.check_outputs(outputs, inputs)
    for path in outputs:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    settings = pretraining_flags.make_settings(values, vocab)
    manifest = make_manifest(inputs, outputs, values)
    first, *_ = FLAGS.output_file.split(",")
    folder, name = os.path.split(os.path.abspath(first.strip()))
    manifest_file = f"{folder}/{name}.manifest.json"
    build_folder = f"{folder}/.{name}.build"
    if not os.path.exists(build_folder) and is_done(manifest_file, manifest, outputs):
        logging.info("%s is built already: nothing to do", outputs[0])
        return
    job = build_steps.Job(
        build_folder,
        pretraining_flags.make_text(values),
        settings,
        FLAGS.dupe_factor,
        outputs,
    )
    chunks = make_chunks(inputs)
    num_workers = FLAGS.num_workers or len(os.sched_getaffinity(0))
    with building.Build(job, manifest, FLAGS.overwrite) as build:
        try:
            result = build.run(chunks, num_workers, show_samples)
        except ValueError:  # with this text and these flags it will never be done
            build.discard()
            raise
        build.publish()
        filesystem.write_json(manifest_file, {**manifest, "result": result})
        build.discard()
    seconds = time.perf_counter() - start
    pretraining_flags.show_summary(values, result["counts"], seconds)


if __name__ == "__main__":
    command_line.run(main, define_flags)
