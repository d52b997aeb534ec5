"""Statistics over runs, the choice among them, and what the leaderboard gets."""

import csv
import io
import json
import random
import statistics
import zipfile

import numpy as np
import pytest

import glue_results
import run_directory
from data import glue, targets


def make_row(task="mrpc", rate=2e-5, seed=1, **scores):
    return {
        "task": task,
        "train_batch_size": 16,
        "learning_rate": rate,
        "num_train_epochs": 3.0,
        "seed": seed,
        "folder": f"{task}/{rate}/{seed}",
        "degenerate": False,
        **scores,
    }


def random_rows(seed):
    """Rows of an MRPC grid in no order, some diverged."""
    rng = random.Random(seed)
    rows = []
    for rate in (5e-5, 3e-5):
        for number in range(rng.randrange(1, 7)):
            scores = {"accuracy": rng.random(), "f1": rng.random()}
            scores["score"] = (scores["accuracy"] + scores["f1"]) / 2
            scores["degenerate"] = rng.random() < 0.2
            if rng.random() < 0.2:
                scores = {"degenerate": True}
            rows.append(make_row(rate=rate, seed=number, **scores))
    rng.shuffle(rows)
    return rows


@pytest.mark.parametrize("seed", range(50))
def test_statistics_equal_numpy(seed):
    rows = random_rows(seed)
    summaries = glue_results.summarize(rows)
    assert {s["learning_rate"] for s in summaries} == {5e-5, 3e-5}
    for summary in summaries:
        of_setting = [r for r in rows if r["learning_rate"] == summary["learning_rate"]]
        assert summary["runs"] == len(of_setting)
        assert summary["degenerate"] == sum(r["degenerate"] for r in of_setting)
        scored = [r for r in of_setting if "score" in r]
        assert bool(summary["metrics"]) == bool(scored)
        for name, found in summary["metrics"].items():
            values = np.array([row[name] for row in scored])
            assert found["mean"] == pytest.approx(values.mean())
            assert found["median"] == pytest.approx(np.median(values))
            assert found["max"] == values.max()
            if len(values) == 1:
                assert found["sd"] is None
            else:
                assert found["sd"] == pytest.approx(values.std(ddof=1))
        assert list(summary["metrics"]) in ([], ["accuracy", "f1", "score"])


@pytest.mark.parametrize("seed", range(50))
def test_the_choice_is_the_best_run_of_the_setting_with_the_best_median(seed):
    rows = random_rows(seed)
    by_rate = {}
    for row in rows:
        if "score" in row:
            by_rate.setdefault(row["learning_rate"], []).append(row)
    picked = glue_results.pick(glue_results.summarize(rows), rows)
    if not by_rate:
        assert picked is None
        return
    medians = {
        rate: statistics.median(r["score"] for r in group)
        for rate, group in by_rate.items()
    }
    rate = max(medians, key=medians.get)
    summary, row = picked
    assert summary["learning_rate"] == row["learning_rate"] == rate
    assert row["score"] == max(r["score"] for r in by_rate[rate])


