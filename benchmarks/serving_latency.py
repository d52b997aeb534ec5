"""Time of an answer to ids: the exported SavedModel beside ONNX Runtime.

    python -m benchmarks.serving_latency --size=minilm --output_dir=latency

A classifier of random weights is exported, in float32 and in bfloat16, and written as
ONNX. Runtimes take turns, block by block, in one process; every figure is the median of
all calls of a shape. `ids` and `bfloat16` are the exported signatures, `xla` is the
same model compiled for the shape. The first calls, which compile, are not counted.
Writes table.md and table.json.

With TF_NUM_INTRAOP_THREADS=1, TensorFlow has one thread for each operation, which is
faster for short texts; ONNX Runtime keeps its threads. What
`serve.py --keep_packed_weights` does is TF_ONEDNN_ASSUME_FROZEN_WEIGHTS=1.
"""

import json
import pathlib
import statistics
import time
from collections.abc import Callable

import common_flags

import keras
import numpy as np
import onnxruntime
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the ops of text signatures
from absl import flags

import inference
from modeling import config as config_lib
from modeling import models
from serving import classification, ids_model, saved_model

FLAGS = flags.FLAGS
ROOT = pathlib.Path(__file__).parent.parent
VOCAB = ROOT / "sample_data/vocab.txt"
SIZES = {
    "tiny": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2},
    "minilm": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12},
    "base": {},
}
SHAPES = ((1, 16), (1, 64), (1, 128), (32, 128))
PEER = "onnxruntime"
Call = Callable[[dict[str, np.ndarray]], object]


def define_flags() -> None:
    flags.DEFINE_enum("size", "minilm", list(SIZES), "Of the model.")
    flags.DEFINE_string("output_dir", None, "Exports and table.", required=True)
    flags.DEFINE_integer("rounds", 5, "Blocks of each runtime and shape.", 1)
    flags.DEFINE_float("seconds", 0.5, "Of a block.", 0.0)


def make_server(size: str, precision: str) -> classification.TextClassifier:
    """A classifier of random weights."""
    values = {"vocab_size": 30522, "type_vocab_size": 2, **SIZES[size]}
    values["intermediate_size"] = 4 * values.get("hidden_size", 768)
    config = config_lib.BertConfig(**values)
    with inference.models_in(precision):
        model = models.BertForSequenceClassification(config, 2)
    return classification.TextClassifier(model, ("a", "b"), str(VOCAB), True, 128)


def export(server: classification.TextClassifier, path: pathlib.Path) -> Call:
    """A SavedModel's signature of ids."""
    signatures = saved_model.signatures(server)
    tf.saved_model.save(server, str(path), signatures=signatures)
    loaded = tf.saved_model.load(str(path)).signatures["ids"]
    return lambda batch: loaded(**_tensors(batch))["logits"].numpy()


def make_calls(size: str, folder: pathlib.Path) -> dict[str, Call]:
    """Functions of a batch of arrays, by runtime."""
    keras.utils.set_random_seed(1)
    server = make_server(size, "float32")
    folder.mkdir(parents=True, exist_ok=True)
    onnx_file = str(folder / "model.onnx")
    ids_model.write_onnx(ids_model.IdsModel(server), onnx_file)
    session = onnxruntime.InferenceSession(
        onnx_file, providers=["CPUExecutionProvider"]
    )
    compiled = tf.function(server.run, jit_compile=True, autograph=False)
    return {
        PEER: lambda batch: session.run(None, batch)[0],
        "ids": export(server, folder / "export"),
        "xla": lambda batch: compiled(_tensors(batch))["logits"].numpy(),
        "bfloat16": export(make_server(size, "bfloat16"), folder / "bfloat16"),
    }


def _tensors(batch: dict[str, np.ndarray]) -> dict[str, tf.Tensor]:
    return {name: tf.constant(array) for name, array in batch.items()}


def make_batch(rows: int, length: int) -> dict[str, np.ndarray]:
    """Random ids without padding."""
    ids = np.random.default_rng(rows * length).integers(1000, 30000, (rows, length))
    return {
        "input_ids": ids.astype(np.int32),
        "input_mask": np.ones((rows, length), np.int32),
        "segment_ids": np.zeros((rows, length), np.int32),
    }


def block(call: Call, batch: dict[str, np.ndarray], seconds: float) -> list[float]:
    """Milliseconds of each call, for about so many seconds and three at least."""
    call(batch)  # wakes its threads
    found, end = [], time.perf_counter() + seconds
    while len(found) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call(batch)
        found.append(1000 * (time.perf_counter() - start))
    return found


def measure(calls: dict[str, Call], rounds: int, seconds: float) -> list[dict]:
    """A row for each shape and runtime: median, 99th percentile, times the peer's."""
    rows = []
    for shape in SHAPES:
        batch, found = make_batch(*shape), {name: [] for name in calls}
        for call in calls.values():
            call(batch)
        for _ in range(rounds):
            for name, call in calls.items():
                found[name] += block(call, batch, seconds)
        medians = {name: statistics.median(times) for name, times in found.items()}
        rows += [
            {
                "batch": shape[0],
                "length": shape[1],
                "runtime": name,
                "p50_ms": medians[name],
                "p99_ms": float(np.percentile(times, 99)),
                "times_the_peer": medians[name] / medians[PEER],
            }
            for name, times in found.items()
        ]
    return rows


def table(rows: list[dict]) -> str:
    """The rows in Markdown."""
    lines = [
        f"| batch x length | runtime | p50 ms | p99 ms | of {PEER}'s p50 |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        cells = [
            f"{row['batch']} x {row['length']}",
            row["runtime"],
            *(f"{row[name]:.2f}" for name in ("p50_ms", "p99_ms", "times_the_peer")),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    folder = pathlib.Path(FLAGS.output_dir)
    calls = make_calls(FLAGS.size, folder)
    batch = make_batch(2, 16)
    expected = calls[PEER](batch)
    for name in ("ids", "xla"):  # that they are the same model
        np.testing.assert_allclose(calls[name](batch), expected, atol=1e-4)
    rows = measure(calls, FLAGS.rounds, FLAGS.seconds)
    (folder / "table.json").write_text(json.dumps(rows, indent=1), "utf-8")
    (folder / "table.md").write_text(table(rows), "utf-8")
    print(table(rows))


if __name__ == "__main__":
    common_flags.run(main, define_flags)
