"""What recorded runs add up to, and whether a difference is one."""

import dataclasses
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

# A difference of means counts from so many of its standard errors on.
SIGNIFICANT = 2.0
HOLDS, TIE, FAILS = "holds", "tie", "not reproduced"
UNKNOWN = "too few runs"


@dataclasses.dataclass(frozen=True)
class Summary:
    """Scores of one variant on one task over its seeds.

    Attributes:
        values: of the runs that are not degenerate, by seed.
        num_degenerate: how many others were left out.
    """

    values: tuple[float, ...]
    num_degenerate: int = 0

    @property
    def mean(self) -> float:
        """NaN without any run."""
        return statistics.mean(self.values) if self.values else math.nan

    @property
    def sd(self) -> float:
        """Of the sample; NaN for fewer than two runs."""
        return statistics.stdev(self.values) if len(self.values) > 1 else math.nan

    @property
    def median(self) -> float:
        return statistics.median(self.values) if self.values else math.nan

    @property
    def best(self) -> float:
        return max(self.values, default=math.nan)


def summarize(lines: Iterable[Mapping]) -> dict[tuple[str, str, str, str], Summary]:
    """Adds recorded runs up.

    Args:
        lines: records, see runs.py.

    Returns:
        by (experiment, variant, task, name of the score), in the order of the records.
    """
    groups: dict[tuple[str, str, str, str], list[tuple[int, float, bool]]] = {}
    for line in lines:
        for name, value in line["scores"].items():
            key = line["experiment"], line["variant"], line["task"], name
            is_degenerate = line.get("degenerate", False)
            groups.setdefault(key, []).append((line["seed"], value, is_degenerate))
    return {
        key: Summary(
            tuple(
                value for _, value, is_degenerate in sorted(found) if not is_degenerate
            ),
            sum(is_degenerate for *_, is_degenerate in found),
        )
        for key, found in groups.items()
    }


def compare(larger: Summary, smaller: Summary) -> str:
    """Whether the mean of one is above that of the other, as was said.

    It holds if the difference is more than `SIGNIFICANT` of its standard errors (of
    independent seeds, Welch's), is a tie if it is less either way, and is not
    reproduced if the other one is above by that much. Without two runs of each there is
    no telling.
    """
    summaries = (larger, smaller)
    if any(len(summary.values) < 2 for summary in summaries):
        return UNKNOWN
    error = math.sqrt(sum(s.sd**2 / len(s.values) for s in summaries))
    difference = larger.mean - smaller.mean
    if abs(difference) <= SIGNIFICANT * error:
        return TIE
    return HOLDS if difference > 0 else FAILS


def show(summary: Summary | None, digits: int = 1) -> str:
    """Mean ± sd, how many were degenerate, or a dash."""
    if summary is None or not (summary.values or summary.num_degenerate):
        return "–"
    text = f"{summary.mean:.{digits}f}" if summary.values else "–"
    if len(summary.values) > 1:
        text += f" ± {summary.sd:.{digits}f}"
    if summary.num_degenerate:
        text += f" ({summary.num_degenerate} degenerate)"
    return text


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in lines)
