"""Scores, files and thresholds of answers."""

import json

import pytest

import squad_results
from data import squad, squad_answers


def answer(qas_id, accepted, text, odds, context="a cat and a dog"):
    """An answer that is given if its null odds are 0 or less."""
    example = squad.SquadExample(
        qas_id, "who?", squad.Paragraph.from_text(context), answers=tuple(accepted)
    )
    start = context.index(text)
    span = (start, start + len(text))
    best = squad_answers.Candidate(text, 1.0, 0.5, 0.75, span)
    none = squad_answers.Candidate("", 1.5 + odds, 0.0, 0.25)
    chosen = best if odds <= 0 else none
    return squad_answers.Answer(example, [best, none], chosen, 1.5 + odds, odds)


@pytest.fixture
def answers():
    return [
        answer("é1", ["cat"], "cat", -1.0),
        answer("q2", ["dog"], "dog", 2.0),  # not given, though it is right
        answer("q3", [], "dog", 3.0),
    ]


def test_scores_of_version_2_have_the_best_threshold(answers):
    scores = squad_results.score(answers, version_2=True)
    assert scores["exact"] == pytest.approx(200 / 3)
    assert scores["best_exact"] == scores["best_f1"] == 100
    assert scores["best_f1_thresh"] == 2.0


def test_scores_of_version_1(answers):
    scores = squad_results.score(answers[:2], version_2=False)
    assert scores == {"exact_match": 50.0, "f1": 50.0, "total": 2}


def test_files_are_in_the_form_of_the_original(answers, tmp_path):
    squad_results.write_answers(str(tmp_path), answers[:1], version_2=True)
    assert (tmp_path / "predictions.json").read_text() == (
        '{\n    "\\u00e91": "cat"\n}\n'
    )
    assert (tmp_path / "null_odds.json").read_text() == '{\n    "\\u00e91": -1.0\n}\n'
    text = (tmp_path / "nbest_predictions.json").read_text()
    assert list(json.loads(text)["é1"][0]) == [
        "text",
        "probability",
        "start_logit",
        "end_logit",
    ]
    (line,) = (tmp_path / "answers.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "id": "é1",
        "text": "cat",
        "start": 2,
        "end": 5,
        "score": 1.5,
        "probability": 0.75,
        "null_score": 0.5,
        "candidates": [
            {"text": "cat", "start": 2, "end": 5, "score": 1.5, "probability": 0.75},
            {
                "text": "",
                "start": None,
                "end": None,
                "score": 0.5,
                "probability": 0.25,
            },
        ],
    }
    squad_results.write_answers(str(tmp_path / "."), answers[:1], version_2=False)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "predictions.json",
        "nbest_predictions.json",
        "null_odds.json",
        "answers.jsonl",
    }


def test_the_threshold_is_kept_to_the_bit(tmp_path):
    folder = str(tmp_path)
    with pytest.raises(ValueError, match="no threshold was found yet"):
        squad_results.read_threshold(folder, 7)
    odds = -0.1 - 0.2  # not a short number
    results = {"best_f1_thresh": odds, "best_f1": 80.0}
    squad_results.write_threshold(folder, results, "dev.json", 7)
    assert squad_results.read_threshold(folder, 7) == odds
    with pytest.raises(ValueError, match="of the model of step 7, .* of step 9;"):
        squad_results.read_threshold(folder, 9)


@pytest.mark.parametrize(
    "text",
    ["[]", "{}", "null", "5", '{"global_step": 7, "null_score_diff_threshold": "x"}'],
)
def test_a_damaged_threshold_is_named(tmp_path, text):
    (tmp_path / squad_results.THRESHOLD_FILE).write_text(text)
    with pytest.raises(ValueError, match="threshold.json is damaged, remove it"):
        squad_results.read_threshold(str(tmp_path), 7)
