"""Finding and reading checkpoints, whole ones and broken ones."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from modeling import checkpoint, checkpoint_state

INDEX = "bert_model.ckpt.index"
DATA = "bert_model.ckpt.data-00000-of-00001"


@pytest.fixture
def tiny_tf1(golden, tmp_path):
    """A folder of one's own with the original's tiny checkpoint."""
    folder = tmp_path / "tiny_tf1"
    folder.mkdir()
    for path in (golden / "tiny_tf1").glob("bert_*"):
        shutil.copyfile(path, folder / path.name)
    return folder


def variables_of(golden, key):
    listed = json.loads((golden / "tiny_tf1" / "variables.json").read_text())
    return {name: tuple(shape) for name, shape in listed[key]}


def assert_same(actual, expected):
    assert actual.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array, strict=True, err_msg=name)


def test_names_and_shapes_of_the_original(golden):
    weights = checkpoint.read(golden / "tiny_tf1" / "bert_model.ckpt")
    shapes = {name: array.shape for name, array in weights.items()}
    assert shapes == variables_of(golden, "inference_variables")


@pytest.mark.parametrize("name", ["", "bert_model.ckpt", INDEX, DATA])
def test_every_way_to_name_a_tf1_checkpoint(golden, tiny_tf1, name):
    expected = str(tiny_tf1 / "bert_model.ckpt")
    assert checkpoint.locate(tiny_tf1 / name) == expected
    assert_same(checkpoint.read(tiny_tf1 / name), checkpoint.read(golden / "tiny_tf1"))


@pytest.mark.parametrize(
    ("run", "count"), [("classifier_mrpc", 41), ("pretraining", 46)]
)
def test_slots_of_a_run_are_dropped_unless_asked_for(golden, run, count):
    folder = golden / "tiny_tf1_runs" / run
    weights = checkpoint.read(folder)
    assert len(weights) == count
    everything = checkpoint.read(folder, with_slots=True)
    slots = {f"{name}/adam_{moment}" for name in weights for moment in "mv"}
    assert everything.keys() == {*weights, *slots, "global_step"}
    assert everything["global_step"] == int(
        checkpoint_state.latest(str(folder)).rpartition("-")[2]
    )


@pytest.mark.parametrize("name", ["", "model.safetensors", "pytorch_model.bin"])
def test_every_way_to_name_a_hugging_face_checkpoint(golden, name):
    folder = golden / "hf_tiny" / "pretraining_gelu"
    weights = checkpoint.read(folder / name)
    assert weights.keys() == variables_of(golden, "inference_variables").keys()
    assert_same(weights, checkpoint.read(folder / "model.safetensors"))


def test_nothing_there_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no checkpoint .*/bert.ckpt"):
        checkpoint.read(tmp_path / "bert.ckpt")
    with pytest.raises(FileNotFoundError, match="holds no checkpoint: expected NAME.i"):
        checkpoint.read(tmp_path)


@pytest.mark.parametrize(("gone", "named"), [(INDEX, "index"), (DATA, "data-00000-of")])
def test_half_a_checkpoint_is_refused(tiny_tf1, gone, named):
    (tiny_tf1 / gone).unlink()
    with pytest.raises(FileNotFoundError, match=rf"ckpt.{named}.* is missing beside"):
        checkpoint.read(tiny_tf1 / "bert_model.ckpt")


def test_folder_with_data_but_no_index_is_refused(tiny_tf1):
    (tiny_tf1 / INDEX).unlink()
    with pytest.raises(FileNotFoundError, match="holds no checkpoint: expected NAME.i"):
        checkpoint.read(tiny_tf1)


def test_folder_with_several_checkpoints_is_refused(tiny_tf1):
    for name in (INDEX, DATA):
        shutil.copyfile(tiny_tf1 / name, tiny_tf1 / name.replace("bert", "second"))
    with pytest.raises(ValueError, match=r"several .*\(bert_model.ckpt, second_model"):
        checkpoint.read(tiny_tf1)


def test_folder_with_both_formats_is_refused(golden, tiny_tf1):
    source = golden / "hf_tiny" / "regression" / "model.safetensors"
    shutil.copyfile(source, tiny_tf1 / "model.safetensors")
    with pytest.raises(ValueError, match=r"several .*\(model.safetensors, bert_model"):
        checkpoint.read(tiny_tf1)


def test_unknown_format_is_refused(tmp_path):
    (tmp_path / "weights.h5").write_bytes(b"\x89HDF")
    with pytest.raises(
        ValueError, match="weights.h5 is no checkpoint that can be read"
    ):
        checkpoint.read(tmp_path / "weights.h5")


@pytest.mark.parametrize("share", [0, 0.001, 0.3, 0.7, 0.999])
@pytest.mark.parametrize("name", [INDEX, DATA])
def test_truncated_tf1_checkpoint_is_refused(tiny_tf1, name, share):
    content = (tiny_tf1 / name).read_bytes()
    (tiny_tf1 / name).write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ValueError, match=r"bert_model.ckpt is damaged \("):
        checkpoint.read(tiny_tf1)


@pytest.mark.parametrize("name", [INDEX, DATA])
def test_flipped_bit_is_noticed(tiny_tf1, name):
    content = bytearray((tiny_tf1 / name).read_bytes())
    content[len(content) // 3] ^= 1
    (tiny_tf1 / name).write_bytes(content)
    with pytest.raises(ValueError, match=r"bert_model.ckpt is damaged \("):
        checkpoint.read(tiny_tf1)


def test_path_that_tensorflow_takes_for_a_pattern_is_refused(tiny_tf1):
    folder = tiny_tf1.rename(tiny_tf1.with_name("tiny[1]"))
    with pytest.raises(
        ValueError, match="takes .*/bert_model.ckpt for a pattern; rena"
    ):
        checkpoint.read(folder)


def test_object_based_checkpoint_is_refused(tmp_path):
    saved = tf.train.Checkpoint(v=tf.Variable(1.0)).write(str(tmp_path / "tf2"))
    with pytest.raises(ValueError, match="tf2 is an object-based TF2 checkpoint"):
        checkpoint.read(saved)


def test_configs_are_found_and_told_apart(golden, tiny_tf1, tmp_path):
    hugging = golden / "hf_tiny" / "pretraining_gelu"
    assert checkpoint.read_config(tiny_tf1 / "bert_model.ckpt").hidden_act == "gelu"
    assert checkpoint.read_config(tiny_tf1 / "bert_config.json").vocab_size == 100
    for name in ("", "config.json", "pytorch_model.bin"):
        assert checkpoint.read_config(hugging / name).hidden_act == "gelu_exact"
    # A folder with both: the one that belongs to the weights counts.
    shutil.copyfile(hugging / "config.json", tiny_tf1 / "config.json")
    assert checkpoint.read_config(tiny_tf1).vocab_size == 100
    for path in tiny_tf1.glob("*.ckpt.*"):
        path.unlink()
    shutil.copyfile(hugging / "pytorch_model.bin", tiny_tf1 / "pytorch_model.bin")
    assert checkpoint.read_config(tiny_tf1).vocab_size == 101
    assert checkpoint.read_config(tmp_path) is None


def test_config_that_is_named_must_exist(tmp_path):
    with pytest.raises(FileNotFoundError, match="my_config.json"):
        checkpoint.read_config(tmp_path / "my_config.json")
