"""What `data/inspection.py` found, as text for the screen."""

import itertools
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from data import inspection, inspection_checks

_WIDTH = 88
_TITLE = 16
_MAX_FILES = 12
_BINS = 10
_BAR = 40  # characters of the longest bar

Names = Mapping[int, str]  # id → token; empty if there is no vocabulary


def table(report: Mapping[str, Any], names: Names) -> str:
    """Files, features and statistics.

    Args:
        report: see `inspection.Inspector.report`.
        names: tokens of the ids.
    """
    lines = [*_files(report["files"])]
    for kind, layout in report["layouts"].items():
        lines += _layout(kind, layout)
    if report["pretraining"]:
        lines += _statistics(report["pretraining"], names)
    return "\n".join(lines)


def _row(title: str, text: str, width: int = _TITLE) -> str:
    return f"{title:<{width}} {text}".rstrip()


def _files(files: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    total = sum(file["bytes"] for file in files)
    records = sum(file["records"] for file in files)
    yield _row("files", f"{len(files):,}, {records:,} records, {total:,} bytes")
    for file in files[:_MAX_FILES]:
        damage = ", damaged" if file["damage"] else ""
        yield _row("", f"{file['path']}: {file['records']:,}{damage}")
    if len(files) > _MAX_FILES:
        yield _row("", f"and {len(files) - _MAX_FILES:,} more")


def _layout(kind: str, layout: Mapping[str, Any]) -> Iterator[str]:
    writer = inspection.WRITERS.get(kind)
    written = f", as {writer} writes them" if writer else ""
    yield from _wrapped("records", f"{layout['records']:,} of {kind}{written}")
    for feature in layout["features"]:
        unit = "string" if feature["kind"] == "bytes" else feature["kind"]
        size = _span(feature["count"])
        values = _span(feature["range"]) if feature["range"] else ""
        some = ""
        if feature["records"] < layout["records"]:
            some = f", in {feature['records']:,} records"
        inside = "lengths" if unit == "string" else "values"
        yield _row(
            "", f"{feature['name']:<22} {size:>9} {unit}, {inside} {values}{some}"
        )


def _span(bounds: tuple[float, float]) -> str:
    low, high = (f"{b:,}" if isinstance(b, int) else f"{b:g}" for b in bounds)
    return low if low == high else f"{low} to {high}"


def _statistics(found: Mapping[str, Any], names: Names) -> Iterator[str]:
    lengths, predictions = found["lengths"], found["predictions"]
    yield _row(
        "tokens",
        f"{lengths['mean']:.1f} a record, sd {lengths['std']:.1f}, {lengths['min']} to "
        f"{lengths['max']}; {_percent(lengths['full_share'])} of the records full",
    )
    yield _row("percentiles", _percentiles(lengths))
    yield from _histogram(lengths["counts"], found["records"])
    yield _row(
        "segments",
        f"A {lengths['segment_a_mean']:.1f}, B {lengths['segment_b_mean']:.1f} tokens",
    )
    yield _row("padding", f"{_percent(found['padding_share'])} of all positions")
    yield _row(
        "predictions",
        f"{predictions['mean']:.2f} a record, {predictions['min']} to "
        f"{predictions['max']}; {_percent(predictions['share'])} of the tokens",
    )
    yield from _wrapped(
        "budget",
        "masked_lm_prob of a record's tokens, 1 at least, max_predictions_per_seq at "
        f"most: {_percent(predictions['on_budget_share'])} of the records have exactly "
        f"so many predictions, {_percent(predictions['cut_budget_share'])} would have "
        "more without that limit",
    )
    shares = found["masking"]
    yield _row(
        "shown as",
        ", ".join(
            f"{name} {_percent(shares[key])}"
            for name, key in (
                ("[MASK]", "mask_share"),
                ("itself", "kept_share"),
                ("random token", "random_share"),
            )
        ),
    )
    random_share = _percent(found["next_sentence"]["random_share"])
    yield _row("next sentence", f"random in {random_share} of the records")
    repeated = _percent(found["repeated_share"])
    about = "" if found["repeats_are_exact"] else "about "
    yield _row(
        "repeated",
        f"{about}{repeated} of the records; {about}{found['distinct_texts']:,} "
        "different texts under the masks",
    )
    yield from _tokens(found["tokens"], names)


def _tokens(tokens: Mapping[str, Any], names: Names) -> Iterator[str]:
    of = f" of {len(names):,} entries" if names else ""
    yield _row("vocabulary", f"{tokens['distinct']:,} different tokens{of}")
    if "unknown_share" in tokens:
        yield _row("unknown", f"{_percent(tokens['unknown_share'], 3)} of the tokens")

    def words(pairs: Iterable[tuple[int, int]]) -> str:
        return ", ".join(f"{names.get(i, i)} {count:,}" for i, count in pairs)

    yield from _wrapped("most predicted", words(tokens["most_predicted"]))
    yield from _wrapped(
        "never predicted",
        f"{tokens['never_predicted']:,} tokens that occur; "
        + words(tokens["most_frequent_never_predicted"]),
    )


def _percentiles(values: Mapping[str, float]) -> str:
    keys = [key for key in values if key[0] == "p" and key[1:].isdigit()]
    return ", ".join(f"{key} {values[key]}" for key in keys)


def _histogram(counts: Mapping[int, int], total: int) -> Iterator[str]:
    """Bars of the shares of lengths, in bins of equal width."""
    longest = max(counts)
    width = -(-(longest + 1) // _BINS)
    bins = [0] * (longest // width + 1)
    for length, count in counts.items():
        bins[length // width] += count
    for number, count in enumerate(bins):
        start = number * width
        span = f"{start} to {min(start + width - 1, longest)}"
        bar = "#" * round(_BAR * count / max(bins))
        yield _row("", f"{span:<12} {_percent(count / total):>7} {bar}")


def _percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def _wrapped(title: str, text: str, width: int = _TITLE) -> Iterator[str]:
    lines = textwrap.wrap(text, _WIDTH - width - 1, break_on_hyphens=False) or [""]
    for first, line in itertools.zip_longest([title], lines, fillvalue=""):
        yield _row(first, line, width)


def checks_text(checks: Sequence[inspection_checks.Check]) -> str:
    """What fits, and what does not, with what to change."""
    lines = []
    width = 5 + max(len(check.name) for check in checks)
    for check in checks:
        text = f"{check.expected}: {check.came}"
        if not check.fits:
            text = f"expected {check.expected}; came {check.came}; {check.change}"
        title = ("ok  " if check.fits else "NO  ") + check.name
        lines += _wrapped(title, text, width)
    return "\n".join(lines)


def samples(
    chosen: Iterable[tuple[str, Mapping[str, list]]], names: Names
) -> list[dict[str, Any]]:
    """Records as text.

    Args:
        chosen: (place, record) each.
        names: tokens of the ids.

    Returns:
        dicts with place, is_random_next, text, in which an answer stands in braces
        behind what is shown in its place, and answers: position, shown and answer.
    """
    return [{"place": place, **_sample(record, names)} for place, record in chosen]


def _sample(record: Mapping[str, list], names: Names) -> dict[str, Any]:
    def name(number: int) -> str:
        return names.get(number, f"<{number}>")

    length = sum(value == 1 for value in record["input_mask"])
    shown = [name(i) for i in record["input_ids"]]
    answers = [
        {"position": position, "shown": shown[position], "answer": name(answer)}
        for position, answer, weight in zip(
            record["masked_lm_positions"],
            record["masked_lm_ids"],
            record["masked_lm_weights"],
            strict=True,
        )
        if weight and 0 <= position < len(shown)
    ]
    marked = dict(enumerate(shown[:length]))
    for answer in answers:
        marked[answer["position"]] = f"{answer['shown']}{{{answer['answer']}}}"
    text = " ".join(marked.values()).replace(" ##", "")
    is_random = record["next_sentence_labels"] == [1]
    return {"is_random_next": is_random, "text": text, "answers": answers}


def samples_text(shown: Iterable[Mapping[str, Any]]) -> str:
    """Samples for the screen."""
    lines = []
    for sample in shown:
        kind = "random" if sample["is_random_next"] else "true"
        lines.append(f"{sample['place']}, {kind} next sentence:")
        lines += textwrap.wrap(
            sample["text"],
            _WIDTH,
            initial_indent="  ",
            subsequent_indent="  ",
            break_on_hyphens=False,
            break_long_words=False,
        )
    return "\n".join(lines)
