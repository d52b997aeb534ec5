"""Texts, pairs, questions, vectors and masks: exports on hundreds of real rows.

They answer as the script and the predictor do, in a process without our code. The
weights are random: labels are close to one another, so that differences show.
"""

import csv
import json
import random

import numpy as np
import pytest
import tensorflow as tf
import tokenizers

import question_answering
from data import glue, squad
from modeling import checkpoint, models
from modeling import config as config_lib
from tests import exports, scripts, small_models

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tiny(golden):
    return golden / "tiny_tf1"


@pytest.fixture(scope="module")
def config(tiny):
    return config_lib.BertConfig.from_json_file(tiny / "bert_config.json")


def only_known_ops(path):
    ops = exports.count_ops(path)
    foreign = {op for op in ops if not hasattr(tf.raw_ops, op)}
    assert foreign == {"FastWordpieceTokenizeWithOffsets"}


def read_table(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def features(examples):
    """The rows of Classify and Regress."""
    return [{"text": e.text_a, "text_pair": e.text_b} for e in examples]


def columns(examples):
    return {
        "text": [example.text_a for example in examples],
        "text_pair": [example.text_b for example in examples],
    }


def test_classes_of_mrpc(golden, shared, config, tmp_path):
    model = models.BertForSequenceClassification(config, 2)
    small_models.randomize(model, 1)
    out, folder = tmp_path / "run", shared / "data/glue/MRPC"
    flags = exports.write_run(out, golden, model)
    scripts.succeed(
        "run_classifier.py",
        **flags,
        task_name="mrpc",
        data_dir=folder,
        max_seq_length=48,
    )
    examples = glue.find_task("mrpc").examples(folder, "test")
    predictions = read_table(out / "predictions.tsv")
    probabilities = np.loadtxt(out / "test_results.tsv", delimiter="\t")
    assert len(examples) == len(predictions) == len(probabilities) == 1725
    only_known_ops(out / "export/1")
    requests = [("pair", columns(examples)), ("classify", features(examples))]
    pairs, classified = exports.ask(out / "export/1", requests, tmp_path)
    assert pairs["label"] == [row["label"] for row in predictions]
    assert set(pairs["label"]) == {"0", "1"}
    scores = [float(row["score"]) for row in predictions]
    np.testing.assert_allclose(pairs["score"], scores, rtol=0, atol=1e-5)
    for found in (pairs["probabilities"], classified["scores"]):
        np.testing.assert_allclose(found, probabilities, rtol=0, atol=1e-5)
    assert classified["classes"] == [["0", "1"]] * len(examples)


def test_numbers_of_sts_b(golden, shared, config, tmp_path):
    model = models.BertForSequenceClassification(config, 1)
    small_models.randomize(model, 2)
    out, folder = tmp_path / "run", shared / "data/glue/STS-B"
    flags = exports.write_run(out, golden, model)
    scripts.succeed(
        "run_classifier.py",
        **flags,
        task_name="sts-b",
        data_dir=folder,
        max_seq_length=48,
    )
    examples = glue.find_task("sts-b").examples(folder, "test")
    expected = np.loadtxt(out / "test_results.tsv")
    assert len(examples) == len(expected) == 1379
    only_known_ops(out / "export/1")
    requests = [("pair", columns(examples)), ("regress", features(examples))]
    pairs, regressed = exports.ask(out / "export/1", requests, tmp_path)
    for found in (pairs["value"], regressed["outputs"]):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_answers_of_xquad(golden, shared, config, tmp_path):
    model, rng = models.BertForQuestionAnswering(config), np.random.default_rng(3)
    for variable in model.weights:
        variable.assign(rng.normal(size=variable.shape, scale=0.7))
    out, path = tmp_path / "run", shared / "data/squad/xquad.en.part.json"
    flags = exports.write_run(out, golden, model)
    sizes = {"max_seq_length": 64, "doc_stride": 16, "max_query_length": 24}
    scripts.succeed("run_squad.py", **flags, **sizes, predict_file=path)
    examples = squad.read_prediction_set(path)[:600]
    predictions = json.loads((out / "predictions.json").read_text("utf-8"))
    questions = [example.question_text for example in examples]
    contexts = [example.paragraph.text for example in examples]
    only_known_ops(out / "export/1")
    exports.check_narrow(tmp_path, model_dir=out)
    request = ("serving_default", {"question": questions, "context": contexts})
    (found,) = exports.ask(out / "export/1", [request], tmp_path)
    # The script reads batches that are padded alike, the others each by itself.
    assert found["text"] == [predictions[example.qas_id] for example in examples]
    assert len(set(found["text"])) > 300
    expected = question_answering.load(out).predict(questions, contexts)
    for name, key in (("answer", "text"), ("start", "start"), ("end", "end")):
        assert found[name] == [answer[key] for answer in expected]
    for name in ("score", "probability"):
        values = [answer[name] for answer in expected]
        np.testing.assert_allclose(found[name], values, rtol=1e-6, atol=1e-5)


@pytest.fixture(scope="module")
def lines(shared):
    """Sentences, English and German."""
    path = shared / "data/pretrain/sample_en_sentences.txt"
    found = [line.strip() for line in path.read_text("utf-8").splitlines()]
    return [line for line in found if line and " ||| " not in line][:800]


def test_vectors_of_sentences(tiny, lines, tmp_path):
    flags = {"init_checkpoint": tiny, "max_seq_length": 32, "layers": "-1,0"}
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n", "utf-8")
    scripts.succeed(
        "extract_features.py",
        **flags,
        pooling="max",
        input_file=tmp_path / "lines.txt",
        output_file=tmp_path / "vectors.npy",
    )
    expected = np.load(tmp_path / "vectors.npy")
    assert len(expected) == len(lines) == 800
    flags |= {"head": "sentence_vectors", "pooling": "max"}
    exports.check_narrow(tmp_path, **flags)
    for normalize in (False, True):
        export = tmp_path / str(normalize)
        scripts.succeed(
            "export_saved_model.py", **flags, normalize=normalize, export_dir=export
        )
        only_known_ops(export / "1")
        request = ("serving_default", {"text": lines})
        (found,) = exports.ask(export / "1", [request], tmp_path)
        np.testing.assert_allclose(found["vectors"], expected, rtol=0, atol=1e-5)
        expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)


