"""Time to make pre-training records, beside the plain way, and with more processes.

    python -m benchmarks.pretraining_data --input_file=FOLDER

The plain way is the original's algorithm in plain Python: it does the text once and one
of the --dupe_factor passes, and the others are counted as that one. The commands take
turns, round by round; the table has medians of the seconds of the clock and of the CPU.
"""

import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import common_flags

from absl import flags

from benchmarks import plain_pretraining, plain_tokenizer
from data import sentences, text_files, tokenization

FLAGS = flags.FLAGS
ROOT = pathlib.Path(__file__).parent.parent


def define_flags() -> None:
    vocab_file = str(ROOT / "sample_data/vocab.txt")
    flags.DEFINE_string("vocab_file", vocab_file, "Uncased vocabulary.")
    flags.DEFINE_string("input_file", str(ROOT / "sample_data/corpus.txt"), "Text.")
    flags.DEFINE_integer("dupe_factor", 10, "Passes over the text.", 1)
    flags.DEFINE_integer("rounds", 3, "How often each way runs.", 1)
    flags.DEFINE_list("num_workers", ["1", "2"], "Numbers of processes to compare.")


def ours(num_workers: str) -> tuple[float, float]:
    """Seconds of the clock and of the CPU of the script."""
    with tempfile.TemporaryDirectory() as folder:
        before, start = (
            resource.getrusage(resource.RUSAGE_CHILDREN),
            time.perf_counter(),
        )
        subprocess.run(
            [
                sys.executable,
                ROOT / "create_pretraining_data.py",
                f"--input_file={FLAGS.input_file}",
                f"--output_file={folder}/a.tfrecord",
                "--num_output_shards=4",
                f"--vocab_file={FLAGS.vocab_file}",
                f"--dupe_factor={FLAGS.dupe_factor}",
                f"--num_workers={num_workers}",
                "--split_sentences",
            ],
            check=True,
            capture_output=True,
        )
        wall = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu


def plain() -> tuple[float, float]:
    """The same of the plain way, in this process."""
    vocab = tokenization.load_vocab(FLAGS.vocab_file)
    rng = random.Random(12345)
    clocks = time.perf_counter, time.process_time
    start = [clock() for clock in clocks]
    lines = []
    for path in text_files.find(FLAGS.input_file):
        for document in text_files.read_documents(path):
            for line in document.lines:
                lines += sentences.split(line)
            lines.append("")
    documents = plain_pretraining.read(
        lines, lambda line: plain_tokenizer.tokenize(line, vocab, True), rng
    )
    read = [clock() for clock in clocks]
    instances = plain_pretraining.one_pass(documents, list(vocab), 128, 20, rng)
    rng.shuffle(instances)
    with tempfile.TemporaryDirectory() as folder:
        plain_pretraining.write(instances, vocab, 128, 20, f"{folder}/a")
    end = [clock() for clock in clocks]
    return tuple(
        r - s + FLAGS.dupe_factor * (e - r)
        for s, r, e in zip(start, read, end, strict=True)
    )


def main() -> None:
    ways = {f"create_pretraining_data.py, {n} processes": n for n in FLAGS.num_workers}
    times = {"plain Python, one process": [plain()]}  # slow and steady: once
    times |= {name: [] for name in ways}
    for _ in range(FLAGS.rounds):
        for name, num_workers in ways.items():
            times[name].append(ours(num_workers))
    print(f"\n{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}\n")
    print("| way | clock, s | CPU, s | times faster, clock | CPU |")
    print("| --- | --- | --- | --- | --- |")
    slow = times["plain Python, one process"][0]
    for name, seconds in times.items():
        wall, cpu = (statistics.median(values) for values in zip(*seconds, strict=True))
        faster = f"{slow[0] / wall:.1f} | {slow[1] / cpu:.1f}"
        print(f"| {name} | {wall:.1f} | {cpu:.1f} | {faster} |")


if __name__ == "__main__":
    common_flags.run(main, define_flags)
