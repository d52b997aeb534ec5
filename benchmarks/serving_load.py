"""Several clients at once against serve.py: answers, times and memory.

    python -m benchmarks.serving_load --export_dir=exports/mrpc

Each client sends requests of texts of very different lengths, and now and then one that
is malformed, over a connection that it keeps. All take turns with a fixed number of
requests, once for each --server: without batching, with it, and with a run a core of
one thread. Every answer is compared with the SavedModel called directly, text by text,
by TensorFlow in this process; one that differs by more than 1e-5 counts as wrong.
Memory is the server's resident set when it has warmed up on a tenth of the requests,
after half of them, and at the end.
"""

import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
from typing import NamedTuple

import common_flags

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the ops of text signatures
from absl import flags

from server import repository

FLAGS = flags.FLAGS
ROOT = pathlib.Path(__file__).parent.parent
TOLERANCE = 1e-5
NUM_LINES = (1, 1, 1, 3, 10, 40)  # of the input file, in a text
MALFORMED = (
    b"",
    b'{"instances": ["a"',
    b'{"instances": []}',
    b'{"instances": [1]}',
    b'{"instances": [{"no such input": "a"}]}',
    b'{"instances": ["a"], "signature_name": "no such signature"}',
    rb'{"instances": ["\ud800"]}',
    json.dumps({"instances": ["a"] * 10_000}).encode(),
)


class Row(NamedTuple):
    """Texts by the name of the input, and what the model gives for them."""

    inputs: dict[str, str]
    outputs: dict[str, object]


class Traffic(NamedTuple):
    """What clients send: flags of the same names."""

    num_clients: int
    max_items: int
    malformed: float


class Result(NamedTuple):
    """What came of a request: its seconds, and whether the answer was right."""

    seconds: float
    is_right: bool
    is_malformed: bool


def define_flags() -> None:
    flags.DEFINE_string(
        "export_dir", None, "SavedModel, or folder of its versions.", required=True
    )
    flags.DEFINE_string("input_file", str(ROOT / "sample_data/corpus.txt"), "Texts.")
    flags.DEFINE_multi_string(
        "server",
        [
            "--max_batch_size=1",
            "--max_batch_size=32",
            "--num_threads=2 --tensorflow_intra_op_parallelism=1",
        ],
        "Flags of serve.py, separated by spaces; may be repeated, one run each.",
    )
    flags.DEFINE_integer("num_clients", 8, "At the same time.", 1)
    flags.DEFINE_integer("num_requests", 4000, "Of all clients, for each run.", 10)
    flags.DEFINE_integer("num_rows", 200, "Different ones.", 1)
    flags.DEFINE_integer("max_items", 4, "Rows of a request.", 1)
    flags.DEFINE_float("malformed", 0.05, "Which part of the requests.", 0.0, 1.0)
    flags.DEFINE_integer("seed", 1, "Of the requests.")


def make_rows(path: str, lines: list[str], count: int, rng: random.Random) -> list[Row]:
    """Rows of random texts with the outputs of a SavedModel.

    Raises:
        ValueError: it takes other things than texts.
    """
    model = tf.saved_model.load(path)
    signature = model.signatures["serving_default"]
    specs = signature.structured_input_signature[1]
    if any(s.dtype != tf.string or s.shape.rank != 1 for s in specs.values()):
        raise ValueError(f"{path} must take a text for each input and row")
    rows = []
    for _ in range(count):
        texts = {
            name: " ".join(rng.choices(lines, k=rng.choice(NUM_LINES)))
            for name in specs
        }
        outputs = signature(**{name: tf.constant([t]) for name, t in texts.items()})
        rows.append(Row(texts, {name: _plain(v[0]) for name, v in outputs.items()}))
    return rows


def _plain(tensor):
    value = tensor.numpy()
    return value.decode() if isinstance(value, bytes) else value.tolist()


def is_right(answer: dict, rows: list[Row]) -> bool:
    """Whether an answer has the outputs of rows."""
    found = answer["predictions"]
    return len(found) == len(rows) and all(
        set(got) == set(row.outputs)
        and all(is_close(got[name], row.outputs[name]) for name in got)
        for got, row in zip(found, rows, strict=True)
    )


def is_close(got: object, expected: object) -> bool:
    """Whether texts are equal, or numbers nearly so."""
    if np.asarray(expected).dtype.kind not in "fi":
        return got == expected
    return np.shape(got) == np.shape(expected) and np.allclose(
        got, expected, rtol=TOLERANCE, atol=TOLERANCE
    )


