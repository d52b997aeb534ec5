"""Hugging Face folders; the oracles are folders that transformers wrote."""

import errno
import json
import os
import resource
import shutil

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy

from modeling import checkpoint, huggingface, huggingface_config

PRETRAINING = ["pretraining_gelu", "pretraining_gelu_new", "pretraining_relu"]
HEADS = ["question_answering", "token_classification", "multiple_choice"]


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def rewrite(source, folder):
    """Reads a folder and writes it back."""
    huggingface.write(
        folder,
        huggingface.read_weights(source / "model.safetensors"),
        huggingface_config.read_config(source / "config.json"),
        head=huggingface_config.read_head(source / "config.json"),
    )


def assert_same_folder(folder, source):
    """Equal tensors, and no key of config.json that says something else."""
    tensors = safetensors.numpy.load_file(source / "model.safetensors")
    written = safetensors.numpy.load_file(folder / "model.safetensors")
    assert written.keys() == tensors.keys()
    for name, array in tensors.items():
        np.testing.assert_array_equal(written[name], array, strict=True)
    with safetensors.safe_open(folder / "model.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt"}
    theirs = read_json(source / "config.json")
    ours = read_json(folder / "config.json")
    assert {key: theirs.get(key) for key in ours} == ours
    # What we leave out has transformers' own default, or concerns other models.
    assert set(theirs) - set(ours) <= {
        *("add_cross_attention", "is_decoder", "bos_token_id", "eos_token_id"),
        *("classifier_dropout", "tie_word_embeddings", "use_cache"),
        *("dtype", "transformers_version"),
    }


@pytest.mark.parametrize("name", [*PRETRAINING, "classification", "regression"])
def test_folder_of_transformers_written_back(golden, tmp_path, name):
    rewrite(golden / "hf_tiny" / name, tmp_path)
    assert_same_folder(tmp_path, golden / "hf_tiny" / name)


@pytest.mark.parametrize("name", HEADS)
def test_folder_with_another_head_written_back(shared, tmp_path, name):
    rewrite(shared / "golden" / "hf_tiny" / name, tmp_path)
    assert_same_folder(tmp_path, shared / "golden" / "hf_tiny" / name)


@pytest.mark.parametrize("name", [*PRETRAINING, "classification", "regression"])
def test_transformers_loads_what_was_written(golden, tmp_path, name):
    transformers = pytest.importorskip("transformers", reason="no transformers here")
    import torch

    rewrite(golden / "hf_tiny" / name, tmp_path)
    architecture = huggingface_config.read_head(tmp_path / "config.json").architecture
    model, info = getattr(transformers, architecture).from_pretrained(
        tmp_path, output_loading_info=True
    )
    assert not any(info.values())
    expected = np.load(golden / "hf_tiny" / name / "expected.npz")
    inputs = ("input_ids", "input_mask", "segment_ids")
    ids, mask, segments = (torch.tensor(expected[name]).long() for name in inputs)
    with torch.no_grad():
        outputs = model.eval()(ids, attention_mask=mask, token_type_ids=segments)
    names = {"next_sentence_logits": "seq_relationship_logits"}
    for key in {"prediction_logits", "next_sentence_logits", "logits"} & {*expected}:
        actual = outputs[names.get(key, key)].numpy()
        np.testing.assert_allclose(actual, expected[key], rtol=0, atol=2e-5)


def test_tensors_of_bin_and_safetensors_are_equal(golden):
    folder = golden / "hf_tiny" / "pretraining_gelu"
    expected = huggingface.read_weights(folder / "model.safetensors")
    actual = huggingface.read_weights(folder / "pytorch_model.bin")
    assert actual.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array, strict=True)


def shards_of(source, folder, names):
    """Splits a safetensors file in two and writes the index of the shards."""
    tensors = safetensors.numpy.load_file(source)
    halves = [dict(list(tensors.items())[k::2]) for k in range(2)]
    weight_map = {}
    for shard, half in zip(names, halves, strict=True):
        safetensors.numpy.save_file(half, folder / shard)
        weight_map |= dict.fromkeys(half, shard)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return index


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_is_read_as_float32(golden, tmp_path, dtype):
    source = golden / "hf_tiny" / "regression" / "model.safetensors"
    tensors = safetensors.numpy.load_file(source)
    half = {name: array.astype(dtype) for name, array in tensors.items()}
    safetensors.numpy.save_file(half, tmp_path / "model.safetensors")
    weights = checkpoint.read(tmp_path)
    for name, array in huggingface.read_weights(source).items():
        expected = array.astype(dtype).astype(np.float32)
        np.testing.assert_array_equal(weights[name], expected, strict=True)


NAMES = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]


def test_shards(golden, tmp_path):
    source = golden / "hf_tiny" / "classification" / "model.safetensors"
    index = shards_of(source, tmp_path, NAMES)
    expected = huggingface.read_weights(source)
    for path in (index, tmp_path):
        weights = checkpoint.read(path)
        assert weights.keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(weights[name], array)
    (tmp_path / NAMES[1]).unlink()
    with pytest.raises(FileNotFoundError, match=NAMES[1]):
        huggingface.read_weights(index)


