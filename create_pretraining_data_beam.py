r"""Turns text into TFRecords for pre-training on an Apache Beam runner: on a cluster.

    python create_pretraining_data_beam.py --input_file=sample_data/corpus.txt \
        --output_file=records.tfrecord --vocab_file=sample_data/vocab.txt \
        -- --direct_running_mode=multi_processing --direct_num_workers=2

Flags and instances are those of create_pretraining_data.py; which instance is in which
file, and their order, is up to the runner. What stands behind `--` is for Beam. Without
a --runner all is done here and in memory, to try things: create_pretraining_data.py is
faster and goes on after a kill. A worker holds a pool at a time: up to 64 MB of token
ids, and copies of them. One gathers where documents begin and end: 16 bytes each, with
--deduplicate 150.

Workers on other machines need Beam, NumPy, absl-py, tqdm and this folder on their
PYTHONPATH; the vocabulary travels with the steps. docs/beam.md has an image of that
kind, commands for Dataflow, Flink and Spark, and the limits.
"""

import dataclasses
import functools
import glob
import logging
import os
import pathlib
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from absl import flags

import command_line
import pretraining_flags
from data import corpus, corpus_places, pretraining, pretraining_records, tokenization

try:
    logging.disable(logging.WARNING)  # of what Beam misses and we do not need
    import apache_beam as beam
    from apache_beam.options import pipeline_options

    import beam_files
except ImportError:
    beam = None
finally:
    logging.disable(logging.NOTSET)


def define_flags() -> None:
    pretraining_flags.define()
    flags.adopt_module_key_flags(pretraining_flags)


def count(numbers: Mapping[str, int]) -> None:
    """Adds to the counters of the pipeline."""
    for name, number in numbers.items():
        beam.metrics.Metrics.counter("pretraining", name).inc(number)


# The steps. Workers get them with their arguments and know nothing of flags.


def make_chunks(_: None, files: list, deduplicate: bool) -> Iterator[corpus.Chunk]:
    """The chunks of the corpus."""
    deduplicator = corpus.Deduplicator() if deduplicate else None
    yield from corpus_places.make_chunks(files, deduplicator)
    if deduplicator:
        count({"repeated": deduplicator.num_repeated})


