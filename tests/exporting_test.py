"""Which folders are exported, what is written, and that a difference stops it."""

import os
import pathlib
import sys

import pytest
import tensorflow as tf

import exporting
import run_directory
from serving import saved_model


def test_folders_of_no_run_or_of_a_script_without_an_export(tmp_path):
    with pytest.raises(ValueError, match=r"no output folder of a run: .*model\.json"):
        exporting.export(tmp_path, tmp_path / "out")
    run_directory.write_json(tmp_path / "model.json", {"script": "run_else"})
    with pytest.raises(ValueError, match="run_else, which has no export; .* run_cl"):
        exporting.export(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


class Server(saved_model.Server):
    SIGNATURES = ("serving_default",)
    label_names = ("no", "two\nlines", "ja, €")

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
def test_a_difference_leaves_nothing(tmp_path, found):
    with pytest.raises(ValueError, match="differs from the model by .* nothing was"):
        exporting.write(Server(found), tmp_path / "out", {})
    assert os.listdir(tmp_path / "out") == []
    good = Server([1e-6])
    for number in "12":
        path = exporting.write(good, tmp_path / "out", {})
        assert path == str(tmp_path / "out" / number)


def test_files_for_people_and_clients(tmp_path):
    path = exporting.write(Server([0.0]), tmp_path / "out", {"Sizes": {"layers": 3}})
    with open(f"{path}/assets/labels.txt", encoding="utf-8") as file:
        assert file.read() == "no\ntwo lines\nja, €\n"
    with open(f"{path}/model_card.md", encoding="utf-8") as file:
        card = file.read()
    assert card.startswith("# out\n") and "| layers | 3 |" in card
    assert "| serving_default | predict | x: float32 [any] | y: float32 [any] |" in card
    batching = tmp_path / "out" / exporting.BATCHING_FILE
    assert "max_batch_size { value: 32 }" in batching.read_text()
    batching.write_text("max_batch_size { value: 8 }")
    exporting.write(Server([0.0]), tmp_path / "out", {})
    assert batching.read_text() == "max_batch_size { value: 8 }"


def test_without_the_package_there_is_no_warm_up(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_serving.apis", None)
    path = exporting.write(Server([0.0]), tmp_path / "out", {})
    assert not os.path.exists(f"{path}/assets.extra")
    assert os.path.exists(f"{path}/model_card.md")


class Narrow(Server):
    """One whose model is off by a share of the largest logit of another's."""

    def __init__(self, found, error=0.0):
        super().__init__(found)
        self.error = error

    def samples(self):
        yield {"x": tf.constant([1.0])}

    def numbers(self, batch):
        return {"logits": batch["x"] * tf.constant([[2.0 + 2 * self.error, 1.0]])}


def test_less_precision_is_compared_with_more(tmp_path):
    exact, out = Narrow([0.0]), tmp_path / "out"
    for narrow, words in (
        (Narrow([0.3]), r"differs from the model by 0\.3 in a logit, at most 0\.25"),
        (Narrow([float("nan")]), "differs from the model by nan"),
        (Narrow([0.0], 0.3), r"off by 0\.3 of the largest logit.* nothing was writt"),
        (Narrow([0.0], float("inf")), "off by inf"),
    ):
        with pytest.raises(ValueError, match=words):
            exporting.write(exact, out, {}, narrow=narrow)
        assert os.listdir(out) == []
    # Another answer whose score is as good is no difference.
    path = exporting.write(exact, out, {}, narrow=Narrow([0.01, float("inf")], -0.1))
    card = pathlib.Path(path, "model_card.md").read_text("utf-8")
    words = "largest difference 0.1, 10.00% of the largest value, the same value is "
    assert f"| {words}largest in 100.00% of 1 rows of logits |" in card
