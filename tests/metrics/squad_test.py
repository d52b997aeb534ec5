"""The scores of SQuAD: cases by hand, and a slow way that shares nothing with ours."""

import itertools
import random

import pytest

from metrics import squad

ASCII_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


def plain_words(text):
    """Normalised words, character by character."""
    kept = [char for char in text.lower() if char not in ASCII_PUNCTUATION]
    words, word = [], ""
    for char in [*kept, " "]:
        if char.isspace():
            words.append(word)
            word = ""
        else:
            word += char
    return [w for w in words if w not in ("", "a", "an", "the")]


def plain_f1(prediction, answer, version_2):
    """By crossing off one word after the other."""
    words, wanted = plain_words(prediction), plain_words(answer)
    if version_2 and (not words or not wanted):
        return 1.0 if words == wanted else 0.0
    left, same = list(wanted), 0
    for word in words:
        if word in left:
            left.remove(word)
            same += 1
    if not same:
        return 0.0
    precision, recall = same / len(words), same / len(wanted)
    return 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize(
    "prediction, answer, exact, overlap",
    [
        ("the Cat", "cat", 1, 1),  # articles and case
        ("A cat, an owl", "cat owl", 1, 1),
        ("cat's", "cats", 1, 1),  # punctuation leaves no space
        ("1,887", "1887", 1, 1),
        ("state-of-the-art", "stateoftheart", 1, 1),  # no article any more
        ("the-cat", "cat", 0, 0),
        ("another", "other", 0, 0),  # an article is a whole word
        ("  two \n words\t", "two words", 1, 1),
        ("the a an", "a", 1, None),  # both are empty; F1 below
        ("café", "cafe", 0, 0),  # accents stay
        ("“cat”", "cat", 0, 0),  # only ASCII punctuation goes
        ("ÉCOLE", "école", 1, 1),
        ("the cat sat", "cat", 0, 2 / 3),
        ("cat cat dog", "cat dog dog", 0, 2 / 3),  # as often as they occur
        ("dog cat", "cat dog", 0, 1),  # F1 knows no order
        ("$5", "5", 1, 1),
        ("100%", "100", 1, 1),
        ("no", "yes", 0, 0),
    ],
)
def test_single_answers(prediction, answer, exact, overlap):
    assert squad.exact_match(prediction, answer) == exact
    for version_2 in (False, True):
        if overlap is not None:
            found = squad.f1(prediction, answer, version_2)
            assert found == pytest.approx(overlap)
            assert squad.f1(answer, prediction, version_2) == pytest.approx(overlap)


def test_empty_answers_differ_between_the_versions():
    for empty in ("", "the", " ?! "):
        assert squad.exact_match(empty, "") == 1
        assert squad.f1(empty, "", version_2=False) == 0
        assert squad.f1(empty, "", version_2=True) == 1
        assert squad.f1(empty, "cat", version_2=True) == 0
        assert squad.f1("cat", empty, version_2=True) == 0


def test_the_best_of_several_answers_counts():
    answers = {"q": ["one dog", "a cat", "dog"]}
    scores = squad.scores_v1(answers, {"q": "cat"})
    assert scores == {"exact_match": 100.0, "f1": 100.0, "total": 1}
    # Exact match and F1 may each be from another answer.
    scores = squad.scores_v1({"q": ["x y z cat", "dog"]}, {"q": "cat"})
    assert scores["exact_match"] == 0
    assert scores["f1"] == pytest.approx(40.0)


def test_version_1_counts_missing_predictions_as_wrong():
    answers = {"q": ["cat"], "r": ["dog"]}
    scores = squad.scores_v1(answers, {"q": "cat", "of another file": "cow"})
    assert scores == {"exact_match": 50.0, "f1": 50.0, "total": 2}


def test_version_2_by_hand():
    answers = {"a": ["cat"], "b": ["red cat"], "c": [], "d": []}
    predictions = {"a": "the cat", "b": "cat", "c": "", "d": "dog"}
    assert squad.scores_v2(answers, predictions) == pytest.approx(
        {
            "exact": 50.0,
            "f1": 100 * (1 + 2 / 3 + 1 + 0) / 4,
            "total": 4,
            "HasAns_exact": 50.0,
            "HasAns_f1": 100 * (1 + 2 / 3) / 2,
            "HasAns_total": 2,
            "NoAns_exact": 50.0,
            "NoAns_f1": 50.0,
            "NoAns_total": 2,
        }
    )
    only = squad.scores_v2({"a": ["cat"]}, {"a": "cat"})
    assert set(only) == {
        *("exact", "f1", "total"),
        *("HasAns_exact", "HasAns_f1", "HasAns_total"),
    }


def test_version_2_passes_over_answers_without_words():
    # They would make "" a right answer of a question that has others.
    assert squad.scores_v2({"a": ["the", "cat"]}, {"a": ""})["exact"] == 0
    assert squad.scores_v2({"a": ["the"]}, {"a": ""})["exact"] == 100
    assert squad.scores_v2({"a": ["the"]}, {"a": ""})["HasAns_total"] == 1


