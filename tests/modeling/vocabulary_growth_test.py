"""New rows against means computed by hand; everything else bit by bit."""

import numpy as np
import pytest

from modeling import vocabulary_growth

WORDS = "bert/embeddings/word_embeddings"
BIAS = "cls/predictions/output_bias"


@pytest.fixture
def weights():
    rng = np.random.default_rng(3)

    def normal(*shape):
        return rng.normal(size=shape).astype(np.float32)

    return {
        WORDS: normal(6, 3),
        BIAS: normal(6),
        "bert/embeddings/position_embeddings": normal(6, 3),
        "output_bias": normal(6),  # of a classifier with as many labels
    }


def test_new_rows_are_means(weights):
    sources = {7: [0, 2, 2], 6: [5], 1: [3, 4]}
    before = {name: array.copy() for name, array in weights.items()}
    grown = vocabulary_growth.grow(weights, sources, 8)
    assert grown.keys() == weights.keys()
    for name, array in before.items():  # the input is as it was
        np.testing.assert_array_equal(weights[name], array)
    for name in ("bert/embeddings/position_embeddings", "output_bias"):
        assert grown[name] is weights[name]
    for name in (WORDS, BIAS):
        old, new = before[name], grown[name]
        assert new.shape == (8, *old.shape[1:])
        assert new.dtype == np.float32
        for row in (0, 2, 3, 4, 5):
            assert new[row].tobytes() == old[row].tobytes()
        np.testing.assert_array_equal(new[6], old[5])
        wide = old.astype(np.float64)
        np.testing.assert_allclose(new[7], (wide[0] + 2 * wide[2]) / 3, rtol=1e-7)
        np.testing.assert_allclose(new[1], (wide[3] + wide[4]) / 2, rtol=1e-7)


def test_the_logit_of_a_new_entry_is_the_mean_of_those_of_its_pieces(weights):
    grown = vocabulary_growth.grow(weights, {6: [1, 4]}, 7)
    hidden = np.array([0.5, -2.0, 1.0])
    logits = grown[WORDS] @ hidden + grown[BIAS]
    np.testing.assert_allclose(logits[6], (logits[1] + logits[4]) / 2, rtol=1e-6)


def test_a_model_without_masked_lm(weights):
    del weights[BIAS]
    grown = vocabulary_growth.grow(weights, {6: [0]}, 7)
    assert BIAS not in grown
    assert len(grown[WORDS]) == 7


def test_refusals(weights):
    with pytest.raises(ValueError, match="6 entries and cannot shrink to 5"):
        vocabulary_growth.grow(weights, {}, 5)
    with pytest.raises(ValueError, match="line 7 of the new vocabulary is blank"):
        vocabulary_growth.grow(weights, {7: [1]}, 8)
    with pytest.raises(ValueError, match="no bert/embeddings/word_embeddings"):
        vocabulary_growth.grow({BIAS: weights[BIAS]}, {}, 6)
