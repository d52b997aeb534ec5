"""BertForMultipleChoice: transformers' numbers, and what makes it a choice."""

import keras
import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

from modeling import checkpoint, huggingface, huggingface_config, losses, models
from tests import small_models
from tests.small_models import close

INPUTS = ("input_ids", "input_mask", "segment_ids")


@pytest.fixture
def theirs(golden):
    """Folder of a model of transformers, and its inputs and outputs."""
    path = golden / "hf_tiny" / "multiple_choice"
    expected = dict(np.load(path / "expected.npz"))
    for name in INPUTS:
        expected[name] = expected[name].reshape(2, 2, 20)
    return path, expected


def load(path):
    model = models.BertForMultipleChoice(checkpoint.read_config(path))
    report = checkpoint.load(model, str(path))
    assert report.fresh == report.mismatched == report.unused == []
    return model


def logits_of(model, batch):
    batch = {name: tf.constant(batch[name], tf.int32) for name in INPUTS}
    return model(batch)["logits"].numpy()


def test_logits_of_transformers(theirs):
    path, expected = theirs
    close(logits_of(load(path), expected), expected["logits"], 2e-5)


def test_written_for_transformers_and_read_again(theirs, tmp_path):
    path, expected = theirs
    model = load(path)
    weights = {n: v.numpy() for n, v in checkpoint.weight_names(model).items()}
    head = huggingface_config.Head("BertForMultipleChoice")
    huggingface.write(tmp_path, weights, model.config, head=head)
    source, written = (
        safetensors.numpy.load_file(folder / "model.safetensors")
        for folder in (path, tmp_path)
    )
    assert written.keys() == source.keys()
    for name, tensor in source.items():
        np.testing.assert_array_equal(written[name], tensor, strict=True)
    assert huggingface_config.read_head(tmp_path / "config.json") == head
    close(logits_of(load(tmp_path), expected), expected["logits"], 2e-5)


def random_model(seed):
    model = models.BertForMultipleChoice(small_models.config())
    rng = np.random.default_rng(seed)
    for weight in model.weights:
        weight.assign(rng.normal(0, 1, weight.shape))
    return model


def random_batch(config, seed, num_choices, rows=3, seq_length=7):
    flat = small_models.batch(config, seed, rows * num_choices, seq_length)
    batch = {n: flat[n].reshape(rows, num_choices, seq_length) for n in INPUTS}
    rng = np.random.default_rng(seed)
    batch["label_ids"] = rng.integers(0, num_choices, rows).astype(np.int32)
    return batch


def losses_of(logits, label_ids):
    return losses.classification_losses({"logits": logits}, {"label_ids": label_ids})


@pytest.mark.parametrize("seed", range(5))
def test_permuted_choices_have_permuted_probabilities(seed):
    model = random_model(seed)
    batch = random_batch(model.config, seed, num_choices=4)
    order = np.random.default_rng(seed).permutation(4)
    permuted = {name: batch[name][:, order] for name in INPUTS}
    labels = np.argsort(order)[batch["label_ids"]].astype(np.int32)
    before, after = logits_of(model, batch), logits_of(model, permuted)
    assert np.ptp(before) > 0.1
    close(losses.softmax(after), losses.softmax(before).numpy()[:, order], 1e-6)
    close(losses_of(after, labels), losses_of(before, batch["label_ids"]), 1e-5)


def test_the_bias_changes_nothing_and_has_no_gradient():
    model = random_model(0)
    batch = small_models.tensors(random_batch(model.config, 0, num_choices=4))
    bias = model.classifier.output_bias
    with tf.GradientTape() as tape:
        logits = model(batch)["logits"]
        loss = tf.reduce_mean(losses_of(logits, batch["label_ids"]))
    watched = [bias.value, model.classifier.output_weights.value]
    of_bias, of_weights = tape.gradient(loss, watched)
    close(of_bias, [0], 1e-7)
    assert np.abs(of_weights).max() > 1e-3
    bias.assign(bias + 3)
    shifted = model(batch)["logits"]
    close(shifted, logits + 3, 1e-5)
    close(losses.softmax(shifted), losses.softmax(logits), 1e-6)


def test_a_longer_choice_leaves_the_others_as_they_are():
    model = random_model(1)
    batch = random_batch(model.config, 1, num_choices=4)
    longer = {n: np.pad(batch[n], [(0, 0), (0, 0), (0, 5)]) for n in INPUTS}
    close(logits_of(model, longer), logits_of(model, batch))
    longer["input_ids"][:, 2] = 9
    longer["input_mask"][:, 2] = 1
    before, after = logits_of(model, batch), logits_of(model, longer)
    others = [0, 1, 3]
    close(after[:, others], before[:, others])
    assert np.abs(after[:, 2] - before[:, 2]).min() > 1e-3


def test_a_vector_is_all_that_is_new():
    config = small_models.config()
    names = checkpoint.weight_names(models.BertForMultipleChoice(config))
    new = {n: tuple(v.shape) for n, v in names.items() if not n.startswith("bert/")}
    # The bias is there as transformers has one; it cannot learn, see above.
    assert new == {"output_weights": (1, config.hidden_size), "output_bias": (1,)}


@pytest.mark.parametrize("num_choices", [1, 2, 3, 5])
def test_any_number_of_choices(num_choices):
    """One model; each choice is scored as if it were alone."""
    model = random_model(2)
    batch = random_batch(model.config, 2, num_choices)
    logits = logits_of(model, batch)
    assert logits.shape == (3, num_choices)
    for i in range(num_choices):
        alone = {name: batch[name][:, i : i + 1] for name in INPUTS}
        close(logits_of(model, alone), logits[:, i : i + 1])


def test_an_untrained_model_guesses():
    keras.utils.set_random_seed(0)
    model = models.BertForMultipleChoice(small_models.config())
    batch = random_batch(model.config, 3, num_choices=4, rows=400)
    label_ids = np.arange(400, dtype=np.int32) % 4
    logits = logits_of(model, batch)
    assert np.mean(losses_of(logits, label_ids)) == pytest.approx(np.log(4), abs=0.01)
    accuracy = np.mean(logits.argmax(-1) == label_ids)
    assert accuracy == pytest.approx(0.25, abs=4 * np.sqrt(0.25 * 0.75 / 400))
