"""run_squad.py: the original's numbers, learning, thresholds, resuming, bad input."""

import json
import os
import random
import shutil
import subprocess

import numpy as np
import pytest

import squad_results
from modeling import checkpoint
from tests import resuming, scripts, squad_files

RUN = "run_squad.py"


@pytest.fixture
def tiny(golden):
    """Flags of the tiny original model."""
    return {
        "bert_config_file": golden / "tiny_tf1/bert_config.json",
        "vocab_file": golden / "tiny_tf1/vocab.txt",
        "max_seq_length": 64,
        "doc_stride": 16,
        "max_query_length": 24,
    }


@pytest.fixture
def original_run(golden, tmp_path):
    """Copies what the original trained to an output folder; returns that."""

    def copy(name):
        run = golden / "tiny_tf1_runs" / name
        out = tmp_path / name
        out.mkdir()
        for path in [run / "checkpoint", *run.glob("model.ckpt-*")]:
            shutil.copy(path, out)
        return out

    return copy


def read_json(path):
    return json.loads(path.read_text("utf-8"))


def read_lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_the_originals_output_folder_gives_its_answers(golden, tiny, original_run):
    out = original_run("squad_v1")
    path = squad_files.golden_input(golden, False)
    flags = {**tiny, "predict_file": path, "output_dir": out, "do_predict": True}
    scripts.succeed(RUN, **flags)
    run = golden / "tiny_tf1_runs/squad_v1"
    # Near ties may swap: compare scores, and texts where the scores are apart.
    expected = read_json(run / "nbest_predictions.json")
    found = read_json(out / "nbest_predictions.json")
    assert list(found) == list(expected)
    for qas_id, entries in expected.items():
        scores = [e["start_logit"] + e["end_logit"] for e in entries]
        ours = [e["start_logit"] + e["end_logit"] for e in found[qas_id]]
        np.testing.assert_allclose(ours, scores, atol=4e-5)
        if len(scores) < 2 or scores[0] - scores[1] > 1e-4:
            assert found[qas_id][0]["text"] == entries[0]["text"]
        ours = [entry["probability"] for entry in found[qas_id]]
        theirs = [entry["probability"] for entry in entries]
        np.testing.assert_allclose(ours, theirs, atol=4e-5)
    ours = read_json(out / "predictions.json")
    theirs = read_json(run / "predictions.json")
    assert sum(ours[i] != theirs[i] for i in theirs) <= 1

    data = read_json(path)["data"]
    contexts = {
        qa["id"]: p["context"]
        for article in data
        for p in article["paragraphs"]
        for qa in p["qas"]
    }
    lines = read_lines(out / "answers.jsonl")
    assert [line["id"] for line in lines] == list(contexts)
    for line in lines:
        for answer in (line, *line["candidates"]):
            if answer["start"] is None:  # the original's "empty"
                assert answer["text"] == ""
                continue
            context = contexts[line["id"]]
            assert context[answer["start"] : answer["end"]] == answer["text"] != ""
    scores = scripts.read_results(out / "eval_results.txt")
    assert scores["total"] == 33
    assert scores["global_step"] == 8
    assert set(scores) == {"exact_match", "f1", "total", "global_step"}

    # Without padding, too, all windows of a question count: the lowest of their scores
    # of no answer is the same.
    scripts.succeed(RUN, **flags, pad_to_max=False)
    again = read_lines(out / "answers.jsonl")
    ours = [line["null_score"] for line in again]
    np.testing.assert_allclose(ours, [x["null_score"] for x in lines], atol=4e-5)


def test_version_2_from_the_originals_folder(golden, tiny, original_run):
    """Where the original crashed; the threshold is found, kept and applied."""
    out = original_run("squad_v2")
    flags = {
        **tiny,
        "predict_file": squad_files.golden_input(golden, True),
        "output_dir": out,
        "do_predict": True,
        "version_2_with_negative": True,
    }
    scripts.succeed(RUN, **flags)
    texts = read_json(out / "predictions.json")
    odds = read_json(out / "null_odds.json")
    best = read_json(out / "nbest_predictions.json")
    assert len(texts) == len(odds) == 45
    for qas_id, text in texts.items():
        assert (text == "") == (odds[qas_id] > 0)
        assert any(entry["text"] == "" for entry in best[qas_id])
    before = scripts.read_results(out / "eval_results.txt")
    found = read_json(out / "null_score_diff_threshold.json")
    assert found["null_score_diff_threshold"] == before["best_f1_thresh"]
    assert found["global_step"] == 11
    assert before["best_f1"] >= before["f1"]
    scripts.succeed(RUN, **flags, threshold="found")
    after = scripts.read_results(out / "eval_results.txt")
    assert after["f1"] == after["best_f1"] == before["best_f1"]
    assert read_json(out / "null_score_diff_threshold.json") == found
    # It is no threshold of other weights, and the folder not of the other version.
    squad_results.write_threshold(out, {"best_f1_thresh": 0, "best_f1": 1}, "x", 10)
    sentence = scripts.refusal(RUN, **flags, threshold="found")
    assert "of the model of step 10, and this is that of step 11" in sentence
    flags["version_2_with_negative"] = False
    sentence = scripts.refusal(RUN, **flags)
    assert "another model: there 'version_2_with_negative' is True" in sentence


