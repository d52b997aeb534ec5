"""Pre-trains a small BERT on novels, in both phases, and draws what it learns.

    python -m benchmarks.novels --input_dir=NOVELS --output_dir=novels

Runs the scripts as one would by hand (each command is shown): learns a vocabulary,
makes records of 128 and of 512 tokens, of the training novels and of the held-out ones,
pre-trains at 128, copies the positions that this has trained to those behind, and goes
on at 512, scoring held-out records at every checkpoint. Phase 1 is killed once on the
way and goes on. Then the held-out masked tokens are also guessed
by counting (benchmarks/ngrams.py), and curves and baselines are drawn. What is done is
not done again, so the command may be stopped and repeated.

Writes novels.json, novels.svg and the runs. NOVELS holds .txt or .txt.gz files.
"""

import json
import pathlib
import random
import signal
import subprocess
import sys
import time

import common_flags

import numpy as np
from absl import flags

from benchmarks import ngrams
from data import record_reading, records

FLAGS = flags.FLAGS
ROOT = pathlib.Path(__file__).parent.parent
CONFIG = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "initializer_range": 0.02,
}
# Of both phases: tokens, predictions, sequences an update.
PHASES = {1: (128, 20, 64), 2: (512, 77, 16)}
RATES = {1: 1.0, 2: 0.5}  # parts of --learning_rate


def define_flags() -> None:
    flags.DEFINE_string("input_dir", None, "Folder of the novels.", required=True)
    flags.DEFINE_string("output_dir", None, "Folder of all results.", required=True)
    flags.DEFINE_integer("held_out", 2, "So many novels are kept for scoring.", 1)
    flags.DEFINE_integer("vocab_size", 8000, "Entries of the vocabulary.", 300)
    flags.DEFINE_integer("num_train_steps", 5000, "Updates of phase 1.", 20)
    flags.DEFINE_integer("num_long_steps", 500, "Updates of phase 2.", 20)
    flags.DEFINE_float("learning_rate", 1e-3, "Peak of phase 1; phase 2 has half.")
    flags.DEFINE_string("precision", "bfloat16", "Of both phases.")
    flags.DEFINE_integer("seed", 1, "Of the choice of novels, and of both phases.")


def run(script: str, **values) -> None:
    """Runs a script as a command."""
    subprocess.run(command(script, values), cwd=ROOT, check=True)


def command(script: str, values: dict) -> list[str]:
    """The words of a command; shown."""
    words = [script, *(f"--{name}={value}" for name, value in values.items())]
    print(" ".join(words), flush=True)
    return [sys.executable, *words]


def run_killed_once(folder: pathlib.Path, script: str, **values) -> None:
    """Runs a training, kills it at a random moment of its first half, runs it on."""
    mark = folder / "killed_at.json"
    if not mark.exists():
        line = random.Random(FLAGS.seed).randrange(2, 10)  # of at least 20 in the log
        log = folder / "train_log.jsonl"
        process = subprocess.Popen(command(script, values), cwd=ROOT)
        while process.poll() is None:
            lines = log.read_text("utf-8").count("\n") if log.exists() else 0
            if lines >= line:
                process.send_signal(signal.SIGKILL)
                process.wait()
                mark.write_text(log.read_text("utf-8").splitlines()[-1], "utf-8")
                print("killed; the same command again:")
            time.sleep(0.2)
    run(script, **values)


