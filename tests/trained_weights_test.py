"""Which weights are taken, what is refused of them, and in which order they come."""

import json
import shutil

import numpy as np
import pytest
import safetensors.numpy

import non_finite
import strategies
import trained_weights
import trainer as trainer_lib
import training
from modeling import checkpoint, losses, models
from tests.small_models import SMALLEST as CONFIG


def write(prefix, value):
    """A checkpoint of the model whose weights are all `value`."""
    model = models.BertForSequenceClassification(CONFIG, 2)
    names = checkpoint.weight_names(model)
    weights = {n: np.full(w.shape, value, np.float32) for n, w in names.items()}
    weights["global_step"] = np.int64(value)
    checkpoint.write_tf1(str(prefix), weights)


def test_the_best_checkpoint_comes_before_the_latest_and_the_initial(tmp_path):
    model = models.BertForSequenceClassification(CONFIG, 2)
    out = tmp_path / "out"
    with pytest.raises(ValueError, match="no checkpoint in .* and no --init_checkpo"):
        trained_weights.load_trained(model, str(out))
    write(tmp_path / "initial.ckpt", 3)
    initial = str(tmp_path / "initial.ckpt")
    assert trained_weights.load_trained(model, str(out), initial) == 3
    for step in (5, 7):
        write(out / f"model.ckpt-{step}", step)
    assert trained_weights.load_trained(model, str(out), initial) == 7
    write(out / "best/model.ckpt-5", 5)
    for steps, expected in (((5, 7), 5), ((5,), 7), ((), 7)):  # those compared
        lines = "".join(f'{{"step": {step}}}\n' for step in steps)
        (out / "validation.jsonl").write_text(lines)
        assert trained_weights.load_trained(model, str(out), initial) == expected
        for weight in model.weights:
            assert (weight.numpy() == expected).all()
    for damage, words in [
        ('{"ste', "validation.jsonl, line 2 is not JSON"),
        ("{}", "line 2 names no step"),
        ('{"step": "a"}', "line 2 names no step"),
        ("[]", "line 2: expected a JSON object"),
    ]:
        (out / "validation.jsonl").write_text('{"step": 5}\n' + damage)
        message = f"validation.jsonl is damaged, remove it: .*{words}"
        with pytest.raises(ValueError, match=message):
            trained_weights.load_trained(model, str(out), initial)
    for path in (out / "checkpoint", *out.glob("model.ckpt-*")):
        path.unlink()
    assert trained_weights.load_trained(model, str(out), initial) == 5


def spoil(prefix, name, value):
    """One number in a checkpoint of `write`."""
    weights = checkpoint.read(prefix, with_slots=True)
    weights[name].flat[-1] = value
    checkpoint.write_tf1(str(prefix), weights)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["output_bias", "bert/pooler/dense/kernel"])
def test_weights_that_are_no_numbers_are_refused(tmp_path, name, value):
    model = models.BertForSequenceClassification(CONFIG, 2)
    write(tmp_path / "model.ckpt-3", 3)
    before = [weight.numpy() for weight in model.weights]
    spoil(tmp_path / "model.ckpt-3", name, value)
    for path in (tmp_path, tmp_path / "model.ckpt-3"):
        with pytest.raises(ValueError) as error:
            trained_weights.load(model, str(path))
        message = str(error.value)
        assert message.startswith(f"{name} in {tmp_path}/model.ckpt-3 holds values tha")
        assert "NaN" in message and "take another checkpoint, or remove" in message
        assert not non_finite.is_told(message)  # for run_glue.py: this is no training
    with pytest.raises(ValueError, match=name):
        trained_weights.load_trained(model, str(tmp_path))
    for weight, old in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), old)


def test_training_does_not_start_from_them_but_resumes(tmp_path):
    """What a run has written itself is its own affair, see non_finite.py."""
    model, strategy = models.BertForSequenceClassification(CONFIG, 2), strategies.make()
    optimizer = training.make_optimizer(strategy, model, None)
    trainer = trainer_lib.Trainer(
        strategy, model, optimizer, losses.CLASSIFICATION, seed=1
    )
    write(tmp_path / "initial.ckpt", 3)
    spoil(tmp_path / "initial.ckpt", "output_bias", np.nan)
    with pytest.raises(ValueError, match="output_bias in .* NaN"):
        trainer.start(str(tmp_path / "out"), str(tmp_path / "initial.ckpt"))
    trainer.save(str(tmp_path / "out"))
    spoil(tmp_path / "out/model.ckpt-0", "output_bias", np.nan)
    trainer.start(str(tmp_path / "out"), None)
    assert np.isnan(model.weights[-1].numpy()[-1])


