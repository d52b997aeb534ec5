"""Exports give the model's logits, from text and from ids, without any of our code."""

import json
import os
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf

import exporting
from data import classification, features, glue, record_reading, records, tokenization
from modeling import checkpoint, models
from modeling import config as config_lib
from tests import exports, scripts
from tests.exports import ask


@pytest.fixture(scope="module")
def run(golden, tmp_path_factory):
    """The output folder of the original's MRPC run, taken over by ours."""
    out = tmp_path_factory.mktemp("export") / "run"
    out.mkdir()
    original = golden / "tiny_tf1_runs/classifier_mrpc"
    for path in [original / "checkpoint", *original.glob("model.ckpt-12.*")]:
        shutil.copy(path, out)
    scripts.succeed(
        "run_classifier.py",
        task_name="mrpc",
        data_dir=golden / "glue_samples/MRPC",
        bert_config_file=golden / "tiny_tf1/bert_config.json",
        vocab_file=golden / "tiny_tf1/vocab.txt",
        max_seq_length=48,
        output_dir=out,
        do_eval=True,
        do_export=True,
        export_dir=out.parent / "serving",
    )
    return out


@pytest.fixture(scope="module")
def export(run):
    return run.parent / "serving/1"


@pytest.fixture(scope="module")
def reference(golden, run):
    """function (texts, pairs or None) → logits of the model in memory, one by one."""
    config = config_lib.BertConfig.from_json_file(run / "bert_config.json")
    model = models.BertForSequenceClassification(config, 2)
    checkpoint.load(model, run)
    tokenizer = tokenization.FullTokenizer(golden / "tiny_tf1/vocab.txt")

    def logits(texts, others=None):
        examples = [
            classification.InputExample("", text, others and others[i])
            for i, text in enumerate(texts)
        ]
        arrays = features.examples_to_arrays(examples, ["0", "1"], 48, tokenizer)
        return model(arrays)["logits"].numpy()

    return logits


def golden_texts(golden):
    with open(golden / "tokenization.jsonl", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    texts = [row["text"] for row in rows if row["lower"]]
    # JSON carries lone surrogates, TensorFlow strings cannot.
    return [t for t in texts if t.encode("utf-8", "ignore").decode() == t]


def test_text_gives_the_logits_of_the_model(golden, export, reference, tmp_path):
    texts = golden_texts(golden)
    sizes = [1, 2, 7, 64, len(texts)]  # any batch, any length
    requests = [("serving_default", {"text": texts[:size]}) for size in sizes]
    expected = reference(texts)
    for size, answer in zip(sizes, ask(export, requests, tmp_path), strict=True):
        np.testing.assert_allclose(answer["logits"], expected[:size], atol=1e-5)
        probabilities = np.array(answer["probabilities"])
        np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-6)
        np.testing.assert_allclose(answer["score"], probabilities.max(1), atol=1e-7)
        assert answer["label"] == [str(i) for i in probabilities.argmax(1)]


def test_pairs_give_the_logits_of_the_model(golden, export, reference, tmp_path):
    texts = golden_texts(golden)
    examples = glue.find_task("mrpc").examples(golden / "glue_samples/MRPC", "dev")
    firsts = [e.text_a for e in examples] + texts
    seconds = [e.text_b for e in examples] + texts[::-1]
    seconds[::3] = [""] * len(seconds[::3])  # are single texts then
    examples = [
        {"text": first, **({"text_pair": second} if second else {})}
        for first, second in zip(firsts, seconds, strict=True)
    ]
    pairs = {"text": firsts, "text_pair": seconds}
    answer, classified = ask(
        export, [("pair", pairs), ("classify", examples)], tmp_path
    )
    logits = reference(firsts, seconds)
    np.testing.assert_allclose(answer["logits"], logits, atol=1e-5)
    exponentials = np.exp(logits.astype("f8"))
    scores = exponentials / exponentials.sum(1, keepdims=True)
    np.testing.assert_allclose(classified["scores"], scores, atol=1e-5)
    assert classified["classes"] == [["0", "1"]] * len(firsts)


def test_the_graph_holds_the_model_once_and_known_ops_only(export):
    ops = exports.count_ops(export)
    assert ops["Tanh"] == 3  # GELU in each of two layers, and the pooler
    foreign = {op for op in ops if not hasattr(tf.raw_ops, op)}
    assert foreign == {"FastWordpieceTokenizeWithOffsets"}


