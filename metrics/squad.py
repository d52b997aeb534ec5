"""The official scores of SQuAD 1.1 and 2.0 (Rajpurkar et al. 2016, 2018), in percent.

Answers and predictions are given as dicts from the id of a question to its accepted
answers, or to the one predicted. The two versions differ in what an empty answer is
worth, and 2.0 accepts only the empty one for a question without an answer.
"""

import collections
import re
import string
from collections.abc import Mapping, Sequence

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)

Answers = Mapping[str, Sequence[str]]
Predictions = Mapping[str, str]


def normalize_answer(text: str) -> str:
    """Lower-cased, without ASCII punctuation, English articles and needless spaces."""
    text = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def exact_match(prediction: str, answer: str) -> float:
    """1 if both are the same when normalised, else 0."""
    return float(normalize_answer(prediction) == normalize_answer(answer))


def f1(prediction: str, answer: str, version_2: bool = False) -> float:
    """Harmonic mean of precision and recall of the words, as often as they occur.

    Where one of the two has no words, 2.0 compares them (1 if both have none); in 1.1
    that is 0.
    """
    words = normalize_answer(prediction).split()
    wanted = normalize_answer(answer).split()
    if version_2 and not (words and wanted):
        return float(words == wanted)
    counts = collections.Counter(words) & collections.Counter(wanted)
    return 2 * counts.total() / (len(words) + len(wanted)) if counts else 0.0


def scores_v1(answers: Answers, predictions: Predictions) -> dict[str, float]:
    """exact_match and f1 by the rules of version 1.1, and total.

    A question without a prediction counts as wrong.

    Raises:
        ValueError: there is no question, or one has no answer.
    """
    _check(answers)
    exact = f1_sum = 0.0
    for qas_id, accepted in answers.items():
        if not accepted:
            raise ValueError(
                f"question {qas_id!r} has no answer; score it by the rules of SQuAD 2.0"
            )
        if qas_id in predictions:
            prediction = predictions[qas_id]
            exact += max(exact_match(prediction, answer) for answer in accepted)
            f1_sum += max(f1(prediction, answer) for answer in accepted)
    total = len(answers)
    return {
        "exact_match": 100 * exact / total,
        "f1": 100 * f1_sum / total,
        "total": total,
    }


def scores_v2(answers: Answers, predictions: Predictions) -> dict[str, float]:
    """exact, f1 and total by the rules of version 2.0.

    The same as HasAns_* of the questions that have an answer, and as NoAns_* of those
    that have none, where there are any.

    Raises:
        ValueError: there is no question, or one has no prediction.
    """
    scored = _question_scores(answers, predictions)
    groups = {
        "": list(answers),
        "HasAns_": [qas_id for qas_id in answers if answers[qas_id]],
        "NoAns_": [qas_id for qas_id in answers if not answers[qas_id]],
    }
    results = {}
    for prefix, ids in groups.items():
        if ids:
            for number, name in enumerate(("exact", "f1")):
                mean = sum(scored[qas_id][number] for qas_id in ids) / len(ids)
                results[prefix + name] = 100 * mean
            results[f"{prefix}total"] = len(ids)
    return results


def best_thresholds(
    answers: Answers, predictions: Predictions, null_odds: Mapping[str, float]
) -> dict[str, float]:
    """The thresholds of "no answer" that give the best scores.

    A threshold t answers a question with its prediction if its null odds are at most t,
    and with "" otherwise. All thresholds are tried; of equally good ones the lowest is
    taken. What is promised is what `scores_v2` then gives. (The official script may
    stop within a group of equal null odds, which no threshold can do, and where it is
    best to answer nothing it says 0.)

    Args:
        answers: accepted answers.
        predictions: the best answer to every question, whatever its null odds.
        null_odds: by question, score of no answer - score of the prediction.
    Returns:
        best_exact, best_exact_thresh, best_f1 and best_f1_thresh.
    Raises:
        ValueError: there is no question, or one has no prediction or no null odds.
    """
    answered = _question_scores(answers, predictions)
    silent = _question_scores(answers, dict.fromkeys(answers, ""))
    missing = [qas_id for qas_id in answers if qas_id not in null_odds]
    if missing:
        raise ValueError(f"there are no null odds for question {missing[0]!r}")
    order = sorted(answers, key=lambda qas_id: null_odds[qas_id])
    results = {}
    for number, name in enumerate(("exact", "f1")):
        # To begin with, nothing is answered.
        current = best = sum(scores[number] for scores in silent.values())
        threshold = null_odds[order[0]] - 1.0
        for qas_id, following in zip(order, [*order[1:], None], strict=True):
            current += answered[qas_id][number] - silent[qas_id][number]
            odds = null_odds[qas_id]
            is_last_of_equals = following is None or null_odds[following] > odds
            if is_last_of_equals and current > best:
                best, threshold = current, odds
        results[f"best_{name}"] = 100 * best / len(order)
        results[f"best_{name}_thresh"] = threshold
    return results


def _question_scores(
    answers: Answers, predictions: Predictions
) -> dict[str, tuple[float, float]]:
    """Exact match and F1 of every question by the rules of 2.0."""
    _check(answers)
    scored = {}
    for qas_id, accepted in answers.items():
        if qas_id not in predictions:
            raise ValueError(f"there is no prediction for question {qas_id!r}")
        # An answer that is nothing but articles and punctuation does not count.
        wanted = [answer for answer in accepted if normalize_answer(answer)] or [""]
        prediction = predictions[qas_id]
        scored[qas_id] = (
            max(exact_match(prediction, answer) for answer in wanted),
            max(f1(prediction, answer, version_2=True) for answer in wanted),
        )
    return scored


def _check(answers: Answers) -> None:
    if not answers:
        raise ValueError("there is no question to score")
