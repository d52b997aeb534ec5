r"""Learns a WordPiece vocabulary, tells how one fits a text, or adds words to one.

    python build_vocab.py --input_file='corpus/*.txt' --vocab_size=30522 \
        --output_file=vocab.txt
    python build_vocab.py --mode=audit --input_file='domain/*.txt' \
        --vocab_file=vocab.txt
    python build_vocab.py --mode=extend --input_file='domain/*.txt' \
        --vocab_file=vocab.txt --num_words=1000 --output_file=extended.txt

The text is cut into words as every script here cuts it, so give --do_lower_case as
later in training. The same text gives the same vocabulary, byte by byte.
`grow_checkpoint.py` gives a model the words that were added.
"""

import collections
import functools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import tqdm
from absl import flags

import command_line
from data import (
    filesystem,
    text_files,
    tokenization,
    vocabulary,
    vocabulary_audit,
    vocabulary_extension,
    word_counts,
)

FLAGS = flags.FLAGS

_EXAMPLES_ON_SCREEN = 10
# How much larger a text is than its compressed file, for the progress shown.
_GZIP_RATIO = 2.7
# Flags without a default that are needed, and those that are so or mean nothing.
_NEEDED = {
    "learn": ("vocab_size", "output_file"),
    "audit": ("vocab_file",),
    "extend": ("vocab_file", "num_words", "output_file"),
}
_MODE_FLAGS = ("vocab_size", "vocab_file", "num_words")


def define_flags() -> None:
    command_line.define_text()
    flags.DEFINE_enum(
        "mode",
        "learn",
        ["learn", "audit", "extend"],
        "learn: a new vocabulary. audit: how well --vocab_file fits the text. extend: "
        "--vocab_file and the words of the text that it cuts most.",
    )
    flags.DEFINE_string(
        "input_file",
        None,
        "Text (.txt) or JSON lines (.jsonl), also .gz: comma list of files, globs and "
        "folders.",
        required=True,
    )
    flags.DEFINE_string("text_field", "text", "Where the text is in JSON lines.")
    flags.DEFINE_string(
        "output_file",
        None,
        "File to write: the vocabulary, or the audit as JSON if you want it so.",
    )
    flags.DEFINE_bool("overwrite", False, "Replace an output file that exists.")
    flags.DEFINE_integer(
        "max_words",
        500_000,
        "Different words to keep count of. With more, the rarest are dropped; memory "
        "grows to about 1 kB a word in learning.",
        1000,
    )
    define_mode_flags()


def define_mode_flags() -> None:
    """What one or two modes take."""
    flags.DEFINE_integer(
        "vocab_size", None, "learn: entries, special tokens included.", 1, 10**7
    )
    flags.DEFINE_float(
        "character_coverage",
        0.99999,
        "learn: share of the characters of the text to cover, ASCII first, then the "
        "most frequent. A word with any other character is [UNK]. 1: all.",
        0.0,
        1.0,
    )
    flags.DEFINE_integer(
        "num_unused",
        0,
        "learn: entries [unused0], ... to spare. 99 or more give the special tokens "
        "the ids of the released vocabularies.",
        0,
        10**6,
    )
    flags.DEFINE_integer(
        "min_frequency",
        2,
        "learn: how often pieces must stand together to be joined. extend: how often a "
        "word must occur to be added.",
        1,
    )
    flags.DEFINE_integer(
        "num_words", None, "extend: words to add, those that save most pieces first.", 1
    )
    flags.DEFINE_bool(
        "fill_unused",
        False,
        "extend: put the words in the place of [unused0], ..., so that the size stays.",
    )
    flags.DEFINE_integer(
        "num_examples", 100, "audit: entries of each list in the JSON file.", 0
    )


def read_with_progress(paths: list[str], text_field: str) -> Iterator[str]:
    """Yields the lines of all files and shows how far it is."""
    total = sum(map(os.path.getsize, paths))
    end = 0
    with tqdm.tqdm(desc="reading", total=total, unit="B", unit_scale=True) as progress:
        for path in paths:
            end += os.path.getsize(path)
            ratio = _GZIP_RATIO if path.endswith(".gz") else 1
            for line in text_files.read_lines([path], text_field):
                progress.update(min(len(line) / ratio, end - progress.n))
                yield line
            progress.update(end - progress.n)