def test_ids_give_the_originals_logits(golden, export, tmp_path):
    original = golden / "tiny_tf1_runs/classifier_mrpc"
    arrays = record_reading.read_all(
        [str(original / "eval.tf_record")], records.classifier_spec(48)
    )
    names = ("input_ids", "input_mask", "segment_ids")
    longest = int(arrays["input_mask"].sum(1).max())
    requests = [
        ("ids", {name: arrays[name][:rows, :length].tolist() for name in names})
        for rows, length in [(10, 48), (10, longest), (3, 48), (1, longest + 1)]
    ]
    for name, others in {
        "model_garden": ("input_word_ids", "input_mask", "input_type_ids"),
        "hugging_face": ("input_ids", "attention_mask", "token_type_ids"),
    }.items():
        values = requests[0][1].values()
        requests.append((name, dict(zip(others, values, strict=True))))
    expected = np.load(original / "expected_eval.npz")["logits"]
    for answer in ask(export, requests, tmp_path):
        rows = len(answer["logits"])
        np.testing.assert_allclose(answer["logits"], expected[:rows], atol=2e-5)


def read_weights(folder):
    """Arrays of a checkpoint of TensorFlow."""
    reader = tf.train.load_checkpoint(str(folder))
    return [reader.get_tensor(name) for name in reader.get_variable_to_shape_map()]


def test_bfloat16_halves_the_matrices_and_keeps_the_logits(golden, run, tmp_path):
    scripts.succeed(
        "export_saved_model.py",
        model_dir=run,
        export_dir=tmp_path / "e",
        precision="bfloat16",
    )
    narrow = tmp_path / "e/1"
    reader = tf.train.load_checkpoint(str(narrow / "variables/variables"))
    narrow_ones = [
        reader.get_tensor(name)
        for name, dtype in reader.get_variable_to_dtype_map().items()
        if dtype == tf.bfloat16
    ]
    matrices = [array for array in narrow_ones if array.ndim == 2]
    assert len(matrices) == 3 + 2 * 6 + 1  # embeddings, two layers, the pooler
    weights = [array.astype(matrices[0].dtype) for array in read_weights(run)]
    for array in narrow_ones:
        same = [w for w in weights if w.shape == array.shape and (w == array).all()]
        assert same

    original = golden / "tiny_tf1_runs/classifier_mrpc"
    arrays = record_reading.read_all(
        [str(original / "eval.tf_record")], records.classifier_spec(48)
    )
    names = ("input_ids", "input_mask", "segment_ids")
    ids = {name: arrays[name][:10].tolist() for name in names}
    (answer,) = ask(narrow, [("ids", ids)], tmp_path)
    expected = np.load(original / "expected_eval.npz")["logits"]
    # A sum of some hundred terms, each rounded to 8 bits.
    difference = np.abs(np.array(answer["logits"]) - expected).max()
    assert 1e-5 < difference < 2**-5, difference
    card = (narrow / "model_card.md").read_text()
    assert "| computes in | bfloat16 |" in card
    assert re.search(
        r"from the model in float32 \| largest difference .* rows of", card
    )


def export_of(folder, config, **identity):
    """Exports a run's folder that is made by hand around weights in `folder`."""
    run = folder / "run"
    run.mkdir()
    exports.write_vocab(run, config.vocab_size)
    identity |= {"script": "run_classifier", "config": config.to_dict()}
    (run / "model.json").write_text(json.dumps({**identity, "do_lower_case": True}))
    settings = {"max_seq_length": 20, "init_checkpoint": str(folder / "weights")}
    (run / "settings.json").write_text(json.dumps(settings))
    return exporting.export(run, folder / "e")


def hugging_face_rows(golden, tmp_path, name):
    """(config, requests of the ids signature, logits) of a golden model."""
    source = golden / "hf_tiny" / name
    shutil.copytree(source, tmp_path / "weights")
    expected = np.load(source / "expected.npz")
    ids = {n: expected[n].tolist() for n in ("input_ids", "input_mask", "segment_ids")}
    return checkpoint.read_config(source), [("ids", ids)], expected["logits"]


def test_a_regression_gives_the_numbers_of_transformers(golden, tmp_path):
    config, requests, logits = hugging_face_rows(golden, tmp_path, "regression")
    path = export_of(tmp_path, config, labels=[], label_type="number")
    requests.append(("serving_default", {"text": ["word1 word2", "word3"]}))
    requests.append(("regress", [{"text": "word1 word2"}, {"text": "word3"}]))
    answer, of_text, of_examples = ask(path, requests, tmp_path)
    assert set(answer) == {"value", "logits"}
    np.testing.assert_allclose(answer["value"], logits[:, 0], atol=2e-5)
    assert len(of_text["value"]) == 2
    np.testing.assert_allclose(of_examples["outputs"], of_text["value"], atol=1e-6)


@pytest.mark.slow
def test_several_labels_with_the_logits_of_transformers(golden, tmp_path):
    config, requests, logits = hugging_face_rows(golden, tmp_path, "classification")
    path = export_of(tmp_path, config, labels=list("abc"), label_type="multi_label")
    (answer,) = ask(path, requests, tmp_path)
    np.testing.assert_allclose(answer["logits"], logits, atol=2e-5)
    probabilities = 1 / (1 + np.exp(-logits.astype(np.float64)))
    np.testing.assert_allclose(answer["probabilities"], probabilities, atol=1e-5)
    assert answer["labels"] == [["a", "b", "c"]] * len(logits)


