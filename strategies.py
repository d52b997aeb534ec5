"""On which devices to train and to evaluate: the strategies of tf.distribute, by name.

A global batch is shared out to the replicas, whatever their number, and the workers of
a cluster all run the same command; TF_CONFIG tells each which one it is.
"""

import contextlib
import json
import os
import socket

import tensorflow as tf
from absl import logging

import run_directory

# What TensorFlow says on a worker when another one is lost.
_LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)
_EXAMPLE = (
    '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, '
    '"task": {"type": "worker", "index": 0}}'
)


def make(name=None, num_devices=None, use_tpu=False, tpu_name=None, **tpu):
    """The strategy to build, train and evaluate a model under.

    To be called before TensorFlow does anything else. In a cluster it waits until all
    workers are there.

    Args:
        name: "one_device", "mirrored", "multi_worker" or "tpu"; None for "tpu" or
            "one_device", as `use_tpu` says.
        num_devices: int, with "mirrored": so many GPUs, or parts of the CPU where there
            is no GPU. Default: all GPUs.
        use_tpu, tpu_name: the original's flags.
        **tpu: tpu_zone and gcp_project, likewise.
    Raises:
        ValueError: the devices are not there, or TF_CONFIG is not what it should be.
    """
    if use_tpu and name not in (None, "tpu"):
        raise ValueError(
            f"--use_tpu and --distribution_strategy={name} contradict each other; "
            "leave one of them out"
        )
    name = name or ("tpu" if use_tpu else "one_device")
    if num_devices and name != "mirrored":
        raise ValueError(
            f"--num_devices is for --distribution_strategy=mirrored, not for {name}"
        )
    if name == "tpu":
        return _make_tpu(tpu_name, **tpu)
    if name == "mirrored":
        return tf.distribute.MirroredStrategy(_devices(num_devices))
    if name == "multi_worker":
        return _make_multi_worker()
    gpus = len(tf.config.list_physical_devices("GPU"))
    if gpus > 1:
        logging.info(
            "one of %d GPUs is used; --distribution_strategy=mirrored uses all", gpus
        )
    return tf.distribute.get_strategy()


def from_values(values):
    """The strategy that flags ask for; see `make` and `check_batch`.

    Args:
        values: dict of flag name → value.
    """
    strategy = make(
        values["distribution_strategy"],
        values["num_devices"],
        values["use_tpu"],
        values["tpu_name"],
        tpu_zone=values["tpu_zone"],
        gcp_project=values["gcp_project"],
    )
    if values.get("do_train"):
        steps = values["gradient_accumulation_steps"]
        check_batch(strategy, values["train_batch_size"], steps)
    return strategy


def check_batch(strategy, batch_size, steps=1):
    """Refuses a global batch that cannot be cut into equal parts.

    Args:
        strategy: tf.distribute strategy.
        batch_size: int, examples of the global batch.
        steps: int, micro-batches that each replica takes one after the other.
    Raises:
        ValueError: names the nearest size that can.
    """
    replicas = strategy.num_replicas_in_sync
    parts = replicas * steps
    if batch_size % parts:
        nearest = max(1, round(batch_size / parts)) * parts
        raise ValueError(
            f"--train_batch_size={batch_size} cannot be cut into equal parts for "
            f"{_number(replicas, 'replica')} x {_number(steps, 'accumulation step')}; "
            f"the nearest that can is {nearest}"
        )


def _number(count, word):
    return f"{count} {word}{'s' * (count != 1)}"


@contextlib.contextmanager
def lost_workers_explained():
    """Says within the `with` block in one sentence that another worker is gone.

    Raises:
        ValueError: in place of TensorFlow's errors about it.
    """
    try:
        yield
    except _LOST as error:
        if not run_directory.is_shared():
            raise
        raise ValueError(
            f"another worker ended or cannot be reached ({type(error).__name__}); "
            "start all workers again, and they go on from the last checkpoint"
        ) from error