@pytest.mark.slow
def test_killed_three_times_it_ends_with_the_same_bits(golden, tiny, tmp_path):
    flags = {
        **tiny,
        "train_file": squad_files.golden_input(golden, True),
        "version_2_with_negative": True,
        "init_checkpoint": golden / "tiny_tf1/bert_model.ckpt",
        "do_train": True,
        "train_batch_size": 4,
        "num_train_epochs": 15,
        "save_checkpoints_steps": 5,
    }
    resuming.check(RUN, flags, tmp_path)
    assert checkpoint.read(tmp_path / "whole", with_slots=True)["global_step"] == 165
    # The original's records too, as the order comes from the same seed.
    settings = read_json(tmp_path / "whole/settings.json")
    assert settings["seed"] == 12345


NAMES = ["ada", "bob", "cleo", "dan", "eve", "fay"]
CITIES = ["rome", "oslo", "lima", "bern", "kyiv", "baku"]


@pytest.fixture
def town(tmp_path):
    """Flags of a small world that can be learnt: who and where, but not why."""
    words = ["who", "where", "why", "does", "live", "lives", "in", "?", "."]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *NAMES, *CITIES]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens) + "\n")
    config = {
        "vocab_size": len(tokens),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 32,
        "type_vocab_size": 2,
        "initializer_range": 0.2,
    }
    (tmp_path / "bert_config.json").write_text(json.dumps(config))
    rng = random.Random(0)

    def paragraphs(count):
        for number in range(count):
            name, city = rng.choice(NAMES), rng.choice(CITIES)
            context = f"{name} lives in {city}."
            entries = [
                squad_files.question(f"who {number}", (name, 0)),
                squad_files.question(f"where {number}", (city, context.index(city))),
                squad_files.question(f"why {number}", is_impossible=True),
            ]
            texts = [
                f"Who lives in {city}?",
                f"Where does {name} live?",
                f"Why does {name} live in {city}?",
            ]
            for entry, text in zip(entries, texts, strict=True):
                entry["question"] = text
            yield context, entries

    squad_files.write(tmp_path / "train.json", *paragraphs(100))
    squad_files.write(tmp_path / "dev.json", *paragraphs(20))
    return {
        "bert_config_file": tmp_path / "bert_config.json",
        "vocab_file": tmp_path / "vocab.txt",
        "train_file": tmp_path / "train.json",
        "predict_file": tmp_path / "dev.json",
        "version_2_with_negative": True,
        "max_seq_length": 24,
        "doc_stride": 8,
        "max_query_length": 8,
        "train_batch_size": 16,
        "learning_rate": 1e-3,
        "num_train_epochs": 12,
        "output_dir": tmp_path / "out",
    }


