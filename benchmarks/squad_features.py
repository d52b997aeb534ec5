"""Time to make the windows of a question about a long text, beside the plain way.

    python -m benchmarks.squad_features

The plain way asks every window for every token of every window where the token has most
context, as the definition says, which is quadratic in the length of the text. Both use
the same tokenizer and must give the same windows. The text is the start of a book.
"""

import pathlib
import statistics
import time
from collections.abc import Callable

from absl import flags

import command_line
from data import squad, squad_windows, tokenization

FLAGS = flags.FLAGS
SAMPLE = pathlib.Path(__file__).parent.parent / "sample_data"
SIZES = squad_windows.WindowSizes(384, 128, 64)

Windows = list[tuple[list[int], list[bool]]]  # ids, and whether the context is largest


def define_flags() -> None:
    flags.DEFINE_string("vocab_file", str(SAMPLE / "vocab.txt"), "Uncased vocabulary.")
    flags.DEFINE_string("input_file", str(SAMPLE / "corpus.txt"), "Text, UTF-8.")
    flags.DEFINE_list("kilobytes", ["10", "100", "400"], "Lengths of the text.")
    flags.DEFINE_integer("rounds", 3, "How often each way runs.", lower_bound=1)


def ours(example: squad.SquadExample, tokenizer: tokenization.FullTokenizer) -> Windows:
    """The product."""
    windows = squad_windows.make_windows([example], tokenizer, SIZES)
    return [(window.input_ids, window.is_max_context.tolist()) for window in windows]


def plain(
    example: squad.SquadExample, tokenizer: tokenization.FullTokenizer
) -> Windows:
    """The definition, word by word."""
    ids = []
    for word in example.doc_tokens:
        ids += tokenizer.encode(word)
    cls, sep = tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]"])
    query = tokenizer.encode(example.question_text)[: SIZES.max_query_length]
    room = SIZES.max_seq_length - len(query) - 3
    spans, start = [], 0
    while True:
        end = min(start + room, len(ids))
        spans.append((start, end))
        if end == len(ids):
            break
        start += min(room, SIZES.doc_stride)

    def is_largest(token: int, index: int) -> bool:
        best, best_score = -1, -1.0
        for i, (start, end) in enumerate(spans):
            if start <= token < end:
                score = min(token - start, end - 1 - token) + 0.01 * (end - start)
                if score > best_score:
                    best, best_score = i, score
        return best == index

    return [
        (
            [cls, *query, sep, *ids[start:end], sep],
            [is_largest(token, index) for token in range(start, end)],
        )
        for index, (start, end) in enumerate(spans)
    ]


def seconds(
    way: Callable[..., Windows],
    example: squad.SquadExample,
    tokenizer: tokenization.FullTokenizer,
) -> float:
    start = time.process_time()
    way(example, tokenizer)
    return time.process_time() - start


def main() -> None:
    tokenizer = tokenization.FullTokenizer(FLAGS.vocab_file)
    text = pathlib.Path(FLAGS.input_file).read_text("utf-8").encode()
    print("| text | windows | ours, ms | plain, ms | times faster |")
    print("| --- | --- | --- | --- | --- |")
    for kilobytes in map(int, FLAGS.kilobytes):
        context = text[: kilobytes * 1000].decode("utf-8", "ignore")
        paragraph = squad.Paragraph.from_text(context)
        example = squad.SquadExample("q", "Who is the narrator?", paragraph)
        windows = ours(example, tokenizer)
        if windows != plain(example, tokenizer):
            raise SystemExit("the two ways give different windows")
        rounds = [
            (seconds(ours, example, tokenizer), seconds(plain, example, tokenizer))
            for _ in range(FLAGS.rounds)
        ]
        mine, other = (
            statistics.median(column) for column in zip(*rounds, strict=True)
        )
        print(
            f"| {len(context.encode()) / 1000:.0f} kB | {len(windows)} "
            f"| {1e3 * mine:.1f} | {1e3 * other:.0f} | {other / mine:.0f} |"
        )


if __name__ == "__main__":
    command_line.run(main, define_flags)