def pretrain(phase: int, folder: pathlib.Path, records_dir: pathlib.Path) -> None:
    length, predictions, batch_size = PHASES[phase]
    steps = {1: FLAGS.num_train_steps, 2: FLAGS.num_long_steps}[phase]
    values = {
        "input_file": f"{records_dir}/train-{length}.tfrecord",
        "eval_input_file": f"{records_dir}/held_out-{length}.tfrecord",
        "output_dir": folder,
        "do_train": True,
        "do_eval": True,
        "max_seq_length": length,
        "max_predictions_per_seq": predictions,
        "train_batch_size": batch_size,
        "eval_batch_size": batch_size,
        "max_eval_steps": 40,
        "learning_rate": FLAGS.learning_rate * RATES[phase],
        "num_train_steps": steps,
        "num_warmup_steps": steps // 10,
        "save_checkpoints_steps": max(1, steps // 20),
        "precision": FLAGS.precision,
        "seed": FLAGS.seed,
    }
    if phase == 1:
        values["bert_config_file"] = folder.parent / "bert_config.json"
        run_killed_once(folder, "run_pretraining.py", **values)
    else:
        longer = folder.parent / "phase_1_longer"
        if not longer.exists():
            run(
                "grow_checkpoint.py",
                input=folder.parent / "phase_1",
                trained_positions=PHASES[1][0],
                output=longer,
            )
        values["init_checkpoint"] = longer
        run("run_pretraining.py", **values)


def make_records(output: pathlib.Path) -> dict[str, list[str]]:
    """Vocabulary and records; the names of the novels of each part."""
    novels = sorted(str(p) for p in pathlib.Path(FLAGS.input_dir).glob("*.txt*"))
    held_out = sorted(random.Random(FLAGS.seed).sample(novels, FLAGS.held_out))
    parts = {"train": [n for n in novels if n not in held_out], "held_out": held_out}
    vocab_file = output / "vocab.txt"
    if not vocab_file.exists():
        run(
            "build_vocab.py",
            input_file=",".join(parts["train"]),
            vocab_size=FLAGS.vocab_size,
            output_file=vocab_file,
        )
    config = {**CONFIG, "vocab_size": FLAGS.vocab_size}
    (output / "bert_config.json").write_text(json.dumps(config, indent=2), "utf-8")
    for part, files in parts.items():
        for length, predictions, _ in PHASES.values():
            path = output / f"{part}-{length}.tfrecord"
            if not path.exists():
                run(
                    "create_pretraining_data.py",
                    input_file=",".join(files),
                    output_file=path,
                    vocab_file=vocab_file,
                    split_sentences=True,
                    max_seq_length=length,
                    max_predictions_per_seq=predictions,
                    dupe_factor=10 if part == "train" else 1,
                )
    return {part: [pathlib.Path(f).name for f in fs] for part, fs in parts.items()}


def count_baselines(output: pathlib.Path) -> dict[str, float]:
    """What counting makes of the masked tokens that the model is scored on."""
    length, predictions, _ = PHASES[1]
    spec = records.pretraining_spec(length, predictions)

    def read(part: str) -> dict[str, np.ndarray]:
        return record_reading.read_all(
            [str(output / f"{part}-{length}.tfrecord")], spec
        )

    train, held_out = read("train"), read("held_out")
    texts = train["input_ids"].copy()
    rows, places = np.nonzero(train["masked_lm_weights"])
    positions = train["masked_lm_positions"][rows, places]
    texts[rows, positions] = train["masked_lm_ids"][rows, places]
    lengths = train["input_mask"].sum(axis=1)
    texts = [text[:n] for text, n in zip(texts, lengths, strict=True)]
    counts = ngrams.count(texts, FLAGS.vocab_size)
    rows, places = np.nonzero(held_out["masked_lm_weights"])
    positions = held_out["masked_lm_positions"][rows, places]
    return ngrams.scores(
        counts,
        held_out["input_ids"][rows, positions - 1],
        held_out["input_ids"][rows, positions + 1],
        held_out["masked_lm_ids"][rows, places],
    )


def read_lines(path: pathlib.Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def draw(results: dict, path: pathlib.Path) -> None:
    """Accuracy and perplexity on held-out text over the updates, with baselines."""
    from matplotlib import pyplot  # only here is it needed

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axis, name in zip(axes, ("accuracy", "perplexity"), strict=True):
        start = 0
        for phase, lines in results["curves"].items():
            steps = [start + line["step"] for line in lines]
            values = [line[f"masked_lm_{name}"] for line in lines]
            axis.plot(
                steps, values, ".-", label=f"BERT, {PHASES[int(phase)][0]} tokens"
            )
            start = steps[-1]
        for baseline, style in (("ngram", "--"), ("unigram", ":")):
            value = results["baselines"][f"{baseline}_{name}"]
            axis.axhline(value, linestyle=style, color="gray", label=baseline)
        axis.set(xlabel="updates", title=f"masked words of unseen novels: {name}")
        axis.legend()
    axes[1].set_yscale("log")
    axes[0].axvline(results["killed_at"], color="red", lw=0.5)
    pyplot.rcParams["svg.hashsalt"] = "novels"
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    output = pathlib.Path(FLAGS.output_dir).resolve()
    output.mkdir(parents=True, exist_ok=True)
    novels = make_records(output)
    for phase in PHASES:
        pretrain(phase, output / f"phase_{phase}", output)
    killed_at = json.loads((output / "phase_1/killed_at.json").read_text("utf-8"))
    results = {
        "flags": {
            name: FLAGS[name].value
            for name in ("vocab_size", "num_train_steps", "num_long_steps", "seed")
        },
        "held_out": novels["held_out"],
        "killed_at": killed_at["step"],
        "baselines": count_baselines(output),
        "curves": {
            str(phase): read_lines(output / f"phase_{phase}/validation.jsonl")
            for phase in PHASES
        },
    }
    (output / "novels.json").write_text(json.dumps(results, indent=2), "utf-8")
    draw(results, output / "novels.svg")
    print(json.dumps(results["baselines"], indent=2))
    for phase, lines in results["curves"].items():
        last = lines[-1]
        print(
            f"phase {phase}: masked LM accuracy {last['masked_lm_accuracy']:.3f}, "
            f"perplexity {last['masked_lm_perplexity']:.1f}, next sentence "
            f"{last['next_sentence_accuracy']:.3f}"
        )


if __name__ == "__main__":
    common_flags.run(main, define_flags)