def random_case(rng, version_2):
    """Answers and predictions of some questions."""
    words = ["the", "a", "An", "cat", "Cat,", "dog", "dog's", "-", "é", "\u2013", "x y"]

    def text(shortest):
        return " ".join(rng.choices(words, k=rng.randrange(shortest, 5)))

    ids = [f"q{i}" for i in range(rng.randrange(1, 20))]
    fewest = 0 if version_2 else 1
    answers = {i: [text(1) for _ in range(rng.randrange(fewest, 4))] for i in ids}
    predictions = {
        i: rng.choice(answers[i]) if answers[i] and rng.random() < 0.4 else text(0)
        for i in ids
    }
    return answers, predictions


def test_1000_random_cases_in_version_1():
    rng = random.Random(1)
    for _ in range(1000):
        answers, predictions = random_case(rng, version_2=False)
        exact = overlap = 0
        for i, accepted in answers.items():
            said = predictions[i]
            exact += any(
                plain_words(said) == plain_words(wanted) for wanted in accepted
            )
            overlap += max(plain_f1(said, wanted, False) for wanted in accepted)
        scores = squad.scores_v1(answers, predictions)
        assert scores["exact_match"] == pytest.approx(100 * exact / len(answers))
        assert scores["f1"] == pytest.approx(100 * overlap / len(answers))


def plain_scores_v2(answers, predictions):
    """{question: (exact match, F1)} by the rules of 2.0."""
    scores = {}
    for i in answers:
        wanted = [answer for answer in answers[i] if plain_words(answer)] or [""]
        scores[i] = (
            max(float(plain_words(predictions[i]) == plain_words(w)) for w in wanted),
            max(plain_f1(predictions[i], w, True) for w in wanted),
        )
    return scores


def test_1000_random_cases_in_version_2():
    rng = random.Random(2)
    for _ in range(1000):
        answers, predictions = random_case(rng, version_2=True)
        expected = plain_scores_v2(answers, predictions)
        scores = squad.scores_v2(answers, predictions)
        groups = {
            "": list(answers),
            "HasAns_": [i for i in answers if answers[i]],
            "NoAns_": [i for i in answers if not answers[i]],
        }
        for prefix, ids in groups.items():
            assert scores.get(f"{prefix}total", 0) == len(ids)
            for k, name in enumerate(("exact", "f1")):
                if ids:
                    mean = sum(expected[i][k] for i in ids) / len(ids)
                    assert scores[prefix + name] == pytest.approx(100 * mean)


@pytest.mark.parametrize("seed", range(30))
def test_every_threshold_one_by_one(seed):
    rng = random.Random(seed)
    answers, predictions = {}, {}
    while len(answers) < 50:
        more = random_case(rng, version_2=True)
        for i in more[0]:
            answers[f"{i} {len(answers)}"] = more[0][i]
            predictions[f"{i} {len(predictions)}"] = more[1][i]
    # Many are equal.
    odds = {i: rng.choice([rng.gauss(0, 3), float(rng.randrange(3))]) for i in answers}
    found = squad.best_thresholds(answers, predictions, odds)
    for k, name in enumerate(("exact", "f1")):
        reached = {}
        chosen = found[f"best_{name}_thresh"]
        for threshold in {-99.0, *odds.values(), 99.0, chosen}:
            given = {i: predictions[i] if odds[i] <= threshold else "" for i in answers}
            values = plain_scores_v2(answers, given).values()
            reached[threshold] = 100 * sum(v[k] for v in values) / len(answers)
        assert found[f"best_{name}"] == pytest.approx(max(reached.values()))
        assert reached[chosen] == pytest.approx(max(reached.values()))
        assert len(set(reached.values())) > 3


def test_thresholds_by_hand():
    answers = {"a": ["cat"], "b": [], "c": ["dog"]}
    predictions = {"a": "cat", "b": "cow", "c": "dog"}
    odds = {"a": -2.0, "b": 0.5, "c": 3.0}
    found = squad.best_thresholds(answers, predictions, odds)
    # Only a: 2 of 3 right; a and b: 1; all: 2. Of equals the lowest threshold.
    assert found["best_exact"] == pytest.approx(200 / 3)
    assert found["best_exact_thresh"] == -2.0
    # Nothing should be answered: a threshold that really does that.
    found = squad.best_thresholds({"a": [], "b": []}, {"a": "x", "b": "y"}, odds)
    assert found["best_f1"] == 100
    assert found["best_f1_thresh"] < -2.0


def test_equal_null_odds_cannot_be_told_apart():
    answers = {"a": ["cat"], "b": []}
    for order in itertools.permutations("ab"):
        odds = dict.fromkeys(order, 1.0)
        predictions = dict.fromkeys(order, "cat")
        answers = {i: answers[i] for i in order}
        assert squad.best_thresholds(answers, predictions, odds)["best_exact"] == 50


def test_what_cannot_be_scored():
    for score in (squad.scores_v1, squad.scores_v2):
        with pytest.raises(ValueError, match="no question"):
            score({}, {})
    with pytest.raises(ValueError, match="'q' has no answer.*SQuAD 2.0"):
        squad.scores_v1({"q": []}, {"q": ""})
    with pytest.raises(ValueError, match="no prediction for question 'q'"):
        squad.scores_v2({"q": []}, {})
    with pytest.raises(ValueError, match="no null odds for question 'q'"):
        squad.best_thresholds({"q": []}, {"q": ""}, {})