def count(
    lines: Iterable[str],
    tokenizer: tokenization.BasicTokenizer,
    max_words: int,
    observe: Callable[[Iterable[tuple[str, int]]], None],
) -> collections.Counter:
    """Counts the words of the text, and tells what was dropped on the way.

    Args:
        observe: is given all words and their counts, also those that were dropped.

    Raises:
        ValueError: there are none.
    """
    found = word_counts.count_words(lines, tokenizer, max_words, observe)
    observe(found.counts.items())
    if not found.counts and not found.num_dropped:
        limit = tokenization.MAX_CHARS_PER_WORD
        raise ValueError(
            f"there are no words, of {limit} characters at most, in the text that "
            "--input_file names"
        )
    if found.num_dropped:
        print(
            f"note: to keep {max_words:,} different words at most (--max_words), rare "
            f"ones were dropped {found.num_dropped:,} times; no word that occurs more "
            f"than {found.max_missed:,} times is missing, no count is too low by more"
        )
    return found.counts


def audit(vocab: Iterable[str], counts: Mapping[str, int]) -> dict[str, Any]:
    """How a vocabulary fits words, with few examples."""
    fit = vocabulary_audit.Audit(vocab)
    fit.add(counts.items())
    return fit.report(counts, _EXAMPLES_ON_SCREEN)


def learn(
    lines: Iterable[str],
    tokenizer: tokenization.BasicTokenizer,
    max_words: int,
    settings: vocabulary.Settings,
) -> list[str]:
    """Learns the entries of a vocabulary from text."""
    characters = collections.Counter()
    observe = functools.partial(vocabulary.count_characters, characters)
    counts = count(lines, tokenizer, max_words, observe)
    entries = vocabulary.learn(counts, characters, tokenizer, settings)
    entries = list(tqdm.tqdm(entries, "learning", settings.vocab_size, unit=" entries"))
    print(vocabulary_audit.table(audit(entries, counts)))
    return entries


def extend(
    vocab_file: str,
    counts: Mapping[str, int],
    num_words: int,
    min_frequency: int,
    fill_unused: bool,
) -> list[str]:
    """The lines of a vocabulary with words added."""
    vocab = tokenization.load_vocab(vocab_file)
    words = vocabulary_extension.choose_words(counts, vocab, num_words, min_frequency)
    lines = vocabulary_extension.extend(vocab_file, words, fill_unused)
    before, after = (
        vocabulary_audit.figures(audit(entries, counts))
        for entries in (vocab, [line.strip() for line in lines])
    )
    for title, text in before.items():
        print(f"{title:<20} {text} before, {after[title]} after")
    shown = ", ".join(words[:_EXAMPLES_ON_SCREEN])
    print(f"{'added':<20} {len(words):,} words: {shown}")
    return lines


def check_flags(mode: str, values: Mapping[str, Any]) -> None:
    """Refuses flags that are missing for what is to be done, or mean nothing in it."""
    needed = _NEEDED[mode]
    for name in needed:
        if values[name] is None:
            raise ValueError(f"--mode={mode} needs --{name}")
    for name in _MODE_FLAGS:
        if name not in needed and values[name] is not None:
            raise ValueError(f"--{name} means nothing with --mode={mode}; remove it")


def main() -> None:
    mode, output_file = FLAGS.mode, FLAGS.output_file
    check_flags(mode, command_line.values())
    paths = text_files.find(FLAGS.input_file)
    if output_file:
        inputs = [*paths, FLAGS.vocab_file]
        command_line.prepare_output(output_file, inputs, FLAGS.overwrite)
    text = read_with_progress(paths, FLAGS.text_field)
    words_of = tokenization.BasicTokenizer(FLAGS.do_lower_case), FLAGS.max_words
    if mode == "learn":
        settings = vocabulary.Settings(
            FLAGS.vocab_size,
            FLAGS.character_coverage,
            FLAGS.num_unused,
            FLAGS.min_frequency,
        )
        output = learn(text, *words_of, settings)
    else:
        tokenization.validate_case_matches_checkpoint(
            FLAGS.do_lower_case, FLAGS.vocab_file
        )
        fit = vocabulary_audit.Audit(tokenization.load_vocab(FLAGS.vocab_file))
        counts = count(text, *words_of, fit.add)
    if mode == "extend":
        chosen = FLAGS.num_words, FLAGS.min_frequency
        output = extend(FLAGS.vocab_file, counts, *chosen, FLAGS.fill_unused)
    if mode == "audit":
        print(vocabulary_audit.table(fit.report(counts, _EXAMPLES_ON_SCREEN)))
        report = fit.report(counts, FLAGS.num_examples)
        output = json.dumps(report, indent=1, ensure_ascii=False).split("\n")
    if output_file:
        with filesystem.replacing(output_file) as file:
            file.write("".join(f"{line}\n" for line in output).encode())


if __name__ == "__main__":
    command_line.run(main, define_flags)
