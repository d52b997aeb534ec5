"""The Predictor: what the script answers, from memory; texts of any length."""

import shutil

import numpy as np
import pytest

import question_answering
import run_directory
import squad_results
from data import squad, squad_answers, squad_windows, tokenization
from modeling import checkpoint, models
from modeling import config as config_lib


@pytest.fixture(scope="module")
def pieces(golden):
    """Model, tokenizer and sizes of the tiny original model."""
    config = config_lib.BertConfig.from_json_file(golden / "tiny_tf1/bert_config.json")
    model = models.BertForQuestionAnswering(config)
    checkpoint.load(model, str(golden / "tiny_tf1_runs/squad_v1/model.ckpt-8"))
    tokenizer = tokenization.FullTokenizer(golden / "tiny_tf1/vocab.txt")
    return model, tokenizer, squad_windows.WindowSizes(64, 16, 24)


def test_answers_do_not_depend_on_what_else_is_asked(pieces):
    predictor = question_answering.Predictor(
        *pieces, squad_answers.AnswerOptions(), batch_size=3
    )
    questions = ["who is it?", "what\u00a0now?", "", "where? " * 30]
    contexts = ["It was Ada in 1887. " * 20, "Café Orléans", " ", "here"]
    together = predictor.predict(questions, contexts)
    for question, context, answer in zip(questions, contexts, together, strict=True):
        (alone,) = predictor.predict([question], [context])
        assert alone["text"] == answer["text"]
        assert alone["score"] == pytest.approx(answer["score"], abs=1e-5)
        if answer["start"] is not None:
            assert context[answer["start"] : answer["end"]] == answer["text"] != ""
    assert together[2]["start"] is None  # there is no text to answer from
    assert predictor.predict([], []) == []


def test_scores_are_those_of_the_model(pieces):
    model, tokenizer, sizes = pieces
    predictor = question_answering.Predictor(*pieces, squad_answers.AnswerOptions())
    (answer,) = predictor.predict(["who?"], ["it is ada"])
    example = squad.SquadExample("q", "who?", squad.Paragraph.from_text("it is ada"))
    (window,) = squad_windows.make_windows([example], tokenizer, sizes)
    ids = np.array([window.input_ids], np.int32)
    segments = (np.arange(ids.size) >= window.doc_offset).astype(np.int32)[None]
    batch = {"input_ids": ids, "input_mask": ids * 0 + 1, "segment_ids": segments}
    outputs = model(batch)
    starts, ends = outputs["start_logits"][0].numpy(), outputs["end_logits"][0].numpy()
    assert answer["null_score"] == pytest.approx(starts[0] + ends[0], abs=1e-5)
    rows = range(window.doc_offset, ids.size - 1)
    best = max(starts[i] + ends[j] for i in rows for j in rows if i <= j)
    assert answer["score"] == pytest.approx(best, abs=1e-5)


def test_what_it_refuses(pieces, tmp_path):
    predictor = question_answering.Predictor(*pieces, squad_answers.AnswerOptions())
    with pytest.raises(ValueError, match="2 questions and 1 texts"):
        predictor.predict(["a", "b"], ["c"])
    with pytest.raises(ValueError, match=r"no output folder of a run.*model\.json"):
        question_answering.load(str(tmp_path))
    run_directory.write_json(tmp_path / "model.json", {"script": "run_classifier"})
    run_directory.write_json(tmp_path / "settings.json", {})
    with pytest.raises(ValueError, match="is of run_classifier"):
        question_answering.load(str(tmp_path))


@pytest.mark.parametrize(("step", "threshold"), [(8, -3.5), (7, 1.5)])
def test_the_threshold_that_was_found_is_of_these_weights(
    golden, tmp_path, step, threshold
):
    for path in (golden / "tiny_tf1_runs/squad_v1").glob("*c*k*p*t*"):
        shutil.copy(path, tmp_path)
    shutil.copy(golden / "tiny_tf1/vocab.txt", tmp_path)
    config = config_lib.BertConfig.from_json_file(golden / "tiny_tf1/bert_config.json")
    identity = {"script": "run_squad", "do_lower_case": True}
    settings = {"max_seq_length": 64, "doc_stride": 16, "max_query_length": 24}
    settings |= {"n_best_size": 5, "max_answer_length": 9, "do_train": True}
    settings |= {"version_2_with_negative": True, "null_score_diff_threshold": 1.5}
    run_directory.claim(tmp_path, identity | {"config": config.to_dict()}, settings)
    results = {"best_f1_thresh": -3.5, "best_f1": 80}
    squad_results.write_threshold(tmp_path, results, "dev.json", step)
    predictor = question_answering.load(str(tmp_path))
    assert predictor.options.null_score_diff_threshold == threshold
    predictor = question_answering.load(str(tmp_path), threshold=9.0)
    assert predictor.options.null_score_diff_threshold == 9.0
