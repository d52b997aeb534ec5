r"""Fine-tunes a real model on every task, with several seeds, and draws the table.

    python -m benchmarks.fine_tuning --data_dir=DATA --init_checkpoint=MINILM \
        --output_dir=fine_tuning

Each run is a command that could be typed by hand (it is shown, and kept in the run's
folder). Runs that are done are not done again and killed ones are resumed, so the
command may be stopped and repeated, but a folder where another command ran is refused;
a part of the runs is chosen with --tasks and --seeds. Where a data set has no dev part
that may be had, one is cut off: the last articles of SQuAD, the last documents of
WikiGold. DATA holds

    glue/{CoLA,MRPC,RTE,SST-2,STS-B,WNLI}   GLUE's TSV folders
    squad/dev-v1.1.part.json, dev-v2.0.part.json    SQuAD, some articles of the dev sets
    ner/wnut17, ner/wikigold, swag/codah, arct      the published files

and BANKING77 is in sample_data. Writes table.md and table.jsonl.
"""

import dataclasses
import itertools
import json
import pathlib
import re
import subprocess
import sys
import time

from absl import flags

import command_line
from benchmarks import tables
from experiments import preparation

FLAGS = flags.FLAGS
ROOT = pathlib.Path(__file__).parent.parent


def define_flags() -> None:
    flags.DEFINE_string("data_dir", None, "Folder of the data sets.", required=True)
    flags.DEFINE_string("init_checkpoint", None, "A BERT.", required=True)
    flags.DEFINE_string("output_dir", None, "Folder of the runs.", required=True)
    flags.DEFINE_list("tasks", list(TASKS), f"Of {', '.join(TASKS)}.")
    flags.DEFINE_list("seeds", ["1", "2", "3"], "Each task is run with each seed.")


@dataclasses.dataclass(frozen=True)
class Task:
    """A command and what to read from it.

    Attributes:
        what: str, the row of the table.
        command: str; {data}, {sample} and {prepared} stand for folders.
        scores: dict of what a score is called in the table → in its results file.
        factor: float, from the number in the file to percent.
        results: str, name of the results file.
    """

    what: str
    command: str
    scores: dict[str, str]
    factor: float = 100.0
    results: str = "eval_results.json"


def classifier(name: str, folder: str, flags_: str, rate: str = "5e-5") -> str:
    return (
        f"run_classifier.py --task_name={name} --data_dir={folder} --do_train "
        f"--do_eval --eval_batch_size=32 --learning_rate={rate} {flags_}"
    )


ACCURACY = {"accuracy": "eval_accuracy"}
# For the longer tasks, as it takes a third less time.
FAST = " --precision=bfloat16"
SQUAD = (
    "run_squad.py --train_file={prepared}/%(name)s.train.json "
    "--predict_file={prepared}/%(name)s.dev.json --do_train --do_predict %(more)s"
    "--several_answers=first --nopad_to_max --max_seq_length=256 --doc_stride=128 "
    "--train_batch_size=16 --learning_rate=1e-4 --num_train_epochs=%(epochs)d" + FAST
)
TASKS = {
    "sst-2": Task(
        "SST-2, the first 5,000 training rows",
        classifier("sst-2", "{prepared}/SST-2", "--num_train_epochs=2"),
        ACCURACY,
    ),
    "cola": Task(
        "CoLA",
        classifier("cola", "{data}/glue/CoLA", "--num_train_epochs=2" + FAST),
        {"Matthews": "eval_matthews_correlation"},
    ),
    "wnli": Task(
        "WNLI",
        classifier("wnli", "{data}/glue/WNLI", "--num_train_epochs=3"),
        ACCURACY,
    ),
    "rte": Task(
        "RTE",
        classifier(
            "rte",
            "{data}/glue/RTE",
            "--num_train_epochs=2 --train_batch_size=16 --length_buckets" + FAST,
        ),
        ACCURACY,
    ),
    "sts-b": Task(
        "STS-B",
        classifier(
            "sts-b", "{data}/glue/STS-B", "--num_train_epochs=3" + FAST, rate="1e-4"
        ),
        {"Pearson": "eval_pearson", "Spearman": "eval_spearmanr"},
    ),
    "mrpc": Task(
        "MRPC",
        classifier("mrpc", "{data}/glue/MRPC", "--num_train_epochs=3" + FAST),
        {"accuracy": "eval_accuracy", "F1": "eval_f1"},
    ),
    "banking77": Task(
        "BANKING77, 1,003 questions of sample_data",
        classifier(
            "own",
            "{sample}/banking77",
            "--num_train_epochs=2 --max_seq_length=64 --label_column=category "
            "--text_column=text --length_buckets" + FAST,
        ),
        ACCURACY,
    ),
    "wnut17": Task(
        "WNUT-17 NER",
        "run_ner.py --train_file={data}/ner/wnut17/wnut17train.conll "
        "--dev_file={data}/ner/wnut17/emerging.dev.conll --do_train --do_eval "
        "--learning_rate=1e-4 --num_train_epochs=4",
        {"F1": "eval_f1"},
    ),
    "wikigold": Task(
        "WikiGold NER, last fifth of the documents",
        "run_ner.py --train_file={prepared}/wikigold.train.txt "
        "--dev_file={prepared}/wikigold.dev.txt --do_train --do_eval "
        "--train_batch_size=16 --learning_rate=1e-4 --num_train_epochs=4",
        {"F1": "eval_f1"},
    ),
    "arct": Task(
        "ARCT",
        "run_swag.py --task_name=arct --data_dir={data}/arct --do_train --do_eval "
        "--train_batch_size=16 --learning_rate=5e-5 --num_train_epochs=2 "
        "--max_seq_length=80" + FAST,
        ACCURACY,
    ),
    "codah": Task(
        "CODAH",
        "run_swag.py --task_name=swag --data_dir={data}/swag/codah "
        "--train_file=as_swag_train.csv --eval_file=as_swag_val.csv --do_train "
        "--do_eval --train_batch_size=16 --learning_rate=5e-5 --num_train_epochs=3 "
        "--max_seq_length=64" + FAST,
        ACCURACY,
    ),
    "squad1": Task(
        "SQuAD 1.1, 8 articles to train, 3 to score",
        SQUAD % {"name": "dev-v1.1.part", "more": "", "epochs": 2},
        {"EM": "exact_match", "F1": "f1"},
        factor=1.0,
    ),
    "squad2": Task(
        "SQuAD 2.0, the same articles",
        SQUAD
        % {
            "name": "dev-v2.0.part",
            "more": "--version_2_with_negative ",
            "epochs": 1,
        },
        {"EM": "exact", "F1": "f1", "best F1": "best_f1"},
        factor=1.0,
    ),
}


