"""The official scorer of CoNLL again: it reads lines and keeps a state, as that does.

Written from the rules of conlleval (Tjong Kim Sang and Buchholz 2000), for tests to
compare with; the last two columns of a line are the tags that are right and those
that are predicted.
"""

from collections import Counter


def _parts(tag):
    prefix, _, kind = tag.partition("-")
    return prefix, kind


def _ends(previous, current):
    """Whether an entity ends between two tags."""
    (prefix, kind), (next_prefix, next_kind) = previous, current
    if prefix == "O":
        return False
    return next_prefix in ("B", "O") or kind != next_kind


def _starts(previous, current):
    """Whether an entity starts at the second of two tags."""
    (prefix, kind), (next_prefix, next_kind) = previous, current
    if next_prefix == "O":
        return False
    return next_prefix == "B" or prefix == "O" or kind != next_kind


def score(lines):
    """Counts over the lines of a file.

    Args:
        lines: iterable of str; blank ones end sentences.
    Returns:
        dict of name → Counter by type: correct, found, wanted; and right and words,
        Counters with the one key "".
    """
    names = ("correct", "found", "wanted", "right", "words")
    counts = {name: Counter() for name in names}
    last_gold = last_guess = ("O", "")
    inside = False  # an entity that is right so far
    for line in [*lines, ""]:
        cells = line.split()
        gold, guess = (_parts(tag) for tag in cells[-2:] or ("O", "O"))
        if inside:
            gold_ends, guess_ends = _ends(last_gold, gold), _ends(last_guess, guess)
            if gold_ends and guess_ends:
                counts["correct"][last_gold[1]] += 1
            if gold_ends or guess_ends:
                inside = False
        gold_starts, guess_starts = _starts(last_gold, gold), _starts(last_guess, guess)
        counts["wanted"][gold[1]] += gold_starts
        counts["found"][guess[1]] += guess_starts
        if gold_starts and guess_starts and gold[1] == guess[1]:
            inside = True
        if cells:
            counts["words"][""] += 1
            counts["right"][""] += gold == guess
        last_gold, last_guess = gold, guess
    return counts


def ratios(correct, found, wanted):
    """(precision, recall, F1), 0 where there is nothing to divide by."""
    precision = correct / found if found else 0
    recall = correct / wanted if wanted else 0
    both = precision + recall
    return precision, recall, 2 * precision * recall / both if both else 0
