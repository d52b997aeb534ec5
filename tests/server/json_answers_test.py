"""Arrays to JSON, with NumPy and Python's json as the measure."""

import json
import tracemalloc

import numpy as np
import pytest

from server import errors, json_answers

# One row, and many; rows of rows; rows of several outputs, and no number at all.
LARGE = [
    {"outputs": {"é": np.arange(10000).tolist(), "b": [["ö"] * 9000]}},
    {"predictions": np.zeros([3, 5000, 2]).tolist()},
    {"predictions": np.zeros([5000, 0]).tolist()},
    {"predictions": [{"x": [1.5] * 5000, "y": "z"}, {"x": [2.5] * 5000, "y": "é"}]},
    {"results": [[("a", 0.5), ("b", 1.5)]] * 5000},
]


def test_rows_need_one_number_of_rows():
    outputs = {"a": np.zeros(2), "b": np.zeros(3)}
    with pytest.raises(errors.RequestError, match='"inputs"'):
        json_answers.from_outputs(outputs, is_row=True)
    assert set(json_answers.from_outputs(outputs, is_row=False)["outputs"]) == {
        "a",
        "b",
    }


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats_have_no_more_digits_than_tell_them_apart(dtype):
    array = np.array([[0.1, -0.88, 1e-7]], dtype)
    [row] = json_answers.from_outputs({"y": array}, True)["predictions"]
    # NumPy's own words for a scalar are the fewest digits that give it back.
    assert [str(number) for number in row] == [str(number) for number in array[0]]


def test_floats_have_the_digits_that_numpy_gives_them():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 20000, np.uint32)  # floats of any size, and none
    ordinary = 10 ** rng.uniform(-14, 7, 20000) * rng.choice([-1, 1], 20000)
    tens, twos = 10.0 ** np.arange(-20, 10), 2.0 ** np.arange(-60, 30)
    ends = [0.0, -0.0, np.inf, 0.5, 999999.94, 1e6, 16777216, 3.4028235e38, 1e-45]
    values = np.concatenate([ordinary, tens, twos, ends]).astype(np.float32)
    values = np.concatenate([values, np.nextafter(values, np.float32(0))])
    values = np.concatenate([values, bits.view(np.float32)])
    expected = list(map(float, map(str, values)))
    assert list(map(str, json_answers.numbers(values))) == list(map(str, expected))


@pytest.mark.parametrize(
    "shape", [(10000,), (5000, 2), (2, 5000), (2, 3, 5000), (3, 5000, 1), (5000, 0)]
)
def test_many_numbers_keep_their_places(shape):
    values = np.random.default_rng(0).normal(size=shape)
    assert json_answers.numbers(values) == values.tolist()


def test_many_numbers_take_little_memory():
    values = np.random.default_rng(0).normal(size=200000).astype(np.float32)
    tracemalloc.start()
    try:
        found = json_answers.numbers(values)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) == len(values)
    assert peak < 1.5 * held


def test_nothing_large_is_written_at_once(monkeypatch):
    dumps, longest = json_answers._dumps, []

    def measured(value):
        longest.append(len(value) if isinstance(value, list) else 1)
        return dumps(value)

    monkeypatch.setattr(json_answers, "_dumps", measured)
    for document in LARGE:
        json_answers.encode(document)
    assert max(longest) <= 4096


def test_encoding_is_that_of_json():
    for document in (
        {},
        {"a": []},
        {"é": ["ö", {"x": [1.5, None]}], "b": {"c": [True]}},
        *LARGE,
    ):
        encoded = json_answers.encode(document)
        assert encoded == json.dumps(document, ensure_ascii=False).encode()


def test_texts_in_nested_lists():
    array = np.array([[b"a", b"\xff"], ["é".encode(), b""]], object)
    expected = [["a", {"b64": "/w=="}], ["é", ""]]
    assert json_answers.from_outputs({"y": array}, True) == {"predictions": expected}
