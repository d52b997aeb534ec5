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

import functools
import hashlib
import os
import time
from collections.abc import Iterator

from absl import flags, logging
from tqdm import tqdm

import command_line
from data import (
    build_steps,
    building,
    corpus,
    filesystem,
    masking,
    pretraining,
    pretraining_records,
    text_files,
    tokenization,
)

FLAGS = flags.FLAGS

MUCH_UNKNOWN = 0.1  # of the tokens
LONG_DOCUMENT = 1000  # lines


def define_flags() -> None:
    command_line.define_text()
    flags.mark_flag_as_required("vocab_file")
    flags.DEFINE_string(
        "input_file",
        None,
        "The text: comma list of files, globs and folders.",
        required=True,
    )
    flags.DEFINE_string(
        "output_file",
        None,
        "TFRecord files, comma list; each gets an equal share of the instances. A name "
        "that ends in .gz is compressed.",
        required=True,
    )
    flags.DEFINE_integer(
        "num_output_shards",
        None,
        "Write so many files a-00000-of-00008.tfrecord for --output_file=a.tfrecord.",
        1,
    )
    flags.DEFINE_integer(
        "num_workers",
        None,
        "Processes, by default one for each CPU; the bytes do not depend on it.",
        1,
    )
    flags.DEFINE_bool("overwrite", False, "Replace output files that exist.")
    flags.DEFINE_bool(
        "split_sentences", False, "A line is a paragraph: cut it into sentences."
    )
    flags.DEFINE_bool(
        "deduplicate", False, "Leave out documents with the text of an earlier one."
    )
    flags.DEFINE_string("text_field", "text", "JSON lines: the field with the text.")
    flags.DEFINE_bool(
        "do_whole_word_mask", False, "Choose whole words for masking, not pieces."
    )
    flags.DEFINE_bool(
        "pre_segmented",
        False,
        "With --do_whole_word_mask: spaces in the text separate all words, also where "
        "the tokenizer cuts them apart, as it does Chinese.",
    )
    flags.DEFINE_integer(
        "max_seq_length", 128, "Tokens of an instance, special ones included.", 5
    )
    flags.DEFINE_integer(
        "max_predictions_per_seq",
        20,
        "Most masked tokens of an instance; about max_seq_length * masked_lm_prob.",
        1,
    )
    flags.DEFINE_integer("random_seed", 12345, "Equal seeds give equal files.")
    flags.DEFINE_integer(
        "dupe_factor", 10, "Passes over the text, each with new pairs and masks.", 1
    )
    flags.DEFINE_float(
        "masked_lm_prob", 0.15, "Share of the tokens to predict.", 0.0, 1.0
    )
    flags.DEFINE_float(
        "short_seq_prob",
        0.1,
        "Chance, per document and pass, of a shorter target length.",
        0.0,
        1.0,
    )


def output_files() -> tuple[str, ...]:
    """Paths of the record files.

    Raises:
        ValueError: the flags name none, or one twice.
    """
    paths = [path.strip() for path in FLAGS.output_file.split(",") if path.strip()]
    if not paths:
        raise ValueError(f"--output_file must name a file, got {FLAGS.output_file!r}")
    count = FLAGS.num_output_shards
    if count:
        if len(paths) > 1:
            raise ValueError(
                f"--num_output_shards needs one name in --output_file, got {len(paths)}"
            )
        folder, name = os.path.split(paths[0])
        stem, dot, suffix = name.partition(".")
        paths = [
            os.path.join(folder, f"{stem}-{i:05d}-of-{count:05d}{dot}{suffix}")
            for i in range(count)
        ]
    if len(set(map(os.path.realpath, paths))) < len(paths):
        raise ValueError(f"the output files must differ, got {', '.join(paths)}")
    return tuple(paths)


def check_outputs(paths: tuple[str, ...], inputs: list[str]) -> None:
    """Refuses outputs that would destroy something or cannot be written."""
    for path in paths:
        if os.path.realpath(path) in map(os.path.realpath, inputs):
            raise ValueError(f"{path} is an input file; choose another --output_file")
        if os.path.isdir(path):
            raise ValueError(f"{path} is a folder; --output_file must name a file")
    for path in paths:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)


