"""convert_checkpoint.py: each direction and back, its notes, and what it refuses."""

import json
import os
import resource
import shutil

import numpy as np
import pytest

import convert_checkpoint
import model_files
from modeling import checkpoint, huggingface_config, models
from tests import scripts, small_models


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
    theirs = huggingface_config.read_json(source / "config.json")
    ours = huggingface_config.read_json(back / "config.json")
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
    assert "beside the input; none was written; give --vocab_file" in report
    values = huggingface_config.read_json(tmp_path / "a" / "bert_config.json")
    assert values["hidden_act"] == "gelu_exact"
    report = convert(folder / "pretraining_relu", tmp_path / "b", "tf1")
    assert "note: the model's layer_norm_eps is 1e-05; the original's" in report
    values = huggingface_config.read_json(tmp_path / "b" / "bert_config.json")
    assert (values["hidden_act"], values["layer_norm_eps"]) == ("relu", 1e-5)
    report = convert(folder / "pretraining_relu", tmp_path / "c", "huggingface")
    assert "GELU" not in report
    assert "layer_norm_eps" not in report


def test_a_note_about_left_to_right():
    config = small_models.config(visibility="left_to_right", pooled_position="last")
    (note,) = convert_checkpoint.notes(config, "vocab.txt", "tf1")
    assert "scripts ignore visibility and pooled_position" in note
    assert convert_checkpoint.notes(small_models.config(), "vocab.txt", "tf1") == []


def test_labels_and_case_go_along(golden, tmp_path):
    first, second, third = (tmp_path / name for name in ("a", "b", "c"))
    shutil.copytree(golden / "hf_tiny" / "classification", first)
    words = [f"word{k}" for k in range(96)]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (first / "vocab.txt").write_text("\n".join(special + words))
    (first / "tokenizer_config.json").write_text('{"do_lower_case": false}')

    convert(first, second, "huggingface")
    values = huggingface_config.read_json(second / "tokenizer_config.json")
    assert values["do_lower_case"] is False
    convert(first, third, "huggingface", do_lower_case=True)
    values = huggingface_config.read_json(third / "tokenizer_config.json")
    assert values["do_lower_case"] is True

    convert(second, tmp_path / "tf1", "tf1")
    labels = json.loads((tmp_path / "tf1" / "labels.json").read_text())
    assert labels == ["contradiction", "entailment", "neutral"]
    convert(tmp_path / "tf1", tmp_path / "d", "huggingface")
    head = huggingface_config.read_head(tmp_path / "d" / "config.json")
    assert head.labels == ("contradiction", "entailment", "neutral")


def test_labels_of_a_model_that_is_overwritten_go(golden, tmp_path):
    source = golden / "hf_tiny"
    convert(source / "token_classification", tmp_path / "out", "tf1")
    assert (tmp_path / "out/labels.json").exists()
    assert (tmp_path / "out/head.json").exists()
    (tmp_path / "out/notes.txt").write_text("mine")
    convert(source / "pretraining_gelu", tmp_path / "out", "tf1")
    assert model_files.find_head(str(tmp_path / "out")) == huggingface_config.Head()
    convert(source / "classification", tmp_path / "out", "tf1")
    head = model_files.find_head(str(tmp_path / "out"))
    assert head.labels == ("contradiction", "entailment", "neutral")
    assert (tmp_path / "out/notes.txt").exists()
    (tmp_path / "hf").mkdir()
    for name in ("labels.json", "head.json"):
        shutil.copy(tmp_path / "out/labels.json", tmp_path / "hf" / name)
    convert(source / "regression", tmp_path / "hf", "huggingface")
    assert model_files.find_head(str(tmp_path / "hf")).labels is None


def test_case_of_a_run_of_ours(tmp_path):
    (tmp_path / "model.json").write_text('{"do_lower_case": false}')
    assert convert_checkpoint.find_lower_case(str(tmp_path)) is False


def test_labels_are_given_or_refused(golden, tmp_path, tiny_config):
    source = golden / "tiny_tf1_runs" / "classifier_mrpc"
    labels = tmp_path / "my_labels.json"
    labels.write_text('["no", "yes"]')
    given = {"bert_config_file": tiny_config, "labels_file": str(labels)}
    convert(source, tmp_path / "a", "huggingface", **given)
    head = huggingface_config.read_head(tmp_path / "a" / "config.json")
    assert head.labels == ("no", "yes")
    labels.write_text('["no", "perhaps", "yes"]')
    for target in ("tf1", "huggingface"):
        with pytest.raises(
            ValueError, match="has 2 labels, but 3 names are given: no,"
        ):
            convert(source, tmp_path / "b", target, **given)
    assert not (tmp_path / "b").exists()


def edit(path, **changes):
    path.write_text(json.dumps(huggingface_config.read_json(path) | changes))


def logits_of(folder, inputs):
    """What our classifier computes of the inputs in a golden folder."""
    names = ("input_ids", "input_mask", "segment_ids")
    weights = checkpoint.read(folder)
    num_labels = len(weights["output_bias"])
    config = checkpoint.read_config(folder)
    model = models.BertForSequenceClassification(config, num_labels)
    checkpoint.assign(model, weights, str(folder))
    batch = {name: inputs[name].astype(np.int32) for name in names}
    return model(batch)["logits"].numpy()


