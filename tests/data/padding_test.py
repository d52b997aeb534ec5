"""Less padding: what is cut off, which rows meet in a batch, and that losses stay."""

import numpy as np
import pytest
import tensorflow as tf

from data import batching, padding
from modeling import losses, models
from tests import small_models


def make_data(num_rows, seed=0, longest=30):
    """Sequences of random length; `rows` says which is which."""
    lengths = np.random.default_rng(seed).integers(1, longest + 1, num_rows)
    mask = (np.arange(longest) < lengths[:, np.newaxis]).astype(np.int32)
    return {"input_mask": mask, "rows": np.arange(num_rows)}


def order(data, batch_size, num_batches, length_buckets=True, first_step=0, seed=3):
    """int [num_batches, B], which row stands where."""
    batches = batching.InMemoryBatches(
        data, batch_size, seed, length_buckets=length_buckets
    )
    batches = batches.starting_at(first_step).take(num_batches)
    return np.array([batch["rows"] for batch in batches.as_numpy_iterator()])


@pytest.mark.parametrize(
    "num_rows, batch_size", [(103, 4), (96, 4), (35, 8), (5, 8), (9, 1), (40, 40)]
)
def test_every_epoch_is_a_permutation(num_rows, batch_size, monkeypatch):
    monkeypatch.setattr(padding, "WINDOW", 5)
    data = make_data(num_rows)
    rows = order(data, batch_size, -(-6 * num_rows // batch_size)).ravel()
    epochs = rows[: 6 * num_rows].reshape(6, num_rows)
    np.testing.assert_array_equal(np.sort(epochs), [np.arange(num_rows)] * 6)


def test_windows_keep_their_rows_and_batches_are_of_like_length(monkeypatch):
    monkeypatch.setattr(padding, "WINDOW", 5)
    num_rows, size, num_epochs = 103, 4, 6
    data = make_data(num_rows)
    lengths = data["input_mask"].sum(axis=1)
    num_batches = num_epochs * num_rows // size
    plain = order(data, size, num_batches, length_buckets=False)
    bucketed = order(data, size, num_batches)
    moved = 0
    for epoch in range(num_epochs):
        # Batches that lie in the epoch as a whole.
        start, end = -(-epoch * num_rows // size), (epoch + 1) * num_rows // size
        for first in range(start, end, 5):
            window = slice(first, min(first + 5, end))
            ours = bucketed[window]
            np.testing.assert_array_equal(
                np.sort(ours, axis=None), np.sort(plain[window], axis=None)
            )
            found = lengths[ours]
            by_length = found[np.argsort(found.sum(axis=1), kind="stable")]
            assert (by_length[:-1].max(axis=1) <= by_length[1:].min(axis=1)).all()
            moved += (by_length != found).any()
        # One that it shares stays as it was.
        if end * size < (epoch + 1) * num_rows and end < num_batches:
            np.testing.assert_array_equal(bucketed[end], plain[end])
    assert moved > 20  # of 36 windows: the order of batches is random


def test_a_batch_of_any_length_comes_at_any_time():
    # Otherwise the short ones would always come first, at another learning rate.
    data = make_data(400)
    lengths = data["input_mask"].sum(axis=1)
    arrange = padding.LengthBuckets(data["input_mask"], 8)
    rows = tf.range(400, dtype=tf.int64)
    firsts = [
        lengths[arrange(rows, tf.constant([seed, 0], tf.int64))[:8]].mean()
        for seed in range(60)
    ]
    # Means of the lengths of batches are even from 1 to 30: deviation 8.4.
    assert abs(np.mean(firsts) - lengths.mean()) < 4 * 8.4 / np.sqrt(60)
    assert np.std(firsts) == pytest.approx(8.4, abs=3)


def test_starting_late_continues_the_order(monkeypatch):
    monkeypatch.setattr(padding, "WINDOW", 5)
    data = make_data(103)
    expected = order(data, 4, 90)
    for first_step in (1, 19, 25, 26, 52, 80):
        rows = order(data, 4, 6, first_step=first_step)
        np.testing.assert_array_equal(rows, expected[first_step : first_step + 6])
    assert (order(data, 4, 90, seed=4) != expected).any()


def test_there_is_less_padding():
    data = make_data(3000, longest=128)
    lengths = data["input_mask"].sum(axis=1)

    def share(length_buckets):
        found = lengths[order(data, 32, 90, length_buckets)]
        return 1 - found.sum() / (32 * found.max(axis=1)).sum()

    assert share(False) > 0.45  # the longest of 32 even lengths is twice the mean
    assert share(True) < 0.05


def test_the_longest_of_several_sequences_in_a_row_counts():
    mask = np.zeros([40, 3, 30], np.int32)
    lengths = np.random.default_rng(0).integers(0, 31, [40, 3])
    mask[np.arange(30) < lengths[..., np.newaxis]] = 1
    rows = order({"input_mask": mask, "rows": np.arange(40)}, 5, 8)
    longest = lengths.max(axis=1)[rows]
    longest = longest[np.argsort(longest.sum(axis=1), kind="stable")]
    assert (longest[:-1].max(axis=1) <= longest[1:].min(axis=1)).all()


@pytest.mark.parametrize("shape", [(6, 40), (6, 3, 40), (1, 4, 40)])
def test_padding_is_cut_off_behind_the_longest_sequence(shape):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(1, rng.integers(2, 41), (*shape[:-1], 1))
        mask = (np.arange(40) < lengths).astype(np.int32)
        batch = {
            "input_ids": rng.integers(1, 99, shape) * mask,
            "input_mask": mask,
            "segment_ids": rng.integers(0, 2, shape) * mask,
            "label_ids": rng.integers(0, 3, shape[0]),
        }
        trimmed = padding.trim({n: tf.constant(v) for n, v in batch.items()})
        length = trimmed["input_ids"].shape[-1]
        assert length % 8 == 0
        assert 0 <= length - lengths.max() < 8
        for name, values in batch.items():
            kept = values if name == "label_ids" else values[..., :length]
            np.testing.assert_array_equal(trimmed[name], kept)
        assert mask[..., length:].sum() == 0


def test_a_batch_without_a_token_keeps_some_columns():
    empty = tf.zeros([2, 2, 10], tf.int32)
    batch = dict.fromkeys(("input_ids", "input_mask", "segment_ids"), empty)
    assert padding.trim(batch)["input_ids"].shape == (2, 2, 8)
    assert padding.trim(batch, multiple=16)["input_ids"].shape == (2, 2, 10)


def test_losses_of_trimmed_batches_are_those_of_padded_ones():
    config = small_models.config(max_position_embeddings=32)
    model = models.BertForSequenceClassification(config, 2)
    data = {"rows": np.arange(50), "label_ids": np.arange(50) % 2}
    batch = small_models.batch(config, 5, 50, 7)
    for name in ("input_ids", "input_mask", "segment_ids"):
        data[name] = np.pad(batch[name], [(0, 0), (0, 25)])
    found = {}
    for transform, buckets in ((None, False), (padding.trim, True)):
        batches = batching.InMemoryBatches(data, 5, 1, transform, buckets)
        of_rows = np.zeros(50)
        for batch in batches.starting_at(0).take(10):  # an epoch
            of_rows[batch["rows"]] = losses.classification_losses(model(batch), batch)
        found[buckets] = of_rows
        assert batch["input_ids"].shape[1] == (8 if transform else 32)
    assert found[False].all()
    np.testing.assert_allclose(found[True], found[False], atol=1e-6)


def test_batches_are_trimmed_unless_they_are_to_be_padded():
    assert padding.trimming(pad_to_max=True) is None
    mask = tf.constant([[1, 1, 0] + [0] * 13])
    batch = {n: mask for n in ("input_ids", "input_mask", "segment_ids", "label_ids")}
    trimmed = padding.trimming(False, also=["label_ids"])(batch)
    assert {x.shape[1] for x in trimmed.values()} == {8}
