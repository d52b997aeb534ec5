"""What many runs on GLUE add up to: statistics, the choice on dev, the zip to hand in.

A row is a dict that describes a run: task, train_batch_size, learning_rate,
num_train_epochs, seed, folder; and, when it is finished, what `read_scores` adds.
"""

import csv
import io
import os
import statistics
import zipfile
from collections import Counter

import classifier_tasks
from data import filesystem, glue, tables, targets

SETTING = ("train_batch_size", "learning_rate", "num_train_epochs")
# Names of the leaderboard's files, by task and test set.
LEADERBOARD_FILES = {
    ("cola", "test"): "CoLA.tsv",
    ("sst-2", "test"): "SST-2.tsv",
    ("mrpc", "test"): "MRPC.tsv",
    ("sts-b", "test"): "STS-B.tsv",
    ("qqp", "test"): "QQP.tsv",
    ("mnli", "test"): "MNLI-m.tsv",
    ("mnli", "test_mismatched"): "MNLI-mm.tsv",
    ("qnli", "test"): "QNLI.tsv",
    ("rte", "test"): "RTE.tsv",
    ("wnli", "test"): "WNLI.tsv",
    ("ax", "test_ax"): "AX.tsv",
}
# A regression is degenerate if its numbers spread less than this share of the labels.
LEAST_SPREAD = 0.01


def read_scores(folder, task):
    """What a finished run of run_classifier.py scored on its dev sets.

    Args:
        folder: str.
        task: glue.Task.
    Returns:
        None if the run is not finished, else a dict: the official metrics ("accuracy",
        with "_mismatched" for the second dev set of MNLI), score (their mean) and
        degenerate: whether all examples of a dev set get the same class, or numbers
        that hardly differ.
    Raises:
        ValueError: the file of results or of predictions is damaged.
    """
    scores, degenerate = {}, False
    for split in task.splits("dev"):
        suffix = classifier_tasks.suffix(split)
        path = os.path.join(folder, f"eval_results{suffix}.json")
        if not os.path.exists(path):
            return None
        types = {f"eval_{name}": int | float for name in task.metrics}
        results = filesystem.read_object(path, **types)
        for name in task.metrics:
            scores[f"{name}{suffix}"] = results[f"eval_{name}"]
        path = os.path.join(folder, f"eval_predictions{suffix}.tsv")
        is_number = task.kind == targets.Kind.NUMBER
        table = read_table(path, ("gold", "value") if is_number else ("label",))
        degenerate |= is_degenerate(table, task.kind)
    return {
        **scores,
        "score": statistics.mean(scores.values()),
        "degenerate": degenerate,
    }


def read_table(path, columns):
    """Rows of a table that run_classifier.py wrote, as dicts of these columns.

    Raises:
        ValueError: it has no rows, or not these columns; see `tables.select`.
    """
    rows = tables.select(path, tables.read_csv(path, delimiter="\t"), columns)
    table = [dict(zip(columns, cells, strict=True)) for _, _, cells in rows]
    if not table:
        raise ValueError(f"{path} is damaged, remove it: it has no rows")
    return table


def is_degenerate(table, kind):
    """Whether a model says the same of all examples.

    Args:
        table: rows of eval_predictions.tsv.
        kind: targets.Kind.
    """
    if kind != targets.Kind.NUMBER:
        return len({row["label"] for row in table}) == 1
    gold, value = (
        statistics.pstdev(float(row[name]) for row in table)
        for name in ("gold", "value")
    )
    return value < LEAST_SPREAD * gold


def metrics_of(task):
    """Names of the scores of a task, official metrics first and their mean last."""
    suffixes = [classifier_tasks.suffix(split) for split in task.splits("dev")]
    return [*(n + s for s in suffixes for n in task.metrics), "score"]