def test_shards_of_another_folder_are_refused(tmp_path):
    index = tmp_path / "model.safetensors.index.json"
    for weight_map in ({}, {"a": "../secret.safetensors"}, {"a": "/etc/x.bin"}):
        index.write_text(json.dumps({"weight_map": weight_map}))
        with pytest.raises(ValueError, match="index.json must list files of its own"):
            huggingface.read_weights(index)


@pytest.mark.parametrize("share", [0, 0.0001, 0.01, 0.5, 0.999])
def test_truncated_safetensors_are_refused(golden, tmp_path, share):
    source = golden / "hf_tiny" / "regression" / "model.safetensors"
    content = source.read_bytes()
    path = tmp_path / "model.safetensors"
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ValueError, match="model.safetensors is damaged or no safetens"):
        huggingface.read_weights(path)


MASKED_LM = {"cls/predictions/output_bias"}
NEXT_SENTENCE = {"cls/seq_relationship/output_weights"}


@pytest.mark.parametrize(
    ("names", "architecture"),
    [
        (MASKED_LM | NEXT_SENTENCE, "BertForPreTraining"),
        (MASKED_LM, "BertForMaskedLM"),
        (NEXT_SENTENCE, "BertForNextSentencePrediction"),
        ({"cls/squad/output_weights"}, "BertForQuestionAnswering"),
        ({"output_weights"}, "BertForSequenceClassification"),
        ({"bert/pooler/dense/bias"}, "BertModel"),
    ],
)
def test_architecture_follows_from_the_heads(names, architecture):
    assert huggingface.architecture_of(dict.fromkeys(names)) == architecture


@pytest.fixture
def original(golden):
    """(weights, config) of the original's fine-tuned classifier."""
    weights = checkpoint.read(golden / "tiny_tf1_runs" / "classifier_mrpc")
    return weights, checkpoint.read_config(golden / "tiny_tf1")


def test_classifier_of_the_original(golden, tmp_path, original):
    weights, tiny = original
    vocab = golden / "tiny_tf1" / "vocab.txt"
    huggingface.write(
        tmp_path / "a" / "b",
        weights,
        tiny,
        (vocab, False),
        huggingface_config.Head(labels=("no", "yes")),
    )
    folder = tmp_path / "a" / "b"
    assert sorted(os.listdir(folder)) == [
        *("config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt")
    ]
    values = read_json(folder / "config.json")
    assert values["architectures"] == ["BertForSequenceClassification"]
    assert values["id2label"] == {"0": "no", "1": "yes"}
    assert values["label2id"] == {"no": 0, "yes": 1}
    assert values["hidden_act"] == "gelu_new"
    assert read_json(folder / "tokenizer_config.json")["do_lower_case"] is False
    assert (folder / "vocab.txt").read_bytes() == vocab.read_bytes()
    modes = {path.stat().st_mode for path in folder.iterdir() if path.suffix != ".txt"}
    assert len(modes) == 1  # whoever may read the config may read the weights


def test_labels_that_do_not_fit_are_refused(tmp_path, original):
    with pytest.raises(
        ValueError, match="has 2 labels, but 3 names are given: a, b, c"
    ):
        head = huggingface_config.Head(labels=("a", "b", "c"))
        huggingface.write(tmp_path / "x", *original, head=head)
    assert os.listdir(tmp_path) == []


def test_other_files_of_the_folder_stay(tmp_path, original):
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / ".staged").mkdir()  # a killed run's
    (tmp_path / ".staged" / "model.safetensors").write_bytes(b"half")
    huggingface.write(tmp_path, *original)
    assert sorted(os.listdir(tmp_path)) == [
        *("README.md", "config.json", "model.safetensors")
    ]


def test_vocabulary_that_is_not_there_is_named(tmp_path, original):
    vocab = tmp_path / "no" / "vocab.txt"
    with pytest.raises(FileNotFoundError, match="no/vocab.txt"):
        huggingface.write(tmp_path / "x", *original, (vocab, True))
    assert os.listdir(tmp_path) == []


def test_full_disk_is_named_also_by_a_small_file(tmp_path):
    error = OSError(errno.ENOSPC, "No space left on device")
    with (
        pytest.raises(OSError, match="x could not be written: No space left on device"),
        huggingface.staged_folder(tmp_path / "x"),
    ):
        raise error
    assert os.listdir(tmp_path) == []


def test_full_disk_leaves_what_was_there(golden, tmp_path, original):
    source = golden / "hf_tiny" / "regression"
    shutil.copytree(source, tmp_path / "old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, hard))
    try:
        for name in ("old", "new"):
            with pytest.raises(OSError, match=f"{name} could not be written: .*too la"):
                huggingface.write(tmp_path / name, *original)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path) == ["old"]
    for path in source.iterdir():
        assert (tmp_path / "old" / path.name).read_bytes() == path.read_bytes()
    assert sorted(os.listdir(tmp_path / "old")) == sorted(os.listdir(source))
