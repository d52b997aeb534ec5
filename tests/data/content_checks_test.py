"""What can be wrong within records of pre-training is told, one by one."""

import numpy as np
import pytest

from data import (
    content_checks,
    inspection,
    inspection_checks,
    inspection_statistics,
    tokenization,
)
from tests import pretraining_records
from tests.pretraining_records import CLS, MASK, SEP, UNK


@pytest.fixture
def vocab(golden):
    return tokenization.load_vocab(golden / "tiny_tf1/vocab.txt")


@pytest.fixture
def check(tmp_path):
    """Function of records and what is wanted, that returns what does not fit, and the
    names of all checks."""

    def check(data, vocab=None, prob=None):
        path = pretraining_records.write(tmp_path / "a", data)
        settings = inspection_statistics.Settings(
            0.15 if prob is None else prob, vocab=vocab
        )
        inspector = inspection.Inspector(settings)
        inspector.read(path)
        wanted = inspection_checks.Wanted(vocab=vocab, masked_lm_prob=prob)
        checks = content_checks.check(inspector.report(), wanted)
        return {c.name: c for c in checks if not c.fits}, [c.name for c in checks]

    return check


def test_what_fits(check, vocab):
    wrong, names = check(pretraining_records.make(), vocab, 0.15)
    assert wrong == {}
    assert names[:9] == [name for _, name, _, _ in content_checks._RECORD_CHECKS]
    assert names[9:] == [
        "next sentence",
        "masked share",
        "masking",
        "[CLS]",
        "[SEP]",
        "[UNK]",
    ]
    assert check(pretraining_records.make())[1] == [*names[:10], "masking"]


# What is spoilt → feature, columns, value; and which checks tell.
SPOILT = {
    "hole": ("input_mask", 2, 0, ["input_mask"]),
    "mask of 2": ("input_mask", 2, 2, ["input_mask"]),
    "no token": ("input_mask", slice(None), 0, ["input_mask", "positions"]),
    "segment after padding": ("segment_ids", -1, 1, ["segment_ids"]),
    "segment 2": ("segment_ids", 2, 2, ["segment_ids"]),
    "in padding": ("masked_lm_positions", 0, "length", ["positions"]),
    "behind the end": ("masked_lm_positions", 0, 24, ["positions"]),
    "before the start": ("masked_lm_positions", 0, -1, ["positions"]),
    "weightless behind the end": ("masked_lm_positions", 3, 24, ["positions"]),
    "at [CLS]": ("masked_lm_positions", 0, 0, ["predicted tokens"]),
    "at [SEP]": ("masked_lm_positions", 0, "end of A", ["predicted tokens"]),
    "at the last [SEP]": ("masked_lm_positions", 0, "end", ["predicted tokens"]),
    "twice": ("masked_lm_weights", slice(2), 1, ["repeated positions"]),
    "half a weight": ("masked_lm_weights", 0, 0.5, ["weights"]),
    "no weight": ("masked_lm_weights", slice(None), 0, ["predictions"]),
    "label 2": ("next_sentence_labels", 0, 2, ["labels"]),
}


@pytest.mark.parametrize("what", SPOILT)
def test_faults_of_records(what, check, tmp_path):
    feature, columns, value, names = SPOILT[what]
    data = pretraining_records.make(100)
    lengths = data["input_mask"].sum(axis=1)
    # With padding and a single prediction, so that every place exists.
    is_fit = (data["masked_lm_weights"].sum(axis=1) <= 2) & (lengths < 24)
    rows = np.flatnonzero(is_fit)[[3, 5]]
    for row in rows:
        if what == "twice":
            data["masked_lm_positions"][row, :2] = data["masked_lm_positions"][row, 0]
        places = {
            "length": lengths[row],
            "end": lengths[row] - 1,
            "end of A": lengths[row] - data["segment_ids"][row].sum() - 1,
        }
        data[feature][row, columns] = places.get(value, value)
    wrong, _ = check(data)
    # Without its mask or segment, a token is missing elsewhere too.
    if columns != 2 and what != "no token":
        assert list(wrong) == names
    for name in names:
        text = f"in 2 of 100 records, the first in {tmp_path}/a, record {rows[0] + 1}"
        assert text in wrong[name].came
        assert wrong[name].change.startswith("build the records again")


