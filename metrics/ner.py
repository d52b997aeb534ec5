"""Entity-level scores of tagged sentences, by the rules of CoNLL's scorer, conlleval.

An entity is right if its words and its type are. Tags are O, B-TYPE or I-TYPE; B and I
alone are entities of a type without a name. Sequences that are malformed in BIO have
entities too: one starts at a B- and at an I- that does not continue its like.
"""

from collections import Counter
from collections.abc import Sequence

Entity = tuple[str, int, int]  # type, first word, word after the last


def find_entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of one sentence, from left to right.

    Raises:
        ValueError: a tag is empty.
    """
    if not all(tags):
        raise ValueError("a tag is empty; that of a word outside all entities is O")
    entities, start = [], None
    previous = "O"
    for place, tag in enumerate([*tags, "O"]):
        continues = tag[0] == "I" and previous != "O" and previous[1:] == tag[1:]
        if start is not None and not continues:
            entities.append((previous[2:], start, place))
            start = None
        if tag != "O" and not continues:
            start = place
        previous = tag
    return entities


def _ratios(correct: int, found: int, wanted: int) -> dict[str, float]:
    """Precision, recall and F1, 0 where undefined, as conlleval has it; support."""
    return {
        "precision": correct / found if found else 0.0,
        "recall": correct / wanted if wanted else 0.0,
        "f1": 2 * correct / (found + wanted) if correct else 0.0,
        "support": wanted,
    }


def scores(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Scores of all sentences together.

    Args:
        gold: the tags of each sentence.
        predicted: likewise.
    Returns:
        dict with precision, recall, f1 and support (how many entities there are in
        gold) over all entities; the same with `_TYPE` for every type; and accuracy,
        the share of words with the right tag. All are shares of 1.
    Raises:
        ValueError: there are no words, or the two do not have the same; a tag is empty.
    """
    lengths, others = ([len(tags) for tags in data] for data in (gold, predicted))
    if lengths != others:
        raise ValueError(
            f"gold and predicted tags must be of the same words, got {len(lengths)} "
            f"sentences with {sum(lengths)} words and {len(others)} with {sum(others)}"
        )
    if not sum(lengths):
        raise ValueError("there are no words to score")
    correct, found, wanted = Counter(), Counter(), Counter()
    right_words = 0
    for tags, other in zip(gold, predicted, strict=True):
        right_words += sum(a == b for a, b in zip(tags, other, strict=True))
        entities, others = set(find_entities(tags)), set(find_entities(other))
        for counter, found_ones in (
            (correct, entities & others),
            (found, others),
            (wanted, entities),
        ):
            counter.update(kind for kind, _, _ in found_ones)
    results = _ratios(correct.total(), found.total(), wanted.total())
    results["accuracy"] = right_words / sum(lengths)
    for kind in sorted(filter(None, found | wanted)):
        ratios = _ratios(correct[kind], found[kind], wanted[kind])
        results |= {f"{name}_{kind}": ratio for name, ratio in ratios.items()}
    return results
