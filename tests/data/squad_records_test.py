"""Record files of windows: the original's, and none where there is no text."""

import random

import numpy as np
import pytest

from data import (
    record_reading,
    records,
    squad,
    squad_records,
    squad_windows,
    tokenization,
)
from tests import squad_files

SIZES = squad_windows.WindowSizes(64, 16, 24)


@pytest.fixture(scope="module")
def tokenizer(golden):
    return tokenization.FullTokenizer(golden / "tiny_tf1/vocab.txt")


def write(path, examples, tokenizer, is_training=False):
    windows = squad_windows.make_windows(examples, tokenizer, SIZES)
    return squad_records.WindowFile.write(str(path), windows, 64, is_training)


@pytest.mark.parametrize(
    "version_2, name", [(False, "squad_v1/eval"), (True, "squad_v2/train")]
)
def test_records_are_the_originals(golden, tokenizer, tmp_path, version_2, name):
    path = squad_files.golden_input(golden, version_2)
    is_training = name.endswith("train")
    if is_training:
        examples = squad.read_training_set([path], version_2)
        random.Random(12345).shuffle(examples)
    else:
        examples = squad.read_prediction_set(path)
    file = write(tmp_path / "ours.tf_record", examples, tokenizer, is_training)
    theirs = [str(golden / "tiny_tf1_runs" / f"{name}.tf_record")]
    expected = record_reading.read_all(theirs, file.spec)
    found = record_reading.read_all([file.path], file.spec)
    assert file.num_windows == len(expected["input_ids"]) > 100
    for key, values in expected.items():
        np.testing.assert_array_equal(found[key], values, err_msg=key)


def test_batches_hold_every_window_once(golden, tokenizer, tmp_path):
    path = squad_files.golden_input(golden, False)
    examples = squad.read_prediction_set(path)
    file = write(tmp_path / "eval.tf_record", examples, tokenizer)
    batches = file.evaluation_batches(8)
    assert int(batches.cardinality()) == -(-file.num_windows // 8)
    ids = [
        unique_id
        for batch in batches.as_numpy_iterator()
        for unique_id in batch["unique_ids"][batch["is_real_example"] == 1]
    ]
    first = squad_windows.FIRST_UNIQUE_ID
    assert ids == list(range(first, first + file.num_windows))


def test_no_window_no_file(tokenizer, tmp_path):
    example = squad.SquadExample("q", "who?", squad.Paragraph.from_text(" "))
    file = write(tmp_path / "eval.tf_record", [example], tokenizer)
    assert file.num_windows == 0
    assert list(tmp_path.iterdir()) == []
    assert list(file.evaluation_batches(8)) == []
    with pytest.raises(ValueError, match="all contexts are empty"):
        file.training_batches(8, seed=0)


def test_training_batches_go_on_from_a_step(golden, tokenizer, tmp_path):
    path = squad_files.golden_input(golden, True)
    examples = squad.read_training_set([path], True)
    file = write(tmp_path / "train.tf_record", examples, tokenizer, True)
    assert file.spec == records.squad_spec(64, is_training=True)

    def ids(first_step, count):
        batches = file.training_batches(8, 3).starting_at(first_step).take(count)
        return [b["unique_ids"].tolist() for b in batches.as_numpy_iterator()]

    whole = ids(0, 70)  # more than an epoch
    assert ids(50, 20) == whole[50:]
    assert len({i for batch in whole for i in batch}) == file.num_windows
