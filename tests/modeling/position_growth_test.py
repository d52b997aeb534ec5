"""Copies of trained positions, by hand; everything else as it was."""

import numpy as np
import pytest

from modeling import position_growth

POSITIONS = "bert/embeddings/position_embeddings"


@pytest.fixture
def weights():
    rows = np.arange(12, dtype=np.float32).reshape(6, 2)
    return {POSITIONS: rows, "bert/embeddings/word_embeddings": rows.copy()}


@pytest.mark.parametrize(
    ("num_positions", "num_trained", "rows"),
    [
        (6, 4, [0, 1, 2, 3, 0, 1]),
        (6, 2, [0, 1, 0, 1, 0, 1]),
        (6, 6, [0, 1, 2, 3, 4, 5]),
        (14, None, [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1]),
        (8, 5, [0, 1, 2, 3, 4, 0, 1, 2]),
        (7, 1, [0] * 7),
    ],
)
def test_rows(weights, num_positions, num_trained, rows):
    before = {name: array.copy() for name, array in weights.items()}
    grown = position_growth.grow(weights, num_positions, num_trained)
    assert grown[POSITIONS][:, 0].tolist() == [2 * row for row in rows]
    assert grown[POSITIONS].dtype == np.float32
    assert grown.keys() == weights.keys()
    for name, array in before.items():
        np.testing.assert_array_equal(weights[name], array)
        assert name == POSITIONS or grown[name] is weights[name]


def test_what_cannot_be(weights):
    with pytest.raises(ValueError, match="has 6 positions and cannot shrink to 5"):
        position_growth.grow(weights, 5)
    with pytest.raises(ValueError, match="7 trained positions are more than .* 6"):
        position_growth.grow(weights, 8, 7)
    with pytest.raises(ValueError, match="has no bert/embeddings/position_embeddings"):
        position_growth.grow({}, 8)
