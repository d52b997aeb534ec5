"""metrics/ner.py, held against conlleval's rules and against seqeval."""

import random
import warnings

import pytest

from metrics import ner
from tests import conlleval

TYPES = ("PER", "LOC", "creative-work")


def random_tags(rng, length, types=TYPES):
    """Any tags in any order, so most sequences are malformed."""
    tags = ["O", *(f"{prefix}-{kind}" for kind in types for prefix in "BI")]
    return rng.choices(tags, weights=[3, *[1] * (len(tags) - 1)], k=length)


def random_pair(rng):
    """Tags of a few sentences, and predictions that are mostly the same."""
    gold = [random_tags(rng, rng.randint(1, 12)) for _ in range(rng.randint(1, 4))]
    noise = rng.choice([0.0, 0.1, 0.5, 1.0])
    predicted = [
        [rng.choice(random_tags(rng, 1)) if rng.random() < noise else t for t in tags]
        for tags in gold
    ]
    return gold, predicted


@pytest.mark.parametrize(
    ("tags", "entities"),
    [
        ("", []),
        ("O O", []),
        ("B-X", [("X", 0, 1)]),
        ("B-X I-X O B-Y", [("X", 0, 2), ("Y", 3, 4)]),
        ("B-X B-X", [("X", 0, 1), ("X", 1, 2)]),  # neighbours in BIO and in IOB1
        ("I-X B-X I-X", [("X", 0, 1), ("X", 1, 3)]),
        ("I-X I-X O", [("X", 0, 2)]),  # malformed in BIO from here on
        ("O I-X", [("X", 1, 2)]),
        ("B-X I-Y", [("X", 0, 1), ("Y", 1, 2)]),
        ("I-X I-Y I-X", [("X", 0, 1), ("Y", 1, 2), ("X", 2, 3)]),
        ("B-X O I-X", [("X", 0, 1), ("X", 2, 3)]),
        ("B I O I B", [("", 0, 2), ("", 3, 4), ("", 4, 5)]),  # without types
        ("B-X I O", [("X", 0, 1), ("", 1, 2)]),
        ("B-a-b I-a-b I-a-c", [("a-b", 0, 2), ("a-c", 2, 3)]),
    ],
)
def test_entities(tags, entities):
    assert ner.find_entities(tags.split()) == entities


def test_scores_by_hand():
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["B-PER", "O", "O"]]
    predicted = [["B-PER", "I-PER", "O", "B-PER"], ["O", "B-LOC", "I-LOC"]]
    assert ner.scores(gold, predicted) == pytest.approx(
        {
            **{"precision": 1 / 3, "recall": 1 / 3, "f1": 1 / 3, "support": 3},
            "accuracy": 3 / 7,
            **{"precision_PER": 1 / 2, "recall_PER": 1 / 2, "f1_PER": 1 / 2},
            **{"precision_LOC": 0, "recall_LOC": 0, "f1_LOC": 0},
            **{"support_PER": 2, "support_LOC": 1},
        }
    )


def test_an_entity_ends_with_its_sentence():
    gold = [["O", "B-X"], ["I-X", "O"]]
    assert ner.scores(gold, gold)["support"] == 2


def test_equal_to_conlleval_on_1000_random_cases():
    rng = random.Random(1)
    for _ in range(1000):
        gold, predicted = random_pair(rng)
        lines = []
        for tags in zip(gold, predicted, strict=True):
            lines += [f"word {a} {b}" for a, b in zip(*tags, strict=True)] + [""]
        counts = conlleval.score(lines)
        results = ner.scores(gold, predicted)
        totals = [counts[n].total() for n in ("correct", "found", "wanted")]
        names = ("precision", "recall", "f1")
        ours = [results[name] for name in names]
        assert ours == pytest.approx(conlleval.ratios(*totals))
        assert results["support"] == totals[2]
        right, words = counts["right"][""], counts["words"][""]
        assert results["accuracy"] == pytest.approx(right / words)
        for kind in TYPES:
            each = [counts[n][kind] for n in ("correct", "found", "wanted")]
            ours = [results.get(f"{name}_{kind}", 0) for name in names]
            assert ours == pytest.approx(conlleval.ratios(*each))
            assert results.get(f"support_{kind}", 0) == each[2]


def test_equal_to_seqeval_on_1000_random_cases():
    """Its default mode follows conlleval; the strict one does not."""
    metrics = pytest.importorskip("seqeval.metrics", reason="no seqeval here")
    iob2 = pytest.importorskip("seqeval.scheme").IOB2
    rng = random.Random(2)
    differs_when_strict = 0
    for _ in range(1000):
        gold, predicted = random_pair(rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about divisions by 0
            report = metrics.classification_report(gold, predicted, output_dict=True)
            strict = metrics.f1_score(gold, predicted, mode="strict", scheme=iob2)
            accuracy = metrics.accuracy_score(gold, predicted)
        results = ner.scores(gold, predicted)
        differs_when_strict += strict != pytest.approx(results["f1"])
        assert results["accuracy"] == pytest.approx(accuracy)
        theirs = {name: report[name] for name in report if not name.endswith(" avg")}
        theirs[""] = report["micro avg"]
        kinds = {name.partition("_")[2] for name in results}
        assert kinds == set(theirs)
        for kind, row in theirs.items():
            end = f"_{kind}" if kind else ""
            ours = [results[f"{n}{end}"] for n in ("precision", "recall", "f1")]
            keys = ("precision", "recall", "f1-score")
            assert ours == pytest.approx([row[key] for key in keys])
            assert results[f"support{end}"] == row["support"]
    assert differs_when_strict > 100


def test_tags_without_types_are_scored_as_one():
    results = ner.scores([["B", "I", "O"]], [["B", "I", "O"]])
    assert results == {
        **{"precision": 1, "recall": 1, "f1": 1, "support": 1, "accuracy": 1}
    }


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([], [], "no words"),
        ([[]], [[]], "no words"),
        ([["O"]], [["O", "O"]], "same words, got 1 sentences with 1 .* 1 with 2"),
        ([["O", "B-X"]], [["O", ""]], "a tag is empty; .* is O"),
        ([["O"]], [["O"], ["O"]], "same words, got 1 sentences with 1 .* 2 with 2"),
    ],
)
def test_what_cannot_be_scored(gold, predicted, message):
    with pytest.raises(ValueError, match=message):
        ner.scores(gold, predicted)