def make_settings(vocab: dict[str, int]) -> pretraining.Settings:
    """What the flags say instances should look like."""
    group = masking.by_token
    if FLAGS.pre_segmented and not FLAGS.do_whole_word_mask:
        raise ValueError("--pre_segmented is for --do_whole_word_mask, give it too")
    if FLAGS.do_whole_word_mask and FLAGS.pre_segmented:
        group = masking.by_marked_word
    elif FLAGS.do_whole_word_mask:
        group = functools.partial(
            masking.by_word, is_continuation=masking.find_continuations(vocab)
        )
    return pretraining.Settings(
        cls_id=vocab["[CLS]"],
        sep_id=vocab["[SEP]"],
        scheme=masking.Scheme(
            vocab_size=1 + max(vocab.values()),
            mask_id=vocab["[MASK]"],
            special_ids=(vocab["[CLS]"], vocab["[SEP]"]),
            max_predictions_per_seq=FLAGS.max_predictions_per_seq,
            masked_lm_prob=FLAGS.masked_lm_prob,
            group=group,
        ),
        max_seq_length=FLAGS.max_seq_length,
        short_seq_prob=FLAGS.short_seq_prob,
        random_seed=FLAGS.random_seed,
    )


def make_manifest(inputs: list[str]) -> dict:
    """All that decides on the bytes of the outputs."""

    def describe(path):
        with open(path, "rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
        return {"path": path, "bytes": os.path.getsize(path), "sha256": checksum}

    ignored = {"input_file", "output_file", "num_workers", "overwrite", "vocab_file"}
    settings = {
        f"--{name}": value
        for name, value in command_line.values().items()
        if name not in ignored
    }
    files = tqdm(inputs, desc="checksums", unit=" files", delay=1)
    return {
        "inputs": [describe(path) for path in files],
        "vocabulary": describe(FLAGS.vocab_file),
        "outputs": [os.path.basename(path) for path in output_files()],
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


def show_summary(counts: dict[str, int], seconds: float) -> None:
    """Prints what was written."""

    def share(part, whole):
        return f"{100 * counts[part] / max(1, counts[whole]):.1f} %"

    rate = counts["instances"] / seconds
    for name, value in (
        ("documents", f"{counts['documents']:,}"),
        ("sentences", f"{counts['sentences']:,}"),
        ("tokens", f"{counts['tokens']:,}, {share('unknown', 'tokens')} unknown"),
        ("instances", f"{counts['instances']:,}"),
        ("random next", f"{share('random_next', 'instances')} of the instances"),
        ("masked", f"{share('masked', 'positions')} of their tokens"),
        ("time", f"{seconds:.1f} s, {rate:,.0f} instances a second"),
    ):
        print(f"{name:<12} {value}")
    if counts["unknown"] > MUCH_UNKNOWN * counts["tokens"]:
        logging.warning(
            "%s of the tokens are [UNK]: is %s the vocabulary for this language, and "
            "--do_lower_case=%s right for it?",
            share("unknown", "tokens"),
            FLAGS.vocab_file,
            FLAGS.do_lower_case,
        )


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
    start = time.perf_counter()
    vocab = tokenization.load_vocab(FLAGS.vocab_file)
    inputs, outputs = text_files.find(FLAGS.input_file), output_files()
    check_outputs(outputs, inputs)
    settings = make_settings(vocab)
    manifest = make_manifest(inputs)
    first, *_ = FLAGS.output_file.split(",")
    folder, name = os.path.split(os.path.abspath(first.strip()))
    manifest_file = f"{folder}/{name}.manifest.json"
    build_folder = f"{folder}/.{name}.build"
    if not os.path.exists(build_folder) and is_done(manifest_file, manifest, outputs):
        logging.info("%s is built already: nothing to do", outputs[0])
        return
    text = pretraining_records.Text(
        FLAGS.vocab_file,
        FLAGS.do_lower_case,
        FLAGS.split_sentences,
        FLAGS.pre_segmented,
        FLAGS.text_field,
    )
    job = build_steps.Job(build_folder, text, settings, FLAGS.dupe_factor, outputs)
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
    show_summary(result["counts"], time.perf_counter() - start)


if __name__ == "__main__":
    command_line.run(main, define_flags)
