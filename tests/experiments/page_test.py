"""The results page, from runs that were made up."""

import re

import numpy as np

from experiments import page


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


def test_the_plot_is_shown_if_there_is_one(tmp_path):
    variants = [f"LTR, step {step}" for step in (250, 500)]
    lines = [record("figure 5", v, "tagging", 1, "F1", 50.0) for v in variants]
    page.write(str(tmp_path / "page.md"), lines)
    assert "](page_figure_5.svg)" in (tmp_path / "page.md").read_text()
    assert (tmp_path / "page_figure_5.svg").stat().st_size > 1000


def test_a_variant_that_only_failed_is_compared_with_nothing(tmp_path):
    lines = [
        record("table 8", mix, "tagging", seed, "F1", 50.0, degenerate=mix == "0/0/100")
        for mix in ("80/10/10", "0/0/100")
        for seed in range(3)
    ]
    page.write(str(tmp_path / "page.md"), lines)
    text = (tmp_path / "page.md").read_text()
    assert "| 0/0/100 | tagging, F1 | – | **too few runs** |" in text
    assert "nan" not in text


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
