"""Summaries and comparisons, against NumPy and SciPy."""

import math

import numpy as np
import pytest
import scipy.stats

from experiments import statistics


def line(variant, seed, value, **more):
    return {
        "experiment": "e",
        "variant": variant,
        "task": "t",
        "seed": seed,
        "scores": {"f1": value},
        **more,
    }


def test_degenerate_runs_are_counted_and_left_out():
    values = np.random.default_rng(0).normal(80, 3, 9)
    lines = [line("a", seed, value) for seed, value in enumerate(values)]
    lines += [line("a", 9, 12.0, degenerate=True), line("b", 1, 5.0, degenerate=False)]
    found = statistics.summarize(lines[::-1])
    summary = found["e", "a", "t", "f1"]
    assert summary.values == tuple(values) and summary.num_degenerate == 1
    assert summary.mean == pytest.approx(values.mean())
    assert summary.sd == pytest.approx(values.std(ddof=1))
    assert summary.median == pytest.approx(np.median(values))
    assert summary.best == values.max()
    assert found["e", "b", "t", "f1"] == statistics.Summary((5.0,))
    assert math.isnan(found["e", "b", "t", "f1"].sd)


@pytest.mark.parametrize("seed", range(50))
def test_the_comparison_is_welchs_with_two_standard_errors(seed):
    rng = np.random.default_rng(seed)
    first, second = (
        rng.normal(rng.normal(0, 2), rng.uniform(0.1, 2), rng.integers(2, 9))
        for _ in range(2)
    )
    expected = scipy.stats.ttest_ind(first, second, equal_var=False).statistic
    word = (
        "tie" if abs(expected) <= 2 else "holds" if expected > 0 else "not reproduced"
    )
    summaries = [statistics.Summary(tuple(x)) for x in (first, second)]
    assert statistics.compare(*summaries) == word


def test_one_run_tells_nothing():
    one, two = statistics.Summary((9.0,)), statistics.Summary((1.0, 2.0))
    assert (
        statistics.compare(one, two) == statistics.compare(two, one) == "too few runs"
    )


def test_what_is_shown():
    show = statistics.show
    assert show(statistics.Summary((80.0, 82.0))) == "81.0 ± 1.4"
    assert show(statistics.Summary((80.04,), 2)) == "80.0 (2 degenerate)"
    assert show(statistics.Summary((), 3)) == "– (3 degenerate)"
    assert show(None) == show(statistics.Summary(())) == "–"
    assert show(statistics.Summary((5.125, 5.125)), 2) == "5.12 ± 0.00"
    rows = statistics.table(["a", "b"], [["1", "2"]])
    assert rows == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
