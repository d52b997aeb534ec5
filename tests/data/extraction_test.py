"""Lines to batches and back in order; files of vectors."""

import json
import os
import random

import numpy as np
import pytest
import tensorflow as tf

from data import extraction, tokenization


def read(tmp_path, content):
    path = tmp_path / "lines.txt"
    path.write_bytes(content.encode())
    examples = list(extraction.read_examples(path))
    assert [example.guid for example in examples] == list(
        map(str, range(len(examples)))
    )
    assert extraction.count_lines(path) == len(examples)
    return [(example.text_a, example.text_b) for example in examples]


def test_every_line_is_an_example(tmp_path):
    assert read(tmp_path, "a b\n\n  c \nd") == [
        ("a b", None),
        ("", None),
        ("c", None),
        ("d", None),
    ]
    assert read(tmp_path, "\n") == [("", None)]
    assert read(tmp_path, "a\r\nb\u2028c\n") == [("a", None), ("b\u2028c", None)]


def test_the_last_separator_makes_a_pair(tmp_path):
    assert read(tmp_path, "a ||| b\na ||| b ||| c\n a |||  b \n") == [
        ("a", "b"),
        ("a ||| b", "c"),
        ("a", " b"),
    ]
    # It needs a space and a text on both sides.
    assert read(tmp_path, "a |||b\na|||b\na ||| \n ||| b\n|||\n") == [
        ("a |||b", None),
        ("a|||b", None),
        ("a |||", None),
        ("||| b", None),
        ("|||", None),
    ]


def test_bad_input_is_refused(tmp_path):
    for read_all in (extraction.count_lines, lambda p: [*extraction.read_examples(p)]):
        with pytest.raises(FileNotFoundError, match=r"there is no file .*none"):
            read_all(tmp_path / "none")
        (tmp_path / "empty").touch()
        with pytest.raises(ValueError, match="empty is empty"):
            read_all(tmp_path / "empty")
        (tmp_path / "latin").write_bytes(b"a\n\ncaf\xe9\n")
        with pytest.raises(ValueError, match=r"latin, line 3: .*offset 6 .*not UTF-8"):
            read_all(tmp_path / "latin")


def test_lines_are_cut_as_in_the_classifier(golden, tmp_path):
    tokenizer = tokenization.FullTokenizer(golden / "tiny_tf1" / "vocab.txt")
    path = tmp_path / "lines.txt"
    path.write_text("a b c d e ||| x\na b c d e f\n\n")
    lines = extraction.featurize(extraction.read_examples(path), 6, tokenizer)
    lines = [(*line[::2], tokenizer.convert_ids_to_tokens(line[1])) for line in lines]
    assert lines == [
        (0, [0, 0, 0, 0, 1, 1], ["[CLS]", "a", "b", "[SEP]", "x", "[SEP]"]),
        (1, [0] * 6, ["[CLS]", "a", "b", "c", "d", "[SEP]"]),
        (2, [0, 0], ["[CLS]", "[SEP]"]),
    ]


def random_lines(num_lines, seed=0, longest=20):
    rng = random.Random(seed)
    for number in range(num_lines):
        size = rng.randint(2, longest)
        yield extraction.Line(number, [number + 1] * size, [0] * size)


