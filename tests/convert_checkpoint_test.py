"""convert_checkpoint.py: each direction and back, its notes, and what it refuses."""

import json
import os
import resource
import shutil

import numpy as np
import pytest

import convert_checkpoint
from modeling import checkpoint, huggingface
from tests import scripts


def assert_same(actual, expected):
    assert actual.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array, strict=True, err_msg=name)


def convert(source, output, target, **kwargs):
    return convert_checkpoint.convert(str(source), str(output), target, **kwargs)


@pytest.fixture
def tiny_config(golden):
    return str(golden / "tiny_tf1" / "bert_config.json")


@pytest.mark.parametrize(
    "folder", ["tiny_tf1", "tiny_tf1_runs/classifier_mrpc", "tiny_tf1_runs/pretraining"]
)
def test_tf1_there_and_back_is_bitwise_equal(golden, tmp_path, tiny_config, folder):
    there, back = tmp_path / "there", tmp_path / "back"
    convert(golden / folder, there, "huggingface", bert_config_file=tiny_config)
    convert(there, back, "tf1")
    assert_same(checkpoint.read(back), checkpoint.read(golden / folder))
    assert checkpoint.read_config(back) == checkpoint.read_config(tiny_config)


@pytest.mark.parametrize(
    "name",
    [
        "pretraining_gelu",
        "pretraining_gelu_new",
        "pretraining_relu",
        "classification",
        "regression",
    ],
)
def test_hugging_face_there_and_back_is_equal(golden, tmp_path, name):
    there, back = tmp_path / "there", tmp_path / "back"
    source = golden / "hf_tiny" / name
    convert(source, there, "tf1")
    convert(there, back, "huggingface")
    assert_same(checkpoint.read(back), checkpoint.read(source))
    theirs = huggingface.read_json(source / "config.json")
    ours = huggingface.read_json(back / "config.json")
    assert {key: theirs.get(key) for key in ours} == ours


def test_output_for_the_original(golden, tmp_path):
    # As a released model: what its scripts are given, and nothing that marks a run.
    convert(golden / "tiny_tf1", tmp_path / "there", "huggingface")
    report = convert(tmp_path / "there", tmp_path / "back", "tf1")
    assert sorted(os.listdir(tmp_path / "back")) == [
        "bert_config.json",
        "bert_model.ckpt.data-00000-of-00001",
        "bert_model.ckpt.index",
        "vocab.txt",
    ]
    for name in ("bert_config.json", "vocab.txt"):
        theirs = (golden / "tiny_tf1" / name).read_text()
        ours = (tmp_path / "back" / name).read_text()
        if name.endswith("json"):
            theirs, ours = json.loads(theirs), json.loads(ours)
        assert ours == theirs
    assert report.splitlines() == [
        f"{tmp_path}/there/model.safetensors -> {tmp_path}/back (tf1)",
        "                     variables    parameters",
        "encoder                     39        23,520",
        "masked LM                    5         1,220",
        "next sentence                2            66",
    ]


def test_notes_about_what_the_original_does_not_know(golden, tmp_path):
    folder = golden / "hf_tiny"
    report = convert(folder / "pretraining_gelu", tmp_path / "a", "tf1")
    assert "note: the model uses the exact GELU; bert_config.json says gelu_e" in report
    assert "note: there is no vocab.txt beside the input" in report
    values = huggingface.read_json(tmp_path / "a" / "bert_config.json")
    assert values["hidden_act"] == "gelu_exact"
    report = convert(folder / "pretraining_relu", tmp_path / "b", "tf1")
    assert "note: the model's layer_norm_eps is 1e-05; the original's" in report
    values = huggingface.read_json(tmp_path / "b" / "bert_config.json")
    assert (values["hidden_act"], values["layer_norm_eps"]) == ("relu", 1e-5)
    report = convert(folder / "pretraining_relu", tmp_path / "c", "huggingface")
    assert "GELU" not in report
    assert "layer_norm_eps" not in report


def test_labels_and_case_go_along(golden, tmp_path):
    first, second, third = (tmp_path / name for name in ("a", "b", "c"))
    shutil.copytree(golden / "hf_tiny" / "classification", first)
    words = [f"word{k}" for k in range(96)]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (first / "vocab.txt").write_text("\n".join(special + words))
    (first / "tokenizer_config.json").write_text('{"do_lower_case": false}')

    convert(first, second, "huggingface")
    values = huggingface.read_json(second / "tokenizer_config.json")
    assert values["do_lower_case"] is False
    convert(first, third, "huggingface", do_lower_case=True)
    values = huggingface.read_json(third / "tokenizer_config.json")
    assert values["do_lower_case"] is True

    convert(second, tmp_path / "tf1", "tf1")
    labels = json.loads((tmp_path / "tf1" / "labels.json").read_text())
    assert labels == ["contradiction", "entailment", "neutral"]
    convert(tmp_path / "tf1", tmp_path / "d", "huggingface")
    _, labels = huggingface.read_architecture(tmp_path / "d" / "config.json")
    assert labels == ["contradiction", "entailment", "neutral"]


