"""The choices of table 7, plain and weighted sums, and the tagger on their vectors."""

import numpy as np
import pytest
import tensorflow as tf

from modeling import dropout, feature_tagger, losses, models
from tests import small_models
from tests.modeling import bilstm_test
from tests.small_models import close


def hidden_states(num_layers, seed=0):
    """h_0 to h_L, [2, 5, 6] each."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(num_layers + 1, 2, 5, 6)).astype(np.float32)
    return [tf.constant(state) for state in states]


@pytest.mark.parametrize(
    ("choice", "numbers"),
    [
        ("embeddings", [0]),
        ("second_to_last", [11]),
        ("last", [12]),
        ("concat_last4", [9, 10, 11, 12]),
        ("sum_last4", [9, 10, 11, 12]),
        ("sum_all", list(range(1, 13))),
    ],
)
def test_each_choice_takes_its_layers(choice, numbers):
    states = hidden_states(12)
    assert feature_tagger.chosen_layers(choice, 12) == numbers
    weighted = feature_tagger.select(states, choice, weighted_sums=True).numpy()
    assert weighted.shape == (2, 5, len(numbers), 6)
    for place, number in enumerate(numbers):
        np.testing.assert_array_equal(weighted[:, :, place], states[number])
    plain = feature_tagger.select(states, choice).numpy()
    assert plain.shape[2] == feature_tagger.num_vectors(choice, 12)
    if choice.startswith("sum"):
        expected = sum(states[number].numpy().astype(float) for number in numbers)
        close(plain[:, :, 0], expected, 1e-6 * len(numbers))
        assert feature_tagger.num_vectors(choice, 12, True) == len(numbers)
    else:
        np.testing.assert_array_equal(plain, weighted)
    assert set(feature_tagger.CHOICES) >= {choice}


def test_there_is_a_test_of_every_choice():
    assert len(feature_tagger.CHOICES) == 6


def test_too_few_layers():
    assert feature_tagger.chosen_layers("sum_all", 3) == [1, 2, 3]
    for choice in ("concat_last4", "sum_last4"):
        with pytest.raises(ValueError, match=f"{choice} needs 4 .* model has 3; take"):
            feature_tagger.chosen_layers(choice, 3)


def test_a_weighted_sum_is_at_first_the_mean():
    layer = feature_tagger.WeightedSum()
    x = np.random.default_rng(0).normal(size=(2, 5, 4, 6)).astype(np.float32)
    close(4 * layer(x), x.sum(axis=2), 1e-5)
    layer.factors.assign([2.0, 0, -1, 0.5])
    expected = 2 * x[:, :, 0] - x[:, :, 2] + 0.5 * x[:, :, 3]
    close(layer(x), expected, 1e-5)


def make(weighted_sums, seed=0):
    """A tagger of 3 labels with random weights."""
    model = feature_tagger.FeatureTagger(3, (4, 6), 2, 8, weighted_sums)
    rng = np.random.default_rng(seed)
    for variable in model.weights:
        variable.assign(rng.normal(0, 0.5, variable.shape))
    return model


def batch(seed=0):
    """vectors of four layers, input_mask, and labels of some words."""
    x, input_mask = bilstm_test.inputs(seed, size=24)
    labelled = np.random.default_rng(seed).integers(0, 2, input_mask.shape)
    return {
        "vectors": tf.constant(x.reshape(*x.shape[:2], 4, 6)),
        "input_mask": tf.constant(input_mask),
        "label_ids": tf.ones_like(input_mask),
        "label_mask": tf.constant(labelled * input_mask, tf.int32),
    }


@pytest.mark.parametrize("weighted_sums", [False, True])
def test_logits_equal_plain_numpy(weighted_sums):
    model, numbers = make(weighted_sums), batch()
    logits = model(numbers)["logits"].numpy()
    x = numbers["vectors"].numpy().astype(np.float64)
    if weighted_sums:
        factors = model.weighted_sum.factors.numpy().astype(np.float64)
        x = (x * factors[:, None]).sum(axis=2)
    else:
        x = np.concatenate([x[:, :, i] for i in range(4)], axis=-1)
    weights = [[w.numpy() for w in layer.weights] for layer in model.bilstm.layers]
    kernel, bias = (w.numpy() for w in model.classifier.weights)
    real = numbers["input_mask"].numpy() == 1
    for row, mask, actual in zip(x, real, logits, strict=True):
        states = bilstm_test.numpy_bilstm(weights, row[mask])
        close(actual[mask], states @ kernel.T + bias)


def test_names_of_the_weights():
    names = {f"bilstm/layer_{n}/{w}" for n in (0, 1) for w in ("kernel", "bias")}
    names |= {f"bilstm/layer_{n}/recurrent_kernel" for n in (0, 1)}
    names |= {"output_weights", "output_bias"}
    assert small_models.variables(make(False)).keys() == names
    weighted = small_models.variables(make(True))
    assert weighted.keys() == names | {"weighted_sum/factors"}


def test_the_loss_reaches_every_weight_and_no_padding():
    model, numbers = make(True), batch()
    with dropout.dropout_seed([0, 0]), tf.GradientTape() as tape:
        tape.watch(numbers["vectors"])
        outputs = model(numbers, training=True)
        loss = losses.TOKENS.numerators(outputs, numbers)["loss"]
    variables = [v.value for v in model.trainable_variables]
    *gradients, of_vectors = tape.gradient(loss, [*variables, numbers["vectors"]])
    assert all(np.abs(gradient).max() > 0 for gradient in gradients)
    padding = numbers["input_mask"].numpy() == 0
    assert (of_vectors.numpy()[padding] == 0).all()


def test_dropout_is_in_training_only():
    model, numbers = make(False), batch()
    first = model(numbers)["logits"].numpy()
    np.testing.assert_array_equal(model(numbers)["logits"], first)
    with dropout.dropout_seed([0, 0]):
        dropped = model(numbers, training=True)["logits"].numpy()
    assert np.abs(dropped - first).max() > 0.01
    assert model.dropout.rate == models.HEAD_DROPOUT_PROB
