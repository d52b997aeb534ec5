"""The results page, from runs that were made up."""

import re

import numpy as np
import pytest

from experiments import exhibits, miniatures, page


def record(experiment, variant, task, seed, score, value, **more):
    scores = {"experiment": experiment, "variant": variant, "task": task, "seed": seed}
    return {**scores, "scores": {score: value}, "cpu_seconds": 30.0, **more}


def rows_of(text, first):
    """{first cell: other cells} of the table whose header begins with `first`."""
    table = text[text.index(f"| {first} |") :].split("\n\n")[0].splitlines()
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in table[2:]]
    return {row[0]: row[1:] for row in cells}


def test_a_table_beside_the_published_one(tmp_path):
    values = {"MLM + NSP": (90.0, 91.0, 92.0), "LTR": (50.0, 52.0, 90.0)}
    lines = [
        record("table 5, language", variant, "tagging", seed, "F1", value,
               degenerate=value == 90.0 and variant == "LTR")
        for variant, found in values.items()
        for seed, value in enumerate(found)
    ]  # fmt: skip
    page.write(str(tmp_path / "docs/page.md"), lines)
    text = (tmp_path / "docs/page.md").read_text()
    assert rows_of(text, "tasks (BERT-Base, dev)")["No NSP"][0] == "83.9"
    ours = rows_of(text, "table 5, language")
    assert ours["MLM + NSP"][0] == "91.0 ± 1.0"
    assert ours["LTR"][:2] == ["51.0 ± 1.4 (1 degenerate)", "–"]
    first, *_ = re.findall(r"^\| MLM \+ NSP \| LTR \| tagging, F1 .*", text, re.M)
    assert first == "| MLM + NSP | LTR | tagging, F1 | +40.0 | **holds** |"
    assert "| MLM + NSP | No NSP | pairs, accuracy | – | not run |" in text
    assert rows_of(text, "experiment")["table 5, language"] == ["6", "1", "3"]
    assert "Not run yet" in text and "Ours: not run yet." in text


def test_less_perplexity_is_better(tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        record("table 6", size, "held-out text", seed, "perplexity", rng.normal(mean))
        for size, mean in (("L1 H64", 90), ("L2 H64", 50), ("L4 H64", 80))
        for seed in range(4)
    ]
    page.write(str(tmp_path / "page.md"), lines)
    text = (tmp_path / "page.md").read_text()
    verdicts = re.findall(
        r"\| held-out text, perplexity \| (.)\S+ \| \*\*(.*)\*\*", text
    )
    assert verdicts == [("-", "holds"), ("+", "not reproduced")]


def test_the_curves_of_figure_5(tmp_path):
    lines = [
        record("figure 5", f"{name}, step {step}", "tagging", seed, "F1", step / 30)
        for name in ("MLM + NSP", "LTR")
        for step in (2000, 250)
        for seed in (1, 2)
    ]
    for name in ("a", "b"):
        page.write(str(tmp_path / name / "page.md"), lines)
    plots = [tmp_path / name / "page_figure_5.svg" for name in ("a", "b")]
    assert plots[0].read_bytes() == plots[1].read_bytes()  # made again, nothing moves
    assert "![" in (tmp_path / "a/page.md").read_text()


@pytest.mark.parametrize("exhibit", exhibits.EXHIBITS, ids=lambda e: e.title)
def test_what_the_page_asks_for_is_run(exhibit):
    made = [
        run
        for suite, make in miniatures.SUITES.items()
        for run in make(range(miniatures.NUM_SEEDS[suite]))
    ]
    assert len({run.key for run in made}) == len(made)
    there = {
        (run.experiment, run.variant, run.task, score)
        for run in made
        for score in run.scores
    }
    for measured in exhibit.measured:
        tasks = {key[2:] for key in there if key[0] == measured.experiment}
        assert set(measured.columns.values()) <= tasks
        for claim in measured.claims:
            for variant in (claim.better, claim.worse):
                assert (measured.experiment, variant, claim.task, claim.score) in there
    for row in exhibit.published:
        assert len(row) == len(exhibit.header)