@contextlib.contextmanager
def serving(export_dir: str, more: list[str]):
    """Runs serve.py on free ports; gives the port of REST. It has to end well."""
    command = [sys.executable, str(ROOT / "serve.py"), f"--model=m={export_dir}"]
    command += ["--rest_port=0", "--grpc_port=0", *more]
    # common_flags has set it here; the server would think that a person did.
    env = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=env
    ) as process:
        try:
            for line in process.stderr:
                if found := re.match(r"REST at .*:(\d+)$", line):
                    break
                print(line, end="", file=sys.stderr)
            else:
                raise ValueError("serve.py has ended; its message is above")
            yield int(found[1])
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
            if process.wait() != 0:
                raise ValueError(f"serve.py ended with status {process.returncode}")
        finally:
            process.kill()


def metric(port: int, name: str) -> float:
    """The value of a metric without labels."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return float(re.search(rf"^{name} (.*)$", text, re.M)[1])


def send(
    port: int, rows: list[Row], traffic: Traffic, count: int, seed: int
) -> list[Result]:
    """Sends requests one after another, as one client."""
    rng, results = random.Random(seed), []
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for _ in range(count):
        chosen = rng.choices(rows, k=rng.randint(1, traffic.max_items))
        is_malformed = rng.random() < traffic.malformed
        body = json.dumps({"instances": [row.inputs for row in chosen]}).encode()
        if is_malformed:
            body = rng.choice(MALFORMED)
        start = time.perf_counter()
        connection.request("POST", "/v1/models/m:predict", body)
        response = connection.getresponse()
        answer = json.loads(response.read())
        seconds = time.perf_counter() - start
        expected = 400 if is_malformed else 200
        right = response.status == expected and (
            is_malformed or is_right(answer, chosen)
        )
        results.append(Result(seconds, right, is_malformed))
    connection.close()
    return results


def load(
    port: int, rows: list[Row], traffic: Traffic, count: int, seed: int
) -> list[Result]:
    """Sends requests from all clients at once."""
    each = -(-count // traffic.num_clients)
    with concurrent.futures.ThreadPoolExecutor(traffic.num_clients) as pool:
        clients = [
            pool.submit(send, port, rows, traffic, each, seed * 1000 + client)
            for client in range(traffic.num_clients)
        ]
        return [result for client in clients for result in client.result()]


def measure(
    port: int, rows: list[Row], traffic: Traffic, count: int, seed: int
) -> dict:
    """One run; the cells of its line."""
    load(port, rows, traffic, count // 10, seed)
    before = metric(port, "process_resident_memory_bytes")
    start = time.perf_counter()
    results = load(port, rows, traffic, count - count // 2, seed + 1)
    middle = metric(port, "process_resident_memory_bytes")
    results += load(port, rows, traffic, count // 2, seed + 2)
    seconds = time.perf_counter() - start
    after = metric(port, "process_resident_memory_bytes")
    runs = metric(port, "serving_batch_items_count")
    items = metric(port, "serving_batch_items_sum")
    p50, p99 = np.percentile(
        [1000 * result.seconds for result in results if not result.is_malformed],
        [50, 99],
    )
    return {
        "requests": len(results),
        "malformed": sum(result.is_malformed for result in results),
        "wrong answers": sum(not result.is_right for result in results),
        "p50, ms": f"{p50:.1f}",
        "p99, ms": f"{p99:.1f}",
        "requests/s": f"{len(results) / seconds:.0f}",
        "items a run": f"{items / runs:.1f}",
        "memory before, MB": f"{before / 1e6:.0f}",
        "half way": f"{middle / 1e6:.0f}",
        "after": f"{after / 1e6:.0f}",
    }


def main() -> None:
    versions = repository.find_versions(FLAGS.export_dir)
    if not versions:
        raise ValueError(f"{FLAGS.export_dir} has no SavedModel")
    path = versions[max(versions)]
    lines = pathlib.Path(FLAGS.input_file).read_text("utf-8").splitlines()
    lines = [line for line in lines if line.strip()]
    rows = make_rows(path, lines, FLAGS.num_rows, random.Random(FLAGS.seed))
    traffic = Traffic(FLAGS.num_clients, FLAGS.max_items, FLAGS.malformed)
    for place, server_flags in enumerate(FLAGS.server):
        with serving(FLAGS.export_dir, server_flags.split()) as port:
            found = measure(port, rows, traffic, FLAGS.num_requests, FLAGS.seed)
        if not place:
            print("| serve.py |", " | ".join(found), "|")
            print("| ---" * (len(found) + 1), "|")
        print(f"| `{server_flags}` |", " | ".join(map(str, found.values())), "|")


if __name__ == "__main__":
    common_flags.run(main, define_flags)