def mask(line, rng):
    """A line with some of its words masked."""
    words = [rng.choice([word] * 4 + ["[MASK]"]) for word in line.split(" ")]
    return rng.choice([" ", " ", ""]).join(words)


def test_words_for_masks(tiny, config, lines, tmp_path):
    rng = random.Random(0)
    texts = [mask(line, rng) for line in lines]
    flags = {"init_checkpoint": tiny, "head": "masked_words", "max_seq_length": 32}
    flags["top_k"] = 3
    exports.check_narrow(tmp_path, **flags)
    export = tmp_path / "words"
    scripts.succeed("export_saved_model.py", **flags, export_dir=export)
    only_known_ops(tmp_path / "words/1")
    request = ("serving_default", {"text": texts})
    (found,) = exports.ask(tmp_path / "words/1", [request], tmp_path)
    # Tokens by another library, logits by the model as it is in training.
    tokenizer = tokenizers.BertWordPieceTokenizer(str(tiny / "vocab.txt"))
    tokenizer.enable_truncation(32)
    tokenizer.enable_padding()
    encodings = tokenizer.encode_batch(texts)
    model = models.BertForPretraining(config)
    checkpoint.load(model, tiny)
    batch = {
        "input_ids": tf.constant([encoding.ids for encoding in encodings]),
        "input_mask": tf.constant([e.attention_mask for e in encodings]),
        "segment_ids": tf.constant([encoding.type_ids for encoding in encodings]),
    }
    probabilities = tf.nn.softmax(model(batch)["masked_lm_logits"]).numpy()
    masks = 0
    for row, encoding in enumerate(encodings):
        places = [i for i, token in enumerate(encoding.tokens) if token == "[MASK]"]
        of_masks = probabilities[row, places]
        best = np.argsort(-of_masks, axis=1)[:, :3]
        words = [[tokenizer.id_to_token(i) for i in ids] for ids in best.tolist()]
        assert [answer for answer in found["words"][row] if answer[0]] == words
        scores = np.take_along_axis(of_masks, best, axis=1)
        answers = np.array(found["probabilities"][row])[: len(places)]
        np.testing.assert_allclose(answers, scores, rtol=0, atol=1e-5)
        masks += len(places)
    assert masks > 1000
