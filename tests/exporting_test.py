"""Which folders are exported, and that a difference stops it."""

import os

import pytest
import tensorflow as tf

import exporting
import run_directory


def test_folders_of_no_run_or_of_a_script_without_an_export(tmp_path):
    with pytest.raises(ValueError, match=r"no output folder of a run: .*model\.json"):
        exporting.export(tmp_path, tmp_path / "out")
    run_directory.write_json(tmp_path / "model.json", {"script": "run_else"})
    with pytest.raises(ValueError, match="run_else, which has no export; .* run_cl"):
        exporting.export(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


class Server(tf.Module):
    SIGNATURES = ("serving_default",)

    def __init__(self, found):
        super().__init__()
        self.found = found

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def serving_default(self, x):
        return {"y": 2 * x}

    def differences(self, signatures):
        assert signatures["serving_default"](x=tf.constant([1.0]))["y"] == [2]
        yield from self.found


@pytest.mark.parametrize("found", [[2e-5, 0.0], [0.0, float("nan"), 0.0]])
def test_a_difference_leaves_nothing(tmp_path, monkeypatch, found):
    run_directory.write_json(tmp_path / "model.json", {"script": "run_x"})
    monkeypatch.setitem(exporting.SERVERS, "run_x", lambda _: Server(found))
    with pytest.raises(ValueError, match="differs from the model by .* nothing was"):
        exporting.export(tmp_path, tmp_path / "out")
    assert os.listdir(tmp_path / "out") == []
    monkeypatch.setitem(exporting.SERVERS, "run_x", lambda _: Server([1e-6]))
    assert exporting.export(tmp_path, tmp_path / "out") == str(tmp_path / "out/1")
    assert exporting.export(tmp_path, tmp_path / "out") == str(tmp_path / "out/2")
