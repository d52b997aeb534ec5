"""Devices are found by name, and what is wrong with a cluster is said in a sentence."""

import json
import os
import signal
import socket

import pytest

import interruptions
import strategies


class Replicas:
    """As much of a strategy as `check_batch` looks at."""

    def __init__(self, number):
        self.num_replicas_in_sync = number


@pytest.mark.parametrize(
    ("batch_size", "replicas", "steps", "nearest"),
    [(30, 2, 4, 32), (3, 4, 1, 4), (1, 2, 2, 4), (33, 2, 1, 32), (100, 3, 11, 99)],
)
def test_the_nearest_batch_is_named(batch_size, replicas, steps, nearest):
    with pytest.raises(ValueError, match=f"the nearest that can is {nearest}$"):
        strategies.check_batch(Replicas(replicas), batch_size, steps)
    strategies.check_batch(Replicas(replicas), nearest, steps)


def test_parts_of_a_batch_are_counted():
    with pytest.raises(ValueError, match="for 1 replica x 2 accumulation steps;"):
        strategies.check_batch(Replicas(1), 3, 2)
    with pytest.raises(ValueError, match="for 2 replicas x 1 accumulation step;"):
        strategies.check_batch(Replicas(2), 3, 1)


def test_without_a_tpu_one_sentence():
    for asked in ({"use_tpu": True}, {"name": "tpu"}):
        with pytest.raises(ValueError, match="--use_tpu: no TPU answers as 'local'"):
            strategies.make(**asked)


def test_without_gpus_mirrored_needs_a_number():
    with pytest.raises(ValueError, match="no GPU here; .*--num_devices"):
        strategies.make("mirrored")
    with pytest.raises(ValueError, match="--num_devices is for .*mirrored, not for"):
        strategies.make("one_device", num_devices=2)


def test_flags_that_contradict_each_other():
    with pytest.raises(ValueError, match="--use_tpu and .*=mirrored contradict"):
        strategies.make("mirrored", use_tpu=True)


WORKERS = ["localhost:1234", "localhost:1235"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "needs TF_CONFIG; TF_CONFIG must be JSON such as"),
        ("{", "must be JSON such as .*; got {"),
        ("[]", "must be JSON such as"),
        ('{"cluster": {}}', "must be JSON such as"),
        ({"task": {"type": "worker", "index": 2}}, "index must be from 0 to 1"),
        ({"task": {"type": "worker", "index": -1}}, "index must be from 0 to 1"),
        ({"task": {"type": "worker", "index": "x"}}, "must be JSON such as"),
        ({"task": {"type": "ps", "index": 0}}, "this one is a ps"),
        ({"cluster": {"worker": ["localhost"]}}, "must be JSON such as"),
        ({"cluster": {"worker": {"localhost:1": 1}}}, "must be JSON such as"),
        ({"task": {"type": "worker", "index": float("inf")}}, "must be JSON such as"),
        ("[" * 100_000, "must be JSON such as"),
        ({"cluster": {"worker": ["localhost:x"]}}, "must be JSON such as"),
        ({"cluster": {"worker": ["a:1", "b:70000"]}}, "ports below 65536"),
        ({"cluster": {"worker": WORKERS, "chief": ["x:1"]}}, "worker only"),
    ],
)
def test_a_wrong_cluster_is_refused(monkeypatch, text, message):
    right = {"cluster": {"worker": WORKERS}, "task": {"type": "worker", "index": 0}}
    if text is None:
        monkeypatch.delenv("TF_CONFIG", raising=False)
    else:
        text = text if isinstance(text, str) else json.dumps({**right, **text})
        monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match=message):
        strategies.make("multi_worker")


def test_a_port_that_is_taken(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        workers = [f"localhost:{port}", "localhost:1"]
        config = {
            "cluster": {"worker": workers},
            "task": {"type": "worker", "index": 0},
        }
        monkeypatch.setenv("TF_CONFIG", json.dumps(config))
        with pytest.raises(ValueError, match=f"port {port} cannot be had .*in use"):
            strategies.make("multi_worker")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_is_noticed_and_the_second_acts(number):
    before = signal.getsignal(number)
    with interruptions.noticed() as interruption:
        assert interruption.signal == 0
        os.kill(os.getpid(), number)
        assert interruption.signal == number
        assert interruption.status == 128 + number
        assert signal.getsignal(number) == before
    assert signal.getsignal(number) == before
