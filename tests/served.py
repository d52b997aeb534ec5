"""A small SavedModel with signatures of every kind, and servers of it in threads."""

import asyncio
import contextlib
import http.client
import json
import os
import threading
import time

import numpy as np
import tensorflow as tf

EVENT_LOOP = "event loop"
TABLE = np.arange(10, dtype=np.int32) * 10


class Toy(tf.Module):
    """Signatures whose results can be told without TensorFlow."""

    SIGNATURES = (
        "serving_default",
        "double",
        "look_up",
        "words",
        "total",
        "raw",
        "wait",
        "label",
        "score",
    )

    def __init__(self):
        super().__init__()
        self.table = tf.constant(TABLE)
        self.examples = {
            "text": tf.io.FixedLenFeature([], tf.string),
            "bonus": tf.io.FixedLenFeature([], tf.int64, 0),
        }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def serving_default(self, text):
        return {"size": tf.strings.length(text), "echo": text}

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32, "x")])
    def double(self, x):
        return {"y": 2 * x}

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None], tf.int32, "ids"),
            tf.TensorSpec([None], tf.bool, "is_negative"),
        ]
    )
    def look_up(self, ids, is_negative):  # on CPU it refuses ids that are not there
        found = tf.reduce_sum(tf.gather(self.table, ids), axis=1)
        return {"sum": tf.where(is_negative, -found, found), "ids": ids}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def words(self, text):  # as wide as the longest text of the batch
        return {"words": tf.strings.split(text).to_tensor("")}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def total(self, x):
        return {"total": tf.reduce_sum(x)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "data")])
    def raw(self, data):
        return {"data_bytes": data, "data": data}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "fifo")])
    def wait(self, fifo):  # see Gate
        with tf.control_dependencies([tf.io.write_file(fifo[0], "")]):
            return {"end": tf.identity(fifo)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def label(self, inputs):
        rows = tf.io.parse_example(inputs, self.examples)
        size = tf.cast(tf.strings.length(rows["text"]), tf.float32)
        bonus = tf.cast(rows["bonus"], tf.float32)
        names = tf.tile([["long", "short"]], [tf.size(inputs), 1])
        return {"classes": names, "scores": tf.stack([size + bonus, -size], axis=1)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def score(self, inputs):
        rows = tf.io.parse_example(inputs, self.examples)
        return {"outputs": tf.cast(tf.strings.length(rows["text"]), tf.float32)}


def export_toy(path, shift=0):
    """Writes the SavedModel; its table is raised by `shift`."""
    toy = Toy()
    toy.table = tf.constant(TABLE + shift)
    signatures = {name: getattr(toy, name) for name in Toy.SIGNATURES}
    tf.saved_model.save(toy, str(path), signatures=signatures)
    updater = tf.compat.v1.saved_model.signature_def_utils.MethodNameUpdater(str(path))
    for name, method in (("label", "classify"), ("score", "regress")):
        updater.replace_method_name(name, f"tensorflow/serving/{method}", ["serve"])
    updater.save()


def settings(models, **changes):
    """A service.Settings for tests: any free port, no looks for new versions."""
    from server import service

    values = {
        "host": "127.0.0.1",
        "rest_port": 0,
        "grpc_port": 0,
        "max_batch_size": 32,
        "batch_timeout_ms": 0.0,
        "num_threads": 1,
        "max_queue": 128,
        "max_items": 256,
        "max_text_bytes": 1 << 17,
        "max_body_bytes": 4 << 20,
        "max_connections": 256,
        "timeout_s": 30.0,
        "client_timeout_s": 30.0,
        "grace_s": 10.0,
        "poll_s": 0.0,
    }
    models = {name: str(folder) for name, folder in models.items()}
    return service.Settings(models, **{**values, **changes})


@contextlib.contextmanager
def serving(models, **changes):
    """Serves in a thread; gives the service.Service."""
    from server import service

    server = service.Service(settings(models, **changes))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name=EVENT_LOOP)
    thread.start()

    def wait(coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(60)

    wait(server.start())
    try:
        yield server
    finally:
        wait(server.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def request(port, method, path, body=None, headers=()):
    """One request on a connection of its own.

    Args:
        body: bytes, or what to write as JSON.
    Returns:
        (status, answer): bytes, or what it is in JSON.
    """
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        answer = response.read()
        if "json" in response.headers["Content-Type"]:
            answer = json.loads(answer)
        return response.status, answer
    finally:
        connection.close()


def predict(port, body, model="toy", method="predict"):
    """(status, answer) of a request to infer."""
    return request(port, "POST", f"/v1/models/{model}:{method}", body)


def metric(port, name):
    """The value of a metric without labels."""
    text = request(port, "GET", "/metrics")[1].decode()
    return float(text.split(f"\n{name} ")[1].split("\n")[0])


def wait_for(condition):
    """Waits until a function gives True."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it does not come true"
        time.sleep(0.02)


def record_threads(monkeypatch, module, name):
    """The threads in which a function of a module will be called, a list to come."""
    function, threads = getattr(module, name), []

    def recorded(*arguments):
        threads.append(threading.current_thread().name)
        return function(*arguments)

    monkeypatch.setattr(module, name, recorded)
    return threads


def sentence(found, status):
    """The sentence of an (actual status, answer) that is an error, as expected."""
    assert found[0] == status, found
    assert list(found[1]) == ["error"], found
    assert "\n" not in found[1]["error"]
    return found[1]["error"]


class Gate:
    """A FIFO at which requests of the signature `wait` stop, until it is opened.

    Leaving the context opens it.
    """

    def __init__(self, folder):
        self.path, self._reader = str(folder / "gate"), None
        os.mkfifo(self.path)

    def open(self):
        """Lets go who waits, and whoever comes later."""
        if self._reader is None:
            self._reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.open()
        os.remove(self.path)
        os.close(self._reader)
