"""run_pretraining.py: the original's numbers, learning, resuming to the bit."""

import gzip
import json
import shutil

import numpy as np
import pytest

from data import record_reading, records
from modeling import checkpoint
from modeling import config as config_lib
from tests import numpy_bert, resuming, scripts


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
    flags = {"output_dir": out, "num_train_steps": 8, "num_warmup_steps": 8}
    shown = scripts.succeed("run_pretraining.py", **{**training_run, **flags})
    assert "at step 6" in shown
    assert "--num_warmup_steps=8 is not below --num_train_steps=8" in shown
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
    shown = scripts.succeed("run_pretraining.py", **flags)  # adds nothing
    assert "trained on, too" not in shown
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


def test_held_out_records_that_are_trained_on_are_told(golden, training_run, tmp_path):
    for name in "ab":
        source = golden / f"tiny_tf1_runs/pretraining/{name}.tfrecord"
        (tmp_path / f"{name}.tfrecord").symlink_to(source)
    shown = scripts.succeed(
        "run_pretraining.py",
        **training_run
        | {
            "eval_input_file": f"{tmp_path}/*.tfrecord",
            "input_file": golden / "tiny_tf1_runs/pretraining/b.tfrecord",
            "do_eval": True,
            "num_train_steps": 1,
            "output_dir": tmp_path / "out",
        },
    )
    words = "1 of the 2 files of --eval_input_file are trained on, too, such as"
    assert f"{words} {tmp_path}/b.tfrecord, so that they are not held out" in shown


def test_held_out_records_need_do_eval(training_run, tmp_path):
    flags = {**training_run, "eval_input_file": training_run["input_file"]}
    shown = scripts.refusal("run_pretraining.py", **flags, output_dir=tmp_path / "out")
    assert "--eval_input_file has no effect without --do_eval" in shown
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("flag", ["input_file", "eval_input_file"])
def test_files_without_a_record_are_refused(training_run, tmp_path, flag):
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(gzip.compress(b""))
    flags = {
        **training_run,
        "do_eval": True,
        flag: path,
        "output_dir": tmp_path / "out",
    }
    shown = scripts.refusal("run_pretraining.py", **flags)
    assert f"there is no record in {path}" in shown
    assert not (tmp_path / "out").exists()


def test_of_several_bad_files_the_first_is_named(training_run, tmp_path):
    for name in "fedcba":
        (tmp_path / f"{name}.tfrecord").write_text("Text, not records. " * 9)
    flags = {**training_run, "input_file": f"{tmp_path}/*.tfrecord"}
    shown = scripts.refusal("run_pretraining.py", **flags, output_dir=tmp_path / "out")
    assert f"{tmp_path}/a.tfrecord is no TFRecord file" in shown


def test_no_nsp_leaves_the_head_and_all_else_alone(training_run, tmp_path):
    flags = {**training_run, "do_eval": True, "num_train_steps": 3}
    for name, has_loss in (("with", True), ("without", False)):
        scripts.succeed(
            "run_pretraining.py",
            **flags,
            next_sentence_loss=has_loss,
            output_dir=tmp_path / name,
        )
    names = ("with", "without")
    first = {n: checkpoint.read(tmp_path / n / "model.ckpt-0") for n in names}
    last = {n: checkpoint.read(tmp_path / n / "model.ckpt-3") for n in names}
    for name, before in first["without"].items():
        np.testing.assert_array_equal(before, first["with"][name])
        if name == "global_step":
            continue
        changed = (before != last["without"][name]).any()
        assert changed == ("seq_relationship" not in name and "pooler" not in name)
        assert (before != last["with"][name]).any()
    results = scripts.read_results(tmp_path / "without/eval_results.txt")
    assert "next_sentence_loss" not in results
    assert results["loss"] == pytest.approx(results["masked_lm_loss"], abs=0.1)
    message = scripts.refusal(
        "run_pretraining.py",
        **flags,
        output_dir=tmp_path / "with",
        next_sentence_loss=False,
    )
    assert "next_sentence_loss" in message


def test_left_to_right_every_next_token_is_scored(golden, original_run, tmp_path):
    """The loss is that of a NumPy model that sees what it may and no more."""
    values = json.loads((golden / "tiny_tf1/bert_config.json").read_text())
    values |= {"visibility": "left_to_right", "pooled_position": "last"}
    (tmp_path / "config.json").write_text(json.dumps(values))
    flags = {
        **original_run,
        "bert_config_file": tmp_path / "config.json",
        "init_checkpoint": golden / "tiny_tf1/bert_model.ckpt",
    }
    scripts.succeed("run_pretraining.py", **flags, next_sentence_loss=False)
    results = scripts.read_results(tmp_path / "out/eval_results.txt")

    files = sorted(map(str, tmp_path.glob("*.tfrecord")))
    batch = record_reading.read_all(files, records.pretraining_spec(64, 10))
    batch = {name: array[:80] for name, array in batch.items()}  # max_eval_steps
    ids, mask = batch["input_ids"].copy(), batch["input_mask"]
    for row, position in np.argwhere(batch["masked_lm_weights"]):
        place = batch["masked_lm_positions"][row, position]
        ids[row, place] = batch["masked_lm_ids"][row, position]
    weights = checkpoint.read(golden / "tiny_tf1/bert_model.ckpt")
    config = config_lib.BertConfig.from_dict(values)
    following = {
        "input_ids": ids,
        "input_mask": mask[:, None] * np.tri(64, dtype=int),
        "segment_ids": batch["segment_ids"],
        "next_sentence_labels": batch["next_sentence_labels"],
        "masked_lm_positions": np.tile(np.arange(63), (len(ids), 1)),
        "masked_lm_ids": ids[:, 1:],
        "masked_lm_weights": mask[:, 1:],
    }
    expected = numpy_bert.pretraining(weights, config, following)
    assert results["masked_lm_loss"] == pytest.approx(
        expected["masked_lm_loss"], abs=2e-5
    )
    best = expected["masked_lm_logits"].argmax(-1) == ids[:, 1:]
    accuracy = best[mask[:, 1:] == 1].mean()
    assert results["masked_lm_accuracy"] == pytest.approx(accuracy, abs=2e-5)


def test_an_untrained_model_has_the_vocabulary_for_a_perplexity(original_run, tmp_path):
    flags = {**original_run, "do_train": True, "learning_rate": 0.0}
    flags |= {"num_train_steps": 1, "num_warmup_steps": 0}
    assert "num_warmup_steps=0 is" not in scripts.succeed("run_pretraining.py", **flags)
    results = scripts.read_results(tmp_path / "out/eval_results.txt")
    assert np.exp(results["masked_lm_loss"]) == pytest.approx(100, rel=0.05)


def test_next_sentences_of_records_without_pairs_are_refused(golden, tmp_path):
    scripts.succeed(
        "create_pretraining_data.py",
        input_file=golden / "pretraining_corpus.txt",
        output_file=tmp_path / "a.tfrecord",
        vocab_file=golden / "tiny_tf1/vocab.txt",
        max_seq_length=64,
        max_predictions_per_seq=10,
        dupe_factor=1,
        segment_pairs=False,
    )
    flags = {
        **scripts.short_pretraining(golden),
        "input_file": tmp_path / "a.tfrecord",
        "num_train_steps": 1,
        "output_dir": tmp_path / "out",
    }
    message = scripts.refusal("run_pretraining.py", **flags)
    assert "a.tfrecord was built with --nosegment_pairs" in message
    assert "add --nonext_sentence_loss" in message
    scripts.succeed("run_pretraining.py", **flags, next_sentence_loss=False)
