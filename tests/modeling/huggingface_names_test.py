"""Names there and here; the oracles are files that the two programs wrote."""

import json

import numpy as np
import pytest
import safetensors.numpy

from modeling import huggingface_names as names


@pytest.fixture(scope="module")
def tf1_shapes(golden):
    """{TF1 name: shape} of the original's pre-training model."""
    listed = json.loads((golden / "tiny_tf1" / "variables.json").read_text())
    return {name: tuple(shape) for name, shape in listed["inference_variables"]}


@pytest.fixture(scope="module")
def tensors(golden):
    """{Hugging Face name: array} of transformers' pre-training model."""
    folder = golden / "hf_tiny" / "pretraining_gelu"
    return safetensors.numpy.load_file(folder / "model.safetensors")


def test_names_and_layout_of_the_original(tensors, tf1_shapes):
    weights = names.to_weights(tensors, "x")
    assert set(weights) == set(tf1_shapes)
    # The two tiny models differ in vocabulary (101, 100) and positions (48, 64) only.
    theirs = {101: 100, 48: 64}
    for name, array in weights.items():
        shape = tuple(theirs.get(size, size) for size in array.shape)
        assert shape == tf1_shapes[name], name


def test_kernels_are_transposed_and_heads_are_not(tensors):
    weights = names.to_weights(tensors, "x")
    pairs = {
        "bert/encoder/layer_1/attention/self/key/kernel": (
            "bert.encoder.layer.1.attention.self.key.weight"
        ),
        "bert/pooler/dense/kernel": "bert.pooler.dense.weight",
        "cls/predictions/transform/dense/kernel": (
            "cls.predictions.transform.dense.weight"
        ),
    }
    for ours, theirs in pairs.items():
        np.testing.assert_array_equal(weights[ours], tensors[theirs].T)
    np.testing.assert_array_equal(
        weights["cls/seq_relationship/output_weights"],
        tensors["cls.seq_relationship.weight"],
    )


FOLDERS = [
    "pretraining_gelu",
    "pretraining_gelu_new",
    "pretraining_relu",
    "classification",
    "regression",
]


@pytest.mark.parametrize("folder", FOLDERS)
def test_there_and_back_is_the_same_file(golden, folder):
    path = golden / "hf_tiny" / folder / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    again = names.to_tensors(names.to_weights(tensors, path))
    assert list(again) == sorted(tensors)
    for name, array in tensors.items():
        np.testing.assert_array_equal(again[name], array, strict=True)


@pytest.mark.parametrize(
    "folder", ["question_answering", "token_classification", "multiple_choice"]
)
def test_other_heads_there_and_back(shared, folder):
    path = shared / "golden" / "hf_tiny" / folder / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    weights = names.to_weights(tensors, path)
    scope = "cls/squad/" if folder == "question_answering" else ""
    heads = {name for name in weights if not name.startswith("bert/")}
    assert heads == {f"{scope}output_weights", f"{scope}output_bias"}
    again = names.to_tensors(weights)
    assert again.keys() == tensors.keys()
    for name, array in tensors.items():
        np.testing.assert_array_equal(again[name], array, strict=True)


def test_encoder_alone_has_no_prefix_there(shared):
    path = shared / "data" / "checkpoints" / "hf-tiny-bert" / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    weights = names.to_weights(tensors, path)
    assert all(name.startswith("bert/") for name in weights)
    again = names.to_tensors(weights)
    assert again.keys() == tensors.keys()
    for name, array in tensors.items():
        np.testing.assert_array_equal(again[name], array, strict=True)


def test_old_names_of_layer_norm(tensors):
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): array
        for name, array in tensors.items()
    }
    assert old.keys() != tensors.keys()
    expected = names.to_weights(tensors, "x")
    actual = names.to_weights(old, "x")
    assert actual.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array)


def test_buffers_are_no_weights(tensors):
    positions = np.arange(48)[None]
    for buffer in ("bert.embeddings.position_ids", "embeddings.token_type_ids"):
        weights = names.to_weights({**tensors, buffer: positions}, "x")
        assert weights.keys() == names.to_weights(tensors, "x").keys()


def test_copies_of_tied_weights_may_stand_beside_or_alone(tensors):
    table = tensors["bert.embeddings.word_embeddings.weight"]
    copies = {
        "cls.predictions.decoder.weight": table,
        "cls.predictions.decoder.bias": tensors["cls.predictions.bias"],
    }
    expected = names.to_weights(tensors, "x")
    alone = {
        name: array
        for name, array in tensors.items()
        if array is not table and name != "cls.predictions.bias"
    }
    for content in ({**tensors, **copies}, {**alone, **copies}):
        actual = names.to_weights(content, "x")
        assert actual.keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(actual[name], array)


@pytest.mark.parametrize("part", ["weight", "bias"])
def test_untied_weights_are_refused_by_name(tensors, part):
    tied = {
        "weight": "bert.embeddings.word_embeddings.weight",
        "bias": "cls.predictions.bias",
    }
    name = f"cls.predictions.decoder.{part}"
    with pytest.raises(ValueError, match=f"x.bin: {name} and {tied[part]} must be eq"):
        names.to_weights({**tensors, name: tensors[tied[part]] + 1}, "x.bin")


@pytest.mark.parametrize(
    "name",
    [
        "bert.encoder.layer.0.crossattention.self.query.weight",
        "bert.encoder.layer.0.attention.self.distance_embedding.weight",
        "encoder.embedding_hidden_mapping_in.weight",
    ],
)
def test_parts_of_other_encoders_are_refused_by_name(tensors, name):
    with pytest.raises(ValueError, match=f"x.bin has a tensor {name}, which BERT does"):
        names.to_weights({**tensors, name: np.zeros((2, 2))}, "x.bin")


def test_another_model_is_refused(tensors):
    other = {name.replace("bert.", "electra."): a for name, a in tensors.items()}
    with pytest.raises(ValueError, match="x.bin holds no BERT encoder; it has electra"):
        names.to_weights(other, "x.bin")
    with pytest.raises(ValueError, match="it has nothing at all"):
        names.to_weights({}, "x.bin")


def test_unknown_heads_keep_their_names(tensors):
    weights = names.to_weights({**tensors, "my_head.weight": np.eye(2)}, "x")
    assert weights["my_head.weight"].dtype == np.float32
    again = names.to_tensors(weights)
    assert again.keys() == {*tensors, "my_head.weight"}


def test_unknown_variable_of_the_encoder_is_refused_by_name():
    with pytest.raises(ValueError, match="bert/encoder/layer_0/adapter/kernel"):
        names.to_tensors({"bert/encoder/layer_0/adapter/kernel": np.eye(2)})


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_numbers_become_float32(tensors, dtype):
    import ml_dtypes

    kind = getattr(ml_dtypes, dtype, None) or np.dtype(dtype)
    cast = {name: array.astype(kind) for name, array in tensors.items()}
    weights = names.to_weights(cast, "x")
    assert {array.dtype for array in weights.values()} == {np.dtype(np.float32)}
    for name, array in names.to_weights(tensors, "x").items():
        np.testing.assert_array_equal(weights[name], array.astype(kind))
