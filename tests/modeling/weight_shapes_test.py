"""Shapes that a config gives, against the original's variables."""

import dataclasses
import json

import numpy as np
import pytest

from modeling import checkpoint, config, weight_shapes


@pytest.fixture(scope="module")
def tiny(golden):
    """(weights of zeros, config) of the original's tiny pre-training model."""
    listed = json.loads((golden / "tiny_tf1" / "variables.json").read_text())
    weights = {n: np.zeros(shape) for n, shape in listed["inference_variables"]}
    weights["output_weights"], weights["output_bias"] = np.zeros((3, 32)), np.zeros(3)
    return weights, checkpoint.read_config(golden / "tiny_tf1")


def test_every_variable_has_known_sizes(tiny):
    weights, _ = tiny
    unknown = {n for n, a in weights.items() if len(weight_shapes.keys(n)) != a.ndim}
    assert unknown == {"cls/seq_relationship/output_bias"}  # its size is always 2


def test_matching_config_passes(tiny):
    weights, tiny_config = tiny
    weight_shapes.check(weights, tiny_config, "x")
    weight_shapes.check({**weights, "another/head": np.zeros(7)}, tiny_config, "x")


@pytest.mark.parametrize(
    ("key", "value", "there"),
    [
        ("vocab_size", 99, 100),
        ("max_position_embeddings", 512, 64),
        ("type_vocab_size", 16, 2),
        ("intermediate_size", 128, 64),
        ("hidden_size", 64, 32),
    ],
)
def test_wrong_size_is_named_with_the_right_one(tiny, key, value, there):
    weights, tiny_config = tiny
    wrong = dataclasses.replace(tiny_config, **{key: value})
    with pytest.raises(ValueError, match=f"in x.ckpt, .* set {key} to {there}, or"):
        weight_shapes.check(weights, wrong, "x.ckpt")


@pytest.mark.parametrize("num_hidden_layers", [1, 3])
def test_wrong_number_of_layers_is_named(tiny, num_hidden_layers):
    weights, tiny_config = tiny
    wrong = dataclasses.replace(tiny_config, num_hidden_layers=num_hidden_layers)
    with pytest.raises(ValueError, match="x.ckpt has 2 encoder layers, but num_hidden"):
        weight_shapes.check(weights, wrong, "x.ckpt")


def test_missing_layer_is_noticed(tiny):
    weights, tiny_config = tiny
    first_only = {n: a for n, a in weights.items() if "layer_0" not in n}
    with pytest.raises(ValueError, match="x has 1 encoder layers"):
        weight_shapes.check(first_only, tiny_config, "x")


def test_another_rank_is_a_mismatch(tiny):
    weights, tiny_config = tiny
    name = "bert/pooler/dense/kernel"
    with pytest.raises(ValueError, match=f"{name} .* they belong to different models"):
        weight_shapes.check({**weights, name: np.zeros(32)}, tiny_config, "x")


def test_mismatch_names_both_shapes_and_the_labels():
    text = weight_shapes.mismatch("output_weights", "x", (3, 32), (2, 32))
    assert text == (
        "output_weights has the shape [3, 32] in x, but [2, 32] in the model; set the "
        "number of labels to 3, or take the checkpoint that fits"
    )


def test_mismatch_of_an_unknown_variable_gives_no_false_advice():
    text = weight_shapes.mismatch("my/head", "x", (3,), (2,))
    assert text.endswith("they belong to different models")


def test_base_sizes():
    base = config.BertConfig(vocab_size=30522, type_vocab_size=2)
    keys = weight_shapes.keys("bert/encoder/layer_11/output/dense/kernel")
    assert [getattr(base, key) for key in keys] == [3072, 768]
