r"""Fine-tunes BERT on the tasks of GLUE as the paper did (Devlin et al. 2018, 4.1).

    python run_glue.py --data_dir=glue --output_dir=glue_runs --do_predict \
        --init_checkpoint=bert/bert_model.ckpt --vocab_file=bert/vocab.txt \
        --bert_config_file=bert/bert_config.json --seeds=1,2,3,4,5

Runs run_classifier.py for every task, setting of the grid and seed; BERT-Base gets an
average of 79.6 on the test sets (table 1 there). --data_dir holds the folders CoLA,
MRPC, ... Started again, it goes on where it stopped: finished runs are passed over,
interrupted ones resume.

Writes to --output_dir: TASK/SETTING_seedN (folders of run_classifier.py, and log.txt),
results.jsonl (a line for each run), results_summary.jsonl (mean, sd, median and max
over the seeds), results.md and, with --do_predict, submission.zip for
gluebenchmark.com. For each task the setting with the best median on dev is picked, and
its best run predicts; WNLI gets the majority class, as in the paper. A run is
degenerate if it says the same of a whole dev set, or has diverged.
"""

import itertools
import json
import os

import common_flags

from absl import flags, logging
from tqdm import tqdm

import child_runs
import classifier_tasks
import glue_results
import glue_runs
import run_directory
from data import glue

FLAGS = flags.FLAGS

# What makes the runs of a folder comparable; all are flags of run_classifier.py, too.
COMMON = (
    *("bert_config_file", "init_checkpoint", "vocab_file"),
    *("do_lower_case", "max_seq_length"),
)


def define_flags():
    common_flags.define_model()
    common_flags.define_text()
    flags.DEFINE_string("data_dir", None, "Folder of GLUE's folders.", required=True)
    flags.DEFINE_string("output_dir", None, "Folder of all runs.", required=True)
    flags.DEFINE_list(
        "tasks",
        "cola,sst-2,mrpc,sts-b,qqp,mnli,qnli,rte",
        "Which tasks; all but WNLI, whose dev set misleads.",
    )
    flags.DEFINE_list("batch_sizes", "16,32", "Grid: examples an update.")
    flags.DEFINE_list("learning_rates", "5e-5,4e-5,3e-5,2e-5", "Grid: peak rates.")
    flags.DEFINE_list("epochs", "3", "Grid: passes over the training set.")
    flags.DEFINE_list("seeds", "1,2,3", "Each setting is run with each seed.")
    flags.DEFINE_integer(
        "max_seq_length", 128, "Tokens an example; longer ones are cut.", 3
    )
    flags.DEFINE_bool("do_predict", False, "Predict the test sets, write the zip.")
    flags.DEFINE_bool(
        "keep_checkpoints",
        False,
        "Keep the checkpoints and records of all runs, not only of each task's best.",
    )
    flags.DEFINE_string(
        "classifier_flags",
        "",
        "Further flags of run_classifier.py for all runs, such as '--bias_correction "
        "--eval_batch_size=64'.",
    )


def numbers(flag, kind, least):
    """The numbers of a list flag.

    Raises:
        ValueError: one is no number, below `least`, or there twice.
    """
    try:
        found = [kind(text) for text in FLAGS[flag].value]
    except ValueError:
        found = []
    in_range = all(least <= number < float("inf") for number in found)
    if not found or not in_range or len(set(found)) < len(found):
        raise ValueError(
            f"--{flag} must be different numbers of {least:g} or more with commas "
            f"between, got {','.join(FLAGS[flag].value)!r}"
        )
    return found


def make_rows(task_names):
    """The runs of the grid: every task with every setting and seed."""
    settings = itertools.product(
        numbers("batch_sizes", int, least=1),
        numbers("learning_rates", float, least=1e-9),
        numbers("epochs", float, least=1e-9),
    )
    seeds = numbers("seeds", int, least=0)
    rows = []
    for task, setting, seed in itertools.product(task_names, list(settings), seeds):
        name = "batch{}_rate{:g}_epochs{:g}_seed{}".format(*setting, seed)
        row = dict(zip(glue_results.SETTING, setting, strict=True))
        folder = os.path.join(FLAGS.output_dir, task, name)
        rows.append({"task": task, **row, "seed": seed, "folder": folder})
    return rows


def count_examples(task):
    """Number of training examples; reads all sets that will be used."""
    used = [*task.splits("train"), *task.splits("dev")]
    used += task.splits("test") if FLAGS.do_predict else []
    folder = os.path.join(FLAGS.data_dir, task.folder)
    return [len(task.examples(folder, split)) for split in used][0]


