"""What create_pretraining_data.py and its Beam form share: flags and the summary."""

import dataclasses
import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from absl import flags, logging

import command_line
from data import masking, pretraining, pretraining_records, vocabulary_audit


def define() -> None:
    """Which text, what to make of it, and where to put it."""
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
        99_999,
    )
    flags.DEFINE_bool("overwrite", False, "Replace output files that exist.")
    flags.DEFINE_bool(
        "split_sentences", False, "A line is a paragraph: cut it into sentences."
    )
    flags.DEFINE_bool(
        "deduplicate", False, "Leave out documents with the text of an earlier one."
    )
    flags.DEFINE_string("text_field", "text", "JSON lines: the field with the text.")
    _define_instances()


def _define_instances() -> None:
    flags.DEFINE_bool(
        "do_whole_word_mask", False, "Choose whole words for masking, not pieces."
    )
    flags.DEFINE_bool(
        "pre_segmented",
        False,
        "With --do_whole_word_mask: spaces in the text separate all words, also where "
        "the tokenizer cuts them apart, as it does Chinese.",
    )
    flags.DEFINE_bool(
        "segment_pairs",
        True,
        "Instances are pairs of spans, for next sentence prediction; without, single "
        "spans of a document.",
    )
    flags.DEFINE_list(
        "masking_mix",
        "80,10,10",
        "Percentages of the masked tokens that become [MASK], stay, become random.",
    )
    flags.DEFINE_integer(
        "max_seq_length", 128, "Tokens of an instance, special ones included.", 5, 2**16
    )
    flags.DEFINE_integer(
        "max_predictions_per_seq",
        20,
        "Most masked tokens of an instance; about max_seq_length * masked_lm_prob.",
        1,
        2**16,
    )
    flags.DEFINE_integer("random_seed", 12345, "Equal seeds give equal files.")
    flags.DEFINE_integer(
        "dupe_factor",
        10,
        "Passes over the text, each with new pairs and masks.",
        1,
        10**6,
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


def output_files(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Paths of the record files.

    Args:
        values: of the flags.

    Raises:
        ValueError: the flags name none, or one twice.
    """
    names, count = values["output_file"], values["num_output_shards"]
    paths = [path.strip() for path in names.split(",") if path.strip()]
    if not paths:
        raise ValueError(f"--output_file must name a file, got {names!r}")
    for path in paths:
        if not os.path.basename(path):
            raise ValueError(f"{path} is a folder; --output_file must name a file")
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


def check_outputs(paths: Sequence[str], inputs: Iterable[str]) -> None:
    """Refuses outputs that this machine cannot write as a whole.

    Args:
        paths: of the record files.
        inputs: files that are read, the vocabulary among them.

    Raises:
        ValueError: as `command_line.check_outputs`; or an output is on another machine,
            or on another file system than the first.
    """
    for path in paths:
        if "://" in path:
            raise ValueError(
                f"{path} is not on this machine; write the files here and copy them, "
                "or use create_pretraining_data_beam.py"
            )
    command_line.check_outputs(paths, inputs)
    # They are built beside the first and then renamed into their places.
    for path in paths:
        if _device(path) != _device(paths[0]):
            raise ValueError(
                f"{path} and {paths[0]} are on different file systems; name files on "
                "one in --output_file, and move them later"
            )


def _device(path: str) -> int:
    """The file system that a file is on or would be on."""
    folder = os.path.dirname(os.path.abspath(path))
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    return os.stat(folder).st_dev


def make_text(values: Mapping[str, Any]) -> pretraining_records.Text:
    """How the flags say the text is to be read."""
    names = [field.name for field in dataclasses.fields(pretraining_records.Text)]
    return pretraining_records.Text(**{name: values[name] for name in names})


def make_settings(
    values: Mapping[str, Any], vocab: dict[str, int]
) -> pretraining.Settings:
    """What the flags say instances should look like.

    Args:
        values: of the flags.
        vocab: token -> id.

    Raises:
        ValueError: the flags contradict each other.
    """
    group = masking.by_token
    if values["pre_segmented"] and not values["do_whole_word_mask"]:
        raise ValueError("--pre_segmented is for --do_whole_word_mask, give it too")
    if values["do_whole_word_mask"] and values["pre_segmented"]:
        group = masking.by_marked_word
    elif values["do_whole_word_mask"]:
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
            max_predictions_per_seq=values["max_predictions_per_seq"],
            masked_lm_prob=values["masked_lm_prob"],
            group=group,
            mix=_numbers("masking_mix", values["masking_mix"]),
        ),
        max_seq_length=values["max_seq_length"],
        short_seq_prob=values["short_seq_prob"],
        random_seed=values["random_seed"],
        segment_pairs=values["segment_pairs"],
    )


def _numbers(name: str, texts: Sequence[str]) -> tuple[float, ...]:
    try:
        return tuple(map(float, texts))
    except ValueError:
        raise ValueError(
            f"--{name} must be numbers with commas between, got {','.join(texts)!r}"
        ) from None


def show_summary(
    values: Mapping[str, Any], counts: Mapping[str, int], seconds: float
) -> None:
    """Prints what was written; warns if much of it is unknown.

    Args:
        values: of the flags.
        counts: documents, sentences, tokens, unknown, instances, random_next,
            positions and masked.
        seconds: it took.
    """

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
    if counts["unknown"] > vocabulary_audit.MUCH_UNKNOWN * counts["tokens"]:
        logging.warning(
            "%s of the tokens are [UNK]: is %s the vocabulary for this language, and "
            "--do_lower_case=%s right for it?",
            share("unknown", "tokens"),
            values["vocab_file"],
            values["do_lower_case"],
        )
