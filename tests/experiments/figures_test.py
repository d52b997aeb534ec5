"""Curves of scores over updates."""

import re

from experiments import figures, statistics


def summary(*values):
    return statistics.Summary(values)


def test_a_curve_for_each_variant_in_the_order_of_the_updates(tmp_path):
    summaries = {
        ("figure 5", f"{name}, step {step}", "tagging", "F1"): summary(*values)
        for name in ("MLM + NSP", "LTR")
        for step, values in ((2000, (60.0, 62.0)), (250, (5.0,)), (1000, ()))
    }
    summaries["table 5", "MLM + NSP", "tagging", "F1"] = summary(1.0)
    paths = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for path in paths:
        assert figures.draw_figure_5(summaries, path)
    drawn = paths[0].read_text()
    assert drawn == paths[1].read_text()  # made again, nothing moves
    # A line through two points of each: the step without a score is left out.
    lines = re.findall(r'd="(M [\d.]+ [\d.]+ \nL [\d.]+ [\d.]+ \n)" clip', drawn)
    xs = [[float(x) for x, _ in re.findall(r"([\d.]+) ([\d.]+) ", d)] for d in lines]
    curves = [x for x in xs if x[1] - x[0] > 100]
    assert len(curves) == 2


def test_nothing_to_draw(tmp_path):
    other = {("table 5", "LTR", "tagging", "F1"): summary(1.0)}
    assert not figures.draw_figure_5(other, tmp_path / "a.svg")
    assert not (tmp_path / "a.svg").exists()
