"""Vectors of a frozen encoder: its own, at their tokens; it learns nothing itself."""

import numpy as np
import pytest
import tensorflow as tf

import frozen_features
import strategies
import trainer
from data import batching, features, padding
from modeling import checkpoint, feature_tagger, losses, models, optimization
from tests import small_models
from tests.small_models import close


def windows(config, seed=0, num_windows=37, seq_length=12):
    """Arrays as ner.files_to_arrays gives them, of random lengths."""
    arrays = small_models.batch(config, seed, num_windows, seq_length)
    labelled = np.random.default_rng(seed).integers(0, 2, (num_windows, seq_length))
    return {
        **{name: arrays[name] for name in features.INPUTS},
        "label_ids": np.full_like(arrays["input_mask"], 2),
        "label_mask": (labelled * arrays["input_mask"]).astype(np.int32),
    }


def trim(batch):
    return padding.trim(batch, also=("label_ids", "label_mask"))


def make(choice, weighted_sums=False):
    """A small encoder of four layers with dropout, and the FrozenEncoder of it."""
    config = small_models.config(num_hidden_layers=4, hidden_dropout_prob=0.5)
    model = models.BertModel(config)
    strategy = strategies.make()
    frozen = frozen_features.FrozenEncoder(strategy, model, choice, weighted_sums)
    return model, frozen


@pytest.mark.parametrize("weighted_sums", [False, True])
@pytest.mark.parametrize("choice", ["embeddings", "concat_last4", "sum_last4"])
def test_batches_have_the_vectors_of_the_encoder(choice, weighted_sums):
    model, frozen = make(choice, weighted_sums)
    arrays = windows(model.config)
    numbered, transform = frozen(arrays, trim)
    batches = batching.InMemoryBatches(numbered, 8, 3, transform, length_buckets=True)
    for batch in batches.starting_at(2).take(6):
        assert batch["vectors"].dtype == tf.float32
        inputs = {name: batch[name] for name in features.INPUTS}
        states = model(inputs)["encoder_outputs"]
        expected = feature_tagger.select(states, choice, weighted_sums).numpy()
        vectors, real = batch["vectors"].numpy(), batch["input_mask"].numpy() == 1
        assert vectors.shape == expected.shape
        assert vectors.shape[2:] == frozen.vectors_shape
        close(vectors[real], expected[real], 2e-6)
        np.testing.assert_array_equal(
            arrays["input_ids"][batch["window_numbers"], : vectors.shape[1]],
            batch["input_ids"],
        )


def test_two_calls_agree_to_the_bit_and_whole_padding_changes_nothing():
    model, frozen = make("last")
    arrays = windows(model.config)
    found = []
    for way in (trim, trim, None):
        numbered, transform = frozen(arrays, way)
        batches = batching.in_memory_evaluation_batches(numbered, 64, transform)
        (batch,) = batches
        assert batch["vectors"].shape[:2] == batch["input_mask"].shape
        found.append(batch["vectors"].numpy()[batch["input_mask"].numpy() == 1])
    assert len(found[0]) == arrays["input_mask"].sum()
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_an_update_of_the_tagger_leaves_the_encoder_alone():
    model, frozen = make("sum_last4", weighted_sums=True)
    arrays = windows(model.config)
    before = {n: v.numpy() for n, v in checkpoint.weight_names(model).items()}
    numbered, transform = frozen(arrays, trim)
    tagger = feature_tagger.FeatureTagger(
        3, frozen.vectors_shape, bilstm_size=8, weighted_sums=True
    )
    weights = checkpoint.weight_names(tagger)
    fresh = {name: v.numpy() for name, v in weights.items()}
    optimizer = optimization.AdamWeightDecay(weights, lambda _: 1e-2)
    learner = trainer.Trainer(strategies.make(), tagger, optimizer, losses.TOKENS, 5)
    batches = batching.InMemoryBatches(numbered, 16, 1, transform)
    iterator = iter(batches.starting_at(0))
    results = [float(learner.update(iterator)["loss"]) for _ in range(30)]
    assert results[-1] < 0.1 * results[0]
    assert not (before.keys() & weights.keys())
    for name, variable in checkpoint.weight_names(model).items():
        np.testing.assert_array_equal(variable, before[name], err_msg=name)
    for name, value in fresh.items():
        assert np.abs(weights[name].numpy() - value).max() > 0, name


def test_an_encoder_with_too_few_layers():
    model = models.BertModel(small_models.config())
    with pytest.raises(ValueError, match="concat_last4 needs 4 .* the model has 2"):
        frozen_features.FrozenEncoder(strategies.make(), model, "concat_last4", False)
