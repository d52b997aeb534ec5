r"""Serves SavedModels over TensorFlow Serving's REST API and gRPC.

    pip install -r requirements-serving.txt
    python serve.py --model=mrpc=exports/mrpc
    curl -d '{"instances": ["Where is my card?"]}' \\
        http://127.0.0.1:8501/v1/models/mrpc:predict

The same port has a page to try the models in a browser: http://127.0.0.1:8501/

--model may be repeated. The highest version in a model's folder is served, and newer
ones as they appear. Clients written for TensorFlow Serving work unchanged. There is no
encryption and no password: what --host opens to a network, others have to guard.
/healthz and /metrics (Prometheus) are on the REST port. SIGTERM and Ctrl-C stop the
server after it has answered what it accepted.
"""

import asyncio
import os
import signal

import common_flags

from absl import flags, logging

FLAGS = flags.FLAGS


def define_flags():
    flags.DEFINE_multi_string(
        "model",
        None,
        "NAME=FOLDER; FOLDER is a SavedModel or holds numbered ones, as "
        "export_saved_model.py writes them. May be repeated.",
        required=True,
    )
    flags.DEFINE_string(
        "host", "127.0.0.1", "Address to listen on: 0.0.0.0 for all of this machine's."
    )
    flags.DEFINE_integer("rest_port", 8501, "0 for any that is free.", 0, 65535)
    flags.DEFINE_integer("grpc_port", 8500, "0 for any that is free.", 0, 65535)
    flags.DEFINE_integer(
        "max_batch_size",
        32,
        "Items of requests that run as one, which no export of this project minds; 1 "
        "joins none, for a SavedModel whose rows depend on one another.",
        1,
    )
    flags.DEFINE_float(
        "batch_timeout_ms",
        0.0,
        "How long a request waits for others to join it, while a thread is free.",
        0.0,
    )
    flags.DEFINE_integer("num_threads", 1, "Runs of models at the same time.", 1, 1024)
    flags.DEFINE_integer(
        "tensorflow_intra_op_parallelism",
        0,
        "Threads of one operation of a run; 0 for one a core. For short texts 1 is "
        "faster, with as many --num_threads as cores.",
        0,
        1024,
    )
    flags.DEFINE_bool(
        "keep_packed_weights",
        False,
        "Have oneDNN keep weights as it packs them for products on a CPU. Exports in "
        "bfloat16 then take up to a third less time for short texts; in float32 long "
        "ones take longer. Takes the room of the weights once more for each signature "
        "that is used. For exports of this project, where all that a product is added "
        "a bias to are weights; others may give wrong answers.",
    )
    flags.DEFINE_integer(
        "max_queue", 128, "Requests that may wait; further ones are refused.", 1
    )
    flags.DEFINE_integer("max_items", 256, "Texts or sequences of a request.", 1)
    flags.DEFINE_integer("max_text_bytes", 1 << 17, "Bytes of one of its texts.", 1)
    flags.DEFINE_integer(
        "max_body_bytes",
        4 << 20,
        "Bytes of a request, and of its texts if all were as long as the longest.",
        1,
        2**30,
    )
    flags.DEFINE_integer(
        "max_connections", 256, "Connections over HTTP at the same time.", 1, 65536
    )
    flags.DEFINE_float("timeout_s", 30.0, "Seconds for an answer.", 0.001)
    flags.DEFINE_float(
        "client_timeout_s",
        30.0,
        "Seconds for a client to send its headers, then its body, and to read the "
        "answer, over HTTP.",
        0.001,
    )
    flags.DEFINE_float(
        "grace_s",
        30.0,
        "Seconds for what was accepted when the server stops; who waits longer is "
        "refused.",
        0.0,
    )
    flags.DEFINE_float(
        "poll_s", 1.0, "Seconds between two looks for new versions; 0 for none.", 0.0
    )


def main():
    try:
        import tensorflow as tf

        from server import repository, service
    except ModuleNotFoundError as error:
        name = error.name.partition(".")[0]
        raise ValueError(
            f"serve.py needs {name}; run pip install -r requirements-serving.txt"
        ) from None
    values = common_flags.values()
    if values.pop("keep_packed_weights"):
        os.environ["TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"] = "1"  # read at the first product
    tf.config.threading.set_intra_op_parallelism_threads(
        values.pop("tensorflow_intra_op_parallelism")
    )
    models = repository.parse(values.pop("model"))
    with asyncio.Runner() as runner:
        settings = service.Settings(models, **values)
        if not runner.run(serve(service.Service(settings))):
            logging.flush()
            os._exit(0)  # Others would wait for a model that still runs or loads.


async def serve(server):
    """Runs a service.Service until a signal; returns whether it answered all."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    await server.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()
    return await server.stop()


if __name__ == "__main__":
    common_flags.run(main, define_flags)
