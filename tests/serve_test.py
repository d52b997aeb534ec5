"""serve.py as a person starts and stops it."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading

import keras
import numpy as np
import pytest

from benchmarks import serving_latency
from tests import scripts, served


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "toy"
    served.export_toy(folder / "1")
    return folder


@pytest.fixture
def gate(tmp_path):
    with served.Gate(tmp_path) as gate:
        yield gate


@contextlib.contextmanager
def running(**flags):
    """Runs serve.py; gives the process, the port of REST and a list of log lines.

    The list is whole when the process has ended.
    """
    command = scripts.command("serve.py", rest_port=0, grpc_port=0, **flags)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    lines, is_ready = [], threading.Event()

    def read():
        for line in process.stderr:
            lines.append(line.rstrip("\n"))
            if line.startswith("gRPC at"):
                is_ready.set()
        is_ready.set()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        assert is_ready.wait(120)
        found = re.search(
            r"^REST at http://127\.0\.0\.1:(\d+)$", "\n".join(lines), re.M
        )
        assert found, lines
        yield process, int(found[1]), lines
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stderr.close()


def ask(connection, body, headers=()):
    """(status, answer, whether the server closes) of a request on a connection."""
    path = "/v1/models/toy:predict"
    connection.request("POST", path, json.dumps(body), dict(headers))
    response = connection.getresponse()
    answer = json.loads(response.read())
    return response.status, answer, response.headers.get("Connection") == "close"


def ask_until_closed(port, seed):
    """Asks on one connection until the server says that it closes it.

    Every request has to be answered, and rightly. Returns how many.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for count in range(100_000):
        text = "x" * (seed * 100 + count % 50)
        body = {"instances": [text] if count % 10 else [None]}
        status, answer, is_closing = ask(connection, body)
        if count % 10:
            assert status == 200, answer
            assert answer["predictions"] == [{"echo": text, "size": len(text)}]
        else:
            assert status == 400, answer
        if is_closing:
            connection.close()
            return count + 1
    raise AssertionError("the server does not stop")


def is_refused(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return True
    return False


def test_sigterm_under_load_answers_what_was_accepted(toy, gate):
    with (
        running(model=f"toy={toy}") as (process, port, lines),
        concurrent.futures.ThreadPoolExecutor(9) as pool,
    ):
        clients = [pool.submit(ask_until_closed, port, seed) for seed in range(8)]
        served.wait_for(lambda: served.metric(port, "serving_batch_items_count") > 100)
        slow = pool.submit(
            served.predict, port, {"signature_name": "wait", "instances": [gate.path]}
        )
        # Until all clients wait behind the slow one, which ends after the signal.
        served.wait_for(lambda: served.metric(port, "serving_waiting_requests") == 8)
        process.send_signal(signal.SIGTERM)
        served.wait_for(lambda: is_refused(port))
        assert not slow.done() and process.poll() is None
        gate.open()
        assert slow.result()[0] == 200
        counts = [client.result() for client in clients]
        assert sum(counts) > 100
        assert process.wait(20) == 0
    # A busy machine brings out notices of TensorFlow's C++ code; nothing else passes.
    notice = re.compile(r"WARNING: All log messages before absl::Init|[IWE]0000 00:00:")
    lines = [line for line in lines if not notice.match(line)]
    assert lines[0].startswith("model toy, version 1, from ")
    assert "serving_default(text)" in lines[0]
    assert lines[1:3] == [f"REST at http://127.0.0.1:{port}", lines[2]]
    wrong = sum(-(-count // 10) for count in counts)
    assert lines[3:] == [
        "first answer 400: predict by rest",
        "stopping, within 30 seconds",
        f"answers by code: 200 {sum(counts) - wrong + 1}, 400 {wrong}",
    ]


@pytest.mark.slow
def test_a_model_that_does_not_end_does_not_keep_the_process(toy, gate):
    body = {"signature_name": "wait", "instances": [gate.path]}
    with (
        running(model=f"toy={toy}", grace_s=0.5) as (process, port, lines),
        concurrent.futures.ThreadPoolExecutor(1) as pool,
    ):
        slow = pool.submit(served.predict, port, body)
        served.wait_for(lambda: served.metric(port, "serving_batch_items_count") == 1)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert isinstance(slow.exception(), OSError | http.client.HTTPException)
    assert "not all was answered in time; raise --grace_s" in lines


@pytest.mark.slow
def test_a_version_that_takes_long_to_load_does_not_keep_the_process(toy, tmp_path):
    folder = tmp_path / "toy"
    shutil.copytree(toy / "1", folder / "1")
    with running(model=f"toy={folder}", poll_s=0.05) as (process, port, _):
        shutil.copytree(toy / "1", tmp_path / "second")
        (tmp_path / "second/assets.extra").mkdir()
        os.mkfifo(tmp_path / "second/assets.extra/tf_serving_warmup_requests")
        os.rename(tmp_path / "second", folder / "2")

        def is_loading():
            status, answer = served.request(port, "GET", "/v1/models/toy")
            return status == 200 and "LOADING" in json.dumps(answer)

        served.wait_for(is_loading)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


@pytest.mark.slow
def test_what_cannot_be_served(toy, tmp_path):
    for models, part in (
        ({"model": f"toy={tmp_path / 'none'}"}, "No such file"),
        ({"model": f"toy={toy}", "host": "192.0.2.1"}, "cannot listen on 192.0.2.1"),
    ):
        assert part in scripts.refusal("serve.py", rest_port=0, grpc_port=0, **models)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), "0 None"),
        (("--tensorflow_intra_op_parallelism=3",), "3 None"),
        (("--keep_packed_weights",), "0 1"),
    ],
)
def test_tensorflow_is_set_as_the_flags_say(toy, flags, expected):
    program = """
import asyncio, os, runpy, sys
import tensorflow as tf

def run(runner, coroutine):  # instead of serving
    coroutine.close()
    threads = tf.config.threading.get_intra_op_parallelism_threads()
    print(threads, os.environ.get("TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"))
    return True

asyncio.Runner.run = run
sys.argv[0] = "serve.py"
runpy.run_path("serve.py", run_name="__main__")
"""
    command = [sys.executable, "-c", program, f"--model=m={toy}", *flags]
    result = subprocess.run(
        command,
        cwd=scripts.ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.stdout == f"{expected}\n", result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_packed_weights_give_the_same_answers(tmp_path, precision):
    keras.utils.set_random_seed(1)
    server = serving_latency.make_server("tiny", precision)
    weights = server.model.classifier.output_weights
    weights.assign(300 * weights)  # logits that differ
    direct = serving_latency.export(server, tmp_path / "1")
    flags = {"model": f"toy={tmp_path}", "max_batch_size": 1}
    seen = []
    with (
        running(keep_packed_weights=True, **flags) as (_, port, _),
        contextlib.closing(
            http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        ) as connection,
    ):
        # Shapes take turns, for what is packed for one may not do for another.
        for rows, length in [(1, 16), (3, 5), (1, 1), (9, 40), (1, 16), (9, 40)]:
            batch = serving_latency.make_batch(rows, length)
            inputs = {name: values.tolist() for name, values in batch.items()}
            body = {"inputs": inputs, "signature_name": "ids"}
            status, answer, _ = ask(connection, body)
            assert status == 200, answer
            found = np.array(answer["outputs"]["logits"])
            expected = direct(batch)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
            seen.append(expected)
    assert np.std(np.concatenate(seen)[:, 0]) > 1  # not the same for all
