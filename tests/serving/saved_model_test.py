"""Exports are whole and checked, or they are not there."""

import os
import shutil
import subprocess
import sys
import time

import pytest
import tensorflow as tf
from tensorflow.python.saved_model import fingerprinting_utils

from serving import saved_model
from tests import exports


class Doubler(saved_model.Server):
    SIGNATURES = ("serving_default", "twice")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def serving_default(self, x):
        return {"y": 2 * x}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def twice(self, x):
        return {"y": 4 * x}


class Classifier(saved_model.Server):
    SIGNATURES = ("serving_default", "classify", "ids")
    METHODS = {"classify": saved_model.CLASSIFY}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def classify(self, inputs):
        return {"classes": inputs, "scores": tf.strings.length(inputs)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def serving_default(self, text):
        return {"label": text}

    @tf.function(input_signature=saved_model.ids_signature(2))
    def ids(self, input_ids, input_mask, segment_ids):
        return {"y": input_ids + 10 * input_mask + 100 * segment_ids}


def accept(_):
    """A check that passes."""


def test_the_signatures_that_the_server_names_are_written(tmp_path):
    seen = []

    def check(unfinished):
        seen.append(unfinished)
        loaded = tf.saved_model.load(unfinished)
        assert loaded.signatures["twice"](x=tf.constant([3.0]))["y"].numpy() == [12]

    path = saved_model.save(Doubler(), str(tmp_path), check)
    assert path == str(tmp_path / "1")
    assert seen and seen != [path]
    assert os.listdir(tmp_path) == ["1"]
    loaded = tf.saved_model.load(path)
    assert set(loaded.signatures) == {"serving_default", "twice"}


def test_ids_have_the_names_that_others_give_them(tmp_path):
    path = saved_model.save(Classifier(), str(tmp_path), accept)
    signatures = tf.saved_model.load(path).signatures
    ids, mask, segments = (tf.constant([[n]]) for n in (5, 1, 1))
    for name, values in {
        "ids": {"input_ids": ids, "input_mask": mask, "segment_ids": segments},
        "model_garden": {
            "input_word_ids": ids,
            "input_mask": mask,
            "input_type_ids": segments,
        },
        "hugging_face": {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": segments,
        },
    }.items():
        assert set(signatures[name].structured_input_signature[1]) == set(values)
        assert signatures[name](**values)["y"].numpy() == [[115]]


def test_methods_are_those_of_tensorflow_serving(tmp_path):
    path = saved_model.save(Classifier(), str(tmp_path / "e"), accept)
    methods = {
        name: signature.method_name
        for name, signature in exports.read(path).signature_def.items()
        if not name.startswith("__")
    }
    assert methods == {
        "serving_default": "tensorflow/serving/predict",
        "classify": "tensorflow/serving/classify",
        "ids": "tensorflow/serving/predict",
        "model_garden": "tensorflow/serving/predict",
        "hugging_face": "tensorflow/serving/predict",
    }
    # What it says of the file is true of the file as it is.
    shutil.copytree(path, tmp_path / "copy")
    fingerprinting_utils.write_fingerprint(str(tmp_path / "copy"))
    first, second = (
        tf.saved_model.experimental.read_fingerprint(str(place))
        for place in (path, tmp_path / "copy")
    )
    assert first.saved_model_checksum == second.saved_model_checksum


def test_what_is_refused_leaves_nothing(tmp_path):
    def check(unfinished):
        assert os.path.exists(unfinished)
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        saved_model.save(Doubler(), str(tmp_path), check)
    assert os.listdir(tmp_path) == []


def test_what_a_killed_run_left_is_removed(tmp_path):
    """Not what another process writes, however long that takes, nor what has begun."""
    left, written, new = (f".{digits * 16}.tmp" for digits in ("0a", "1b", "2c"))
    for name in (left, written, new, "notes"):
        (tmp_path / name).mkdir()
    (tmp_path / left / "variables").write_text("left")
    hold = (
        "import fcntl, sys; lock = open(sys.argv[1], 'w'); "
        "fcntl.flock(lock, fcntl.LOCK_EX); print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", hold, str(tmp_path / written / ".lock")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        other.stdout.readline()
        minutes_before = time.time() - 120
        for name in (left, written, "notes"):
            os.utime(tmp_path / name, (minutes_before, minutes_before))
        saved_model.save(Doubler(), str(tmp_path), accept)
        assert set(os.listdir(tmp_path)) == {written, new, "1", "notes"}
        other.kill()
    saved_model.save(Doubler(), str(tmp_path), accept)
    assert set(os.listdir(tmp_path)) == {new, "1", "2", "notes"}


def test_exports_at_the_same_time_are_versions_of_their_own(tmp_path):
    paths = []

    def check(_):
        if not paths:  # while the first is not yet finished
            paths.append("first")
            paths.append(saved_model.save(Doubler(), str(tmp_path), check))

    paths.append(saved_model.save(Doubler(), str(tmp_path), check))
    assert paths[1:] == [str(tmp_path / "1"), str(tmp_path / "2")]
    assert sorted(os.listdir(tmp_path)) == ["1", "2"]
    for path in paths[1:]:
        assert "twice" in tf.saved_model.load(path).signatures


def test_a_number_that_is_taken_in_the_last_moment(tmp_path, monkeypatch):
    rename = os.rename

    def late(source, target):
        if target.endswith("/1"):
            os.makedirs(f"{target}/of another process")
        rename(source, target)

    monkeypatch.setattr(os, "rename", late)
    path = saved_model.save(Doubler(), str(tmp_path), accept)
    assert path == str(tmp_path / "2")
    assert sorted(os.listdir(tmp_path)) == ["1", "2"]


def test_versions_count_on_from_the_highest(tmp_path):
    assert saved_model.next_version(tmp_path) == str(tmp_path / "1")
    for name in ("2", "10", "notes", "11.tmp"):
        (tmp_path / name).mkdir()
    assert saved_model.next_version(tmp_path) == str(tmp_path / "11")


def test_a_folder_is_checked_without_being_made(tmp_path):
    saved_model.check_export_dir(tmp_path / "new" / "model")
    assert os.listdir(tmp_path) == []
    path = saved_model.save(Doubler(), str(tmp_path / "new" / "model"), accept)
    assert path == str(tmp_path / "new" / "model" / "1")
    with pytest.raises(ValueError, match="1 is a SavedModel itself"):
        saved_model.check_export_dir(path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="file is a file; name a folder"):
        saved_model.check_export_dir(tmp_path / "file")


@pytest.mark.parametrize("may_write", [True, False])
def test_a_folder_that_cannot_be_made_is_refused(tmp_path, monkeypatch, may_write):
    place = tmp_path / "place"
    if may_write:
        place.write_text("")
    else:
        place.mkdir()
        # Whoever runs this may be allowed everything.
        monkeypatch.setattr(os, "access", lambda path, _: path != str(place))
    with pytest.raises(ValueError, match="place is no folder that you may write to"):
        saved_model.check_export_dir(place / "new" / "model")
