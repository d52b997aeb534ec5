"""What a run's folder holds in the end, and what is refused of it; all the scripts."""

import json
import shutil

import pytest

import choosing
import question_answering
import run_directory
import run_glue
import runs
import text_classification
import word_tagging
from tests import scripts, squad_files


@pytest.fixture
def flags_of(golden, tmp_path):
    """Function of a script, giving flags of a short training of it."""
    entries = [squad_files.question(name, ("ada", 6)) for name in "abcd"]
    questions = squad_files.write(tmp_path / "q.json", ("it is ada", entries))
    words = tmp_path / "words.txt"
    words.write_text("ada B-PER\nsleeps O\n\nshe O\nsleeps O\n\n" * 4)
    endings = "sent1,sent2,ending0,ending1,label\n" + "a,b,c,d,0\na,b,c,d,1\n" * 3
    for name in ("train.csv", "val.csv"):
        (tmp_path / name).write_text(endings)
    (tmp_path / "own").mkdir()
    for name in ("train.tsv", "dev.tsv", "test.tsv"):
        (tmp_path / "own" / name).write_text(
            "text\tlabel\n" + "a dog\tyes\na cat\tno\n" * 4
        )
    common = {
        "init_checkpoint": golden / "tiny_tf1/bert_model.ckpt",
        "max_seq_length": 16,
        "train_batch_size": 2,
        "num_train_epochs": 2,
        "output_dir": tmp_path / "out",
        "do_train": True,
    }
    own = {
        "run_classifier": {"task_name": "own", "data_dir": tmp_path / "own"},
        "run_ner": {"train_file": words, "dev_file": words, "test_file": words},
        "run_squad": {
            "train_file": questions,
            "predict_file": questions,
            "max_query_length": 8,
            "doc_stride": 4,
        },
        "run_swag": {"task_name": "swag", "data_dir": tmp_path},
    }
    return lambda script: common | own[script]


SCRIPTS = ["run_classifier", "run_ner", "run_squad", "run_swag"]


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_training_in_bfloat16_is_exported(flags_of, tmp_path, script):
    flags = flags_of(script) | {"precision": "bfloat16", "do_export": True}
    scripts.succeed(f"{script}.py", **flags)
    assert (tmp_path / "out/export/1/saved_model.pb").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_run_is_what_another_predicts_with(flags_of, tmp_path, script):
    """Without training data and with --keep_best, which has kept nothing here."""
    flags = flags_of(script)
    scripts.succeed(f"{script}.py", **flags, do_eval=True, keep_best=True)
    shutil.copy(tmp_path / "val.csv", tmp_path / "test.csv")
    best = tmp_path / "out/best"
    for name, source in (("of_run", tmp_path / "out"), ("of_best", best)):
        flags |= {"do_train": False, "do_predict": True, "keep_best": True}
        flags |= {"init_checkpoint": source, "output_dir": tmp_path / name}
        shown = scripts.succeed(f"{script}.py", **flags)
        assert "freshly initialised      0" in shown
    scripts.succeed(
        "export_saved_model.py", model_dir=best, export_dir=tmp_path / "export"
    )


def test_a_trained_run_without_its_checkpoints_is_no_model(tmp_path, golden):
    config = json.loads((golden / "tiny_tf1/bert_config.json").read_text())
    identity = {"config": config, "do_lower_case": True, "labels": ["a", "b"]}
    identity |= {"label_type": "class", "task": "swag"}
    settings = dict.fromkeys(
        ("max_seq_length", "doc_stride", "max_query_length", "n_best_size"), 16
    )
    settings |= {"max_answer_length": 9, "version_2_with_negative": False}
    settings |= {"document_context": False, "null_score_diff_threshold": 0.0}
    settings["init_checkpoint"] = str(golden / "tiny_tf1/bert_model.ckpt")
    shutil.copy(golden / "tiny_tf1/vocab.txt", tmp_path)
    modules = (text_classification, word_tagging, question_answering, choosing)
    for script, module in zip(SCRIPTS, modules, strict=True):
        run_directory.write_json(tmp_path / "model.json", identity | {"script": script})
        for do_train, words in ((True, "no checkpoint in"), (False, "not trained")):
            run_directory.write_json(
                tmp_path / "settings.json", settings | {"do_train": do_train}
            )
            with pytest.raises(ValueError, match=words):
                module.load(str(tmp_path))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config": 5}, "model.json is damaged, .* 'config' to be dict"),
        ({"do_lower_case": None}, "model.json is damaged, .* no 'do_lower_case'"),
        ({"max_seq_length": "a"}, "settings.json is damaged, .* to be int, got 'a'"),
        ({"max_seq_length": None}, "settings.json is damaged, .* no 'max_seq_length'"),
    ],
)
def test_what_a_damaged_folder_lacks_is_named(tmp_path, golden, changes, message):
    config = json.loads((golden / "tiny_tf1/bert_config.json").read_text())
    run = {"script": "run_squad", "config": config, "do_lower_case": True}
    run |= {"max_seq_length": 16, **changes}
    run = {name: value for name, value in run.items() if value is not None}
    for name in ("model.json", "settings.json"):
        run_directory.write_json(tmp_path / name, run)
    shutil.copy(golden / "tiny_tf1/vocab.txt", tmp_path)
    with pytest.raises(ValueError, match=message):
        found = runs.read(tmp_path, "run_squad")
        assert found.config.hidden_size == config["hidden_size"]
        assert found.do_lower_case


def test_a_training_that_was_killed_is_ended_before_run_glue_predicts(tmp_path):
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-0"\n')
    done = []

    class Runner:
        def run(self, row, task, changes):
            done.append((row["task"], task, *changes))
            text = "id\tlabel\tscore\n0\tentailment\t0.9\n"
            (tmp_path / "predictions.tsv").write_text(text)

    row = {"task": "mnli", "folder": tmp_path}
    assert run_glue.predictions(Runner(), row, "ax", "test") == ["entailment"]
    assert done == [("mnli", "mnli", "do_train"), ("mnli", "ax", "do_predict")]
