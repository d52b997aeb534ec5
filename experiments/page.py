"""The results page: the paper's tables and ours side by side, from recorded runs."""

import math
import pathlib
from collections.abc import Callable, Mapping, Sequence

from data import filesystem
from experiments import exhibits, figures, miniatures, statistics

TEMPLATE = pathlib.Path(__file__).parent / "results_template.md"
Summaries = Mapping[tuple[str, str, str, str], statistics.Summary]


def write(path: str, lines: Sequence[Mapping]) -> None:
    """Writes the page, and its plot beside it.

    Args:
        path: of the .md file.
        lines: recorded runs.

    Raises:
        OSError: it cannot be written.
    """
    summaries = statistics.summarize(lines)
    target = pathlib.Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    plot = target.with_name(f"{target.stem}_figure_5.svg")
    figure = "Ours: not run yet."
    if figures.draw_figure_5(summaries, plot):
        figure = _FIGURE.format(plot=plot.name)
    text = TEMPLATE.read_text("utf-8").format(
        significant=f"{statistics.SIGNIFICANT:g}",
        exhibits="\n".join(_exhibit(e, summaries) for e in exhibits.EXHIBITS),
        figure_5=figure,
        time=_time(lines),
    )
    filesystem.write_text(path, text)


_FIGURE = """Ours, on the made-up language: the model of table 5, fine-tuned on tagging
from each saved step, mean and standard deviation over seeds.

![tagging after fine-tuning, over updates of pre-training]({plot})"""


def _exhibit(exhibit: exhibits.Exhibit, summaries: Summaries) -> str:
    parts = [
        f"## {exhibit.title}\n",
        "Published:\n",
        statistics.table(exhibit.header, exhibit.published),
    ]
    for measured in exhibit.measured:
        parts += _measured(measured, summaries)
    return "\n".join(parts)


def _measured(measured: exhibits.Measured, summaries: Summaries) -> list[str]:
    """The table of an experiment and what it says of the paper's directions."""
    there = {v for experiment, v, *_ in summaries if experiment == measured.experiment}
    variants = [v for v in miniatures.variants(measured.experiment) if v in there]
    if not variants:
        return [f"Ours: {measured.about} Not run yet.\n"]

    def of(variant: str, place: tuple[str, str]) -> statistics.Summary | None:
        return summaries.get((measured.experiment, variant, *place))

    rows = [
        [variant, *(statistics.show(of(variant, c)) for c in measured.columns.values())]
        for variant in variants
    ]
    counts = {
        len(s.values) + s.num_degenerate
        for (experiment, *_), s in summaries.items()
        if experiment == measured.experiment
    }
    seeds = " to ".join(dict.fromkeys(str(f(counts)) for f in (min, max)))
    parts = [
        f"Ours, seeds: {seeds}. {measured.about}\n",
        statistics.table([measured.experiment, *measured.columns], rows),
    ]
    if measured.claims:
        verdicts = [_verdict(claim, of) for claim in measured.claims]
        parts += ["Directions of the paper:\n", statistics.table(_VERDICT, verdicts)]
    return parts


_VERDICT = ("better", "than", "on", "difference", "")


def _verdict(
    claim: exhibits.Claim,
    of: Callable[[str, tuple[str, str]], statistics.Summary | None],
) -> list[str]:
    place = (claim.task, claim.score)
    names = [claim.better, claim.worse, f"{claim.task}, {claim.score}"]
    better, worse = (of(variant, place) for variant in (claim.better, claim.worse))
    if better is None or worse is None:
        return [*names, "–", "not run"]
    difference = better.mean - worse.mean
    difference = "–" if math.isnan(difference) else f"{difference:+.1f}"
    if claim.score in exhibits.LESS_IS_BETTER:
        better, worse = worse, better
    return [*names, difference, f"**{statistics.compare(better, worse)}**"]


def _time(lines: Sequence[Mapping]) -> str:
    """What the recorded runs took, and their commands."""
    rows = []
    for experiment in dict.fromkeys(line["experiment"] for line in lines):
        of_it = [line for line in lines if line["experiment"] == experiment]
        seconds = sum(line["cpu_seconds"] or 0 for line in of_it)
        degenerate = sum(line.get("degenerate", False) for line in of_it)
        rows.append(
            [experiment, str(len(of_it)), str(degenerate), f"{seconds / 60:.0f}"]
        )
    header = ("experiment", "runs", "degenerate", "CPU minutes of their last steps")
    return statistics.table(header, rows)
