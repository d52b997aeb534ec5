"""Speed of our tokenizers beside Hugging Face's `tokenizers` (Rust), one thread each.

    python -m benchmarks.tokenizer

Every variant turns the lines of a text into lists of ids or tokens. The variants take
turns, round by round, so that what else the machine does meets them all; the table has
medians. Cold is a tokenizer that has seen no text before.
"""

import gc
import os
import pathlib
import statistics
import time
from collections.abc import Callable, Iterable

from absl import flags

import command_line
from data import tokenization

FLAGS = flags.FLAGS
SAMPLE = pathlib.Path(__file__).parent.parent / "sample_data"
FASTEST_OTHER = "Hugging Face, encode_batch_fast"
TIMED = {"cpu": time.process_time, "wall": time.perf_counter}

Lines = list[str]
Variant = Callable[[], Callable[[Lines], Iterable[list]]]  # prepares what is timed


def define_flags() -> None:
    flags.DEFINE_string("vocab_file", str(SAMPLE / "vocab.txt"), "Uncased vocabulary.")
    flags.DEFINE_string("input_file", str(SAMPLE / "corpus.txt"), "Text, UTF-8.")
    flags.DEFINE_integer("rounds", 7, "How often each variant runs.", lower_bound=1)


def ours(vocab_file: str) -> dict[str, Variant]:
    """The tokenizer in Python."""
    warm = tokenization.FullTokenizer(vocab_file)

    def cold(method: str) -> Callable[[Lines], list]:
        run = getattr(tokenization.FullTokenizer(vocab_file), method)
        return lambda lines: [run(line) for line in lines]

    return {
        "FullTokenizer.encode, cold": lambda: cold("encode"),
        "FullTokenizer.encode": lambda: lambda lines: [warm.encode(x) for x in lines],
        "FullTokenizer.tokenize, cold": lambda: cold("tokenize"),
        "FullTokenizer.tokenize": lambda: (
            lambda lines: [warm.tokenize(x) for x in lines]
        ),
    }


def hugging_face(vocab_file: str) -> dict[str, Variant]:
    """The tokenizer of `transformers`, without special tokens as ours is."""
    # Read when the library starts its threads.
    os.environ |= {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
    import tokenizers

    tokenizer = tokenizers.BertWordPieceTokenizer(vocab_file, lowercase=True)._tokenizer

    def one_by_one(lines: Lines) -> list[list[int]]:
        return [tokenizer.encode(x, add_special_tokens=False).ids for x in lines]

    def batch(lines: Lines) -> list[list[int]]:
        encodings = tokenizer.encode_batch(lines, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def batch_fast(lines: Lines) -> list[list[int]]:
        encodings = tokenizer.encode_batch_fast(lines, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    return {
        "Hugging Face, encode": lambda: one_by_one,
        "Hugging Face, encode_batch": lambda: batch,
        FASTEST_OTHER: lambda: batch_fast,
    }


def in_graph(vocab_file: str) -> dict[str, Variant]:
    """The tokenizer of exported models; its result stays a tensor."""
    import tensorflow as tf

    from data import graph_tokenization

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tokenizer = tf.function(
        graph_tokenization.GraphTokenizer(vocab_file),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )

    def in_batches(batch_size: int) -> Callable[[Lines], list]:
        return lambda lines: [
            tokenizer(tf.constant(lines[i : i + batch_size]))
            for i in range(0, len(lines), batch_size)
        ]

    return {
        "GraphTokenizer, batches of 32": lambda: in_batches(32),
        "GraphTokenizer, batches of 1000": lambda: in_batches(1000),
    }


def as_ids(results: Iterable, tokenizer: tokenization.FullTokenizer) -> list[list[int]]:
    """Results of any variant, line by line."""
    lines = []
    for result in results:
        lines += result.to_list() if hasattr(result, "to_list") else [result]
    return [
        tokenizer.convert_tokens_to_ids(line)
        if line and line[0] in tokenizer.vocab
        else line
        for line in lines
    ]


def time_once(variant: Variant, lines: Lines) -> dict[str, float]:
    run = variant()
    gc.collect()
    start = {name: clock() for name, clock in TIMED.items()}
    results = run(lines)
    seconds = {name: clock() - start[name] for name, clock in TIMED.items()}
    del results  # after the clocks were read
    return seconds


def main() -> None:
    text = pathlib.Path(FLAGS.input_file).read_text(encoding="utf-8")
    lines = [line for line in text.split("\n") if line]
    variants = {
        **ours(FLAGS.vocab_file),
        **hugging_face(FLAGS.vocab_file),
        **in_graph(FLAGS.vocab_file),
    }
    tokenizer = tokenization.FullTokenizer(FLAGS.vocab_file)
    expected = [tokenizer.encode(line) for line in lines]
    for name, variant in variants.items():  # also the warm-up of those that have one
        got = as_ids(variant()(lines), tokenizer)
        different = sum(a != b for a, b in zip(got, expected, strict=True))
        if different:
            print(f"{name}: the ids of {different} of {len(lines)} lines differ")
    rounds = {name: [] for name in variants}
    for _ in range(FLAGS.rounds):
        for name, variant in variants.items():
            rounds[name].append(time_once(variant, lines))
    tokens = sum(map(len, expected))
    print(
        f"\n{len(lines)} lines, {len(text.encode()) / 1e6:.2f} MB, {tokens} tokens, "
        f"medians of {FLAGS.rounds} rounds; speed is CPU time beside {FASTEST_OTHER}\n"
    )
    print("| variant | CPU ms | wall ms | million tokens/s | speed |")
    print("| --- | --- | --- | --- | --- |")
    for name, seconds in rounds.items():
        cpu, wall = (statistics.median(s[clock] for s in seconds) for clock in TIMED)
        # Round by round: both sides of a ratio met the same machine.
        ratio = statistics.median(
            other["cpu"] / own["cpu"]
            for other, own in zip(rounds[FASTEST_OTHER], seconds, strict=True)
        )
        print(
            f"| {name} | {1e3 * cpu:.0f} | {1e3 * wall:.0f} | "
            f"{tokens / cpu / 1e6:.2f} | {ratio:.1f} |"
        )


if __name__ == "__main__":
    command_line.run(main, define_flags)
