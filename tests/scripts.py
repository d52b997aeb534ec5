"""Runs the scripts as a person does, in processes of their own."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parent.parent


def command(script, **flags):
    """The command line of a script; True and False become --flag and --noflag."""
    spelled = [
        f"--{'' if value else 'no'}{name}"
        if isinstance(value, bool)
        else f"--{name}={value}"
        for name, value in flags.items()
    ]
    return [sys.executable, str(ROOT / script), *spelled]


def run(script, **flags):
    """Runs a script to its end; returns the subprocess.CompletedProcess."""
    return subprocess.run(
        command(script, **flags), capture_output=True, text=True, check=False
    )


def succeed(script, **flags):
    """Runs a script and expects it to work; returns what it showed."""
    result = run(script, **flags)
    assert result.returncode == 0, result.stderr
    return result.stderr


def refusal(script, **flags):
    """Runs a script and expects it to refuse in one sentence; returns that."""
    result = run(script, **flags)
    assert result.returncode != 0, "accepted"
    assert "Traceback" not in result.stderr, result.stderr
    last = result.stderr.rstrip("\n").rpartition("\n")[2].rpartition("\r")[2]
    start = f"{script.removesuffix('.py')}: error: "
    assert last.startswith(start), result.stderr
    folder = pathlib.Path(flags.get("output_dir", "/nowhere"))
    half = [p for p in folder.rglob("*") if re.search(r"\.tmp|\.partial", p.name)]
    assert not half, half
    return last.removeprefix(start)


def peak_memory(script, **flags):
    """Runs a script to its end; returns its peak of resident memory in MB."""
    # It tells its own: RUSAGE_CHILDREN is the largest of all children so far.
    program = (
        "import runpy, sys, resource\n"
        "sys.argv = sys.argv[1:]\n"
        "try:\n    runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "finally:\n    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    python, *rest = command(script, **flags)
    result = subprocess.run(
        [python, "-c", program, *rest], capture_output=True, text=True, check=True
    )
    return int(result.stdout.split()[-1]) / 1024


def read_results(path):
    """The `key = value` lines of a results file."""
    lines = path.read_text().splitlines()
    return {key: float(value) for key, _, value in (x.partition(" = ") for x in lines)}


def short_pretraining(golden):
    """Flags of run_pretraining.py: training with dropout, of several epochs."""
    return {
        "do_train": True,
        "input_file": golden / "tiny_tf1_runs/pretraining/*.tfrecord",
        "bert_config_file": golden / "tiny_tf1/bert_config.json",
        "max_seq_length": 64,
        "max_predictions_per_seq": 10,
        "train_batch_size": 8,
        "learning_rate": 1e-3,
        "num_train_steps": 80,
        "num_warmup_steps": 8,
        "save_checkpoints_steps": 3,
    }