@pytest.mark.slow
def test_a_small_world_is_learnt(town, tmp_path):
    out = tmp_path / "out"
    flags = {**town, "save_checkpoints_steps": 100, "keep_best": True}
    scripts.succeed(RUN, **flags, do_train=True, do_eval=True)
    scores = scripts.read_results(out / "eval_results.txt")
    # Always "" would give 0 and 100.
    assert scores["HasAns_f1"] > 90
    assert scores["NoAns_f1"] > 90
    assert scores["best_f1"] >= scores["f1"]
    assert (scores["HasAns_total"], scores["NoAns_total"]) == (40, 20)
    steps = [line["step"] for line in read_lines(out / "validation.jsonl")]
    assert steps == [100, 200, 225]

    # One question, in a process that knows the folder only.
    def ask(question, **flags):
        command = scripts.command(
            RUN,
            output_dir=out,
            question=question,
            context="  Cleo lives in\nOslo. ",
            **flags,
        )
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(result.stdout)

    answer = ask("WHERE does cleo live?")
    assert (answer["text"], answer["start"], answer["end"]) == ("Oslo", 16, 20)
    assert answer["score"] > answer["null_score"]
    none = ask("Why does Cleo live in Oslo?")
    assert (none["text"], none["start"], none["end"]) == ("", None, None)
    assert none["score"] == none["null_score"]
    forced = ask("Why does Cleo live in Oslo?", null_score_diff_threshold=1e9)
    assert forced["text"] != ""

    # A second stage, from the folder of the first and on two files.
    second = tmp_path / "second"
    flags = {
        **town,
        "train_file": f"{town['train_file']},{town['train_file']}",
        "init_checkpoint": out,
        "num_train_epochs": 0.2,
        "epochs_of": "windows",
        "freeze_layers": 2,
        "pad_to_max": False,
        "output_dir": second,
    }
    shown = scripts.succeed(RUN, **flags, do_train=True, do_predict=True)
    scores = scripts.read_results(second / "eval_results.txt")
    assert scores["HasAns_f1"] > 90
    values = checkpoint.read(second, with_slots=True)
    assert values["global_step"] == int(600 / 16 * 0.2)
    before = checkpoint.read(out)
    for name in before:
        if name.startswith("bert/e"):
            np.testing.assert_array_equal(values[name], before[name])
    assert "freshly initialised      0" in shown


def test_texts_without_any_token_are_answered(tiny, original_run, tmp_path):
    path = squad_files.write(
        tmp_path / "empty.json",
        ("", [squad_files.question("a")]),
        ("\u200b", [squad_files.question("b")]),
    )
    out = original_run("squad_v2")
    flags = {**tiny, "predict_file": path, "output_dir": out, "do_predict": True}
    scripts.succeed(RUN, **flags, version_2_with_negative=True)
    assert read_json(out / "predictions.json") == {"a": "", "b": ""}
    assert read_json(out / "null_odds.json") == {"a": 1e9, "b": 1e9}
    lines = read_lines(out / "answers.jsonl")
    assert [(line["text"], line["start"]) for line in lines] == [("", None)] * 2


@pytest.fixture
def working(golden, tiny, tmp_path):
    """Flags of a run that works, if only it had something to do."""
    good = squad_files.question("good", ("ada", 6))
    path = squad_files.write(tmp_path / "good.json", ("it is ada", [good]))
    return {
        **tiny,
        "init_checkpoint": golden / "tiny_tf1/bert_model.ckpt",
        "train_file": path,
        "predict_file": path,
        "output_dir": tmp_path / "out",
    }


FOUND = {"threshold": "found", "version_2_with_negative": True}


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"do_predict": True, "predict_file": ""}, "needs a --predict_file"),
        ({"do_predict": True, "max_query_length": 61}, "--max_query_length"),
        ({"do_predict": True, "threshold": "found"}, "without --version_2_with_neg"),
        ({"do_predict": True, **FOUND}, "found yet"),
        ({"do_train": True, **FOUND}, "of a trained model"),
        ({"question": "who?", "context": "ada"}, "is no output folder of a run"),
    ],
)
def test_flags_that_do_not_go_together(working, changes, words):
    flags = {name: value for name, value in (working | changes).items() if value != ""}
    assert words in scripts.refusal(RUN, **flags)
    assert not os.path.exists(working["output_dir"])


def test_files_that_are_no_good(working, tmp_path):
    path = tmp_path / "bad.json"
    train = {**working, "do_train": True, "train_file": path}
    predict = {**working, "do_predict": True, "predict_file": path}

    bad = [squad_files.question(name, ("bob", 6)) for name in ("bad1", "bad2")]
    squad_files.write(path, ("it is ada", bad))
    result = scripts.run(RUN, **train)
    assert "left out 2 questions" in result.stderr
    assert "bad1 bad2" in result.stderr
    assert "no question to train on" in result.stderr
    assert result.returncode == 1
    squad_files.write(path, ("it is ada", bad[:1] * 2))
    assert "'bad1'" in scripts.refusal(RUN, **predict)
    squad_files.write(path, ("it is ada", [{"id": "x", "question": "who?"}]))
    sentence = scripts.refusal(RUN, **predict, do_eval=True)
    assert "not all questions have answers" in sentence
    assert not os.path.exists(working["output_dir"])
