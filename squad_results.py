"""What run_squad.py writes about answers, and the threshold of giving none."""

import json
import os

import run_directory
from data import filesystem
from metrics import squad as metrics

THRESHOLD_FILE = "null_score_diff_threshold.json"


def score(answers, version_2):
    """The official scores.

    Args:
        answers: list of squad_answers.Answer of questions with accepted answers.
        version_2: bool, by the rules of SQuAD 2.0; with the best thresholds.
    Returns:
        dict of name → number.
    """
    accepted = {a.example.qas_id: a.example.answers for a in answers}
    given = {a.example.qas_id: a.text for a in answers}
    if not version_2:
        return metrics.scores_v1(accepted, given)
    best = {a.example.qas_id: a.best_text for a in answers}
    odds = {a.example.qas_id: a.null_odds for a in answers}
    return {
        **metrics.scores_v2(accepted, given),
        **metrics.best_thresholds(accepted, best, odds),
    }


def write_answers(output_dir, answers, version_2):
    """Writes the files of the original, and answers.jsonl.

    Args:
        output_dir: str.
        answers: list of squad_answers.Answer.
        version_2: bool, also null_odds.json.
    """
    keys = ("text", "probability", "start_logit", "end_logit")
    files = {
        "predictions.json": {a.example.qas_id: a.text for a in answers},
        "nbest_predictions.json": {
            a.example.qas_id: [{k: getattr(c, k) for k in keys} for c in a.candidates]
            for a in answers
        },
    }
    if version_2:
        files["null_odds.json"] = {a.example.qas_id: a.null_odds for a in answers}
    for name, content in files.items():
        text = json.dumps(content, indent=4) + "\n"
        run_directory.write_text(os.path.join(output_dir, name), text)
    lines = [json.dumps({"id": a.example.qas_id, **a.to_dict()}) for a in answers]
    text = "".join(f"{line}\n" for line in lines)
    run_directory.write_text(os.path.join(output_dir, "answers.jsonl"), text)


def write_threshold(output_dir, results, predict_file, step):
    """Keeps the threshold with the best F1 for later predictions.

    Args:
        output_dir: str.
        results: dict, of `score`.
        predict_file: str, what it was found on.
        step: int, updates of the model it was found with.
    """
    found = {
        "null_score_diff_threshold": results["best_f1_thresh"],
        "best_f1": results["best_f1"],
        "predict_file": predict_file,
        "global_step": step,
    }
    run_directory.write_json(os.path.join(output_dir, THRESHOLD_FILE), found)


def has_threshold(output_dir):
    """Whether a threshold was kept."""
    return os.path.exists(os.path.join(output_dir, THRESHOLD_FILE))


def read_threshold(output_dir, step):
    """The threshold that was kept for a model.

    Args:
        output_dir: str.
        step: int, updates of the model it is wanted for.
    Raises:
        ValueError: none was kept, or that of another step, or the file is damaged.
    """
    if not has_threshold(output_dir):
        raise ValueError(
            f"no threshold was found yet for {output_dir}; predict a file with answers "
            "first, with --version_2_with_negative"
        )
    path = os.path.join(output_dir, THRESHOLD_FILE)
    found = filesystem.read_object(
        path, global_step=int, null_score_diff_threshold=int | float
    )
    if found["global_step"] != step:
        raise ValueError(
            f"{path} is of the model of step {found['global_step']}, and this is that "
            f"of step {step}; predict a file with answers again, with "
            "--threshold=given"
        )
    return found["null_score_diff_threshold"]
