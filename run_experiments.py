r"""Repeats the experiments of the paper in small (Devlin et al. 2018, sections 4, 5).

    python run_experiments.py --data_dir=DATA --init_checkpoint=MINILM \
        --output_dir=experiments_out

Pre-trains small models in the variants of table 5, 6, 8 and figure 5 on a made-up
language and on novels, fine-tunes them, compares features with fine-tuning (table 7),
over several seeds. All of it takes about 200 CPU minutes, two hours of two cores;
--suites chooses a part. Each run is a chain of commands of our scripts that could be
typed by hand. Started again, it goes on where it stopped; runs that are recorded are
not done again.

DATA holds glue/{MRPC,SST-2}, ner/{wnut17,wikigold} and pretrain/en_novels; the suites
of the made-up language need none of it.

Writes to --output_dir: runs/ (folders of the scripts) and results.jsonl, a line a run.
With --page also the results page and its plot, made from results.jsonl alone.
"""

import importlib.util
import os
import pathlib

from absl import flags, logging

import child_runs
import command_line
from experiments import miniatures, page, preparation, runs

FLAGS = flags.FLAGS


def define_flags():
    flags.DEFINE_string("output_dir", None, "Folder of all runs.", required=True)
    flags.DEFINE_list(
        "suites", list(miniatures.SUITES), f"Of {', '.join(miniatures.SUITES)}."
    )
    flags.DEFINE_list("seeds", None, "Each variant is run with each seed.")
    flags.DEFINE_string("data_dir", None, "Folder of the published data sets.")
    flags.DEFINE_string("init_checkpoint", None, "table_7: a pre-trained BERT.")
    flags.DEFINE_integer(
        "num_processes", 2, "So many commands side by side, with a core each.", 1, 1024
    )
    flags.DEFINE_string("results_file", None, "Default: results.jsonl in --output_dir.")
    flags.DEFINE_string("page", None, "Write the results page to this .md file.")


def check_flags():
    """Refuses what cannot be run, before anything is."""
    if not FLAGS.suites:
        raise ValueError(f"--suites names none of {', '.join(miniatures.SUITES)}")
    for suite in FLAGS.suites:
        if suite not in miniatures.SUITES:
            raise ValueError(
                f"--suites: {suite!r} is none of {', '.join(miniatures.SUITES)}"
            )
        for flag, suites in preparation.NEEDED.items():
            if suite in suites and not FLAGS[flag].value:
                raise ValueError(f"{suite} needs --{flag}; give it, or other --suites")
    if FLAGS.page and not FLAGS.page.endswith(".md"):
        raise ValueError(f"--page must be the name of a .md file, got {FLAGS.page!r}")
    if FLAGS.page and importlib.util.find_spec("matplotlib") is None:
        raise ValueError("--page draws with matplotlib; pip install 'matplotlib>=3.9'")


def find_seeds(suite):
    """The seeds of a suite."""
    if not FLAGS.seeds:
        return range(1, 1 + miniatures.NUM_SEEDS[suite])
    if not all(text.isdecimal() and int(text) < 2**32 for text in FLAGS.seeds):
        raise ValueError(
            "--seeds must be whole numbers below 2^32 with commas between, got "
            f"{','.join(FLAGS.seeds)!r}"
        )
    return sorted(set(map(int, FLAGS.seeds)))


def main():
    check_flags()
    wanted = [
        run
        for suite in FLAGS.suites
        for run in miniatures.SUITES[suite](find_seeds(suite))
    ]
    output = pathlib.Path(FLAGS.output_dir).resolve()
    results_file = FLAGS.results_file or str(output / "results.jsonl")
    weights = FLAGS.init_checkpoint and os.path.abspath(FLAGS.init_checkpoint)
    missing = runs.find_missing(wanted, results_file, weights)
    logging.info(
        "%d runs, %d of them recorded", len(wanted), len(wanted) - len(missing)
    )
    if missing:
        with child_runs.wait_for_folder(str(output / "runs")) as lock:
            folders = preparation.prepare(
                output / "prepared",
                FLAGS.data_dir and pathlib.Path(FLAGS.data_dir),
                FLAGS.suites,
            )
            folders["runs"] = str(output / "runs")
            if weights:
                folders["init_checkpoint"] = weights
            number = FLAGS.num_processes
            runs.Runner(folders, results_file, number, lock).do(wanted)
    if FLAGS.page:
        page.write(FLAGS.page, runs.read(results_file))


if __name__ == "__main__":
    command_line.run(main, define_flags)