def main():
    if not FLAGS.tasks:
        raise ValueError("--tasks names no task")
    tasks = {glue.canonical_name(name): glue.find_task(name) for name in FLAGS.tasks}
    for name, task in tasks.items():
        if not (task.folder and task.splits("train")):
            raise ValueError(f"--tasks: {name} is no task of GLUE to train on")
    rows = make_rows(tasks)
    # All of it first: a mistake in one task should not show after the runs of others.
    sizes = {name: count_examples(task) for name, task in tasks.items()}
    lock = child_runs.wait_for_folder(FLAGS.output_dir)
    common = {name: FLAGS[name].value for name in COMMON}
    identity = {"script": "run_glue", **common, "flags": FLAGS.classifier_flags}
    run_directory.claim(FLAGS.output_dir, identity, common_flags.values())
    runner = glue_runs.Runner(FLAGS.data_dir, common, FLAGS.classifier_flags, lock)
    for row in rows:
        glue_runs.add_scores(row)
    train(runner, rows, sizes)
    print(write_results(rows))
    if FLAGS.do_predict:
        predict(runner, rows)


def train(runner, rows, sizes):
    """Runs what is not done yet, showing how many examples are left."""
    work = [sizes[row["task"]] * row["num_train_epochs"] for row in rows]
    done = sum(w for w, row in zip(work, rows, strict=True) if glue_runs.is_done(row))
    with tqdm(total=sum(work), initial=done, unit=" examples", unit_scale=True) as bar:
        for number, (row, size) in enumerate(zip(rows, work, strict=True), 1):
            if glue_runs.is_done(row):
                continue
            bar.set_description(f"run {number} of {len(rows)}, {row['task']}")

            def show(step, row=row, start=bar.n):
                bar.n = start + step * row["train_batch_size"]
                bar.refresh()

            start = bar.n
            runner.train(row, show)
            bar.n = start + size
            if not FLAGS.keep_checkpoints:
                glue_runs.remove_checkpoints(
                    [other for other in rows if other["task"] == row["task"]]
                )
            write_results(rows)


def write_results(rows):
    """Writes results.jsonl, results_summary.jsonl and results.md; returns the last."""
    rows = [row for row in rows if glue_runs.is_done(row)]
    summaries = glue_results.summarize(rows)
    picked = [pick(rows, name) for name in dict.fromkeys(r["task"] for r in rows)]
    chosen = [summary for summary, _ in filter(None, picked)]
    text = (
        "# GLUE, dev sets\n\nIn per cent; score is the mean of a task's metrics. Mean, "
        "sd, median and max are over the seeds.\n\n## The settings with the best "
        f"median score\n\n{glue_results.markdown(chosen)}\n## All settings\n\n"
        f"{glue_results.markdown(summaries)}"
    )
    for name, values in (("results", rows), ("results_summary", summaries)):
        lines = "".join(json.dumps(value) + "\n" for value in values)
        run_directory.write_text(f"{FLAGS.output_dir}/{name}.jsonl", lines)
    run_directory.write_text(f"{FLAGS.output_dir}/results.md", text)
    return text


def pick(rows, task):
    """(summary, row) of the setting and the run that is best on dev, or None."""
    rows = [row for row in rows if row["task"] == task]
    return glue_results.pick(glue_results.summarize(rows), rows)


def predict(runner, rows):
    """Predicts with the picked runs and writes submission.zip."""
    if not any("score" in row for row in rows):
        raise ValueError(
            "no run can predict, as all diverged, see results.md; try lower rates in "
            "another --output_dir"
        )
    files, missing = {}, []
    for (name, split), file in glue_results.LEADERBOARD_FILES.items():
        task = glue.find_task(name)
        folder = os.path.join(FLAGS.data_dir, task.folder)
        picked = pick(rows, "mnli" if name == "ax" else name)
        if not os.path.isdir(folder) or not (picked or name == "wnli"):
            missing.append(file)
        elif name == "wnli":
            files[file] = glue_results.majority(task, folder)
        else:
            files[file] = predictions(runner, picked[1], name, split)
    path = os.path.join(FLAGS.output_dir, "submission.zip")
    glue_results.write_zip(path, files)
    logging.info("wrote %s with %s", path, ", ".join(files))
    if missing:
        logging.warning("it lacks %s; the leaderboard wants all", ", ".join(missing))


def predictions(runner, row, name, split):
    """What the run of a row says of a test set."""
    suffix = classifier_tasks.suffix(split)
    path = os.path.join(row["folder"], f"predictions{suffix}.tsv")
    if not os.path.exists(path):
        # Its checkpoints may be gone, as another run was ahead, or half made again when
        # it was killed. It comes to the same weights, or has them already.
        runner.run(row, row["task"], {"do_train": True})
        runner.run(row, name, {"do_predict": True})
    return glue_results.predictions(path, glue.find_task(name).kind)


if __name__ == "__main__":
    common_flags.run(main, define_flags)
