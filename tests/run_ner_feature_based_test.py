"""run_ner_feature_based.py: it learns, its folder remembers, a kill changes nothing."""

import json
import shutil

import numpy as np
import pytest

from modeling import checkpoint
from tests import resuming, run_ner_test, scripts

RUN = "run_ner_feature_based.py"


@pytest.fixture
def flags(golden, tmp_path):
    """Flags of a run that works, on an encoder of two layers."""
    write, sentences = run_ner_test.write_sentences, run_ner_test.sentences_of
    return {
        "train_file": write(tmp_path / "train.txt", sentences(200, "train", 20)),
        "dev_file": write(tmp_path / "dev.txt", sentences(30, "dev")),
        "init_checkpoint": golden / "tiny_tf1/bert_model.ckpt",
        "max_seq_length": 24,
        "bilstm_size": 32,
        "output_dir": tmp_path / "out",
    }


LEARN = {
    "do_train": True,
    "train_batch_size": 16,
    "learning_rate": 1e-2,
    "num_train_epochs": 15,
}


def test_tags_are_learnt_and_scored(flags, tmp_path):
    out = tmp_path / "out"
    scripts.succeed(
        RUN,
        **flags,
        **LEARN,
        features="sum_all",
        weighted_sums=True,
        keep_best=True,
        save_checkpoints_steps=60,
        do_eval=True,
    )
    results = json.loads((out / "eval_results.json").read_text())
    assert results["eval_f1"] > 0.6  # of random vectors
    lines = map(json.loads, (out / "validation.jsonl").read_text().splitlines())
    assert results["eval_f1"] == max(line["f1"] for line in lines)
    expected = run_ner_test.conlleval_scores(out / "eval_predictions.conll")
    assert {n: results[f"eval_{n}"] for n in expected} == pytest.approx(expected)
    weights = checkpoint.read(out / "best")
    assert not [name for name in weights if name.startswith("bert/")]
    assert (np.abs(weights["weighted_sum/factors"] - 0.5) > 1e-3).all()


@pytest.mark.slow
def test_a_folder_knows_its_encoder_and_choices(flags, tmp_path):
    out = tmp_path / "out"
    encoder = flags.pop("init_checkpoint")
    choices = {"features": "sum_all", "weighted_sums": True, "bilstm_layers": 1}
    size = flags.pop("bilstm_size")
    flags["do_eval"] = True
    scripts.succeed(
        RUN,
        **flags,
        **LEARN | {"num_train_epochs": 1},
        **choices,
        init_checkpoint=encoder,
        bilstm_size=size,
    )
    results = json.loads((out / "eval_results.json").read_text())
    identity = json.loads((out / "model.json").read_text())
    assert choices.items() <= identity.items() and identity["bilstm_size"] == size
    flags["train_file"].unlink()
    again = scripts.succeed(RUN, **flags)
    assert "freshly initialised      0" in again
    assert json.loads((out / "eval_results.json").read_text()) == results
    test_file = run_ner_test.write_sentences(
        tmp_path / "test.txt", run_ner_test.sentences_of(9, "test", 60), columns=1
    )
    scripts.succeed(RUN, **flags, do_predict=True, test_file=test_file)
    assert (out / "test_predictions.conll").exists()
    for changes, said in (
        ({"features": "last", "weighted_sums": False}, "there 'features' is sum_all"),
        ({"features": "last"}, "there 'features' is sum_all, this run's last"),
        ({"bilstm_layers": 2}, "there 'bilstm_layers' is 1, this run's 2"),
        ({"init_checkpoint": spoiled(encoder, tmp_path)}, "there 'encoder_sha256' is"),
    ):
        assert said in scripts.refusal(RUN, **flags, **changes)


def spoiled(path, tmp_path):
    """A copy of an encoder with one weight changed."""
    shutil.copytree(path.parent, tmp_path / "spoiled")
    prefix = str(tmp_path / "spoiled/bert_model.ckpt")
    weights = checkpoint.read(prefix)
    weights["bert/embeddings/word_embeddings"][7, 3] += 1e-3
    checkpoint.write_tf1(prefix, weights)
    return prefix


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"features": "concat_last4"}, ["concat_last4 needs 4", "the model has 2"]),
        ({"init_checkpoint": None}, ["no encoder", "--init_checkpoint"]),
        ({"features": "last", "weighted_sums": True}, ["no effect", "features=last"]),
        ({"recompute": True}, ["--recompute", "frozen"]),
        ({"features": "last", "bilstm_size": 7}, ["must be even, got 7"]),
        ({"features": "last", "patience": 2}, ["no effect without --keep_best"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_what_cannot_work_is_refused_in_one_sentence(flags, tmp_path, changes, words):
    flags |= {"do_train": True, **changes}
    flags = {name: value for name, value in flags.items() if value is not None}
    sentence = scripts.refusal(RUN, **flags)
    assert [word for word in words if word not in sentence] == [], sentence
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_killed_three_times_it_ends_with_the_same_bits(flags, tmp_path):
    flags |= LEARN | {"features": "sum_all", "weighted_sums": True}
    flags |= {"train_batch_size": 4, "num_train_epochs": 1, "save_checkpoints_steps": 7}
    del flags["output_dir"]
    resuming.check(RUN, flags, tmp_path)
