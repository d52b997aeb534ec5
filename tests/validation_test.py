"""Keeping the best checkpoint: which one, when to stop, and after a kill."""

import json

import numpy as np
import pytest
import tensorflow as tf

import run_directory
import strategies
import trained_weights
import trainer as trainer_lib
import training
import validation
from modeling import checkpoint, checkpoint_state, losses, models, optimization
from modeling import config as config_lib

CONFIG = config_lib.BertConfig(
    vocab_size=20,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=16,
)


def make_trainer(frozen=-1):
    """A tiny classifier and its trainer."""
    strategy = strategies.make()
    training.set_seed(3)
    model = models.BertForSequenceClassification(CONFIG, 2)
    optimizer = training.make_optimizer(
        strategy,
        model,
        optimization.warmup_then_decay(1e-2, 20, 0),
        rates=training.learning_rates(model, frozen),
    )
    return trainer_lib.Trainer(strategy, model, optimizer, losses.CLASSIFICATION, 5)


class Batches:
    """Endless made-up batches; a function of the step."""

    num_records = 16

    def starting_at(self, step):
        def make(i):
            ids = tf.random.stateless_uniform([4, 6], [7, i], 0, 20, tf.int32)
            ones = tf.ones_like(ids)
            return {"input_ids": ids, "input_mask": ones, "label_ids": ids[:, 0] % 2}

        return tf.data.Dataset.range(step, 10**6).map(make)

    def describe(self, step):
        return f"made up for {step}"


