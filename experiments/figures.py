"""The plot of the results page."""

import pathlib
import re
from collections.abc import Mapping

from experiments import statistics

EXPERIMENT = "figure 5"


def draw_figure_5(
    summaries: Mapping[tuple[str, str, str, str], statistics.Summary],
    path: pathlib.Path,
) -> bool:
    """Draws scores after fine-tuning over updates of pre-training, mean and sd.

    Args:
        summaries: from `statistics.summarize`.
        path: of the .svg file.

    Returns:
        whether there was anything to draw.
    """
    curves: dict[str, list[tuple[int, statistics.Summary]]] = {}
    for (experiment, variant, *_), summary in summaries.items():
        if experiment == EXPERIMENT and summary.values:
            name, step = re.fullmatch(r"(.*), step (\d+)", variant).groups()
            curves.setdefault(name, []).append((int(step), summary))
    if not curves:
        return False
    from matplotlib import pyplot  # only here is it needed

    figure, axis = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for name, points in curves.items():
        steps, found = zip(*sorted(points, key=lambda point: point[0]), strict=True)
        spread = [s.sd if len(s.values) > 1 else 0.0 for s in found]
        means = [s.mean for s in found]
        axis.errorbar(steps, means, spread, marker="o", capsize=3, label=name)
    axis.set(xlabel="updates of pre-training", ylabel="tagging, entity F1")
    axis.legend()
    with pyplot.rc_context({"svg.hashsalt": EXPERIMENT}):
        figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return True
