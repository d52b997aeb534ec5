"""The newest checkpoint is found also where the state file is lost or wrong."""

import os

import numpy as np
import pytest
import tensorflow as tf

from modeling import checkpoint, checkpoint_state


@pytest.fixture
def folder(tmp_path):
    """Three checkpoints; the number of the newest has more digits."""
    for step in (5, 90, 100):
        weights = {"global_step": np.int64(step)}
        checkpoint.write_tf1(str(tmp_path / f"model.ckpt-{step}"), weights, 3)
    return tmp_path


def newest(folder):
    return os.path.basename(checkpoint_state.latest(folder))


def test_what_is_written_is_what_tensorflow_reads(folder):
    state = tf.train.get_checkpoint_state(str(folder))
    names = [os.path.basename(path) for path in state.all_model_checkpoint_paths]
    assert names == ["model.ckpt-5", "model.ckpt-90", "model.ckpt-100"]
    assert checkpoint_state.latest(str(folder)) == tf.train.latest_checkpoint(folder)


def test_the_file_decides_of_a_moved_run_too(folder):
    text = 'model_checkpoint_path: "/somewhere/else/model.ckpt-90"\n'
    (folder / "checkpoint").write_text(text)
    assert newest(folder) == "model.ckpt-90"


def test_nothing_there_is_none(tmp_path):
    assert checkpoint_state.latest(tmp_path) is None
    (tmp_path / "model.ckpt-1.index").write_text("without its other part")
    assert checkpoint_state.latest(tmp_path) is None


@pytest.mark.parametrize("text", [None, "", "x", b"\xff", 'model_checkpoint_path: "a"'])
def test_numbers_tell_where_the_file_does_not(folder, text):
    (folder / "checkpoint").unlink()
    if text is not None:
        data = text if isinstance(text, bytes) else text.encode()
        (folder / "checkpoint").write_bytes(data)
    assert newest(folder) == "model.ckpt-100"
    (folder / "model.ckpt-100.index").unlink()
    assert newest(folder) == "model.ckpt-90"
    assert checkpoint.read(folder, with_slots=True)["global_step"] == 90
    # What is written next is the newest, and what was lost does not come back.
    weights = {"global_step": np.int64(95)}
    checkpoint.write_tf1(str(folder / "model.ckpt-95"), weights, 2)
    assert newest(folder) == "model.ckpt-95"


def test_the_oldest_go_though_no_file_listed_them(folder):
    (folder / "checkpoint").unlink()
    weights = {"global_step": np.int64(110)}
    checkpoint.write_tf1(str(folder / "model.ckpt-110"), weights, 2)
    there = {path.stem for path in folder.glob("*.index")}
    assert there == {"model.ckpt-100", "model.ckpt-110"}


def test_it_is_said_once_of_each_folder(folder, caplog):
    (folder / "checkpoint").unlink()
    for _ in range(2):
        checkpoint_state.latest(folder)
    (said,) = [r.message for r in caplog.records if str(folder) in r.message]
    assert "checkpoint is missing" in said and said.endswith("100 is the newest")


def test_other_names_are_for_a_person_to_choose(folder):
    (folder / "checkpoint").unlink()
    weights = {"global_step": np.int64(1)}
    path = str(folder / "model.ckpt-700b")
    checkpoint.write_tf1(path, weights, update_state=False)
    assert checkpoint_state.latest(folder) is None
    with pytest.raises(ValueError, match="holds several checkpoints"):
        checkpoint.read(folder)


def test_a_file_without_any_checkpoint_is_refused(tmp_path):
    for text in ("", "x"):
        (tmp_path / "checkpoint").write_text(text)
        with pytest.raises(ValueError, match="/checkpoint cannot be read, and there"):
            checkpoint.read(tmp_path)
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-7"\n')
    with pytest.raises(FileNotFoundError, match="names .*model.ckpt-7, which is not"):
        checkpoint.read(tmp_path)
