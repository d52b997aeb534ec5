"""Pooling against NumPy on the real tokens alone."""

import numpy as np
import pytest

from modeling import pooling
from tests import small_models
from tests.small_models import close

EXPECTED = {
    "cls": lambda tokens: tokens[0],
    "mean": lambda tokens: tokens.mean(0),
    "max": lambda tokens: tokens.max(0),
}


@pytest.mark.parametrize("name", pooling.POOLINGS)
@pytest.mark.parametrize("seed", range(10))
def test_only_real_tokens_count(name, seed):
    rng = np.random.default_rng(seed)
    hidden_states = rng.normal(-3, 2, (5, 9, 4)).astype(np.float32)
    lengths = rng.integers(1, 10, 5)
    input_mask = (np.arange(9) < lengths[:, None]).astype(np.int32)
    actual = pooling.POOLINGS[name](hidden_states, input_mask)
    expected = [
        EXPECTED[name](row[:length].astype(np.float64))
        for row, length in zip(hidden_states, lengths, strict=True)
    ]
    assert actual.dtype == np.float32
    close(actual, expected, 1e-6)


@pytest.mark.parametrize("name", pooling.POOLINGS)
def test_rows_that_fill_up_a_batch_give_finite_numbers(name):
    hidden_states = np.ones((2, 3, 4), np.float32)
    vectors = pooling.POOLINGS[name](hidden_states, np.zeros((2, 3), np.int32))
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize("name", [None, *pooling.POOLINGS])
def test_layers_are_counted_from_the_first_block_and_from_the_last(name):
    rng = np.random.default_rng(0)
    outputs = [rng.normal(size=(2, 3, 4)).astype(np.float32) for _ in range(4)]
    batch = {"input_mask": np.array([[1, 1, 0], [1, 1, 1]], np.int32)}
    layers = [0, -1, 1, -3]  # of three blocks; the embeddings come before them
    vectors = pooling.select({"encoder_outputs": outputs}, batch, layers, name)
    expected = [outputs[1], outputs[3], outputs[2], outputs[1]]
    if name:
        pool = pooling.POOLINGS[name]
        expected = [pool(block, batch["input_mask"]) for block in expected]
    assert vectors.shape == ((2, 3, 4, 4) if name is None else (2, 4, 4))
    close(vectors, np.stack(expected, axis=-2), 0)


def test_the_first_token_of_a_left_to_right_model_is_refused():
    config = small_models.config(visibility="left_to_right", pooled_position="last")
    with pytest.raises(ValueError, match="--pooling=cls .* sees nothing but itself"):
        pooling.check(config, "cls")
    for kind in ("mean", "max", None):
        pooling.check(config, kind)
    pooling.check(small_models.config(), "cls")
