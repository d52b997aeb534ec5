"""Taggers and choosers, exported by the script that made them, on real rows.

They answer as the script and the predictor do, in a process without our code. The
weights are random: labels are close to one another, so that differences show.
"""

import csv
import random

import numpy as np
import pytest

import choosing
import word_tagging
from data import classification, conll, ner
from modeling import config as config_lib
from modeling import models
from tests import exports, scripts, small_models

# Nothing, white space, controls, combining marks, long words and many of them.
HOSTILE = [
    "",
    " ",
    "\0",
    "a\0b",
    "two words",
    "\u200b",
    "\u0301",
    "\ufffd",
    "😀" * 50,
    "x" * 100_000,
    "-" * 300,
    "ΣΊΣΥΦΟΣ",
]


@pytest.fixture(scope="module")
def config(golden):
    return config_lib.BertConfig.from_json_file(golden / "tiny_tf1/bert_config.json")


def random_text(rng):
    kinds = (range(1, 0x300), range(1, 0xD800), range(97, 123), range(0x1F000, 0x1FB00))
    return "".join(chr(rng.choice(rng.choice(kinds))) for _ in range(rng.randrange(12)))


@pytest.mark.slow
def test_tags_of_wnut17(golden, shared, config, tmp_path):
    path = shared / "data/ner/wnut17/emerging.dev.conll"
    file = conll.read(path)
    labels = ner.infer_labels([file])
    model = models.BertForTokenClassification(config, len(labels))
    small_models.randomize(model, 1)
    out = tmp_path / "run"
    flags = exports.write_run(out, golden, model)
    classification.write_labels(str(out / "labels.json"), labels)
    shown = scripts.succeed("run_ner.py", **flags, test_file=path, max_seq_length=20)
    exports.check_narrow(tmp_path, model_dir=out)
    names = "hugging_face, ids, model_garden, serving_default, text"
    assert f"signatures {names};" in shown

    real = [list(s.words) for s in file.sentences]
    assert len(real) == 1009
    rng = random.Random(0)
    others = [[random_text(rng) for _ in range(rng.randrange(30))] for _ in range(50)]
    others += [HOSTILE, ["word"] * 300, ["word", *HOSTILE] * 20, [], ["", "", "a"]]
    for words in others:
        while words and not words[-1]:  # is padding in an export
            words.pop()
    requests = []
    for sentences in (real, others):
        width = max(map(len, sentences)) + 2
        padded = [words + [""] * (width - len(words)) for words in sentences]
        requests.append(("serving_default", {"words": padded}))
    texts = [" ".join(words) for words in real + others]
    requests.append(("text", {"text": texts}))
    answers = exports.ask(out / "export/1", requests, tmp_path)

    predictions = (out / "test_predictions.conll").read_text(encoding="utf-8")
    expected = [
        [line.split("\t")[-1] for line in sentence.split("\n")]
        for sentence in predictions.rstrip("\n").split("\n\n")
    ]
    tags = [[tag for tag in row if tag] for row in answers[0]["tags"]]
    assert tags == expected
    assert len({tag for row in tags for tag in row}) > 5

    predictor = word_tagging.load(out)
    sentences = [*real, *others, *(text.split() for text in texts)]
    rows = zip(
        [tags for answer in answers for tags in answer["tags"]],
        [scores for answer in answers for scores in answer["scores"]],
        predictor.predict(sentences),
        strict=True,
    )
    for tags, scores, words in rows:
        padding = len(tags) - len(words)
        assert tags == [word["tag"] for word in words] + [""] * padding
        expected = [word["score"] for word in words] + [0] * padding
        np.testing.assert_allclose(scores, expected, atol=1e-5)
    for words, text in zip(answers[2]["words"], texts, strict=True):
        assert [word for word in words if word] == text.split()


@pytest.mark.slow
def test_choices_of_codah(golden, shared, config, tmp_path):
    model = models.BertForMultipleChoice(config)
    small_models.randomize(model, 2, num_labels=1)
    out = tmp_path / "run"
    flags = exports.write_run(out, golden, model)
    folder, name = shared / "data/swag/codah", "as_swag_val.csv"
    scripts.succeed(
        "run_swag.py",
        **flags,
        task_name="swag",
        data_dir=folder,
        predict_file=name,
        max_seq_length=40,
        export_dir=tmp_path / "versions",
    )
    exports.check_narrow(tmp_path, model_dir=out)
    with open(folder / name, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with open(out / "predictions.tsv", encoding="utf-8", newline="") as file:
        predictions = list(csv.DictReader(file, delimiter="\t"))
    assert len(rows) == len(predictions) == 389

    real = {
        "sent1": [row["sent1"] for row in rows],
        "sent2": [row["sent2"] for row in rows],
        "endings": [[row[f"ending{i}"] for i in range(4)] for row in rows],
    }
    rng = random.Random(0)
    contexts = [random_text(rng) for _ in range(50)] + HOSTILE
    choices = [
        [text for text in (random_text(rng) for _ in range(3)) if text] or ["x"]
        for _ in range(50)
    ]
    choices += [[text, text + "."] for text in reversed(HOSTILE[1:])] + [HOSTILE[1:]]
    width = max(map(len, choices))
    padded = [row + [""] * (width - len(row)) for row in choices]
    requests = [
        ("swag", real),
        ("serving_default", {"context": contexts, "choices": padded}),
    ]
    of_rows, of_others = exports.ask(tmp_path / "versions/1", requests, tmp_path)
    assert of_rows["label"] == [int(row["label"]) for row in predictions]
    assert len(set(of_rows["label"])) == 4
    expected = [[float(p[f"probability{i}"]) for i in range(4)] for p in predictions]
    np.testing.assert_allclose(of_rows["probabilities"], expected, atol=1e-5)
    best = zip(real["endings"], of_rows["label"], strict=True)
    assert of_rows["choice"] == [row[label] for row, label in best]

    answers = choosing.load(out).predict(contexts, choices)
    for row, answer in enumerate(answers):
        padding = [0] * (width - len(choices[row]))
        np.testing.assert_allclose(
            of_others["probabilities"][row],
            answer["probabilities"] + padding,
            atol=1e-5,
        )
        assert of_others["choice"][row] == choices[row][of_others["label"][row]]


@pytest.mark.slow
def test_warrants_of_arct(golden, shared, config, tmp_path):
    model = models.BertForMultipleChoice(config)
    small_models.randomize(model, 3, num_labels=1)
    out = tmp_path / "run"
    flags = exports.write_run(out, golden, model)
    folder = shared / "data/arct"
    scripts.succeed(
        "run_swag.py", **flags, task_name="arct", data_dir=folder, max_seq_length=40
    )
    with open(out / "predictions.tsv", encoding="utf-8", newline="") as file:
        predictions = list(csv.DictReader(file, delimiter="\t"))
    with open(folder / "test-only-data.txt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert len(rows) == len(predictions) == 444
    request = {
        "claim": [row["claim"] for row in rows],
        "reason": [row["reason"] for row in rows],
        "warrants": [[row["warrant0"], row["warrant1"]] for row in rows],
    }
    (answer,) = exports.ask(out / "export/1", [("arct", request)], tmp_path)
    assert answer["label"] == [int(row["label"]) for row in predictions]
    expected = [[float(p[f"probability{i}"]) for i in range(2)] for p in predictions]
    np.testing.assert_allclose(answer["probabilities"], expected, atol=1e-5)
