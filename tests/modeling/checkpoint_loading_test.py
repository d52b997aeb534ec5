"""Putting weights into models: by name, with a report, and never half."""

import dataclasses
import json

import numpy as np
import pytest
import safetensors.numpy

from modeling import checkpoint, config, feature_tagger, models

TINY = config.BertConfig(
    vocab_size=20,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=16,
    type_vocab_size=2,
)


def variables_of(golden, key):
    listed = json.loads((golden / "tiny_tf1" / "variables.json").read_text())
    return {name: tuple(shape) for name, shape in listed[key]}


def assert_same(actual, expected):
    assert actual.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array, strict=True, err_msg=name)


@pytest.fixture(scope="module")
def pretraining():
    return models.BertForPretraining(TINY)


@pytest.fixture(scope="module")
def classifier():
    return models.BertForSequenceClassification(TINY, 3)


def values_of(model):
    return {n: v.numpy() for n, v in checkpoint.weight_names(model).items()}


def test_names_of_a_pretraining_model_are_the_originals(golden, pretraining):
    names = checkpoint.weight_names(pretraining)
    assert names.keys() == variables_of(golden, "inference_variables").keys()


def test_names_of_a_classifier_are_the_originals(golden, classifier):
    expected = checkpoint.read(golden / "tiny_tf1_runs" / "classifier_mrpc")
    assert checkpoint.weight_names(classifier).keys() == expected.keys()


def test_report_of_a_whole_checkpoint(tmp_path, pretraining):
    shapes = {n: v.shape for n, v in checkpoint.weight_names(pretraining).items()}
    rng = np.random.default_rng(0)
    weights = {n: rng.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    checkpoint.write_tf1(tmp_path / "x.ckpt", weights)
    report = checkpoint.load(pretraining, tmp_path)
    assert sorted(report.loaded) == sorted(weights)
    assert report.fresh == report.unused == report.mismatched == []
    assert_same(values_of(pretraining), weights)


def test_report_of_another_head(pretraining, classifier):
    before = values_of(classifier)
    weights = values_of(pretraining)
    report = checkpoint.assign(classifier, weights, "x")
    assert report.fresh == ["output_weights", "output_bias"]
    assert len(report.loaded) == 39
    assert {name.split("/")[0] for name in report.unused} == {"cls"}
    after = values_of(classifier)
    for name in report.loaded:
        np.testing.assert_array_equal(after[name], weights[name])
    for name in report.fresh:
        np.testing.assert_array_equal(after[name], before[name])
    assert report.table().splitlines() == [
        "loaded                  39",
        "freshly initialised      2  output_weights, output_bias",
        "unused in checkpoint     7  " + ", ".join(report.unused[:6]) + ", ...",
        "shape mismatch           0",
    ]


def test_mismatched_head_is_an_error_unless_skipped(classifier):
    weights = values_of(models.BertForSequenceClassification(TINY, 5))
    before = values_of(classifier)
    message = "output_weights has the shape .5, 8. in x, but .*--skip_mismatched_heads$"
    with pytest.raises(ValueError, match=message):
        checkpoint.assign(classifier, weights, "x")
    assert_same(values_of(classifier), before)
    report = checkpoint.assign(classifier, weights, "x", skip_mismatched_heads=True)
    assert report.mismatched == ["output_weights", "output_bias"]
    assert "shape mismatch           2  output_weights, output_b" in report.table()
    after = values_of(classifier)
    for name, array in weights.items():
        source = before if name in report.mismatched else {name: array}
        np.testing.assert_array_equal(after[name], source[name])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("vocab_size", 21),
        ("hidden_size", 10),
        ("intermediate_size", 16),
        ("max_position_embeddings", 32),
        ("type_vocab_size", 16),
    ],
)
def test_checkpoint_of_another_size_is_refused_by_key(classifier, key, value):
    other = dataclasses.replace(TINY, **{key: value})
    weights = values_of(models.BertForSequenceClassification(other, 3))
    before = values_of(classifier)
    for skip in (False, True):
        with pytest.raises(
            ValueError, match=rf" in x\.ckpt, .*; set {key} to {value}[^;]* fits$"
        ):
            checkpoint.assign(classifier, weights, "x.ckpt", skip)
    assert_same(values_of(classifier), before)


def test_checkpoint_that_matches_nothing_is_refused(classifier):
    weights = {"model/embedding": np.zeros(3), "model/dense": np.zeros(3)}
    match = (
        "x.ckpt has no variable of this model: it has model/embedding, model/dense, "
        r"\.\.\. and the model has bert/embeddings/.*, bert/.*, bert/"
    )
    with pytest.raises(ValueError, match=match):
        checkpoint.assign(classifier, weights, "x.ckpt")


def test_a_head_alone_is_no_match(classifier):
    weights = {"output_bias": np.zeros(3, np.float32)}
    with pytest.raises(ValueError, match="x has no variable of this model"):
        checkpoint.assign(classifier, weights, "x")


def test_of_a_model_without_an_encoder_something_must_match():
    model = feature_tagger.FeatureTagger(3, (1, 4), bilstm_layers=1, bilstm_size=2)
    weights = {"output_bias": np.ones(3, np.float32), "other": np.zeros(1)}
    report = checkpoint.assign(model, weights, "x", skip_mismatched_heads=True)
    assert report.loaded == ["output_bias"] and report.unused == ["other"]
    np.testing.assert_array_equal(values_of(model)["output_bias"], 1)
    with pytest.raises(ValueError, match="x has no variable of this model"):
        checkpoint.assign(model, {"other": np.zeros(1)}, "x")


def test_hugging_face_encoder_goes_into_a_classifier(tmp_path, classifier):
    rng = np.random.default_rng(0)
    source = values_of(models.BertForSequenceClassification(TINY, 3))
    tensors = {"embeddings.position_ids": np.arange(16)[None]}
    for name, array in source.items():
        if name.startswith("bert/"):
            new = rng.normal(size=array.shape).astype(np.float32)
            source[name] = new
            theirs = name.removeprefix("bert/").replace("layer_", "layer/")
            theirs = theirs.replace("/", ".").replace("gamma", "weight")
            theirs = theirs.replace("beta", "bias").replace("kernel", "weight")
            theirs += ".weight" * name.endswith("_embeddings")
            new = np.ascontiguousarray(new.T) if name.endswith("kernel") else new
            tensors[theirs] = new
    safetensors.numpy.save_file(tensors, tmp_path / "model.safetensors")
    report = checkpoint.load(classifier, tmp_path)
    assert report.fresh == ["output_weights", "output_bias"]
    assert report.unused == []
    values = values_of(classifier)
    for name in report.loaded:
        np.testing.assert_array_equal(values[name], source[name])