def test_a_second_export_is_the_next_version(run, export):
    scripts.succeed("export_saved_model.py", model_dir=run, export_dir=export.parent)
    names = sorted(os.listdir(export.parent))
    assert names == ["1", "2", "batching_parameters.txt"]


def test_vocabulary_labels_and_what_the_model_is_are_beside_it(golden, export):
    vocab = (golden / "tiny_tf1/vocab.txt").read_bytes()
    assert (export / "assets/vocab.txt").read_bytes() == vocab
    assert (export / "assets/labels.txt").read_text() == "0\n1\n"
    card = (export / "model_card.md").read_text()
    for row in ("| task | mrpc |", "| eval_accuracy | ", "| hidden_size | "):
        assert row in card
    assert "| classify | classify | inputs: string [any] | classes: string [" in card


def test_folders_that_cannot_be_exported(run, tmp_path):
    sentence = scripts.refusal(
        "export_saved_model.py", model_dir=tmp_path, export_dir=tmp_path / "out"
    )
    assert str(tmp_path) in sentence and "model.json" in sentence
    broken = tmp_path / "broken"
    shutil.copytree(run, broken)
    for path in broken.glob("model.ckpt*"):
        path.unlink()
    (broken / "checkpoint").unlink()
    sentence = scripts.refusal(
        "export_saved_model.py", model_dir=broken, export_dir=tmp_path / "out"
    )
    assert "no checkpoint" in sentence
    assert not os.listdir(tmp_path / "out") if (tmp_path / "out").exists() else True


def test_what_does_not_fit_is_refused(run, export, tmp_path):
    larger = tmp_path / "larger"
    shutil.copytree(run, larger)
    with open(larger / "vocab.txt", "a", encoding="utf-8") as file:
        file.write("".join(f"more{k}\n" for k in range(50)))
    out = tmp_path / "out"
    for flags, words in (
        ({"model_dir": larger}, "has 150 entries, but the model's vocab_size is 100"),
        ({"model_dir": run, "max_seq_length": 20}, "--max_seq_length has no effect"),
        ({"model_dir": run, "top_k": 3}, "--top_k has no effect with --model_dir"),
        ({"model_dir": run, "export_dir": export}, "is a SavedModel itself"),
    ):
        given = {"export_dir": out} | flags
        assert words in scripts.refusal("export_saved_model.py", **given)
    assert not out.exists()
    assert "1" not in os.listdir(export)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes, words",
    [
        ({}, "either --model_dir, the output folder of a fine-tuning script, or --in"),
        ({"init_checkpoint": "TINY", "model_dir": "a"}, "either --model_dir"),
        ({"init_checkpoint": "TINY"}, "--head is for --init_checkpoint, which needs"),
        ({"model_dir": "a", "head": "masked_words"}, "--head is for --init_checkp"),
        (
            {"init_checkpoint": "TINY", "head": "masked_words", "pooling": "cls"},
            "--pooling has no effect with --head=masked_words",
        ),
        (
            {"init_checkpoint": "TINY", "head": "sentence_vectors", "layers": "2"},
            "--layers names layer 2, but the model has 2",
        ),
        (
            {"init_checkpoint": "TINY", "head": "masked_words", "top_k": 101},
            "--top_k is 101, but the vocabulary of the model has only 100 entries",
        ),
        (
            {"init_checkpoint": "TINY", "head": "masked_words", "max_seq_length": 999},
            "--max_seq_length is 999, but the model has only",
        ),
        (
            {"init_checkpoint": "CLASSIFIER", "head": "masked_words"},
            "is no masked language model: cls/predictions/",
        ),
        (
            {
                "init_checkpoint": "TINY",
                "head": "masked_words",
                "bert_config_file": "LEFT_TO_RIGHT",
            },
            "a left-to-right model cannot fill a [MASK]",
        ),
    ],
)
def test_heads_that_cannot_be_exported(golden, tmp_path, run, changes, words):
    config = json.loads((golden / "tiny_tf1/bert_config.json").read_text())
    config |= {"visibility": "left_to_right", "pooled_position": "last"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    places = {
        "TINY": golden / "tiny_tf1",
        "CLASSIFIER": run,
        "LEFT_TO_RIGHT": tmp_path / "config.json",
    }
    changes = {name: places.get(value, value) for name, value in changes.items()}
    changes = {"max_seq_length": 32, **changes}
    sentence = scripts.refusal(
        "export_saved_model.py", export_dir=tmp_path / "out", **changes
    )
    assert words in sentence
    assert not (tmp_path / "out").exists()
