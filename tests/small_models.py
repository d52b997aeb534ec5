"""Small random models and batches, and ways to set a model's weights."""

import numpy as np
import tensorflow as tf

from modeling import config as config_lib
from tests import numpy_bert

# For what does not depend on what a model computes.
SMALLEST = config_lib.BertConfig(
    vocab_size=20,
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=16,
)


def config(**changes):
    """A BertConfig of a few thousand weights."""
    sizes = {
        "vocab_size": 29,
        "hidden_size": 12,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 20,
        "max_position_embeddings": 16,
        "type_vocab_size": 2,
    }
    return config_lib.BertConfig(**{**sizes, **changes})


def batch(config, seed, batch_size=3, seq_length=7, num_labels=2):
    """A batch with everything that the two models and their losses read."""
    rng = np.random.default_rng(seed)
    shape = (batch_size, seq_length)
    lengths = rng.integers(1, seq_length + 1, (batch_size, 1))
    predictions = (batch_size, min(seq_length, 4))
    return {
        "input_ids": rng.integers(0, config.vocab_size, shape).astype(np.int32),
        "input_mask": (np.arange(seq_length) < lengths).astype(np.int32),
        "segment_ids": rng.integers(0, config.type_vocab_size, shape).astype(np.int32),
        "masked_lm_positions": rng.integers(0, seq_length, predictions, np.int32),
        "masked_lm_ids": rng.integers(0, config.vocab_size, predictions, np.int32),
        "masked_lm_weights": rng.integers(0, 2, predictions).astype(np.float32),
        "next_sentence_labels": rng.integers(0, 2, (batch_size, 1), np.int32),
        "label_ids": rng.integers(0, num_labels, batch_size, np.int32),
    }


def tensors(batch):
    return {name: tf.constant(array) for name, array in batch.items()}


def variables(model):
    """{checkpoint's name: variable}: the path without the model's own name."""
    paths = {v.path.removeprefix(f"{model.name}/"): v for v in model.weights}
    # The original has the classifier's two weights at the root.
    return {path.removeprefix("classifier/"): v for path, v in paths.items()}


def assign(model, weights):
    """Sets every weight of a model; it must have these and no others."""
    ours = variables(model)
    assert ours.keys() == weights.keys()
    for name, variable in ours.items():
        variable.assign(weights[name])


def randomize(model, seed, num_labels=None):
    """Sets random weights; returns them as a dict for the NumPy reference.

    `num_labels` is of a classifier that does not say by itself.
    """
    num_labels = num_labels or getattr(model, "num_labels", None)
    rng = np.random.default_rng(seed)
    weights = numpy_bert.random_weights(model.config, rng, num_labels)
    # The same numbers on both sides: what float32 cannot hold is cut off.
    weights = {name: w.astype(np.float32) for name, w in weights.items()}
    assign(model, weights)
    return {name: w.astype(np.float64) for name, w in weights.items()}


def read_checkpoint(prefix):
    """The weights in a TF1 checkpoint, without what training adds."""
    reader = tf.train.load_checkpoint(str(prefix))
    names = reader.get_variable_to_shape_map()
    return {
        name: reader.get_tensor(name)
        for name in names
        if name != "global_step" and not name.endswith(("/adam_m", "/adam_v"))
    }


def close(actual, expected, tolerance=1e-5):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


def gradients(function, inputs, dy):
    """(function(*inputs), its gradients times dy)."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = function(*inputs)
    return y, tape.gradient(y, inputs, dy)
