"""Classifier features equal the original's; the rules of truncation by property."""

import json
import random

import numpy as np
import pytest
import tensorflow as tf

from data import features, glue, tokenization
from data.classification import InputExample


@pytest.fixture(scope="module")
def tokenizer(golden):
    return tokenization.FullTokenizer(golden.parents[1] / "sample_data" / "vocab.txt")


class WordTokenizer:
    """Each word is a number and its own id."""

    def encode(self, text):
        return [int(word) for word in text.split()]

    def convert_tokens_to_ids(self, tokens):
        return [{"[CLS]": -1, "[SEP]": -2}[token] for token in tokens]


def features_of(example, labels, length, tokenizer):
    """The one row of a data set of one example, as lists."""
    arrays = features.examples_to_arrays([example], labels, length, tokenizer)
    return {name: array[0].tolist() for name, array in arrays.items()}


def words(numbers):
    return " ".join(map(str, numbers))


def test_features_equal_the_originals(golden, tokenizer):
    lines = (golden / "classifier_features.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 306
    for row in map(json.loads, lines):
        example = InputExample(row["guid"], row["text_a"], row["text_b"], row["label"])
        length, real = row["max_seq_length"], row["num_real"]
        actual = features_of(example, row["labels"], length, tokenizer)
        padding = [0] * (length - real)
        assert actual["input_ids"] == row["input_ids"] + padding
        assert actual["input_mask"] == [1] * real + padding
        assert actual["segment_ids"] == row["segment_ids"] + padding
        assert actual["label_ids"] == row["label_id"]
        assert actual["is_real_example"]


@pytest.mark.parametrize(
    ("split", "file"),
    [("train", "train"), ("dev", "eval"), ("test", "predict")],
)
def test_arrays_equal_records_that_the_original_wrote(golden, split, file):
    vocab_file = golden / "tiny_tf1" / "vocab.txt"
    task = glue.find_task("mrpc")
    arrays = features.examples_to_arrays(
        task.examples(golden / "glue_samples" / "MRPC", split),
        task.labels,
        48,
        tokenization.FullTokenizer(vocab_file),
    )
    path = golden / "tiny_tf1_runs" / "classifier_mrpc" / f"{file}.tf_record"
    records = [
        tf.train.Example.FromString(record.numpy()).features.feature
        for record in tf.data.TFRecordDataset(str(path))
    ]
    assert len(records) == {"train": 24, "eval": 10, "predict": 7}[file]
    assert set(records[0]) == set(arrays)
    for name, array in arrays.items():
        expected = np.array([record[name].int64_list.value for record in records])
        assert array.dtype == np.int32
        np.testing.assert_array_equal(array, np.squeeze(expected))


@pytest.mark.parametrize("seed", range(300))
def test_truncation_takes_from_the_end_of_the_longer(seed):
    rng = random.Random(seed)
    a = [rng.randrange(1000) for _ in range(rng.randrange(1, 12))]
    b = [rng.randrange(1000) for _ in range(rng.randrange(1, 12))]
    length = rng.randrange(4, 20)
    example = InputExample("", words(a), words(b))
    actual = features_of(example, [], length, WordTokenizer())

    # Sizes by the definition, one token at a time.
    size_a, size_b = len(a), len(b)
    while size_a + size_b > length - 3:
        if size_a > size_b:
            size_a -= 1
        else:
            size_b -= 1
    ids = [-1, *a[:size_a], -2]
    segments = [0] * len(ids)
    if size_b:
        ids += [*b[:size_b], -2]
        segments += [1] * (size_b + 1)
    padding = [0] * (length - len(ids))
    assert actual["input_ids"] == ids + padding
    assert actual["segment_ids"] == segments + padding
    assert actual["input_mask"] == [1] * len(ids) + padding
    assert actual["label_ids"] == 0


@pytest.mark.parametrize("size", range(12))
@pytest.mark.parametrize("text_b", [None, "", "  "])
def test_a_single_text_has_one_place_more(size, text_b):
    a = list(range(100, 100 + size))
    example = InputExample("", words(a), text_b, "y")
    actual = features_of(example, ["x", "y"], 8, WordTokenizer())
    kept = min(size, 6)
    assert actual["input_ids"] == [-1, *a[:kept], -2] + [0] * (6 - kept)
    assert actual["segment_ids"] == [0] * 8
    assert sum(actual["input_mask"]) == kept + 2
    assert actual["label_ids"] == 1


def test_a_pair_in_the_smallest_length():
    example = InputExample("", "1 2", "3 4")
    actual = features_of(example, [], 3, WordTokenizer())
    assert actual["input_ids"] == [-1, -2, 0]
    with pytest.raises(ValueError, match="max_seq_length must be at least 3, .* got 2"):
        features_of(example, [], 2, WordTokenizer())


def test_labels_become_numbers_and_an_unknown_one_the_first(tokenizer):
    examples = [
        InputExample("a", "A text.", None, "x"),
        InputExample("b", "Another text that is too long.", "And one more.", "y"),
        InputExample("c", "Nobody knows the label.", None, None),
    ]
    arrays = features.examples_to_arrays(examples, ("y", "x"), 12, tokenizer)
    assert arrays["label_ids"].tolist() == [1, 0, 0]
    assert arrays["is_real_example"].tolist() == [1, 1, 1]
    assert arrays["label_ids"].shape == arrays["is_real_example"].shape == (3,)
