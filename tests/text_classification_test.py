"""The predictor that stays loaded: the original's numbers, any batch, any order."""

import json
import random
import shutil

import numpy as np
import pytest

import text_classification
from data import glue
from tests import scripts


@pytest.fixture(scope="module")
def run(golden, tmp_path_factory):
    """The output folder of the original's MRPC run, taken over by ours."""
    out = tmp_path_factory.mktemp("predictor") / "run"
    out.mkdir()
    original = golden / "tiny_tf1_runs/classifier_mrpc"
    for path in [original / "checkpoint", *original.glob("model.ckpt-12.*")]:
        shutil.copy(path, out)
    scripts.succeed(
        "run_classifier.py",
        task_name="mrpc",
        data_dir=golden / "glue_samples/MRPC",
        bert_config_file=golden / "tiny_tf1/bert_config.json",
        vocab_file=golden / "tiny_tf1/vocab.txt",
        max_seq_length=48,
        output_dir=out,
        do_eval=True,
    )
    return out


@pytest.fixture(scope="module")
def pairs(golden):
    examples = glue.find_task("mrpc").examples(golden / "glue_samples/MRPC", "dev")
    return [e.text_a for e in examples], [e.text_b for e in examples]


@pytest.fixture(scope="module")
def expected(golden):
    """float32 [10, 2], the original's logits of `pairs`."""
    path = golden / "tiny_tf1_runs/classifier_mrpc/expected_eval.npz"
    return np.load(path)["logits"]


@pytest.mark.parametrize("batch_size", [1, 3, 16])
def test_pairs_give_the_originals_answers(run, pairs, expected, batch_size):
    predictor = text_classification.load(run, batch_size)
    np.testing.assert_allclose(predictor.logits(*pairs), expected, atol=2e-5)
    answers = predictor.predict(*pairs)
    assert [a["label"] for a in answers] == [str(i) for i in expected.argmax(axis=1)]
    exponentials = np.exp(expected - expected.max(axis=1, keepdims=True))
    scores = exponentials.max(axis=1) / exponentials.sum(axis=1)
    np.testing.assert_allclose([a["score"] for a in answers], scores, atol=1e-5)


def test_answers_are_in_the_order_of_the_texts(run, pairs):
    predictor = text_classification.load(run, batch_size=2)
    texts = [" ".join(pairs[0][: i % 4]) for i in range(9)]  # of many lengths
    alone = np.concatenate([predictor.logits([text]) for text in texts])
    np.testing.assert_allclose(predictor.logits(texts), alone, atol=1e-5)
    order = list(range(9))
    random.Random(0).shuffle(order)
    shuffled = predictor.logits([texts[i] for i in order])
    np.testing.assert_allclose(shuffled, alone[order], atol=1e-5)


def test_short_texts_are_not_padded_to_the_maximum(run, monkeypatch):
    predictor = text_classification.load(run)
    shapes = []
    forward = predictor._logits._forward

    def watched(batch):
        shapes.append(tuple(batch["input_ids"].shape))
        return forward(batch)

    monkeypatch.setattr(predictor._logits, "_forward", watched)
    predictor.predict(["the cat", "the cat sat", "the"])
    longest = len(predictor.tokenizer.encode("the cat sat")) + 2
    assert shapes == [(3, longest)]
    predictor.predict(["the " * 300])
    assert shapes[1:] == [(1, 48)]


def test_no_texts_no_answers(run):
    assert text_classification.load(run).predict([]) == []


def test_lists_that_do_not_fit(run):
    predictor = text_classification.load(run)
    with pytest.raises(ValueError, match="needs the other, got 2 and 1 texts"):
        predictor.predict(["the cat", "the dog"], ["a cat"])


def test_folders_that_hold_no_classifier(run, tmp_path):
    with pytest.raises(ValueError, match="no output folder of a run: .*model.json"):
        text_classification.load(tmp_path)
    other = tmp_path / "other"
    shutil.copytree(run, other)
    identity = json.loads((other / "model.json").read_text())
    (other / "model.json").write_text(json.dumps(identity | {"script": "run_ner"}))
    with pytest.raises(ValueError, match="is of run_ner, where a run of run_classi"):
        text_classification.load(other)
    (other / "model.json").write_text(json.dumps(identity))
    for path in (other / "checkpoint", *other.glob("model.ckpt-*")):
        path.unlink()
    with pytest.raises(ValueError, match="there is no checkpoint in"):
        text_classification.load(other)
