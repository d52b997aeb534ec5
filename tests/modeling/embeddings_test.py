"""Embeddings against the NumPy reference; what is refused."""

import numpy as np
import pytest
import tensorflow as tf

from modeling import embeddings
from tests import numpy_bert, small_models
from tests.small_models import close


@pytest.fixture(scope="module")
def layer():
    layer = embeddings.BertEmbeddings(small_models.config(), name="embeddings")
    layer.build()
    rng = np.random.default_rng(0)
    for variable in layer.weights:
        variable.assign(rng.normal(size=variable.shape))
    return layer


def reference(layer, batch):
    weights = {f"bert/{v.path}": v.numpy() for v in layer.weights}
    rows = zip(batch["input_ids"], batch["segment_ids"], strict=True)
    return [
        numpy_bert.embed(weights, layer.config, *row, numpy_bert.no_dropout)
        for row in rows
    ]


@pytest.mark.parametrize("seed", range(5))
def test_sum_of_three_tables(layer, seed):
    batch = small_models.batch(layer.config, seed)
    actual = layer(batch["input_ids"], batch["segment_ids"])
    close(actual, reference(layer, batch))


def test_segments_outside_the_table_add_nothing(layer):
    batch = small_models.batch(layer.config, 0)
    batch["segment_ids"][:, ::2] = layer.config.type_vocab_size
    actual = layer(batch["input_ids"], batch["segment_ids"])
    close(actual, reference(layer, batch))


def test_the_longest_sequence(layer):
    ids = tf.zeros([2, 16], tf.int32)
    assert layer(ids, ids).shape == (2, 16, 12)
    ids = tf.zeros([2, 17], tf.int32)
    message = "sequences have 17 tokens, but max_position_embeddings is 16"
    with pytest.raises(ValueError, match=message):
        layer(ids, ids)