def prepare(data: pathlib.Path, prepared: pathlib.Path) -> None:
    """Writes the parts of data sets that are not files of their own."""
    preparation.take_part_of_sst_2(data / "glue/SST-2", prepared / "SST-2")
    preparation.split_wikigold(data / "ner/wikigold/wikigold.train.txt", prepared)
    for name in ("dev-v1.1.part", "dev-v2.0.part"):
        whole = json.loads((data / f"squad/{name}.json").read_text("utf-8"))
        for split, articles in (
            ("train", whole["data"][:-3]),
            ("dev", whole["data"][-3:]),
        ):
            path = prepared / f"{name}.{split}.json"
            path.write_text(json.dumps({**whole, "data": articles}), "utf-8")


def check(name: str, seed: str, folder: pathlib.Path) -> None:
    """Refuses a folder of another command; folders of data may have moved."""
    typed = folder / "command.txt"
    if not typed.exists():
        return
    command = " ".join(make_command(name, seed, "{output}"))
    pattern = r"\S+".join(map(re.escape, re.split(r"\{\w+\}", command)))
    there = typed.read_text("utf-8").strip()
    if not re.fullmatch(pattern, there):
        raise ValueError(
            f"{folder} holds a run of another command ({there}); delete it, or give "
            "another --output_dir"
        )


def make_command(name: str, seed: str, folder: pathlib.Path | str) -> list[str]:
    """The words of a run's command, with the names of folders of data left open."""
    return [
        *TASKS[name].command.split(),
        f"--init_checkpoint={FLAGS.init_checkpoint}",
        f"--output_dir={folder}",
        f"--seed={seed}",
    ]


def run(command: list[str], folder: pathlib.Path) -> None:
    """Runs a command and keeps beside its output what it took."""
    folder.mkdir(parents=True, exist_ok=True)
    typed = folder / "command.txt"
    resumed = typed.exists()
    typed.write_text(" ".join(command) + "\n", "utf-8")
    print(" ".join(command), flush=True)
    before, start = tables.cpu_seconds(), time.time()
    subprocess.run([sys.executable, *command], cwd=ROOT, check=True)
    took = {
        "wall_seconds": time.time() - start,
        "cpu_seconds": tables.cpu_seconds() - before,
        "resumed": resumed,  # then the times are those of the last part only
    }
    (folder / "time.json").write_text(json.dumps(took), "utf-8")


def row(name: str, seeds: list[str], output_dir: pathlib.Path) -> dict:
    """What the runs of a task came to: scores in percent, minutes of unbroken runs."""
    task = TASKS[name]
    folders = [output_dir / name / seed for seed in seeds]
    results = [json.loads((f / task.results).read_text("utf-8")) for f in folders]
    times = [json.loads((f / "time.json").read_text("utf-8")) for f in folders]
    return {
        "task": name,
        "what": task.what,
        "command": task.command,
        "seeds": seeds,
        "scores": {
            shown: [result[key] * task.factor for result in results]
            for shown, key in task.scores.items()
        },
        "cpu_minutes": [t["cpu_seconds"] / 60 for t in times if not t["resumed"]],
    }


def main() -> None:
    data = pathlib.Path(FLAGS.data_dir).resolve()
    output = pathlib.Path(FLAGS.output_dir).resolve()
    if not data.is_dir():
        raise ValueError(f"--data_dir={data} is no folder; --help says what it holds")
    for name, seed in itertools.product(FLAGS.tasks, FLAGS.seeds):
        check(name, seed, output / name / seed)
    prepared = output / "prepared"
    prepare(data, prepared)
    folders = {"data": data, "sample": ROOT / "sample_data", "prepared": prepared}
    rows = []
    for name in FLAGS.tasks:
        for seed in FLAGS.seeds:
            folder = output / name / seed
            if (folder / "time.json").exists():
                continue
            command = make_command(name, seed, folder)
            run([word.format(**folders) for word in command], folder)
        rows.append(row(name, FLAGS.seeds, output))
        (output / "table.md").write_text(tables.markdown(rows), "utf-8")
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (output / "table.jsonl").write_text(lines, "utf-8")
    print(tables.markdown(rows))


if __name__ == "__main__":
    command_line.run(main, define_flags)