def test_huge_weights_are_numbers(tmp_path):
    """Though their sum is none in float32."""
    model = models.BertForSequenceClassification(CONFIG, 2)
    write(tmp_path / "model.ckpt-3", 3)
    weights = checkpoint.read(tmp_path)
    weights["output_weights"] = np.full([2, 8], 3e38, np.float32)
    checkpoint.write_tf1(str(tmp_path / "model.ckpt-3"), weights)
    trained_weights.load(model, str(tmp_path))
    assert (model.weights[-2].numpy() == np.float32(3e38)).all()


def test_an_untrained_head_is_said(tmp_path, caplog):
    model = models.BertForSequenceClassification(CONFIG, 2)
    names = checkpoint.weight_names(model)
    weights = {n: w.numpy() for n, w in names.items() if n.startswith("bert/")}
    checkpoint.write_tf1(str(tmp_path / "encoder.ckpt"), weights)
    with caplog.at_level("WARNING", logger="absl"):
        trained_weights.load_trained(
            model, str(tmp_path / "out"), str(tmp_path / "encoder.ckpt")
        )
    (message,) = [record.getMessage() for record in caplog.records]
    assert "output_weights" in message and "untrained head" in message
    with pytest.raises(
        ValueError, match="not trained: output_weights, output_bias not"
    ):
        trained_weights.load_trained(
            model, str(tmp_path / "out"), str(tmp_path / "encoder.ckpt"), complete=True
        )


@pytest.fixture
def shuffled(golden, tmp_path):
    """A folder of transformers whose labels, and outputs, are in another order."""
    folder = tmp_path / "shuffled"
    shutil.copytree(golden / "hf_tiny/classification", folder)
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    for name in ("classifier.weight", "classifier.bias"):
        tensors[name] = tensors[name][[2, 0, 1]]
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    values = json.loads((folder / "config.json").read_text())
    values["id2label"] = {"0": "NEUTRAL", "1": "CONTRADICTION", "2": "ENTAILMENT"}
    (folder / "config.json").write_text(json.dumps(values))
    return folder


def make_model(folder):
    return models.BertForSequenceClassification(checkpoint.read_config(folder), 3)


def logits_of(model, inputs):
    names = ("input_ids", "input_mask", "segment_ids")
    return model({n: inputs[n].astype(np.int32) for n in names})["logits"].numpy()


@pytest.mark.parametrize("by_training", [False, True])
def test_outputs_come_in_the_order_of_the_runs_labels(
    golden, shuffled, tmp_path, by_training
):
    out = tmp_path / "out"
    out.mkdir()
    labels = ["contradiction", "entailment", "neutral"]
    (out / "labels.json").write_text(json.dumps(labels))
    model, strategy = make_model(shuffled), strategies.make()
    if by_training:
        optimizer = training.make_optimizer(strategy, model, None)
        trainer = trainer_lib.Trainer(
            strategy, model, optimizer, losses.CLASSIFICATION, seed=1
        )
        trainer.start(str(out), str(shuffled))
    else:
        trained_weights.load_trained(model, str(out), str(shuffled))
    theirs = np.load(golden / "hf_tiny/classification/expected.npz")
    ours = logits_of(model, theirs)
    np.testing.assert_allclose(ours, theirs["logits"], rtol=0, atol=2e-5)


def test_outputs_of_other_names_stay_and_are_said(shuffled, tmp_path, caplog):
    out = tmp_path / "out"
    out.mkdir()
    (out / "labels.json").write_text('["0", "1", "2"]')
    model, plain = make_model(shuffled), make_model(shuffled)
    with caplog.at_level("WARNING", logger="absl"):
        trained_weights.load_trained(model, str(out), str(shuffled))
    (message,) = [record.getMessage() for record in caplog.records]
    assert "NEUTRAL, CONTRADICTION, ENTAILMENT, which are taken for 0, 1, 2" in message
    checkpoint.load(plain, str(shuffled))
    for ours, theirs in zip(model.weights, plain.weights, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
