"""--bilstm_layers: part of a run's model in training, evaluation and export."""

import json
import pathlib

import numpy as np
import pytest

import encoders
import exporting
import training
import word_tagging
from modeling import bilstm, checkpoint, encoder, models
from tests import scripts, small_models

LSTM = ["kernel", "recurrent_kernel", "bias"]


def test_what_makes_the_encoder():
    assert encoders.find(0) is encoder.BertEncoder
    made = encoders.find(2)(small_models.config(), name="bert")
    assert isinstance(made, bilstm.EncoderWithBiLSTM) and len(made.bilstm.layers) == 2


def test_frozen_and_slower_layers_are_those_of_the_encoder():
    model = models.BertForQuestionAnswering(
        small_models.config(), make_encoder=encoders.find(1)
    )
    rates = training.learning_rates(model, frozen_layers=1, decay=0.5)
    assert {rates[f"bilstm/layer_0/{name}"] for name in LSTM} == {1.0}
    at = {n: rates[f"bert/encoder/layer_{n}/output/dense/bias"] for n in (0, 1)}
    assert at == {0: 0.0, 1: 0.5}


@pytest.fixture
def flags(golden, tmp_path):
    """Flags of a run_ner.py that works."""
    rows = ["a\tB-X", "b\tI-X", "1\tO", ""] * 8
    (tmp_path / "train.txt").write_text("\n".join(rows) + "\n")
    return {
        "train_file": tmp_path / "train.txt",
        "dev_file": tmp_path / "train.txt",
        "init_checkpoint": golden / "tiny_tf1/bert_model.ckpt",
        "max_seq_length": 16,
        "output_dir": tmp_path / "out",
        "do_eval": True,
    }


@pytest.mark.slow
def test_a_run_and_its_folder(flags, golden, tmp_path):
    out = tmp_path / "out"
    shown = scripts.succeed(
        "run_ner.py",
        **flags,
        bilstm_layers=1,
        do_train=True,
        train_batch_size=4,
        num_train_epochs=20,
        learning_rate=1e-2,
        freeze_layers=2,
        gradient_accumulation_steps=2,
    )
    assert "freshly initialised      5  bilstm/layer_0/kernel, bilstm" in shown
    results = scripts.read_results(out / "eval_results.txt")
    assert results["eval_f1"] == 1
    assert json.loads((out / "model.json").read_text())["bilstm_layers"] == 1
    before = checkpoint.read(golden / "tiny_tf1/bert_model.ckpt")
    after = checkpoint.read(out)
    name = "bert/encoder/layer_1/output/dense/kernel"
    np.testing.assert_array_equal(after[name], before[name])

    again = scripts.succeed("run_ner.py", **flags, bilstm_layers=1)
    assert "freshly initialised      0" in again
    assert scripts.read_results(out / "eval_results.txt") == results
    for layers, said in ((2, "2"), (0, "the usual")):
        sentence = scripts.refusal("run_ner.py", **flags, bilstm_layers=layers)
        assert f"there 'bilstm_layers' is 1, this run's {said}; choose" in sentence

    predictor = word_tagging.load(str(out))
    (answer,) = predictor.predict([["a", "b", "1"]])
    assert [word["tag"] for word in answer] == ["B-X", "I-X", "O"]
    with pytest.raises(ValueError, match="=weights cannot hold the LSTM of --bilstm_l"):
        exporting.export(str(out), str(tmp_path / "export"), ["onnx", "weights"])
    # Each is compared with the model in memory before it is kept.
    path = pathlib.Path(exporting.export(str(out), str(tmp_path / "export"), ["onnx"]))
    assert (path / "formats/model.onnx").exists()
