"""Config and vocabulary: where they are found and whether they fit."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

import model_files
from modeling import config as config_lib


def test_the_config_comes_from_its_file_or_from_beside_the_checkpoint(golden, tmp_path):
    folder = golden / "tiny_tf1"
    expected = config_lib.BertConfig.from_json_file(folder / "bert_config.json")
    given = str(folder / "bert_config.json")
    assert model_files.read_config(given, None) == expected
    assert model_files.read_config(None, str(folder / "bert_model.ckpt")) == expected
    with pytest.raises(ValueError, match="--bert_config_file"):
        model_files.read_config(None, None)
    for path in folder.glob("bert_model.ckpt*"):
        shutil.copy(path, tmp_path)
    with pytest.raises(ValueError, match="--bert_config_file"):
        model_files.read_config(None, str(tmp_path / "bert_model.ckpt"))


def test_gelu_means_another_form_in_a_hugging_face_config(golden, tmp_path):
    folder = golden / "hf_tiny/pretraining_gelu"
    for given, init in ((folder / "config.json", None), (None, folder)):
        config = model_files.read_config(given and str(given), init and str(init))
        assert config.hidden_act == "gelu_exact"
    values = json.loads((golden / "tiny_tf1/bert_config.json").read_text())
    path = tmp_path / "any.name"
    path.write_text(json.dumps(values))
    assert model_files.read_config(str(path), None).hidden_act == "gelu"


def test_the_vocabulary_is_given_or_lies_beside_the_checkpoint(golden, tmp_path):
    folder = golden / "tiny_tf1"
    assert model_files.find_vocab("given.txt", str(folder)) == "given.txt"
    for init in (folder, folder / "bert_model.ckpt"):
        assert model_files.find_vocab(None, str(init)) == str(folder / "vocab.txt")
    for init in (None, str(tmp_path), str(tmp_path / "bert_model.ckpt")):
        with pytest.raises(ValueError, match="--vocab_file"):
            model_files.find_vocab(None, init)


def test_what_does_not_fit_is_refused_with_both_numbers(golden):
    folder = golden / "tiny_tf1"
    config = config_lib.BertConfig.from_json_file(folder / "bert_config.json")
    vocab = str(folder / "vocab.txt")
    model_files.check(config, 64, vocab)  # 64 positions, 100 entries: exactly
    with pytest.raises(ValueError, match="--max_seq_length is 65.* 64 positions"):
        model_files.check(config, 65, vocab)
    small = dataclasses.replace(config, vocab_size=99)
    with pytest.raises(ValueError, match="100 entries.*vocab_size is 99"):
        model_files.check(small, 64, vocab)


def test_the_case_is_that_of_the_weights(tmp_path):
    model_files.check_case(True, None)
    model_files.check_case(False, str(tmp_path / "bert_model.ckpt"))
    for name in ("tokenizer_config.json", "model.json"):
        path = tmp_path / name
        path.write_text(json.dumps({"do_lower_case": False}))
        model_files.check_case(False, str(tmp_path))
        for init in (tmp_path, tmp_path / "bert_model.ckpt"):
            with pytest.raises(ValueError, match="--nodo_lower_case"):
                model_files.check_case(True, str(init))
        path.write_text(json.dumps({"other": 1}))
        model_files.check_case(True, str(tmp_path))
        path.unlink()
    with pytest.raises(ValueError, match="do_lower_case"):
        model_files.check_case(True, str(tmp_path / "cased_L-2_H-8_A-2/model.ckpt"))


def test_outputs_are_reordered_by_name():
    weights = {
        "bert/x": np.arange(4),
        "output_weights": np.arange(6).reshape(3, 2),
        "output_bias": np.arange(3),
    }
    reorder = model_files.reorder_outputs
    moved = reorder(weights, ("A", "b", "c"), ["C", "a", "B"])
    assert moved["bert/x"] is weights["bert/x"]
    assert moved["output_weights"].tolist() == [[4, 5], [0, 1], [2, 3]]
    assert moved["output_bias"].tolist() == [2, 0, 1]
    assert reorder(weights, ("a", "b", "c"), ("a", "b", "d")) is None
    assert reorder(weights, ("a", "b", "c"), ("a", "b")) is None
    assert reorder(weights, ("a", "A", "c"), ("A", "a", "C")) is None  # which is which?
    labels = ("US", "us", "c")
    assert reorder(weights, labels, labels)["output_bias"].tolist() == [0, 1, 2]
    moved = reorder(weights, labels, ("c", "us", "US"))
    assert moved["output_bias"].tolist() == [2, 1, 0]


def test_weights_that_are_not_there_are_named_before_their_config(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no checkpoint .*nowhere"):
        model_files.read_config(None, str(tmp_path / "nowhere"))
