"""run_classifier.py: the original's numbers, one's own data, resuming."""

import csv
import json
import random
import shutil

import numpy as np
import pytest
import sklearn.metrics

from data import record_reading, records
from tests import resuming, scripts

ANIMALS = {
    "cat": ["the cat sat", "a cat ran", "my cat"],
    "dog": ["the dog sat", "a dog ran", "my dog"],
    "cow": ["the cow sat", "a cow ran", "my cow"],
}


@pytest.fixture
def tiny(golden):
    """Flags of the tiny original model."""
    return {
        "bert_config_file": golden / "tiny_tf1/bert_config.json",
        "vocab_file": golden / "tiny_tf1/vocab.txt",
        "max_seq_length": 48,
    }


def test_the_originals_output_folder_gives_its_results(golden, tiny, tmp_path):
    run = golden / "tiny_tf1_runs/classifier_mrpc"
    out = tmp_path / "out"
    out.mkdir()
    for path in [run / "checkpoint", *run.glob("model.ckpt-12.*")]:
        shutil.copy(path, out)
    scripts.succeed(
        "run_classifier.py",
        **tiny,
        task_name="MRPC",
        data_dir=golden / "glue_samples/MRPC",
        output_dir=out,
        do_eval=True,
        do_predict=True,
    )
    expected = scripts.read_results(run / "eval_results.txt")
    results = scripts.read_results(out / "eval_results.txt")
    lines = (golden / "glue_samples/MRPC/dev.tsv").read_text("utf-8").splitlines()[1:]
    with open(out / "eval_predictions.tsv", encoding="utf-8", newline="") as file:
        predicted = [row["label"] for row in csv.DictReader(file, delimiter="\t")]
    labels = [line[0] for line in lines]  # F1 is ours
    expected["eval_f1"] = sklearn.metrics.f1_score(labels, predicted, pos_label="1")
    assert results == pytest.approx(expected, abs=2e-5)

    theirs = np.loadtxt(run / "test_results.tsv", delimiter="\t")
    ours = np.loadtxt(out / "test_results.tsv", delimiter="\t")
    np.testing.assert_allclose(ours, theirs, atol=2e-5)
    with open(out / "predictions.tsv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert [row["label"] for row in rows] == [str(r.argmax()) for r in theirs]
    assert [row["id"] for row in rows] == [f"test-{i + 1}" for i in range(len(theirs))]
    np.testing.assert_allclose(
        [float(row["score"]) for row in rows], theirs.max(1), atol=2e-5
    )
    spec = records.classifier_spec(48)
    for name in ("eval.tf_record", "predict.tf_record"):
        theirs = record_reading.read_all([str(run / name)], spec)
        ours = record_reading.read_all([str(out / name)], spec)
        for key, value in theirs.items():
            np.testing.assert_array_equal(ours[key], value, err_msg=key)


@pytest.fixture
def own_data(tmp_path):
    """A folder with a task anybody can learn, in three formats."""
    folder = tmp_path / "animals"
    folder.mkdir()
    rng = random.Random(0)
    rows = [(text, name) for name, texts in ANIMALS.items() for text in texts] * 8
    rng.shuffle(rows)
    with open(folder / "train.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    lines = [json.dumps({"text": text, "label": name}) for text, name in rows[:10]]
    (folder / "dev.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    lines = [f"row {i}\t{text}" for i, (text, _) in enumerate(rows[:7])]
    (folder / "test.tsv").write_text("\n".join(["id\ttext", *lines]) + "\n")
    return folder


@pytest.fixture
def own_vocab(tmp_path):
    """A vocabulary of the animals' words."""
    words = {w for texts in ANIMALS.values() for text in texts for w in text.split()}
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(words)]
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(tokens) + "\n")
    return path


def test_ones_own_data_is_learnt_and_predicted(own_data, own_vocab, tiny, tmp_path):
    flags = {
        **tiny,
        "vocab_file": own_vocab,
        "task_name": "own",
        "data_dir": own_data,
        "output_dir": tmp_path / "out",
        "max_seq_length": 16,
    }
    scripts.succeed(
        "run_classifier.py",
        **flags,
        do_train=True,
        do_eval=True,
        score_training_set=True,
        train_batch_size=8,
        # So that it is learnt with five seeds of six.
        seed=1,
        learning_rate=1e-3,
        warmup_proportion=0.3,
        bias_correction=True,
        num_train_epochs=40,
    )
    results = scripts.read_results(tmp_path / "out/eval_results.txt")
    assert results["eval_accuracy"] == 1.0
    on_training = scripts.read_results(tmp_path / "out/train_results.txt")
    assert on_training["train_accuracy"] == 1.0
    # There are as many rows of every label.
    assert on_training["train_majority"] == pytest.approx(1 / 3)
    labels = json.loads((tmp_path / "out/labels.json").read_text())
    assert labels == ["cat", "cow", "dog"]
    # Another process, without the training data and with ids.
    (own_data / "train.csv").unlink()
    scripts.succeed("run_classifier.py", **flags, do_predict=True, id_column="id")
    with open(tmp_path / "out/predictions.tsv", newline="") as file:
        predicted = {
            row["id"]: row["label"] for row in csv.DictReader(file, delimiter="\t")
        }
    texts = dict(
        line.split("\t")
        for line in (own_data / "test.tsv").read_text().splitlines()[1:]
    )
    assert list(predicted) == [f"row {i}" for i in range(7)]
    for row, text in texts.items():
        assert predicted[row] in text.split()


def test_killed_three_times_it_ends_with_the_same_bits(golden, tiny, tmp_path):
    flags = {
        **tiny,
        "task_name": "mrpc",
        "data_dir": golden / "glue_samples/MRPC",
        "init_checkpoint": golden / "tiny_tf1/bert_model.ckpt",
        "do_train": True,
        "train_batch_size": 4,
        "num_train_epochs": 24,
        "save_checkpoints_steps": 3,
    }
    resuming.check("run_classifier.py", flags, tmp_path)
