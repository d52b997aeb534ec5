"""What a training shows, and keeps for tools to read."""

import json
import math

import pytest
import tensorflow as tf

import run_directory
import training_log

MEANS = {"loss": 2.0, "learning_rate": 0.1}
COUNTED = {"tokens": 100, "positions": 128, "sequences": 8, "skipped": 0}


def read(folder):
    lines = (folder / "train_log.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_the_log_goes_to_a_file_and_to_tensorboard(tmp_path):
    log = training_log.TrainingLog(tmp_path, 4, 10, lambda *seen: seen[1] / 256)
    log.write(6, MEANS, 8, COUNTED)
    log.write(8, {**MEANS, "loss": math.nan}, 8, {**COUNTED, "skipped": 2})
    first, second = read(tmp_path)
    assert (first["step"], first["loss"], first["skipped_updates"]) == (6, 2.0, 0)
    assert (second["step"], second["skipped_updates"]) == (8, 2)
    assert second["loss"] is None
    for line in (first, second):
        ratio = line["tokens_per_second"] / line["examples_per_second"]
        assert ratio == pytest.approx(100 / 8)
        assert line["padding"] == pytest.approx(28 / 128)
        assert line["model_flops_utilization"] == 0.5
    (events,) = (tmp_path / "tensorboard").glob("events*")
    found = set()
    for event in tf.compat.v1.train.summary_iterator(str(events)):
        found |= {(event.step, value.tag) for value in event.summary.value}
    assert {(6, "loss"), (8, "padding"), (8, "model_flops_utilization")} <= found


def test_lines_after_the_step_resumed_from_are_forgotten(tmp_path):
    log = training_log.TrainingLog(tmp_path, 0, 10)
    for step in (2, 4, 6):
        log.write(step, MEANS, 8, COUNTED)
    with open(tmp_path / "train_log.jsonl", "a", encoding="utf-8") as file:
        file.write('{"step": 8, "lo')  # killed within a line
    training_log.TrainingLog(tmp_path, 4, 10)
    assert [line["step"] for line in read(tmp_path)] == [2, 4]


def test_a_damaged_log_is_named(tmp_path):
    for text in ("[]\n", '{"step": "a"}\n'):
        (tmp_path / "train_log.jsonl").write_text(text)
        with pytest.raises(ValueError, match="train_log.jsonl, line 1 is damaged"):
            training_log.TrainingLog(tmp_path, 4, 10)
        assert (tmp_path / "train_log.jsonl").read_text() == text


def test_a_full_disk_is_told_with_the_file(tmp_path):
    log = training_log.TrainingLog(str(tmp_path), 0, 10)
    (tmp_path / "train_log.jsonl").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left .*train_log.jsonl"):
        log.write(2, MEANS, 8, COUNTED)


def test_no_share_above_all_of_the_rate(tmp_path):
    log = training_log.TrainingLog(tmp_path, 0, 10, lambda *seen: seen[1] / 100)
    log.write(2, MEANS, 8, COUNTED)
    log.write(4, MEANS, 8, {**COUNTED, "positions": 100})
    first, second = read(tmp_path)
    assert "model_flops_utilization" not in first
    assert second["model_flops_utilization"] == 1


def test_other_workers_keep_none(tmp_path):
    run_directory.share(1)
    try:
        training_log.TrainingLog(tmp_path, 0, 10).write(2, MEANS, 8, COUNTED)
    finally:
        run_directory.share(None)
    assert not list(tmp_path.iterdir())
