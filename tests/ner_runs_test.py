"""What the tagging scripts share: which files are read, what follows from a model."""

import json

import numpy as np
import pytest

import ner_runs
from tests import scripts

ROWS = "a\tB-X\nb\tI-X\n1\tO\n\nc\tB-Y\n"
LABELS = ("O", "B-X", "I-X", "B-Y", "I-Y")


@pytest.fixture
def values(tmp_path):
    """Flags that read one file as all three sets."""
    (tmp_path / "rows.txt").write_text(ROWS)
    files = {f"{kind}_file": str(tmp_path / "*.txt") for kind in ("train", "dev")}
    return {
        **files,
        "test_file": None,
        "word_column": None,
        "tag_column": None,
        "allow_mixed_tags": False,
        "document_context": False,
        "output_dir": str(tmp_path / "out"),
        "init_checkpoint": None,
        "do_train": True,
        "do_eval": False,
        "keep_best": False,
        "do_predict": False,
    }


def test_what_is_asked_for_is_read(values, tmp_path):
    sets, labels = ner_runs.read_sets(values)
    assert {kind: len(files) for kind, files in sets.items()} == {
        "train": 1,
        "dev": 0,
        "test": 0,
    }
    assert labels == LABELS
    sets, _ = ner_runs.read_sets(values | {"keep_best": True})
    assert [s.words for s in sets["dev"][0].sentences] == [("a", "b", "1"), ("c",)]
    with pytest.raises(ValueError, match="there is no test set: give --test_file"):
        ner_runs.read_sets(values | {"do_predict": True})
    (tmp_path / "labels.json").write_text('["O", "B-X", "I-X"]')
    there = {"do_train": False, "do_eval": True, "output_dir": str(tmp_path)}
    with pytest.raises(ValueError, match="line 5: B-Y is not in the training data"):
        ner_runs.read_sets(values | there)


class Forward:
    """Predicts label ids, two windows a batch; the loss of a word is 0.5."""

    def __init__(self, label_ids):
        self.label_ids = np.array(label_ids)

    def rows(self, batches, description):
        assert description == "tagging"
        for ids, mask in zip(self.label_ids, batches, strict=True):
            yield {"label_ids": ids, "label_mask": mask, "losses": 0.5 * mask}


def test_tags_scores_and_files(values, tmp_path):
    sets, labels = ner_runs.read_sets(values)
    forward = Forward([[[4, 1, 2, 0, 3]], [[1, 3, 1, 1, 1]]])
    masks = np.array([[[0, 1, 1, 1, 0]], [[0, 1, 0, 0, 0]]])
    tags, scores = tagged = ner_runs.tag(forward, labels, sets["train"], masks)
    assert tags == ["B-X", "I-X", "O", "B-Y"]
    assert (scores["f1"], scores["loss"]) == (1, 0.5)

    forward = Forward([[[0, 1, 0, 0, 0]], [[0, 3, 0, 0, 0]]])
    tagged = ner_runs.tag(forward, labels, sets["train"], masks)
    ner_runs.write(str(tmp_path), "eval", sets["train"], 7, tagged)
    lines = (tmp_path / "eval_predictions.conll").read_text().split("\n")
    columns = [line.rpartition("\t")[::2] for line in lines[:3]]
    assert columns == [("a\tB-X\tB-X", "B-X"), ("b\tI-X\tI-X", "O"), ("1\tO\tO", "O")]
    results = scripts.read_results(tmp_path / "eval_results.txt")
    # X found with a wrong end, Y right: one of two, both ways.
    assert results["eval_precision"] == results["eval_recall"] == 0.5
    assert results["global_step"] == 7
    ner_runs.write_training_scores(str(tmp_path), sets["train"], 7, tagged[1])
    results = json.loads((tmp_path / "train_results.json").read_text())
    assert (results["train_f1"], results["train_majority"]) == (0.5, 0.25)


def test_without_tags_there_are_no_scores(values, tmp_path):
    (tmp_path / "rows.txt").write_text("a\nb\n")
    values |= {"do_train": False, "do_predict": True, "output_dir": str(tmp_path)}
    values["test_file"] = values["dev_file"]
    (tmp_path / "labels.json").write_text('["O", "B-X", "I-X"]')
    sets, labels = ner_runs.read_sets(values)
    forward = Forward([[[0, 1, 2, 0]]])
    mask = np.array([[[0, 1, 1, 0]]])
    tagged = ner_runs.tag(forward, labels, sets["test"], mask)
    assert tagged == (["B-X", "I-X"], {})
    ner_runs.write(str(tmp_path), "test", sets["test"], 1, tagged)
    assert (tmp_path / "test_predictions.conll").exists()
    assert not (tmp_path / "test_results.txt").exists()
