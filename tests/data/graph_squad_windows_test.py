"""Windows in the graph against those of Python."""

import random

import numpy as np
import pytest
import tensorflow as tf

from data import (
    graph_squad_windows,
    graph_tokenization,
    squad,
    squad_windows,
    tokenization,
)


@pytest.mark.parametrize("seed", range(40))
def test_places_and_best_windows(seed):
    """Any room and stride, also where windows show equally much of both sides."""
    rng = random.Random(seed)
    sizes = squad_windows.WindowSizes(rng.randrange(6, 40), rng.randrange(1, 12), 2)
    num_tokens = [rng.choice([0, 1, rng.randrange(1, 150)]) for _ in range(8)]
    query_lengths = [rng.randrange(3) for _ in range(8)]
    windows = graph_squad_windows.place_windows(
        tf.constant(num_tokens), tf.constant(query_lengths), sizes
    )
    places, tokens = [], []
    for row, count in enumerate(num_tokens):
        room = sizes.max_seq_length - query_lengths[row] - 3
        starts, ends = squad_windows.place_windows(count, room, sizes.doc_stride)
        best = squad_windows.best_windows(starts, ends)
        for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
            tokens += [
                (len(places), token, best[token] == index)
                for token in range(start, end)
            ]
            places.append((row, index, start, end))
    found = (windows.rows, windows.numbers, windows.starts, windows.ends)
    assert list(zip(*(values.numpy() for values in found), strict=True)) == places
    numbers, tokens, expected = np.array(tokens, np.int32).T
    best = windows.are_best(tf.constant(numbers), tf.constant(tokens))
    np.testing.assert_array_equal(best, expected.astype(bool))


def test_batches_are_those_of_python(golden):
    vocab_file = golden.parents[1] / "sample_data/vocab.txt"
    questions = ["who is it?", "", "where is it now? " * 5, "what?"]
    contexts = ["Ada, in 1887. " * 9, "", "one two three " * 20, "東京"]
    sizes = squad_windows.WindowSizes(32, 7, 8)
    tokenizer = tokenization.FullTokenizer(vocab_file)
    expected = list(
        squad_windows.make_windows(
            [
                squad.SquadExample("", question, squad.Paragraph.from_text(context))
                for question, context in zip(questions, contexts, strict=True)
            ],
            tokenizer,
            sizes,
        )
    )
    graph = graph_tokenization.GraphTokenizer(vocab_file)
    queries, ids = graph(tf.constant(questions))[:, :8], graph(tf.constant(contexts))
    lengths = (tf.cast(x.row_lengths(), tf.int32) for x in (ids, queries))
    windows = graph_squad_windows.place_windows(*lengths, sizes)
    sequences = graph_squad_windows.Sequences(graph.enclose(queries), ids, windows)
    assert len(windows.rows) == len(expected) > 10
    for first in range(0, len(expected), 3):
        batch = sequences.batch(first, first + 3)
        part = expected[first : first + 3]
        longest = max(len(window.input_ids) for window in part)
        arrays = squad_windows.to_arrays(part, longest)
        for name, values in batch.items():
            np.testing.assert_array_equal(values, arrays[name])
