"""What the two sides of `benchmarks.training_step` say to each other.

A worker is one competitor in a process of its own:

    python -m benchmarks.step_workers.ours SETTING

It prepares itself, does a first step and answers with a line of JSON. Then it waits,
and for every line with a number it does so many steps and answers; when its input ends
it ends. A line is {"missing": NAME} where a package is not installed, or

    {"versions": {...}, "first_wall": ..., "first_cpu": ...}    once
    {"wall": [...], "cpu": [...], "loss": ..., "peak_bytes": ...}

Wall and cpu are seconds of the clock and of the CPU (all threads): of each step, and
first of the making of the model with its first step, without imports.

Needs nothing but NumPy, as it runs in the peers' environments too.
"""

import dataclasses
import importlib.metadata
import json
import math
import os
import resource
import sys
import time
from collections.abc import Callable

import numpy as np

VOCAB_SIZE = 30522
MAX_POSITIONS = 512
DROPOUT = 0.1
LEARNING_RATE = 1e-5
WEIGHT_DECAY = 0.01
CLIP_NORM = 1.0


@dataclasses.dataclass(frozen=True)
class Setting:
    """What a worker trains, and how.

    Attributes:
        precision: "float32" or "bfloat16".
        num_predictions: of a sequence; 0: a classifier of two classes, else masked LM
            and next sentence.
        product_rows: of the square matrices of the workers that multiply only.
        jit_compile: of Keras: "auto", its default, or a bool.
    """

    num_hidden_layers: int
    hidden_size: int
    num_attention_heads: int
    batch_size: int
    seq_length: int
    num_predictions: int = 0
    product_rows: int = 2048
    precision: str = "float32"
    jit_compile: bool | str = "auto"

    @property
    def intermediate_size(self) -> int:
        return 4 * self.hidden_size

    def bert_config(self) -> dict:
        """What a BertConfig is made from, ours and that of transformers alike."""
        return {
            "vocab_size": VOCAB_SIZE,
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": self.num_attention_heads,
            "intermediate_size": self.intermediate_size,
            "hidden_dropout_prob": DROPOUT,
            "attention_probs_dropout_prob": DROPOUT,
            "max_position_embeddings": MAX_POSITIONS,
            "type_vocab_size": 2,
        }

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))


def random_batch(setting: Setting) -> dict[str, np.ndarray]:
    """A batch with the names and dtypes of our records, the same in every process.

    Some padding, or a peer would leave its masks out: half to all of a sequence is
    real, and the predictions are in its first half.
    """
    rng = np.random.default_rng(0)
    rows, length = setting.batch_size, setting.seq_length
    lengths = rng.integers(length // 2, length + 1, [rows, 1])
    real = np.arange(length) < lengths
    ids = rng.integers(1, VOCAB_SIZE, [rows, length])
    batch = {
        "input_ids": np.where(real, ids, 0),
        "input_mask": real,
        "segment_ids": real & (np.arange(length) >= length // 3),
        "label_ids": rng.integers(0, 2, rows),
    }
    if setting.num_predictions:
        half = np.tile(np.arange(length // 2), (rows, 1))
        positions = rng.permuted(half, axis=1)[:, : setting.num_predictions]
        batch["masked_lm_positions"] = np.sort(positions, axis=1)
        batch["masked_lm_ids"] = rng.integers(1, VOCAB_SIZE, positions.shape)
        batch["next_sentence_labels"] = batch["label_ids"][:, np.newaxis]
    batch = {name: array.astype(np.int32) for name, array in batch.items()}
    if setting.num_predictions:
        batch["masked_lm_weights"] = np.ones(batch["masked_lm_ids"].shape, np.float32)
    return batch


def serve(prepare: Callable, modules: list[str]) -> None:
    """Runs a worker: the setting is the command's argument, the rest as above.

    Args:
        prepare: function of a Setting that makes a model and a batch and returns a
            function without arguments: one step, ended when it returns the loss.
        modules: to be imported before, as that is not timed.
    """
    # Libraries may print; answers have a file of their own.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(**values) -> None:
        print(json.dumps(values), file=answers, flush=True)

    for module in modules:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            answer(missing=error.name)
            return
    setting = Setting(**json.loads(sys.argv[1]))
    clocks = time.perf_counter(), time.process_time()
    step = prepare(setting)
    step()
    wall, cpu = time.perf_counter() - clocks[0], time.process_time() - clocks[1]
    step()  # the second one may still prepare something
    answer(versions=versions(modules), first_wall=wall, first_cpu=cpu)
    for line in sys.stdin:
        answer(**measure(step, int(line)))


def versions(modules: list[str]) -> dict[str, str]:
    """Version by package, of modules that come from one."""
    packages = importlib.metadata.packages_distributions()
    names = [packages.get(module.partition(".")[0], []) for module in modules]
    return {name: importlib.metadata.version(name) for name, *_ in filter(None, names)}


def measure(step: Callable[[], float], count: int) -> dict:
    """The answer about so many steps."""
    wall, cpu = [], []
    for _ in range(count):
        clocks = time.perf_counter(), time.process_time()
        loss = step()
        wall.append(time.perf_counter() - clocks[0])
        cpu.append(time.process_time() - clocks[1])
    if not math.isfinite(loss):
        raise SystemExit(f"the loss is {loss}, so the time means nothing")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # KiB on Linux
    return {"wall": wall, "cpu": cpu, "loss": float(loss), "peak_bytes": peak}
