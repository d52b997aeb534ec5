"""run_pretraining.py: the original's numbers, learning, resuming to the bit."""

import json
import shutil

import numpy as np
import pytest

from modeling import checkpoint
from tests import resuming, scripts


@pytest.fixture
def original_run(golden, tmp_path):
    """Flags for evaluating on the original's records as the original did.

    It repeated its 44 records until 10 batches of 8 were full. (Only with b before a do
    the numbers come out, all of them; golden/README.md has it the other way round.)
    """
    run = golden / "tiny_tf1_runs/pretraining"
    for i, name in enumerate(["b", "a", "b", "a"]):
        shutil.copy(run / f"{name}.tfrecord", tmp_path / f"{i}.tfrecord")
    return {
        "do_eval": True,
        "input_file": f"{tmp_path}/*.tfrecord",
        "bert_config_file": golden / "tiny_tf1/bert_config.json",
        "max_seq_length": 64,
        "max_predictions_per_seq": 10,
        "max_eval_steps": 10,
        "output_dir": tmp_path / "out",
    }


def test_the_originals_initial_checkpoint_gives_its_results(
    golden, original_run, tmp_path
):
    scripts.succeed(
        "run_pretraining.py",
        init_checkpoint=golden / "tiny_tf1/bert_model.ckpt",
        **original_run,
    )
    run = golden / "tiny_tf1_runs/pretraining"
    expected = scripts.read_results(run / "eval_results_of_init_checkpoint.txt")
    results = scripts.read_results(tmp_path / "out/eval_results.txt")
    assert results == pytest.approx(expected, abs=2e-5)
    assert json.loads((tmp_path / "out/eval_results.json").read_text()) == results


def test_the_originals_output_folder_gives_its_results(golden, original_run, tmp_path):
    run = golden / "tiny_tf1_runs/pretraining"
    (tmp_path / "out").mkdir()
    for path in [run / "checkpoint", *run.glob("model.ckpt-6.*")]:
        shutil.copy(path, tmp_path / "out")
    scripts.succeed("run_pretraining.py", **original_run)
    expected = scripts.read_results(run / "eval_results.txt")
    results = scripts.read_results(tmp_path / "out/eval_results.txt")
    assert results == pytest.approx(expected, abs=2e-5)


@pytest.fixture
def training_run(golden):
    return scripts.short_pretraining(golden)


def test_killed_three_times_it_ends_with_the_same_bits(training_run, tmp_path):
    resuming.check("run_pretraining.py", training_run, tmp_path)
    log = (tmp_path / "whole/train_log.jsonl").read_text().splitlines()
    losses = [json.loads(line)["loss"] for line in log]
    assert np.mean(losses[-5:]) < losses[0] - 0.5  # it learns


def test_training_goes_on_from_the_originals_checkpoint(golden, training_run, tmp_path):
    """The original's output folder, with its moments and step, is resumed."""
    run = golden / "tiny_tf1_runs/pretraining"
    out = tmp_path / "out"
    out.mkdir()
    for path in [run / "checkpoint", *run.glob("model.ckpt-6.*")]:
        shutil.copy(path, out)
    shown = scripts.succeed(
        "run_pretraining.py",
        **{**training_run, "output_dir": out, "num_train_steps": 8},
    )
    assert "at step 6" in shown
    values = checkpoint.read(out, with_slots=True)
    assert values["global_step"] == 8


def test_held_out_records_are_scored_at_every_checkpoint(
    golden, training_run, tmp_path
):
    flags = {
        **training_run,
        "input_file": golden / "tiny_tf1_runs/pretraining/a.tfrecord",
        "eval_input_file": golden / "tiny_tf1_runs/pretraining/b.tfrecord",
        "do_eval": True,
        "num_train_steps": 7,
        "output_dir": tmp_path / "out",
    }
    scripts.succeed("run_pretraining.py", **flags)
    scripts.succeed("run_pretraining.py", **flags)  # adds nothing
    lines = (tmp_path / "out/validation.jsonl").read_text().splitlines()
    lines = [json.loads(line) for line in lines]
    assert [line["step"] for line in lines] == [3, 6, 7]
    for line in lines:
        perplexity = np.exp(line["masked_lm_loss"])
        assert line["masked_lm_perplexity"] == pytest.approx(perplexity)
    results = json.loads((tmp_path / "out/eval_results.json").read_text())
    for name in ("masked_lm_accuracy", "masked_lm_loss", "next_sentence_accuracy"):
        assert results[name] == pytest.approx(lines[-1][name], abs=1e-6)
    assert not (tmp_path / "out/best").exists()


def test_held_out_records_need_do_eval(training_run, tmp_path):
    flags = {**training_run, "eval_input_file": training_run["input_file"]}
    shown = scripts.refusal("run_pretraining.py", **flags, output_dir=tmp_path / "out")
    assert "--eval_input_file has no effect without --do_eval" in shown
    assert not (tmp_path / "out").exists()
