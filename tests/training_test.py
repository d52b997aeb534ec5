"""The loop: what it does about updates that are not finite, and about signals."""

import json
import os
import re
import signal
import subprocess
import time

import numpy as np
import pytest
import tensorflow as tf

import non_finite
import strategies
import trainer as trainer_lib
import training
from modeling import checkpoint, checkpoint_state, lamb, losses
from tests import scripts, small_models, trainer_test


class Batches:
    """One batch again and again, of which some updates see a spoiled one."""

    num_records = 16

    def __init__(self, spoiled):
        batch = small_models.batch(trainer_test.CONFIG, 0, batch_size=4)
        self._batch = {**batch, "is_real_example": np.ones(4, np.float32)}
        self._spoiled = tf.constant([*spoiled, -1], tf.int64)

    def starting_at(self, step):
        def make(i):
            bad = tf.reduce_any(self._spoiled == i)
            weights = tf.where(bad, np.nan, self._batch["is_real_example"])
            return {**self._batch, "is_real_example": weights}

        return tf.data.Dataset.range(step, 10**6).map(make)

    def describe(self, step):
        return f"the rows of {step}"


def weights_of(folder):
    return checkpoint.read(str(folder), with_slots=True)


def test_a_loss_that_is_not_finite_ends_the_run_as_it_was_before(tmp_path):
    plan = training.Plan(9, save_checkpoints_steps=4, batch_size=4)
    batches = Batches({6})
    for _ in range(2):  # and again the same, when it is started again
        trainer = trainer_test.make_trainer()
        trainer.start(str(tmp_path), None)
        message = "update 6 is not finite .loss nan, .*its records: the rows of 6; "
        with pytest.raises(ValueError, match=message) as error:
            training.train(trainer, batches, plan, str(tmp_path))
        assert non_finite.is_told(str(error.value))  # so run_glue.py counts it
        assert checkpoint_state.latest(tmp_path).endswith("model.ckpt-6")
    # What is saved is what six good updates give.
    plan = training.Plan(6, save_checkpoints_steps=4, batch_size=4)
    other = tmp_path / "other"
    other.mkdir()
    training.train(trainer_test.make_trainer(), Batches({}), plan, str(other))
    expected, saved = weights_of(other), weights_of(tmp_path)
    for name, value in expected.items():
        np.testing.assert_array_equal(saved[name], value, err_msg=name)


def test_a_run_that_failed_at_once_takes_the_initial_weights_given_then(tmp_path):
    out, initial = str(tmp_path / "out"), str(tmp_path / "initial")
    trainer_test.make_trainer().save(out)
    other = trainer_test.make_trainer()
    for variable in other.model.weights:
        variable.assign(variable + 1)
    other.save(initial)
    # Without its head, which the seed alone makes then.
    kept = {
        n: w for n, w in checkpoint.read(initial).items() if not n.startswith("output_")
    }
    assert 0 < len(kept) < len(other.model.weights)
    checkpoint.write_tf1(f"{initial}/model.ckpt-0", kept)
    fresh, trainer = trainer_test.make_trainer(), trainer_test.make_trainer(kind="lamb")
    fresh.start(str(tmp_path / "new"), initial)
    trainer.start(out, initial)
    training.train(trainer, Batches({}), training.Plan(1, 1, batch_size=4), out)
    start = checkpoint.read(f"{out}/model.ckpt-0")
    for name, variable in checkpoint.weight_names(fresh.model).items():
        np.testing.assert_array_equal(start[name], variable.numpy(), err_msg=name)
    # With an update behind it, it goes on.
    trained = weights_of(tmp_path / "out")
    again = trainer_test.make_trainer(kind="lamb")
    again.start(out, initial)
    assert again.step == 1
    for name, variable in checkpoint.weight_names(again.model).items():
        np.testing.assert_array_equal(variable.numpy(), trained[name], err_msg=name)


@pytest.mark.parametrize(("kept", "steps"), [(2, [6, 7]), (0, range(8))])
def test_the_last_checkpoints_are_kept(tmp_path, kept, steps):
    trainer = trainer_test.make_trainer()
    trainer.keep_checkpoint_max = kept
    plan = training.Plan(7, save_checkpoints_steps=1, batch_size=4)
    training.train(trainer, Batches({}), plan, str(tmp_path))
    there = {path.stem for path in tmp_path.glob("*.index")}
    assert there == {f"model.ckpt-{step}" for step in steps}