@pytest.mark.parametrize(
    ("name", "problem_type", "labels"),
    [
        ("classification", "multi_label_classification", ("x", "y", "z")),
        ("classification", "single_label_classification", None),
        ("classification", "regression", None),
        ("regression", "regression", ("similarity",)),
        ("regression", "multi_label_classification", None),
    ],
)
def test_what_a_head_is_for_goes_along_both_ways(
    golden, tmp_path, name, problem_type, labels
):
    first = tmp_path / "first"
    shutil.copytree(golden / "hf_tiny" / name, first)
    edit(first / "config.json", problem_type=problem_type)
    if labels:
        id2label = {str(k): label for k, label in enumerate(labels)}
        label2id = {label: k for k, label in enumerate(labels)}
        edit(first / "config.json", id2label=id2label, label2id=label2id)
    convert(first, tmp_path / "tf1", "tf1")
    convert(tmp_path / "tf1", tmp_path / "second", "huggingface")
    expected = huggingface_config.read_head(first / "config.json")
    assert expected.problem_type == problem_type
    ours = huggingface_config.read_head(tmp_path / "second" / "config.json")
    assert ours == expected


def test_unknown_problem_type_beside_a_checkpoint_is_refused(golden, tmp_path):
    source = golden / "hf_tiny" / "classification"
    convert(source, tmp_path / "tf1", "tf1")
    (tmp_path / "tf1" / "head.json").write_text('{"problem_type": "ranking"}')
    with pytest.raises(ValueError, match=r"head\.json: problem_type must be one of"):
        convert(tmp_path / "tf1", tmp_path / "out", "huggingface")
    assert not (tmp_path / "out").exists()


def test_taggers_and_choosers_go_along_both_ways(golden, tmp_path):
    for name in ("token_classification", "multiple_choice"):
        source = golden / "hf_tiny" / name
        convert(source, tmp_path / name / "tf1", "tf1")
        convert(tmp_path / name / "tf1", tmp_path / name / "hf", "huggingface")
        assert_same(checkpoint.read(tmp_path / name / "hf"), checkpoint.read(source))
        expected = huggingface_config.read_head(source / "config.json")
        ours = huggingface_config.read_head(tmp_path / name / "hf" / "config.json")
        assert ours == expected


@pytest.mark.parametrize(
    ("label_type", "problem_type"),
    [
        ("class", "single_label_classification"),
        ("multi_label", "multi_label_classification"),
        ("number", "regression"),
    ],
)
def test_run_says_what_its_head_is_for(golden, tmp_path, label_type, problem_type):
    run = tmp_path / "run"
    shutil.copytree(golden / "tiny_tf1_runs" / "classifier_mrpc", run)
    shutil.copy(golden / "tiny_tf1" / "bert_config.json", run)
    identity = {"script": "run_classifier", "label_type": label_type}
    (run / "model.json").write_text(json.dumps(identity))
    convert(run, tmp_path / "out", "huggingface")
    head = huggingface_config.read_head(tmp_path / "out" / "config.json")
    assert head.problem_type == problem_type
    assert head.architecture == "BertForSequenceClassification"


@pytest.mark.parametrize("target", ["tf1", "huggingface"])
def test_outputs_move_with_their_names(golden, tmp_path, target):
    source = golden / "hf_tiny" / "classification"  # contradiction, entailment, neutral
    labels = tmp_path / "labels.json"
    labels.write_text('["neutral", "contradiction", "entailment"]')
    convert(source, tmp_path / "moved", target, labels_file=str(labels))
    golden_values = np.load(source / "expected.npz")
    theirs = golden_values["logits"]  # as transformers has it
    moved = logits_of(tmp_path / "moved", golden_values)
    np.testing.assert_allclose(moved, theirs[:, [2, 0, 1]], rtol=0, atol=2e-5)
    # Other names are other names, in the order there was.
    labels.write_text('["a", "b", "c"]')
    convert(source, tmp_path / "named", target, labels_file=str(labels))
    named = logits_of(tmp_path / "named", golden_values)
    np.testing.assert_allclose(named, theirs, rtol=0, atol=2e-5)
    written = [model_files.find_head(str(tmp_path / n)) for n in ("moved", "named")]
    assert [head.labels for head in written] == [
        ("neutral", "contradiction", "entailment"),
        ("a", "b", "c"),
    ]


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
    values = huggingface_config.read_json(tiny_config) | {key: value}
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


def test_the_output_is_no_file_and_not_the_input(golden, tmp_path):
    shutil.copytree(golden / "tiny_tf1", tmp_path / "tf1")
    (tmp_path / "link").symlink_to("tf1")
    (tmp_path / "file").write_text("mine")
    source = str(tmp_path / "tf1/bert_model.ckpt")
    for name, message in {
        str(tmp_path / "link"): "link is the folder of --input",
        str(tmp_path / "file"): "file is a file; name a folder",
        "": "--output= is empty; name a folder",
    }.items():
        with pytest.raises(ValueError, match=message):
            model_files.check_output(name, True, source)


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