def train(folder, scores, patience, steps=20, data="dev", metric="score"):
    """Trains with a checkpoint every 2 updates, which get the scores in turn."""
    trainer = make_trainer()
    trainer.start(folder, None)
    asked = []

    def evaluate():
        asked.append(trainer.step)
        return {metric: scores[trainer.step // 2 - 1]}

    check = validation.Validation(folder, evaluate, metric, patience, data)
    plan = training.Plan(steps, save_checkpoints_steps=2, batch_size=4)
    training.train(trainer, Batches(), plan, folder, check)
    return trainer, asked


@pytest.mark.parametrize(
    "scores, patience, best, last",
    [
        ([1, 3, 2, 2, 2, 2, 2, 2, 2, 9], 0, 20, 20),
        ([1, 3, 2, 2, 2, 2, 2, 2, 2, 9], 3, 4, 10),
        ([1, 3, 3, 3, 4, 2, 2, 2, 2, 9], 3, 10, 16),  # a tie is no improvement
    ],
)
def test_the_best_is_kept_and_training_stops(tmp_path, scores, patience, best, last):
    folder = str(tmp_path)
    trainer, asked = train(folder, scores, patience)
    assert trainer.step == last
    assert asked == list(range(2, last + 1, 2))
    assert len(list((tmp_path / "best").glob("*.index"))) == 1
    model = make_trainer().model
    assert trained_weights.load_trained(model, folder) == best
    # The same updates without validation give the same weights.
    other = make_trainer()
    plan = training.Plan(20, save_checkpoints_steps=best, batch_size=4)
    training.train(other, Batches(), plan, str(tmp_path / "other"))
    there = checkpoint.read(tmp_path / "other" / f"model.ckpt-{best}")
    for name, weight in checkpoint.weight_names(model).items():
        np.testing.assert_array_equal(weight.numpy(), there[name], err_msg=name)


def test_resumed_it_decides_as_if_it_had_not_stopped(tmp_path):
    scores = [1, 3, 2, 2, 2, 2, 2, 2, 2, 9]
    train(str(tmp_path / "whole"), scores, 3)
    folder = tmp_path / "broken"

    class Killed(Exception):
        pass

    for crash in (2, 6, 8, 10):  # while evaluating the checkpoint of that step
        trainer = make_trainer()
        trainer.start(str(folder), None)

        def evaluate(trainer=trainer, crash=crash):
            if trainer.step == crash:
                raise Killed
            return {"score": scores[trainer.step // 2 - 1]}

        check = validation.Validation(str(folder), evaluate, "score", 3, "dev")
        plan = training.Plan(20, save_checkpoints_steps=2, batch_size=4)
        with pytest.raises(Killed):
            training.train(trainer, Batches(), plan, str(folder), check)
    trainer, _ = train(str(folder), scores, 3)
    assert trainer.step == 10
    lines = [p.read_text() for p in tmp_path.glob("*/validation.jsonl")]
    assert lines[0] == lines[1]
    assert [json.loads(x)["step"] for x in lines[0].splitlines()] == [2, 4, 6, 8, 10]
    # Started again it stays stopped, and asks nobody.
    trainer, asked = train(str(folder), scores, 3)
    assert (trainer.step, asked) == (10, [])


def test_a_kill_before_the_last_evaluation_loses_nothing(tmp_path):
    folder = str(tmp_path)
    trainer = make_trainer()
    plan = training.Plan(4, save_checkpoints_steps=10, batch_size=4)
    training.train(trainer, Batches(), plan, folder)  # killed before it is asked
    trainer = make_trainer()
    trainer.start(folder, None)
    check = validation.Validation(folder, lambda: {"score": 1}, "score", 0, "dev")
    training.train(trainer, Batches(), plan, folder, check)
    assert trained_weights.load_trained(make_trainer().model, folder) == 4
    assert (tmp_path / "best").is_dir()


def test_a_set_too_small_for_one_update_is_refused(tmp_path):
    plan = training.Plan(0, save_checkpoints_steps=10, batch_size=4)
    with pytest.raises(ValueError, match="train_batch_size"):
        training.train(make_trainer(), Batches(), plan, str(tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("count", [-1, 0, 1, 2])
def test_frozen_layers_stay_and_the_others_move(count):
    trainer = make_trainer(count)
    names = checkpoint.weight_names(trainer.model)
    before = {name: weight.numpy().copy() for name, weight in names.items()}
    trainer.update(iter(Batches().starting_at(0)))
    still = {n for n, w in names.items() if np.array_equal(w.numpy(), before[n])}
    frozen = ["bert/embeddings/", "bert/encoder/layer_0/", "bert/encoder/layer_1/"]
    frozen = tuple(frozen[: count + 1])
    expected = {name for name in names if frozen and name.startswith(frozen)}
    # Softmax ignores what the key bias adds to all scores: its gradient is 0 but for
    # rounding, so it may or may not move.
    biases = {name for name in names if name.endswith("key/bias")}
    assert still - biases == expected - biases


def test_a_run_with_nothing_to_do_does_not_change_how_the_model_was_trained(tmp_path):
    trained_by = []
    for steps, length in ((2, 32), (2, 20), (4, 16)):
        settings = {"do_train": True, "max_seq_length": length}
        run_directory.claim(tmp_path, {}, settings)
        trainer = make_trainer()
        trainer.start(str(tmp_path), None)
        plan = training.Plan(steps, save_checkpoints_steps=2, batch_size=4)
        training.train(trainer, Batches(), plan, str(tmp_path))
        settings = json.loads((tmp_path / "settings.json").read_text())
        trained_by.append(settings["max_seq_length"])
    assert trained_by == [32, 32, 16]


@pytest.mark.parametrize("changes", [{"data": "other"}, {"metric": "other"}])
def test_scores_of_another_kind_are_not_compared(tmp_path, changes):
    folder = str(tmp_path)
    train(folder, [9, 8], 0, steps=4)
    assert checkpoint_state.latest(tmp_path / "best").endswith("model.ckpt-2")
    _, asked = train(folder, [9, 1, 2], 0, steps=6, **changes)
    assert asked == [4, 6]
    assert checkpoint_state.latest(tmp_path / "best").endswith("model.ckpt-6")


def test_the_best_is_a_model_by_itself(tmp_path):
    for name in ("model.json", "settings.json", "bert_config.json", "vocab.txt"):
        (tmp_path / name).write_text(f'"{name}"')
    train(str(tmp_path), [1], 0, steps=2)
    for name in ("model.json", "settings.json", "bert_config.json", "vocab.txt"):
        assert (tmp_path / "best" / name).read_text() == f'"{name}"'


def test_data_sets_are_told_apart():
    arrays = {"ids": np.array([[1, 2], [3, 4]]), "labels": np.array([0, 1])}
    others = [
        arrays | {"labels": np.array([1, 0])},
        arrays | {"ids": np.array([[1, 2, 3, 4]])},
        {"ids": arrays["ids"]},
        {"ids": arrays["ids"], "others": arrays["labels"]},
    ]
    found = {validation.fingerprint(x) for x in (arrays, *others)}
    assert len(found) == 5
    copy = {name: arrays[name].copy(order="F") for name in reversed(arrays)}
    assert validation.fingerprint(copy) == validation.fingerprint(arrays)


def test_a_score_that_is_no_number_is_never_the_best(tmp_path):
    train(str(tmp_path), [float("nan"), 1.0, float("nan"), 0.5], 0, steps=6)
    assert checkpoint_state.latest(tmp_path / "best").endswith("model.ckpt-4")
