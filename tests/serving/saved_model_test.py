"""Exports are whole and checked, or they are not there."""

import os

import pytest
import tensorflow as tf

from serving import saved_model


class Doubler(tf.Module):
    SIGNATURES = ("serving_default", "twice")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def serving_default(self, x):
        return {"y": 2 * x}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def twice(self, x):
        return {"y": 4 * x}


def test_the_signatures_that_the_server_names_are_written(tmp_path):
    path = str(tmp_path / "1")
    seen = []

    def check(unfinished):
        seen.append(unfinished)
        loaded = tf.saved_model.load(unfinished)
        assert loaded.signatures["twice"](x=tf.constant([3.0]))["y"].numpy() == [12]

    saved_model.save(Doubler(), path, check)
    assert seen and seen != [path]
    assert os.listdir(tmp_path) == ["1"]
    loaded = tf.saved_model.load(path)
    assert set(loaded.signatures) == {"serving_default", "twice"}


def test_what_is_refused_or_left_by_a_killed_run_is_removed(tmp_path):
    (tmp_path / "1.tmp").mkdir()
    (tmp_path / "1.tmp/variables").write_text("left")

    def check(_):
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        saved_model.save(Doubler(), str(tmp_path / "1"), check)
    assert os.listdir(tmp_path) == []


def test_versions_count_on_from_the_highest(tmp_path):
    folder = tmp_path / "new" / "model"
    assert saved_model.next_version(folder) == str(folder / "1")
    for name in ("2", "10", "notes", "11.tmp"):
        (folder / name).mkdir()
    assert saved_model.next_version(folder) == str(folder / "11")
    (folder / "12").write_text("")
    with pytest.raises(ValueError, match="12 is a file; name a folder"):
        saved_model.next_version(folder / "12")