def test_updates_that_are_not_finite_may_be_left_out(tmp_path):
    plan = training.Plan(9, 9, batch_size=4, skip_non_finite=True)
    trainer = trainer_test.make_trainer()
    training.train(trainer, Batches({2, 6}), plan, str(tmp_path))
    assert trainer.step == 9
    lines = (tmp_path / "train_log.jsonl").read_text().splitlines()
    lines = [json.loads(line) for line in lines]
    skipped = {line["step"]: line["skipped_updates"] for line in lines}
    assert {step for step, number in skipped.items() if number} == {3, 7}
    assert all(np.isfinite(v).all() for v in weights_of(tmp_path).values())


def test_too_many_in_a_row_end_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(non_finite, "MOST_SKIPPED", 3)
    plan = training.Plan(20, 20, batch_size=4, skip_non_finite=True)
    batches = Batches({2, 3, 4, 6, 7, 8, 9, 10})
    message = "^4 updates in a row .*update 9 is not finite"
    with pytest.raises(ValueError, match=message) as error:
        training.train(trainer_test.make_trainer(), batches, plan, str(tmp_path))
    assert non_finite.is_told(str(error.value))


def test_settings_reach_the_trainer():
    model = trainer_test.make_trainer().model
    settings = training.Settings(
        output_dir="",
        init_checkpoint=None,
        max_seq_length=8,
        train_batch_size=8,
        learning_rate=1.0,
        optimizer="lamb",
        bias_correction=False,
        gradient_accumulation_steps=4,
        jit_compile=True,
        recompute=True,
        non_finite="skip",
        save_checkpoints_steps=3,
        keep_checkpoint_max=7,
        seed=5,
    )
    trainer = training.make_trainer(
        strategies.make(), model, losses.CLASSIFICATION, lambda _: 1.0, settings
    )
    assert isinstance(trainer.optimizer, lamb.Lamb)
    assert (trainer.micro_batches, trainer.seed) == (4, 5)
    assert trainer.keep_checkpoint_max == 7
    assert trainer.model.bert.recompute
    parts = trainer_lib.Trainer(
        strategies.make(), model, trainer.optimizer, losses.CLASSIFICATION, 5
    )
    assert type(trainer._gradients) is not type(parts._gradients)
    plan = training.Plan.from_settings(7, settings)
    assert plan == training.Plan(7, 3, 8, max_seq_length=8, skip_non_finite=True)


def test_a_signal_in_the_last_update_still_ends_the_process(tmp_path):
    """It is noticed too late for the loop, but not forgotten."""
    trainer = trainer_test.make_trainer()
    update = trainer.update

    def last(iterator, asked):
        if trainer.step == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return update(iterator, asked)

    trainer.update = last
    plan = training.Plan(2, 9, batch_size=4)
    with pytest.raises(SystemExit) as stopped:
        training.train(trainer, Batches({}), plan, str(tmp_path))
    assert stopped.value.code == 143
    assert checkpoint_state.latest(tmp_path).endswith("model.ckpt-2")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_the_run_goes_on_to_the_same_bits(golden, tmp_path, number):
    flags = {
        **scripts.short_pretraining(golden),
        "num_train_steps": 400,
        "save_checkpoints_steps": 100,
    }
    scripts.succeed("run_pretraining.py", **flags, output_dir=tmp_path / "whole")
    broken = tmp_path / "broken"
    command = scripts.command("run_pretraining.py", **flags, output_dir=broken)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    log = broken / "train_log.jsonl"
    while not log.exists() or not log.read_text().count("\n"):
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, number)
    _, shown = process.communicate()
    assert process.returncode == 128 + number, shown
    step = int(re.search(r"saved at step (\d+)", shown)[1])
    assert step % 100  # else it was saved anyway
    assert checkpoint_state.latest(broken).endswith(f"-{step}")
    shown = scripts.succeed("run_pretraining.py", **flags, output_dir=broken)
    assert f"at step {step}" in shown
    expected, found = weights_of(tmp_path / "whole"), weights_of(broken)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
