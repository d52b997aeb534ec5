"""Windows over long texts: nothing lost, and means as plain Python makes them."""

import collections

import numpy as np
import pytest

from data import documents, features, record_reading, records, targets, tokenization
from data.classification import InputExample
from tests.data.features_test import WordTokenizer, words


@pytest.mark.parametrize("seed", range(200))
def test_windows_cover_every_token_and_no_more_than_needed(seed):
    rng = np.random.default_rng(seed)
    ids = list(range(rng.integers(0, 40)))
    size = int(rng.integers(1, 15))
    stride = int(rng.integers(1, size + 1))
    windows = documents.cut(ids, size, stride)
    # The rule in words: on by the stride until the end is covered.
    expected, start = [ids[:size]], 0
    while start + size < len(ids):
        start += stride
        expected.append(ids[start : start + size])
    assert windows == expected
    assert sorted({token for window in windows for token in window}) == ids


@pytest.mark.parametrize("stride", [0, -1, 7])
def test_a_stride_that_loses_tokens(stride):
    with pytest.raises(ValueError, match=f"between 1 and 6, .* got {stride}"):
        documents.cut(list(range(20)), 6, stride)


def test_windows_as_rows_with_the_label_of_their_document():
    examples = [
        InputExample("a", words(range(10, 13)), label="y"),
        InputExample("b", words(range(20, 29)), label="x"),
        InputExample("c", "", label="y"),
    ]
    arrays = documents.documents_to_arrays(
        examples, ("x", "y"), 6, WordTokenizer(), stride=3
    )
    assert arrays["input_ids"].tolist() == [
        [-1, 10, 11, 12, -2, 0],
        [-1, 20, 21, 22, 23, -2],
        [-1, 23, 24, 25, 26, -2],
        [-1, 26, 27, 28, -2, 0],
        [-1, -2, 0, 0, 0, 0],
    ]
    assert arrays["input_mask"].sum(axis=1).tolist() == [5, 6, 6, 5, 2]
    assert not arrays["segment_ids"].any()
    assert arrays["document_ids"].tolist() == [0, 1, 1, 1, 2]
    assert arrays["label_ids"].tolist() == [1, 0, 0, 0, 1]
    assert arrays["is_real_example"].tolist() == [1] * 5


def test_short_texts_are_what_they_are_without_windows(golden):
    tokenizer = tokenization.FullTokenizer(golden / "tiny_tf1/vocab.txt")
    examples = [InputExample(str(i), "the " * i, label="b") for i in range(4)]
    plain = features.examples_to_arrays(examples, "ab", 16, tokenizer)
    arrays = documents.documents_to_arrays(examples, "ab", 16, tokenizer, 4)
    assert arrays.pop("document_ids").tolist() == [0, 1, 2, 3]
    for name, values in plain.items():
        np.testing.assert_array_equal(arrays[name], values, err_msg=name)


def test_pairs_are_refused():
    example = InputExample("dev-7", "1 2", "3")
    with pytest.raises(ValueError, match="dev-7 is a pair"):
        documents.documents_to_arrays([example], ("x", "y"), 6, WordTokenizer(), 3)


@pytest.mark.parametrize("seed", range(20))
def test_means_over_the_windows_of_a_document(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 6, 8)
    ids = np.repeat(np.arange(8), counts).astype(np.int32)
    values = rng.normal(size=(len(ids), 3)).astype(np.float32)
    groups = collections.defaultdict(list)
    for document, row in zip(ids, values, strict=True):
        groups[document].append(row)
    expected = [sum(rows) / len(rows) for rows in groups.values()]
    actual = documents.mean_of_windows(values, ids)
    assert actual.dtype == np.float32
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    flat = documents.mean_of_windows(values[:, 0], ids)
    np.testing.assert_array_equal(flat, actual[:, 0])


@pytest.mark.parametrize("kind", list(targets.Kind))
def test_records_of_every_kind_of_label_keep_their_values(tmp_path, kind):
    label = {"class": "y", "multi_label": ("y", "z"), "number": 0.1}[kind]
    examples = [InputExample("a", words(range(9)), label=label)]
    names = () if kind == targets.Kind.NUMBER else ("x", "y", "z")
    arrays = documents.documents_to_arrays(examples, names, 6, WordTokenizer(), 3, kind)
    arrays["input_ids"] += 2  # of this tokenizer's special tokens
    spec = records.window_spec(
        {
            "class": records.classifier_spec(6),
            "multi_label": records.multi_label_spec(6, 3),
            "number": records.regression_spec(6),
        }[kind]
    )
    path = str(tmp_path / "x.tf_record")
    records.write(path, arrays, spec)
    record_reading.check([path], spec)
    read = record_reading.read_all([path], spec)
    assert set(read) == set(arrays)
    for name, values in arrays.items():
        assert read[name].dtype == values.dtype
        np.testing.assert_array_equal(read[name], values, err_msg=name)