@dataclasses.dataclass
class Tokenizer:
    """Chunk -> its index and token ids; reads the vocabulary once in a worker."""

    text: pretraining_records.Text
    vocabulary: bytes

    @functools.cached_property
    def _reader(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(self.vocabulary)
            file.flush()
            text = dataclasses.replace(self.text, vocab_file=file.name)
            return pretraining_records.Reader(text, beam_files.open_text)

    def __call__(self, chunk: corpus.Chunk) -> corpus_places.Numbered:
        tokens, counts = self._reader.read(chunk)
        count(counts)
        return chunk.index, tokens


def assign(
    chunk: corpus_places.Numbered, pools: list[range], dupe_factor: int
) -> Iterator[tuple[tuple[int, int], corpus_places.Numbered]]:
    """A chunk for each pass over its pool."""
    pool = corpus_places.find_pool(chunk, pools)
    for epoch in range(dupe_factor):
        yield (epoch, pool), chunk


def make_records(
    group: tuple[tuple[int, int], Iterable[corpus_places.Numbered]],
    settings: pretraining.Settings,
) -> Iterator[bytes]:
    """The records of a pass over a pool, as they stand in a TFRecord file."""
    (epoch, index), chunks = group
    pool = corpus_places.make_pool(index, chunks)
    for batch, content, ends in pretraining_records.make(pool, epoch, settings):
        count(pretraining_records.count(batch))
        for record in np.split(content, ends[:-1]):
            yield record.tobytes()


def build(
    pipeline: Any,
    inputs: list[str],
    tokenizer: Tokenizer,
    settings: pretraining.Settings,
    values: Mapping[str, Any],
) -> Any:
    """Puts the steps together; returns the PCollection of records."""
    listed, single = beam.pvalue.AsList, beam.pvalue.AsSingleton
    once = pipeline | "Once" >> beam.Create([None])
    deduplicate = values["deduplicate"]
    how = (values["text_field"], deduplicate, beam_files.open_text)
    files = (
        pipeline
        | "Files" >> beam.Create(inputs)
        | "Spread files" >> beam.Reshuffle()
        | "Scan" >> beam.Map(corpus_places.scan, *how)
    )
    chunks = (
        once
        | "Chunks" >> beam.FlatMap(make_chunks, listed(files), deduplicate)
        | "Spread chunks" >> beam.Reshuffle()
        | "Tokenize" >> beam.Map(tokenizer)
    )
    sizes = chunks | "Measure" >> beam.Map(corpus_places.measure)
    pools = once | "Pools" >> beam.Map(
        lambda _, sizes, least: corpus_places.plan_pools(sizes, least),
        listed(sizes),
        settings.least_documents,
    )
    return (
        chunks
        | "Assign" >> beam.FlatMap(assign, single(pools), values["dupe_factor"])
        | "Gather" >> beam.GroupByKey()
        | "Records" >> beam.FlatMap(make_records, settings)
    )


def make_pipeline(arguments: list[str]) -> Any:
    """An empty pipeline for these options of Beam."""
    options = pipeline_options.PipelineOptions(arguments)
    standard = options.view_as(pipeline_options.StandardOptions)
    standard.runner = standard.runner or "DirectRunner"
    if standard.runner == "DirectRunner":
        # Else it would download another runner. There are no triggers here at all.
        options.view_as(pipeline_options.TypeOptions).allow_unsafe_triggers = True
        # Exceptions would be logged where they happen, and they come here too.
        logging.getLogger("apache_beam").setLevel(logging.WARNING)
        logging.getLogger("apache_beam.runners.common").setLevel(logging.CRITICAL)
        workers = options.view_as(pipeline_options.WorkerOptions)
        workers.default_sdk_harness_log_level = "CRITICAL"
        # For the processes it starts; what lies in the working folder is not for them.
        here = os.path.dirname(os.path.abspath(__file__))
        paths = filter(None, (here, os.environ.get("PYTHONPATH")))
        os.environ |= {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
    return beam.Pipeline(options=options)


def users_message(error: Exception) -> str | None:
    """What a worker says about text or files; None if it failed otherwise."""
    text = str(error)
    if not command_line.is_users(error):
        # Or that as text, at the end of a traceback if it is from another process.
        kinds = r"(?:^|\n)(?:\w+\.)*(?:Value|OS|IO|BeamIO|FileNotFound)Error: "
        _, *texts = re.split(kinds, text)
        if not texts:
            return None
        text = texts[-1]
    return text.partition(" [while running ")[0]


def run(pipeline: Any, prefix: str) -> dict[str, int]:
    """Runs a pipeline that writes files with this prefix; returns its counters.

    Raises:
        ValueError: what a worker found wrong with the text.
    """
    folder, name = map(glob.escape, os.path.split(prefix))
    temporary = os.path.join(folder, f"beam-temp-{name}-{'?' * 32}")
    before = set(glob.glob(temporary))
    try:
        result = pipeline.run()
        result.wait_until_finish()
    except Exception as error:
        if str(error).startswith("KeyboardInterrupt"):
            raise KeyboardInterrupt from error
        if message := users_message(error):
            raise ValueError(message) from error
        raise
    finally:  # Beam tidies up only where all went well
        for path in set(glob.glob(temporary)) - before:
            shutil.rmtree(path, ignore_errors=True)
    counters = result.metrics().query()["counters"]
    return {
        counter.key.metric.name: counter.result
        for counter in counters
        if counter.key.metric.namespace == "pretraining"
    }


def main(arguments: list[str]) -> None:
    if beam is None:
        raise ValueError(
            "Apache Beam is not installed; in a new virtual environment run "
            "pip install -r requirements-beam.txt"
        )
    start, values = time.perf_counter(), command_line.values()
    inputs = beam_files.find(values["input_file"])
    outputs = pretraining_flags.output_files(values)
    if len(outputs) > 1 and not values["num_output_shards"]:
        raise ValueError(
            "--output_file must be one name, for several files with --num_output_shards"
        )
    command_line.check_outputs(outputs, [*inputs, values["vocab_file"]])
    there = beam_files.exist(outputs)
    if there and not values["overwrite"]:
        raise ValueError(
            f"{there[0]} exists; choose another --output_file or pass --overwrite"
        )
    vocab = tokenization.load_vocab(values["vocab_file"])
    settings = pretraining_flags.make_settings(values, vocab)
    vocabulary = pathlib.Path(values["vocab_file"]).read_bytes()
    tokenizer = Tokenizer(pretraining_flags.make_text(values), vocabulary)
    pipeline = make_pipeline(arguments)
    records = build(pipeline, inputs, tokenizer, settings, values)
    prefix = beam_files.write(records, outputs, values["num_output_shards"])
    counts = run(pipeline, prefix)
    if values["deduplicate"]:
        logging.info("left out %d repeated documents", counts["repeated"])
    pretraining_flags.show_summary(values, counts, time.perf_counter() - start)


if __name__ == "__main__":
    command_line.run(main, define_flags, takes_rest=True)