def write_table(path, header, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t").writerows([header, *rows])


def finish(folder, suffix, results, labels):
    """Writes what run_classifier.py writes of a dev set."""
    results = {f"eval_{name}": value for name, value in results.items()}
    (folder / f"eval_results{suffix}.json").write_text(json.dumps(results))
    rows = [(f"dev-{i}", "x", label, "0.5") for i, label in enumerate(labels)]
    header = ("id", "gold", "label", "score")
    write_table(folder / f"eval_predictions{suffix}.tsv", header, rows)


def test_scores_of_both_dev_sets_of_mnli(tmp_path):
    task = glue.find_task("mnli")
    assert glue_results.read_scores(tmp_path, task) is None
    finish(tmp_path, "", {"accuracy": 0.8, "loss": 9}, "abc")
    assert glue_results.read_scores(tmp_path, task) is None  # stopped between the two
    finish(tmp_path, "_mismatched", {"accuracy": 0.6, "loss": 9}, "abc")
    assert glue_results.read_scores(tmp_path, task) == {
        "accuracy": 0.8,
        "accuracy_mismatched": 0.6,
        "score": pytest.approx(0.7),
        "degenerate": False,
    }
    finish(tmp_path, "_mismatched", {"accuracy": 0.6, "loss": 9}, "aaa")
    assert glue_results.read_scores(tmp_path, task)["degenerate"]


def test_official_metrics_only(tmp_path):
    finish(tmp_path, "", {"matthews_correlation": 0.0, "accuracy": 0.69}, "1111")
    scores = glue_results.read_scores(tmp_path, glue.find_task("cola"))
    assert scores == {"matthews_correlation": 0.0, "score": 0.0, "degenerate": True}


@pytest.mark.parametrize("text", ["[]", "{bad", "{}", '{"eval_accuracy": "x"}'])
def test_damaged_results_are_named(tmp_path, text):
    finish(tmp_path, "", {"accuracy": 0.5}, "01")
    (tmp_path / "eval_results.json").write_text(text)
    with pytest.raises(ValueError, match="eval_results.json is damaged, remove it"):
        glue_results.read_scores(tmp_path, glue.find_task("rte"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("id\tlabel\n", "is damaged, remove it: it has no rows"),
        ("id\tvalue\n1\t2\n", "line 1: no column 'label'"),
        ("id\tlabel\n1\n", "line 2: expected the 2 columns of the header, got 1"),
    ],
)
def test_damaged_predictions_are_named(tmp_path, text, message):
    finish(tmp_path, "", {"accuracy": 0.5}, "01")
    (tmp_path / "eval_predictions.tsv").write_text(text)
    with pytest.raises(ValueError, match=f"eval_predictions.tsv.* {message}"):
        glue_results.read_scores(tmp_path, glue.find_task("rte"))


def test_any_cell_is_read_as_it_was_written(tmp_path):
    cells = ["a\tb", "c\rd", 'say "x"\n', "\r\n", ""]
    rows = [("id", "label"), *((cell, cell) for cell in cells)]
    run_directory.write_table(tmp_path / "t.tsv", rows)
    table = glue_results.read_table(tmp_path / "t.tsv", ("label", "id"))
    assert table == [{"label": cell, "id": cell} for cell in cells]


def test_which_regressions_are_degenerate():
    def table(values):
        return [{"gold": str(i), "value": str(v)} for i, v in enumerate(values)]

    kind = targets.Kind.NUMBER
    assert glue_results.is_degenerate(table([2.5] * 6), kind)
    assert glue_results.is_degenerate(table([2.5, 2.501, 2.5, 2.5, 2.5, 2.5]), kind)
    assert not glue_results.is_degenerate(table([2.4, 2.6, 2.4, 2.5, 2.6, 2.5]), kind)


def test_tables():
    rows = [
        make_row("mnli", accuracy=0.84, accuracy_mismatched=0.842, score=0.841),
        make_row("cola", seed=1, matthews_correlation=0.5, score=0.5),
        make_row("cola", seed=2, matthews_correlation=0.6, score=0.6),
        make_row("cola", rate=1e-2, degenerate=True),
    ]
    lines = glue_results.markdown(glue_results.summarize(rows)).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    ours = ["16", "2e-05", "3"]
    assert rows == [
        ["mnli", "accuracy", *ours, "1", "0", "84.0", "–", "84.0", "84.0"],
        ["mnli", "accuracy_mismatched", *ours, "1", "0", "84.2", "–", "84.2", "84.2"],
        ["mnli", "score", *ours, "1", "0", "84.1", "–", "84.1", "84.1"],
        [
            "cola",
            "matthews_correlation",
            *ours,
            "2",
            "0",
            "55.0",
            "7.1",
            "55.0",
            "60.0",
        ],
        ["cola", "diverged", "16", "0.01", "3", "1", "1", "–", "–", "–", "–"],
    ]


def test_predictions_as_the_leaderboard_wants_them(tmp_path):
    path = tmp_path / "predictions.tsv"
    rows = [("test-1", "entailment", "0.9"), ("test-2", "not_entailment", "0.6")]
    write_table(path, ("id", "label", "score"), rows)
    found = glue_results.predictions(path, targets.Kind.CLASS)
    assert found == ["entailment", "not_entailment"]
    rows = [("test-1", "3.14159"), ("test-2", "-0.2"), ("test-3", "5.7")]
    write_table(path, ("id", "value"), rows)
    found = glue_results.predictions(path, targets.Kind.NUMBER)
    assert found == ["3.142", "0.000", "5.000"]


def test_the_majority_of_wnli(shared):
    found = glue_results.majority(
        glue.find_task("wnli"), shared / "data" / "glue" / "WNLI"
    )
    # 323 of 635 in the published training set.
    assert found == ["0"] * 146


def test_the_zip(tmp_path):
    path = tmp_path / "submission.zip"
    files = {"CoLA.tsv": ["1", "0"], "AX.tsv": ["neutral"]}
    glue_results.write_zip(path, files)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["CoLA.tsv", "AX.tsv"]
        text = archive.read("CoLA.tsv").decode()
    assert text == "index\tprediction\n0\t1\n1\t0\n"
    rows = list(csv.DictReader(io.StringIO(text), delimiter="\t"))
    assert rows[1] == {"index": "1", "prediction": "0"}
    before = path.read_bytes()
    glue_results.write_zip(path, files)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["submission.zip"]


def test_files_of_the_leaderboard():
    """As the benchmark's site lists them."""
    names = ["AX", "CoLA", "MNLI-m", "MNLI-mm", "MRPC", "QNLI", "QQP", "RTE", "SST-2"]
    names += ["STS-B", "WNLI"]
    found = sorted(glue_results.LEADERBOARD_FILES.values())
    assert found == [f"{name}.tsv" for name in names]
    for name, split in glue_results.LEADERBOARD_FILES:
        assert split in glue.find_task(name).splits("test")