def test_case_of_a_run_of_ours(tmp_path):
    (tmp_path / "model.json").write_text('{"do_lower_case": false}')
    assert convert_checkpoint.find_lower_case(str(tmp_path)) is False


def test_labels_are_given_or_refused(golden, tmp_path, tiny_config):
    source = golden / "tiny_tf1_runs" / "classifier_mrpc"
    labels = tmp_path / "my_labels.json"
    labels.write_text('["no", "yes"]')
    given = {"bert_config_file": tiny_config, "labels_file": str(labels)}
    convert(source, tmp_path / "a", "huggingface", **given)
    _, read = huggingface.read_architecture(tmp_path / "a" / "config.json")
    assert read == ["no", "yes"]
    labels.write_text('["no", "perhaps", "yes"]')
    for target in ("tf1", "huggingface"):
        with pytest.raises(
            ValueError, match="has 2 labels, but 3 names are given: no,"
        ):
            convert(source, tmp_path / "b", target, **given)
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("vocab_size", 99, "set vocab_size to 100"),
        ("num_hidden_layers", 3, "has 2 encoder layers, but num_hidden_layers is 3"),
        ("hidden_act", "silu", "hidden_act must be one of"),
    ],
)
def test_config_that_does_not_fit_is_refused(
    golden, tmp_path, tiny_config, key, value, complaint
):
    values = huggingface.read_json(tiny_config) | {key: value}
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(values))
    for target in ("tf1", "huggingface"):
        with pytest.raises(ValueError, match=complaint):
            convert(
                golden / "tiny_tf1",
                tmp_path / "out",
                target,
                bert_config_file=str(wrong),
            )
    assert not (tmp_path / "out").exists()


def test_vocabulary_that_does_not_fit_is_refused(golden, tmp_path):
    vocab = tmp_path / "vocab.txt"
    text = (golden / "tiny_tf1" / "vocab.txt").read_text()
    vocab.write_text(text + "one\ntoo\nmany\n")
    with pytest.raises(
        ValueError, match="vocab.txt has 103 entries, but the model's vo"
    ):
        convert(golden / "tiny_tf1", tmp_path / "out", "tf1", vocab_file=str(vocab))
    assert not (tmp_path / "out").exists()


def test_cased_model_is_not_lower_cased(golden, tmp_path):
    source = tmp_path / "cased_L-12_H-768_A-12"
    shutil.copytree(golden / "tiny_tf1", source)
    with pytest.raises(ValueError, match="cased model by its folder's name"):
        convert(source, tmp_path / "out", "huggingface")
    convert(source, tmp_path / "out", "huggingface", do_lower_case=False)


@pytest.mark.parametrize("target", ["tf1", "huggingface"])
def test_full_disk_leaves_nothing(golden, tmp_path, target):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, hard))
    try:
        with pytest.raises(OSError, match="could not be written: .*too large"):
            convert(golden / "tiny_tf1", tmp_path / "out", target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path) == []


# In a process of its own.


def test_script_shows_what_it_did_and_keeps_what_is_there(golden, tmp_path):
    flags = {"input": golden / "tiny_tf1", "output": tmp_path, "format": "huggingface"}
    result = scripts.run("convert_checkpoint.py", **flags)
    assert result.returncode == 0, result.stderr
    assert "encoder                     39        23,520" in result.stdout
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    complaint = scripts.refusal("convert_checkpoint.py", **flags)
    assert complaint == f"{tmp_path} holds files; give --overwrite to add to it"
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    scripts.succeed("convert_checkpoint.py", **flags, overwrite=True)


def test_script_refuses_in_one_line(golden, tmp_path):
    run = golden / "tiny_tf1_runs" / "classifier_mrpc"
    complaint = scripts.refusal(
        "convert_checkpoint.py", input=run, output=tmp_path / "out", format="tf1"
    )
    assert complaint == (
        f"there is no bert_config.json or config.json beside {run}; give "
        "--bert_config_file"
    )
    assert os.listdir(tmp_path) == []
