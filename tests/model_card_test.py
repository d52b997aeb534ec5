"""A card says what a model is, and breaks at nothing that a label or a flag holds."""

import json
import re
import subprocess
import types

import pytest
import tensorflow as tf

import model_card

# As a SavedModel that was loaded has it.
SIGNATURE = types.SimpleNamespace(
    structured_input_signature=((), {"text": tf.TensorSpec([None, 2], tf.string)}),
    structured_outputs={"score": tf.TensorSpec([None], tf.float32)},
)


def make(sections=(), labels=(), methods=()):
    signatures = {"serving_default": SIGNATURE}
    return model_card.text("mrpc", dict(sections), labels, signatures, dict(methods))


def test_a_run_says_how_it_was_trained_and_how_good_it_is(tmp_path):
    files = {
        "model": {"script": "run_x", "task": "mrpc", "config": {"hidden_size": 8}},
        "settings": {
            "learning_rate": 2e-5,
            "do_lower_case": True,
            "output_dir": "/home/me/secret",
            "vocab_file": "/home/me/secret/vocab.txt",
            "init_checkpoint": "/home/me/bert-base/bert_model.ckpt",
            "patience": None,
        },
        "eval_results": {"eval_accuracy": 0.84, "global_step": 12},
        "eval_results_mismatched": {"eval_accuracy": 0.83},
    }
    files["model"]["labels"] = ["a", "b"]
    for name, values in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(values))
    sections = model_card.of_run(str(tmp_path), "run_x")
    assert sections == {
        "Model": {"script": "run_x", "task": "mrpc"},
        "Results (eval_results)": {"eval_accuracy": 0.84, "global_step": 12},
        "Results (eval_results_mismatched)": {"eval_accuracy": 0.83},
        "Training": {
            "learning_rate": 2e-5,
            "do_lower_case": True,
            "init_checkpoint": "bert-base/bert_model.ckpt",
        },
        "Sizes": {"hidden_size": 8},
    }
    card = make(sections)
    for row in ("task | mrpc", "eval_accuracy | 0.84", "learning_rate | 2e-05"):
        assert f"| {row} |" in card
    assert "## Labels" not in card
    with pytest.raises(ValueError, match="run_y is expected"):
        model_card.of_run(str(tmp_path), "run_y")


def test_signatures_and_what_made_them():
    card = make(methods={"serving_default": "tensorflow/serving/classify"})
    row = "serving_default | classify | text: string [any, 2] | score: float32 [any]"
    assert f"| {row} |" in card
    assert f"| tensorflow | {tf.__version__} |" in card
    commit = "([0-9a-f]{40}(-dirty)?|unknown)"
    assert re.search(rf"\| commit of this code \| {commit} \|", card)


def test_code_that_is_in_no_repository_has_no_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(model_card, "_FOLDER", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert model_card._commit() == "unknown"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run([*git, "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "a.py").write_text("")
    for command in (["add", "a.py"], ["commit", "-q", "-m", "Begin"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    commit = model_card._commit()
    assert re.fullmatch("[0-9a-f]{40}", commit)
    (tmp_path / "a.py").write_text("b = 1\n")
    assert model_card._commit() == f"{commit}-dirty"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert model_card._commit() == "unknown"


def test_a_cell_is_one_line():
    card = make({"Model": {"task": "a|b\nc"}}, labels=["x | y", "two\r\nlines"])
    assert "| task | a\\|b c |" in card
    assert "| 0 | x \\| y |\n| 1 | two lines |" in card


def test_of_many_labels_the_first_are_listed():
    card = make(labels=[f"label{i}" for i in range(150)])
    assert "| 99 | label99 |\n| ... | all 150 are in assets/labels.txt |\n\n" in card
