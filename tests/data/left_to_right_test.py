"""Left-to-right batches: every next token is predicted, and none is masked."""

import numpy as np
import pytest
import tensorflow as tf

from data import left_to_right, masking

CLS, SEP, MASK = 2, 3, 4


def make_batch(seed, rows=16, length=24):
    """The original tokens, and a batch in which some of them are masked."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(4, length + 1, rows)
    input_mask = (np.arange(length) < lengths[:, None]).astype(np.int32)
    input_ids = rng.integers(5, 100, (rows, length), np.int32) * input_mask
    input_ids[:, 0] = CLS
    input_ids[np.arange(rows), lengths - 1] = SEP
    scheme = masking.Scheme(100, MASK, (CLS, SEP), 8, 0.4, masking.by_token)
    keys = masking.instance_keys(seed, 0, np.arange(rows))
    masked = masking.mask(input_ids, input_mask, keys, scheme)
    others = {
        "input_mask": input_mask,
        "segment_ids": np.zeros_like(input_ids),
        "next_sentence_labels": np.zeros((rows, 1), np.int32),
    }
    return input_ids, {**others, **masked}


@pytest.mark.parametrize("seed", range(10))
def test_every_token_is_predicted_from_the_one_before(seed):
    original, batch = make_batch(seed)
    assert (batch["input_ids"] == MASK).any()
    tensors = {name: tf.constant(values) for name, values in batch.items()}
    result = {n: x.numpy() for n, x in left_to_right.next_tokens(tensors).items()}
    np.testing.assert_array_equal(result["input_ids"], original)
    assert not (result["input_ids"] == MASK).any()
    weights = result["masked_lm_weights"]
    for row, length in enumerate(batch["input_mask"].sum(axis=1)):
        assert weights[row].tolist() == [1.0] * (length - 1) + [0.0] * (24 - length)
        for i, (position, token) in enumerate(
            zip(
                result["masked_lm_positions"][row],
                result["masked_lm_ids"][row],
                strict=True,
            )
        ):
            assert position == i and token == original[row, i + 1]
    for name in ("input_mask", "segment_ids", "next_sentence_labels"):
        np.testing.assert_array_equal(result[name], batch[name])


def test_types_and_static_shapes_stay():
    _, batch = make_batch(0)
    data = tf.data.Dataset.from_tensor_slices(batch).batch(4, drop_remainder=True)
    spec = data.map(left_to_right.next_tokens).element_spec
    assert {name: (x.dtype.name, x.shape.as_list()) for name, x in spec.items()} == {
        "input_ids": ("int32", [4, 24]),
        "input_mask": ("int32", [4, 24]),
        "segment_ids": ("int32", [4, 24]),
        "next_sentence_labels": ("int32", [4, 1]),
        "masked_lm_positions": ("int32", [4, 23]),
        "masked_lm_ids": ("int32", [4, 23]),
        "masked_lm_weights": ("float32", [4, 23]),
    }
