r"""A training step beside keras-hub's, the Model Garden's, transformers' and products.

    python -m benchmarks.training_step --output_dir=steps \
        --python=transformers=TORCH/bin/python --python=keras-hub=PEERS/bin/python \
        --python=tf-models-official=GARDEN/bin/python

A classifier's step, or with --task=pretraining that of masked LM and next sentence with
20 predictions of 128. All have the same sizes, random weights, batch, dropout of 0.1,
AdamW and clipping, and train as their guides say; `products` are large matrix products,
the rate that a step could reach at best. Every variant is a process of its own; in each
round each has a turn of some steps while the others wait. A library that is not
installed is left out, and a line says so. Libraries that do not fit together have
environments of their own, whose Python --python names (benchmarks/README.md).

Processes stay for their next turn as long as the memory has room for another one.
Writes table.md and table.jsonl, which has every step, and what the processes print to
NAME.log. For Linux.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys

from absl import flags

import command_line
from benchmarks import step_table
from benchmarks.step_workers import ours, products, protocol
from modeling import cost

FLAGS = flags.FLAGS
ROOT = pathlib.Path(__file__).parent.parent

# tiny is for trying it out.
SIZES = {
    "tiny": protocol.Setting(1, 16, 2, 2, 16, product_rows=256),
    "small": protocol.Setting(6, 384, 12, 32, 128),
    "base": protocol.Setting(12, 768, 12, 8, 128),
}
ENVIRONMENT = {
    "KERAS_BACKEND": "tensorflow",
    # Or PyTorch's threads spin where they wait for one another, and others wait.
    "OMP_WAIT_POLICY": "PASSIVE",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}


@dataclasses.dataclass(frozen=True)
class Variant:
    """A way to do a step.

    Attributes:
        library: str, of `WORKERS`.
        is_default: bool, the way the library comes.
        jit_compile: of Keras; its default, "auto", is False on a CPU in Keras 3.15.
    """

    library: str
    precision: str
    is_default: bool = False
    jit_compile: bool | str = "auto"


WORKERS = {
    "products": "products",
    "ours": "ours",
    "transformers": "transformers_model",
    "keras-hub": "keras_hub_model",
    "tf-models-official": "model_garden",
}
VARIANTS = {
    "products-float32": Variant("products", "float32"),
    "products-bfloat16": Variant("products", "bfloat16"),
    "ours-float32": Variant("ours", "float32", is_default=True),
    "ours-bfloat16": Variant("ours", "bfloat16"),
    "transformers-float32": Variant("transformers", "float32", is_default=True),
    "transformers-bfloat16": Variant("transformers", "bfloat16"),
    "keras-hub-float32": Variant("keras-hub", "float32", is_default=True),
    "keras-hub-float32-xla": Variant("keras-hub", "float32", jit_compile=True),
    "keras-hub-bfloat16": Variant("keras-hub", "bfloat16"),
    "tf-models-official-float32": Variant(
        "tf-models-official", "float32", is_default=True
    ),
    "tf-models-official-bfloat16": Variant("tf-models-official", "bfloat16"),
}


def define_flags() -> None:
    flags.DEFINE_string("output_dir", None, "Folder of the tables.", required=True)
    flags.DEFINE_enum("task", "classifier", ["classifier", "pretraining"], "The heads.")
    flags.DEFINE_enum("size", "small", list(SIZES), "Of the model and the batch.")
    flags.DEFINE_list("variants", list(VARIANTS), "Which to compare.")
    flags.DEFINE_multi_string(
        "python",
        [],
        "LIBRARY=PATH: the Python of a library's environment, for libraries that this "
        "one does not have; may be given several times.",
    )
    flags.DEFINE_integer("rounds", 5, "Turns of each variant.", 1)
    flags.DEFINE_integer("steps", 3, "In a turn.", 1)


class LeftOut(Exception):
    """A variant cannot be measured; says why."""


class Worker:
    """A variant in a process of its own, after its first step.

    Args:
        name: str, of `VARIANTS`.
        setting: protocol.Setting.
        python: str, path of its interpreter.
        log: path of a file for what it prints.
    Raises:
        LeftOut: a package is missing, or it ended.
    """

    def __init__(self, name, setting, python, log):
        self.name, self.log = name, log
        module = f"benchmarks.step_workers.{WORKERS[VARIANTS[name].library]}"
        with open(log, "a", encoding="utf-8") as file:
            self.process = subprocess.Popen(
                [python, "-m", module, setting.to_json()],
                cwd=ROOT,
                env=os.environ | ENVIRONMENT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        self.start = self._answer()
        if "missing" in self.start:
            self.close()
            raise LeftOut(f"{python} has no {self.start['missing']}")

    def run(self, steps: int) -> dict:
        """The answer about so many steps."""
        with contextlib.suppress(BrokenPipeError):  # `_answer` says that it has ended
            print(steps, file=self.process.stdin, flush=True)
        return self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.close()
            status = self.process.returncode
            raise LeftOut(f"its process ended with {status}; see {self.log}")
        return json.loads(line)

    def close(self) -> None:
        """Lets the process end, and waits for that."""
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate()


def read_pythons(values: list[str]) -> dict[str, str]:
    """Interpreter by library.

    Raises:
        ValueError: one is not LIBRARY=PATH.
    """
    pythons = dict.fromkeys(WORKERS, sys.executable)
    for value in values:
        library, _, path = value.partition("=")
        if library not in WORKERS or not os.access(path, os.X_OK):
            raise ValueError(
                f"--python must be LIBRARY=PATH with one of {', '.join(WORKERS)} and a "
                f"program, got {value!r}"
            )
        pythons[library] = os.path.abspath(path)
    return pythons


def measure(names, make_worker, has_room, rounds, steps):
    """Lets the variants take turns; yields the measurements after each round.

    Every other round goes backwards, so that none always follows the same one, and
    those that are still there from the round before come first.

    Args:
        names: list of str, of `VARIANTS`.
        make_worker: function of a name, giving a Worker.
        has_room: function telling whether the memory has room for another worker; if
            not, the one whose turn was longest ago is closed.
        rounds, steps: int.
    """
    workers, measured = {}, {}  # workers: the last is the one that ran last
    for name in names:
        variant = {"name": name, **dataclasses.asdict(VARIANTS[name])}
        measured[name] = {**variant, "starts": [], "turns": []}
    for number in range(rounds):
        for name in list(measured)[:: -1 if number % 2 else 1]:
            worker = workers.pop(name, None)
            try:
                if worker is None:
                    while workers and not has_room():
                        workers.pop(next(iter(workers))).close()
                    worker = make_worker(name)
                    measured[name]["starts"].append(worker.start)
                turn = worker.run(steps)
            except LeftOut as reason:
                print(f"{name} is left out: {reason}", flush=True)
                del measured[name]
                continue
            workers[name] = worker
            measured[name]["turns"].append(turn)
            cpu, wall = (min(turn[clock]) for clock in ("cpu", "wall"))
            print(
                f"round {number + 1}, {name}: {cpu:.3f} CPU s, {wall:.3f} s", flush=True
            )
        yield list(measured.values())
    for worker in workers.values():
        worker.close()


def available_memory() -> int:
    """Bytes that a new process could have without swapping."""
    lines = pathlib.Path("/proc/meminfo").read_text("utf-8").splitlines()
    (line,) = (line for line in lines if line.startswith("MemAvailable:"))
    return int(line.split()[1]) * 1024


def describe(setting: protocol.Setting) -> str:
    """A line about what is measured."""
    task = f"{setting.num_predictions} predictions" if setting.num_predictions else ""
    return (
        f"{task or 'classifier'}, L{setting.num_hidden_layers} "
        f"H{setting.hidden_size} A{setting.num_attention_heads}, batch "
        f"{setting.batch_size} x {setting.seq_length}; {FLAGS.rounds} rounds of "
        f"{FLAGS.steps} steps; {os.cpu_count()} CPUs, load "
        f"{os.getloadavg()[0]:.1f} before"
    )


def main() -> None:
    unknown = set(FLAGS.variants) - set(VARIANTS)
    if unknown:
        raise ValueError(
            f"--variants must be of {', '.join(VARIANTS)}, got {', '.join(unknown)}"
        )
    pythons = read_pythons(FLAGS.python)
    setting = SIZES[FLAGS.size]
    if FLAGS.task == "pretraining":
        predictions = 20 * setting.seq_length // 128
        setting = dataclasses.replace(setting, num_predictions=predictions)
    output = pathlib.Path(FLAGS.output_dir)
    output.mkdir(parents=True, exist_ok=True)

    def make_worker(name):
        variant = VARIANTS[name]
        its_setting = dataclasses.replace(
            setting, precision=variant.precision, jit_compile=variant.jit_compile
        )
        log = output / f"{name}.log"
        return Worker(name, its_setting, pythons[variant.library], log)

    update = cost.Update(
        ours.make_config(setting),
        setting.batch_size,
        setting.seq_length,
        setting.num_predictions,
    )
    # Peers take up to twice as much as ours, and TensorFlow itself 0.6 to 1 GiB.
    room = 2 * sum(update.memory().values()) + 2**31
    turns = measure(
        [name for name in VARIANTS if name in FLAGS.variants],
        make_worker,
        lambda: available_memory() >= room,
        FLAGS.rounds,
        FLAGS.steps,
    )
    product_flops = products.PRODUCTS * 2 * setting.product_rows**3
    title = f"{describe(setting)}; {update.flops / 1e9:.3g} GFLOPs a step"
    text = ""
    for measurements in turns:
        rows = step_table.make_rows(measurements, update.flops, product_flops)
        text = f"{title}\n\n{step_table.markdown(rows)}"
        (output / "table.md").write_text(text, "utf-8")
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (output / "table.jsonl").write_text(lines, "utf-8")
    print(f"\n{text}")


if __name__ == "__main__":
    command_line.run(main, define_flags)
