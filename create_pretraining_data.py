r"""Turns text into TFRecords for masked LM and next sentence prediction.

    python create_pretraining_data.py --input_file=sample_data/corpus.txt \
        --output_file=records.tfrecord --vocab_file=sample_data/vocab.txt \
        --dupe_factor=5

The text is UTF-8, one sentence a line, with an empty line between documents. This
command writes 10,582 instances, 545 of 1,000 with a random next sentence, in seconds.
"""

import collections
import functools
import os
import time
from collections.abc import Iterator

import common_flags

import numpy as np
import tqdm
from absl import flags, logging

from data import corpus, masking, pretraining, records, tokenization

FLAGS = flags.FLAGS

Batch = dict[str, np.ndarray]
_INSTANCES_TO_LOG = 5


def define_flags() -> None:
    common_flags.define_text()
    flags.mark_flag_as_required("vocab_file")
    flags.DEFINE_string(
        "input_file", None, "Text files: comma list of globs.", required=True
    )
    flags.DEFINE_string(
        "output_file",
        None,
        "TFRecord files, comma list; instances go to them in turn.",
        required=True,
    )
    flags.DEFINE_bool("overwrite", False, "Replace output files that exist.")
    flags.DEFINE_bool(
        "do_whole_word_mask", False, "Choose whole words for masking, not pieces."
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


def prepare_outputs(output_file: str, inputs: list[str], overwrite: bool) -> list[str]:
    """Paths of the output files, in folders that exist.

    Raises:
        ValueError: a file would be lost.
    """
    paths = [path.strip() for path in output_file.split(",") if path.strip()]
    if not paths:
        raise ValueError(f"--output_file must name a file, got {output_file!r}")
    for path in paths:
        if os.path.realpath(path) in map(os.path.realpath, inputs):
            raise ValueError(f"{path} is an input file; choose another --output_file")
        if os.path.isdir(path):
            raise ValueError(f"{path} is a folder; --output_file must name a file")
        if os.path.exists(path) and not overwrite:
            raise ValueError(
                f"{path} exists; choose another --output_file or pass --overwrite"
            )
    for path in paths:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    return paths


def make_batches(
    pools: Iterator[corpus.Pool],
    settings: pretraining.Settings,
    unk_id: int,
    counts: collections.Counter,
    progress: tqdm.tqdm,
) -> Iterator[Batch]:
    """Yields the instances of all pools, some at a time, and counts what is in them."""
    for pool in pools:
        counts["documents"] += len(pool.document_starts) - 1
        counts["sentences"] += len(pool.sentence_starts) - 1
        counts["tokens"] += len(pool.token_ids)
        counts["unknown"] += int((pool.token_ids == unk_id).sum())
        pairs, keys = pretraining.sample_pairs(pool, settings)
        bytes_before, instances_before = progress.n, counts["instances"]
        for batch in pretraining.make_instances(pool, pairs, keys, settings):
            counts["instances"] += len(batch["input_ids"])
            counts["positions"] += int(batch["input_mask"].sum())
            counts["masked"] += int(batch["masked_lm_weights"].sum())
            counts["random_next"] += int(batch["next_sentence_labels"].sum())
            share = (counts["instances"] - instances_before) / len(pairs)
            progress.set_postfix(instances=counts["instances"], refresh=False)
            progress.update(bytes_before + int(share * pool.num_bytes) - progress.n)
            yield batch


def log_first_instances(
    batches: Iterator[Batch], inv_vocab: dict[int, str]
) -> Iterator[Batch]:
    """Passes the batches on; logs some instances of the first as text."""

    def to_text(ids, is_real):
        return " ".join(inv_vocab.get(i, "?") for i in ids[is_real == 1].tolist())

    for number, batch in enumerate(batches):
        shown = min(_INSTANCES_TO_LOG, len(batch["input_ids"])) if number == 0 else 0
        for row in range(shown):
            one = {name: values[row] for name, values in batch.items()}
            logging.info(
                "instance %d, %s next sentence: %s\nto predict: %s",
                row,
                "random" if one["next_sentence_labels"][0] else "true",
                to_text(one["input_ids"], one["input_mask"]),
                to_text(one["masked_lm_ids"], one["masked_lm_weights"]),
            )
        yield batch


def show_summary(counts: collections.Counter, seconds: float) -> None:
    """Prints what was written."""

    def share(part, whole):
        return f"{100 * counts[part] / counts[whole]:.1f} %"

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


def main() -> None:
    start = time.perf_counter()
    tokenizer = tokenization.FullTokenizer(FLAGS.vocab_file, FLAGS.do_lower_case)
    vocab = tokenizer.vocab
    inputs = records.expand(FLAGS.input_file)
    outputs = prepare_outputs(FLAGS.output_file, inputs, FLAGS.overwrite)
    group = masking.by_token
    if FLAGS.do_whole_word_mask:
        group = functools.partial(
            masking.by_word, is_continuation=masking.find_continuations(vocab)
        )
    settings = pretraining.Settings(
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
        dupe_factor=FLAGS.dupe_factor,
        random_seed=FLAGS.random_seed,
    )

    pools = corpus.make_pools(corpus.read_documents(inputs, tokenizer.encode))
    spec = records.pretraining_spec(FLAGS.max_seq_length, FLAGS.max_predictions_per_seq)
    counts = collections.Counter()
    num_bytes = sum(os.path.getsize(path) for path in inputs)
    with tqdm.tqdm(total=num_bytes, unit="B", unit_scale=True) as progress:
        batches = make_batches(pools, settings, vocab["[UNK]"], counts, progress)
        batches = log_first_instances(batches, tokenizer.inv_vocab)
        records.write_stream(outputs, batches, spec)
    show_summary(counts, time.perf_counter() - start)


if __name__ == "__main__":
    common_flags.run(main, define_flags)