def mean(strategy, value):
    """The mean of a tensor over all replicas; no worker goes on before all are here."""

    @tf.function(autograph=False)
    def reduce():
        context = tf.distribute.get_replica_context()
        return context.all_reduce(tf.distribute.ReduceOp.MEAN, value)

    return strategy.experimental_local_results(strategy.run(reduce))[0].numpy()


def meet(strategy):
    """Waits until all workers are here; does nothing where there is one process."""
    if is_cluster(strategy):
        mean(strategy, tf.constant(0.0))


def is_cluster(strategy):
    """Whether other processes take part."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def is_tpu(strategy):
    """Whether it runs on TPUs, which want batches of one shape."""
    return isinstance(strategy, tf.distribute.TPUStrategy)


def _devices(number):
    """Names of the devices to mirror on; None for all GPUs."""
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        if number and number > len(gpus):
            raise ValueError(
                f"--num_devices={number}, but there are only {len(gpus)} GPUs here"
            )
        return [f"GPU:{i}" for i in range(number)] if number else None
    if not number:
        raise ValueError(
            "--distribution_strategy=mirrored finds no GPU here; leave it out, or give "
            "--num_devices to divide the CPU"
        )
    cpu = tf.config.list_physical_devices("CPU")[0]
    part = tf.config.LogicalDeviceConfiguration()
    tf.config.set_logical_device_configuration(cpu, [part] * number)
    return [f"CPU:{i}" for i in range(number)]


def _make_multi_worker():
    workers, index = _read_cluster(os.environ.get("TF_CONFIG"))
    _, port = workers[index].rsplit(":", 1)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", int(port)))
        except OSError as error:
            raise ValueError(
                f"TF_CONFIG gives this worker {workers[index]}, but port {port} cannot "
                f"be had on this machine ({error.strerror}); end what uses it or name "
                "another port"
            ) from None
    logging.info("worker %d of %d at %s", index, len(workers), workers[index])
    run_directory.share(index)
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except _LOST as error:
        raise ValueError(
            f"worker {index} of {len(workers)} does not find the others "
            f"({', '.join(workers)}); start the same command on all of them"
        ) from error


def _read_cluster(text):
    """(addresses of the workers, which of them this one is) of a TF_CONFIG."""
    shape = f"TF_CONFIG must be JSON such as {_EXAMPLE}"
    if not text:
        raise ValueError(
            f"--distribution_strategy=multi_worker needs TF_CONFIG; {shape}"
        )
    try:
        config = json.loads(text)
        workers, task = config["cluster"]["worker"], config["task"]
        kind, index = task["type"], int(task["index"])
        ports = [int(worker.rsplit(":", 1)[1]) for worker in workers]
        workers[index:]  # of a list, by a whole number
    except (
        *(ValueError, KeyError, TypeError, AttributeError, IndexError),
        *(OverflowError, RecursionError),
    ) as error:
        raise ValueError(f"{shape}; got {text:.200}") from error
    if set(config["cluster"]) != {"worker"} or kind != "worker":
        raise ValueError(
            "TF_CONFIG may have tasks of the type worker only (the first is the chief),"
            f" got {', '.join(config['cluster'])} and this one is a {kind}"
        )
    if not 0 <= index < len(workers) or not all(0 < port < 65536 for port in ports):
        raise ValueError(
            f"TF_CONFIG says that this is worker {index} of {', '.join(workers)}; the "
            f"index must be from 0 to {len(workers) - 1} and the ports below 65536"
        )
    return workers, index


def _make_tpu(tpu_name, tpu_zone=None, gcp_project=None):
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu_name or "local", zone=tpu_zone, project=gcp_project
        )
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except Exception as error:
        raise ValueError(
            f"--use_tpu: no TPU answers as {tpu_name or 'local'!r}; on a TPU machine "
            "install tensorflow-tpu and give --tpu_name, elsewhere drop --use_tpu"
        ) from error
    return tf.distribute.TPUStrategy(resolver)