@pytest.mark.parametrize("num_lines", [1, 31, 32, 33, 200])
@pytest.mark.parametrize("window", [(1 << 26, 128), (1 << 26, 2), (1000, 128)])
def test_every_line_is_in_one_batch(monkeypatch, num_lines, window):
    monkeypatch.setattr(extraction, "WINDOW_VALUES", window[0])
    monkeypatch.setattr(extraction, "WINDOW_BATCHES", window[1])
    batches = list(extraction.sorted_batches(random_lines(num_lines), 8, 5))
    assert [len(batch) for batch in batches[:-1]] == [8] * ((num_lines - 1) // 8)
    numbers = [line.number for batch in batches for line in batch]
    assert sorted(numbers) == list(range(num_lines))
    assert numbers != sorted(numbers) or num_lines == 1


def test_batches_hold_lines_of_like_length():
    lines = list(random_lines(1024))
    batches = list(extraction.sorted_batches(lines, 32, 1))
    sizes = [[len(line.input_ids) for line in batch] for batch in batches]
    padded = sum(32 * max(row) for row in sizes)
    assert padded < 1.05 * sum(map(sum, sizes))
    unsorted = [lines[i : i + 32] for i in range(0, 1024, 32)]
    assert sum(32 * max(len(s.input_ids) for s in b) for b in unsorted) > 1.5 * padded


@pytest.mark.parametrize(("window_values", "window_batches"), [(2000, 128), (10**9, 3)])
def test_what_waits_is_bounded(monkeypatch, window_values, window_batches):
    """However many lines there are, a window of them is read ahead, and no more."""
    monkeypatch.setattr(extraction, "WINDOW_VALUES", window_values)
    monkeypatch.setattr(extraction, "WINDOW_BATCHES", window_batches)
    consumed = 0

    def endless():
        nonlocal consumed
        for line in random_lines(10**9):
            consumed += 1
            yield line

    waiting = []
    for done, batch in enumerate(extraction.sorted_batches(endless(), 8, 5), start=1):
        assert len(batch) == 8
        waiting.append(consumed - done * 8)
        if done == 300:
            break
    # A batch holds at most 8 * 20 tokens of 5 values, and at least 8 * 2.
    most = min(8 * window_batches, window_values / (5 * 2) + 8)
    assert 8 <= max(waiting) <= most
    assert max(waiting[100:200]) <= max(waiting[200:]) + 8


def test_batches_are_padded_to_the_longest_line():
    lines = [
        extraction.Line(4, [7, 8, 9], [0, 0, 1]),
        extraction.Line(2, [5, 6, 5, 6, 5], [0] * 5),
    ]
    batch = extraction.to_batch(lines, 3, 128, multiple=4)
    assert {values.dtype for values in batch.values()} == {np.dtype(np.int32)}
    assert batch["input_ids"].tolist() == [
        [7, 8, 9, 0, 0, 0, 0, 0],
        [5, 6, 5, 6, 5, 0, 0, 0],
        [0] * 8,
    ]
    assert batch["input_mask"].sum(1).tolist() == [3, 5, 0]
    assert batch["segment_ids"].sum(1).tolist() == [1, 0, 0]
    assert batch["line_numbers"].tolist() == [4, 2, 0]
    assert batch["is_real_example"].tolist() == [1, 1, 0]
    assert extraction.to_batch(lines, 2, 6)["input_ids"].shape == (2, 6)
    assert extraction.to_batch(lines, 2, 64, 64)["input_ids"].shape == (2, 64)


@pytest.mark.parametrize("num_lines", [1, 8, 77])
def test_the_dataset_gives_all_lines_back_in_order(monkeypatch, num_lines):
    monkeypatch.setattr(extraction, "WINDOW_BATCHES", 3)

    def make_batches():
        for batch in extraction.sorted_batches(random_lines(num_lines), 8, 1):
            yield extraction.to_batch(batch, 8, 20)

    dataset = extraction.to_dataset(make_batches, 8, num_lines)
    assert int(dataset.cardinality()) == -(-num_lines // 8)
    assert dataset.element_spec["input_ids"] == tf.TensorSpec([8, None], tf.int32)
    real = (
        {n: v[batch["is_real_example"] == 1] for n, v in batch.items()}
        for batch in dataset.as_numpy_iterator()
    )
    rows = list(extraction.in_order(real))
    assert [row["line_numbers"] for row in rows] == list(range(num_lines))
    for row, line in zip(rows, random_lines(num_lines), strict=True):
        size = row["input_mask"].sum()
        assert row["input_ids"][:size].tolist() == line.input_ids


def test_rows_come_as_soon_as_it_is_their_turn():
    def batches():
        for numbers in ([2, 0], [1, 4], [3]):
            yield {"line_numbers": np.array(numbers)}
            seen.append("read")

    seen = []
    for row in extraction.in_order(batches()):
        seen.append(int(row["line_numbers"]))
    assert seen == [0, "read", 1, 2, "read", 3, 4, "read"]
    with pytest.raises(AssertionError, match="line 1 is missing"):
        list(extraction.in_order([{"line_numbers": np.array([2, 0])}]))


def test_values_are_rounded_as_python_rounds():
    rng = np.random.default_rng(0)
    values = [
        *rng.normal(0, 1, 20000),
        *rng.normal(0, 1e-6, 20000),
        *rng.normal(0, 1e4, 20000),
        *((rng.integers(-9999, 9999, 20000) + 0.5) * 1e-6),
        *(rng.integers(-9999, 9999, 20000) / 2**7),
        0.0,
        -0.0,
        -1e-9,
        float("nan"),
        float("-inf"),
    ]
    vectors = np.array(values, np.float32).reshape(1, -1)
    expected = [round(float(x), 6) for x in vectors[0]]
    actual = extraction.sentence_features(0, [-1], vectors)["layers"][0]["values"]
    assert json.dumps(actual) == json.dumps(expected)


def test_objects_hold_layers_in_the_order_given():
    vectors = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    actual = extraction.token_features(5, ["a", "b"], [-1, 0], vectors)
    assert actual == {
        "linex_index": 5,
        "features": [
            {
                "token": token,
                "layers": [
                    {"index": -1, "values": [start, start + 1, start + 2]},
                    {"index": 0, "values": [start + 3, start + 4, start + 5]},
                ],
            }
            for token, start in (("a", 0.0), ("b", 6.0))
        ],
    }
    with pytest.raises(ValueError, match="shorter"):
        extraction.token_features(5, ["a", "b", "c"], [-1, 0], vectors)


@pytest.mark.parametrize("shape", [(1, 1), (17, 5), (1000, 384)])
def test_arrays_are_what_numpy_writes(tmp_path, shape):
    vectors = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    path = str(tmp_path / "a.npy")
    extraction.write_npy(path, iter(vectors.reshape(shape[0], -1, 1)), shape)
    np.testing.assert_array_equal(np.load(path), vectors, strict=True)
    np.save(tmp_path / "b.npy", vectors)
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


def failing(value, error):
    yield value
    raise error


def test_nothing_half_written_is_left(tmp_path):
    path = tmp_path / "out"
    for before in (None, "precious"):
        if before:
            path.write_text(before)
        for error in (ValueError("bad"), OSError(28, "No space left on device")):
            vectors = failing(np.zeros(3), error)
            with pytest.raises(type(error)) as caught:
                extraction.write_npy(str(path), vectors, (2, 3))
            assert isinstance(error, ValueError) or str(path) in str(caught.value)
            with pytest.raises(type(error)):
                extraction.write_json_lines(str(path), failing({}, error))
        assert os.listdir(tmp_path) == ([] if before is None else ["out"])
    assert path.read_text() == "precious"
    with pytest.raises(FileNotFoundError, match="nowhere"):
        extraction.write_json_lines(str(tmp_path / "nowhere" / "out"), [])