def test_next_sentences_of_one_class(check):
    for label, came in ((0, "64 true, 0 random"), (1, "0 true, 64 random")):
        data = pretraining_records.make()
        data["next_sentence_labels"][:] = label
        wrong, _ = check(data)
        assert list(wrong) == ["next sentence"]
        assert wrong["next sentence"].came == came
    data = {name: values[:20] for name, values in data.items()}
    assert check(data)[0] == {}  # by chance, perhaps


def test_a_masked_share_far_from_what_was_wanted(check):
    data = pretraining_records.make(200, 60, 20)
    assert check(data, prob=0.15)[0] == {}
    wrong, _ = check(data, prob=0.25)
    assert list(wrong) == ["masked share"]
    assert "as masked_lm_prob is 0.25" in wrong["masked share"].expected
    tokens, predictions = data["input_mask"].sum(), data["masked_lm_weights"].sum()
    assert wrong["masked share"].came == f"{100 * predictions / tokens:.1f} %"
    assert "with this --masked_lm_prob" in wrong["masked share"].change
    wrong, _ = check(data, prob=0.1)
    assert list(wrong) == ["masked share"]


def test_too_few_predictions_allowed(check):
    data = pretraining_records.make(200, 60, 2)
    wrong, _ = check(data, prob=0.15)
    assert list(wrong) == ["masked share"]
    assert "with a larger --max_predictions_per_seq" in wrong["masked share"].change


def test_short_records_have_a_larger_share(check):
    data = pretraining_records.make(200, 13, 1)
    share = data["masked_lm_weights"].sum() / data["input_mask"].sum()
    wrong, _ = check(data, prob=0.02)
    assert share > 0.08  # one a record
    assert wrong == {}


@pytest.mark.parametrize("kind", ["[MASK]", "kept", "random"])
def test_masks_of_another_kind(kind, check):
    data = pretraining_records.make(200)
    rows, slots = np.nonzero(data["masked_lm_weights"])
    places = rows, data["masked_lm_positions"][rows, slots]
    answers = data["masked_lm_ids"][rows, slots]
    shown = {"[MASK]": MASK, "kept": answers, "random": answers % 50 + 30}[kind]
    data["input_ids"][places] = shown
    wrong, _ = check(data)
    assert list(wrong) == ["masking"]
    assert "100.0 %" in wrong["masking"].came or kind == "random"


def test_another_vocabulary_is_told_by_its_special_tokens(check, vocab):
    other = {token: (i + 7) % 100 for token, i in vocab.items()}
    wrong, _ = check(pretraining_records.make(), other)
    assert list(wrong) == ["masking", "[CLS]", "[SEP]"]
    names = {i: token for token, i in other.items()}
    assert (
        wrong["[CLS]"].expected == f"[CLS] (id {CLS + 7}) at the start of every record"
    )
    assert wrong["[CLS]"].came == f"{names[CLS]} (id {CLS}, 64 times)"
    assert wrong["[SEP]"].came == f"{names[SEP]} (id {SEP}, 64 times)"
    assert "another vocabulary; give that one" in wrong["[SEP]"].change


def test_one_record_without_cls_is_told(check, vocab):
    data = pretraining_records.make()
    data["input_ids"][5, 0] = 17
    wrong, _ = check(data, vocab)
    assert list(wrong) == ["[CLS]"]
    assert "[CLS] (id 2, 63 times), " in wrong["[CLS]"].came
    assert wrong["[CLS]"].came.endswith("(id 17, 1 times)")


def test_many_unknown_tokens(check, vocab):
    data = pretraining_records.make()
    is_text = data["input_ids"] > MASK
    rng = np.random.default_rng(0)
    data["input_ids"][is_text & (rng.random(is_text.shape) < 0.2)] = UNK
    wrong, _ = check(data, vocab)
    assert set(wrong) - {"masking"} == {"[UNK]"}
    assert 14 < float(wrong["[UNK]"].came.rstrip(" %")) < 22
    assert "--do_lower_case" in wrong["[UNK]"].change
