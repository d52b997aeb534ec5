"""Whether records of pre-training hold what they should, in words.

See `data/inspection_checks.py`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from data import inspection, inspection_checks, vocabulary_audit

_BUILD_AGAIN = inspection_checks.BUILD_AGAIN
_FEW = 32  # records that may be of one class by chance
_MASKING = ("mask", "kept", "random")
_MIX = (80, 10, 10)  # Devlin et al. 2018, section 3.1
_MASKING_TOLERANCE = 0.05  # beyond five standard errors
_SHARE_TOLERANCE = 0.2  # of the share itself; whole words do not always fit the budget


def check(
    report: Mapping[str, Any], wanted: inspection_checks.Wanted
) -> list[inspection_checks.Check]:
    """Checks of masks, labels and, if a vocabulary is given, special tokens.

    Args:
        report: see `inspection.Inspector.report`.
        wanted: what it should fit.
    """
    found = report["pretraining"]
    if not found:
        return []
    checks = [*_records(report), *_statistics(found, wanted)]
    if wanted.vocab:
        checks += _vocabulary(found["tokens"], wanted)
    return checks


# Fault, of what, what should be, what is.
_RECORD_CHECKS = (
    ("features", "features", "equally many values in the features", "other numbers"),
    ("input_mask", "input_mask", "1 for all tokens, then 0", "something else"),
    ("segment_ids", "segment_ids", "0, then 1, then 0 for padding", "something else"),
    ("outside", "positions", "predictions within the text", "some outside it"),
    ("on_special", "predicted tokens", "neither [CLS] nor [SEP]", "some of these"),
    ("twice", "repeated positions", "none", "some"),
    ("weights", "weights", "masked_lm_weights of 0 or 1", "other ones"),
    ("no_prediction", "predictions", "one at least", "none"),
    ("labels", "labels", "next_sentence_labels of 0 or 1", "other ones"),
)


def _records(report: Mapping[str, Any]) -> Iterator[inspection_checks.Check]:
    total = report["layouts"][inspection.PRETRAINING]["records"]
    for fault, name, expected, bad in _RECORD_CHECKS:
        found = report["faults"].get(fault)
        came = f"in all {total:,} records"
        if found:
            came = (
                f"{bad} in {found['records']:,} of {total:,} records, the first in "
                f"{found['first']}"
            )
        change = f"{_BUILD_AGAIN} with a program that keeps to the layout"
        yield inspection_checks.Check(name, not found, expected, came, change)


def _statistics(
    found: Mapping[str, Any], wanted: inspection_checks.Wanted
) -> Iterator[inspection_checks.Check]:
    labels = found["next_sentence"]
    is_one_class = not (labels["true"] and labels["random"])
    if wanted.built_with("segment_pairs", True):
        yield inspection_checks.Check(
            "next sentence",
            not is_one_class or found["records"] < _FEW,
            "true and random next sentences",
            f"{labels['true']:,} true, {labels['random']:,} random",
            "the next sentence loss teaches nothing; build from documents of several "
            "sentences each",
        )
    predictions, prob = found["predictions"], wanted.masked_lm_prob
    if prob is not None:
        # A record has one prediction at least, so short ones have a larger share.
        share, usual = predictions["share"], predictions["wanted_share"]
        change = f"{_BUILD_AGAIN} with this --masked_lm_prob"
        if predictions["cut_budget_share"] > 0.5:
            change = f"{_BUILD_AGAIN} with a larger --max_predictions_per_seq"
        yield inspection_checks.Check(
            "masked share",
            abs(share - usual) <= _SHARE_TOLERANCE * usual,
            f"{_percent(usual)} of the tokens predicted, as masked_lm_prob is {prob}",
            _percent(share),
            change,
        )
    shares = [found["masking"][f"{kind}_share"] for kind in _MASKING]
    mix = [float(x) / 100 for x in wanted.built_with("masking_mix", _MIX)]
    yield inspection_checks.Check(
        "masking",
        all(
            abs(share - usual) <= _MASKING_TOLERANCE + _chance(usual, predictions)
            for share, usual in zip(shares, mix, strict=True)
        ),
        f"{mix[0]:.0%} of the predicted tokens shown as [MASK], {mix[1]:.0%} kept, "
        f"{mix[2]:.0%} random".replace("%", " %"),
        ", ".join(map(_percent, shares)),
        "give the vocabulary of the records, or "
        f"{_BUILD_AGAIN}: their masks are not those of BERT",
    )


def _chance(share: float, predictions: Mapping[str, Any]) -> float:
    """Five standard errors."""
    return 5 * (share * (1 - share) / max(1, predictions["total"])) ** 0.5


def _vocabulary(
    tokens: Mapping[str, Any], wanted: inspection_checks.Wanted
) -> Iterator[inspection_checks.Check]:
    names = {number: token for token, number in wanted.vocab.items()}
    for token, key, where, top in (
        ("[CLS]", "cls_share", "start", tokens["at_start"]),
        ("[SEP]", "sep_share", "end", tokens["at_end"]),
    ):
        found = ", ".join(
            f"{names.get(i, 'no entry')} (id {i}, {count:,} times)"
            for i, count in top[:3]
        )
        yield inspection_checks.Check(
            token,
            tokens[key] > 1 - 1e-9,
            f"{token} (id {wanted.vocab[token]}) at the {where} of every record",
            found,
            "these records were built with another vocabulary; give that one",
        )
    share = tokens["unknown_share"]
    yield inspection_checks.Check(
        "[UNK]",
        share <= vocabulary_audit.MUCH_UNKNOWN,
        f"at most {_percent(vocabulary_audit.MUCH_UNKNOWN)} of the tokens unknown",
        _percent(share),
        f"{_BUILD_AGAIN} with a vocabulary for this language, and the right "
        "--do_lower_case",
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