def summarize(rows):
    """Statistics over the seeds of each task and setting.

    Args:
        rows: list of dict; diverged runs have no score and count as degenerate.
    Returns:
        list of dict in the order of the rows: task and setting; runs, how many;
        degenerate, how many of them; and for each metric a dict of mean, sd (of the
        sample; None for one run), median and max. Without any score, no metrics.
    """
    groups = {}
    for row in rows:
        groups.setdefault((row["task"], *(row[name] for name in SETTING)), []).append(
            row
        )
    summaries = []
    for (task, *setting), group in groups.items():
        summary = {
            "task": task,
            **dict(zip(SETTING, setting, strict=True)),
            "runs": len(group),
            "degenerate": sum(row["degenerate"] for row in group),
            "metrics": {},
        }
        scored = [row for row in group if "score" in row]
        for name in metrics_of(glue.find_task(task)) if scored else ():
            values = [row[name] for row in scored]
            summary["metrics"][name] = {
                "mean": statistics.mean(values),
                "sd": statistics.stdev(values) if len(values) > 1 else None,
                "median": statistics.median(values),
                "max": max(values),
            }
        summaries.append(summary)
    return summaries


def pick(summaries, rows):
    """The setting with the best median score on dev, and its best run.

    Args:
        summaries: of `summarize`, of one task.
        rows: what they summarize.
    Returns:
        (summary, row), or None if no run has a score.
    """
    candidates = [summary for summary in summaries if summary["metrics"]]
    if not candidates:
        return None
    best = max(candidates, key=lambda s: s["metrics"]["score"]["median"])
    of_setting = [
        row
        for row in rows
        if "score" in row and all(row[name] == best[name] for name in SETTING)
    ]
    return best, max(of_setting, key=lambda row: row["score"])


def markdown(summaries):
    """A table with a line for every metric of every summary, in per cent."""
    lines = [
        "| task | metric | batch | rate | epochs | runs | degenerate | mean | sd | "
        "median | max |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for summary in summaries:
        start = [summary["task"]]
        setting = [f"{summary[name]:g}" for name in SETTING]
        counts = [str(summary["runs"]), str(summary["degenerate"])]
        if not summary["metrics"]:
            cells = [*start, "diverged", *setting, *counts, *["–"] * 4]
            lines.append(f"| {' | '.join(cells)} |")
        names = list(summary["metrics"])
        # With one metric the mean of the metrics says nothing new.
        for name in names[:-1] if len(names) == 2 else names:
            numbers = [
                "–" if value is None else f"{100 * value:.1f}"
                for value in summary["metrics"][name].values()
            ]
            cells = [*start, name, *setting, *counts, *numbers]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def predictions(path, kind):
    """What predictions.tsv says, as the leaderboard wants it.

    Args:
        path: str.
        kind: targets.Kind.
    Returns:
        list of str: a label or, within the scale of 0 to 5, a number.
    """
    if kind == targets.Kind.NUMBER:
        values = [float(row["value"]) for row in read_table(path, ("value",))]
        return [f"{min(max(value, 0), 5):.3f}" for value in values]
    return [row["label"] for row in read_table(path, ("label",))]


def majority(task, data_dir):
    """The most frequent label of the training set for every test example.

    The paper did so for WNLI, whose dev set misleads (Devlin et al. 2018, section 4.1).
    """
    counts = Counter(example.label for example in task.examples(data_dir, "train"))
    most = max(task.labels, key=lambda label: counts[label])
    return [most] * len(task.examples(data_dir, "test"))


def write_zip(path, files):
    """Writes what gluebenchmark.com takes, whole or not at all; equal for equal files.

    Args:
        path: str.
        files: dict of name → list of str, the predictions in the order of the test set.
    """
    temporary = f"{path}.tmp"
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, lines in files.items():
                text = io.StringIO()
                rows = [("index", "prediction"), *enumerate(lines)]
                csv.writer(text, delimiter="\t", lineterminator="\n").writerows(rows)
                archive.writestr(zipfile.ZipInfo(name), text.getvalue())
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.remove(temporary)
