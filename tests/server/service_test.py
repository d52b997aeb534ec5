"""Starting and stopping."""

import asyncio
import concurrent.futures
import socket
import threading

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from server import service
from tests import served


def start(toy, **changes):
    async def run():
        server = service.Service(served.settings({"toy": toy}, **changes))
        await server.start()
        await server.stop()

    asyncio.run(run())


def test_ports_that_are_taken_and_addresses_that_are_not_ours(toy):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for name in ("rest_port", "grpc_port"):
            part = (
                f"cannot listen on 127.0.0.1:{port}: Address already in use.*--{name}"
            )
            with pytest.raises(ValueError, match=part):
                start(toy, **{name: port})
    for host in ("192.0.2.1", "no.such.host.invalid"):
        with pytest.raises(ValueError, match=f"cannot listen on {host}:0: "):
            start(toy, host=host)


def test_two_servers_do_not_share_a_port(toy):
    with served.serving({"toy": toy}) as server:
        for name in ("rest_port", "grpc_port"):
            with pytest.raises(ValueError, match="cannot listen"):
                start(toy, **{name: getattr(server, name)})


def test_only_this_machine_can_connect(toy):
    with served.serving({"toy": toy}) as server:
        for port in (server.rest_port, server.grpc_port):
            with pytest.raises(OSError), socket.socket() as client:
                client.connect(("127.0.0.2", port))


def test_a_call_that_was_accepted_is_answered_at_the_end(toy, gate):
    request = predict_pb2.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = "toy", "wait"
    request.inputs["fifo"].CopyFrom(tf.make_tensor_proto([gate.path]))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        with served.serving({"toy": toy}) as server:
            channel = grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}")
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            calls = [pool.submit(stub.Predict, request) for _ in range(2)]
            name = "serving_waiting_requests"  # or both run as one
            served.wait_for(
                lambda: (
                    served.metric(server.rest_port, "serving_batch_items_sum")
                    + served.metric(server.rest_port, name)
                    == 2
                )
            )
            threading.Timer(0.5, gate.open).start()
            assert not any(call.done() for call in calls)
        # The server has stopped.
        assert [call.result().outputs["end"].string_val for call in calls] == [
            [gate.path.encode()]
        ] * 2
        with pytest.raises(grpc.RpcError, match="UNAVAILABLE"):
            stub.Predict(request)
        channel.close()


def test_a_call_that_waits_too_long_at_the_end_is_told(toy, gate):
    body = {"signature_name": "wait", "instances": [gate.path]}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        with served.serving({"toy": toy}, grace_s=0.5) as server:
            port = server.rest_port
            runs = pool.submit(served.predict, port, body)
            served.wait_for(lambda: served.metric(port, "serving_batch_items_sum") == 1)
            waits = pool.submit(served.predict, port, body)
            waits.add_done_callback(lambda _: gate.open())
            served.wait_for(
                lambda: served.metric(port, "serving_waiting_requests") == 1
            )
            assert not runs.done() and not waits.done()
        # The server has stopped.
        sentence = served.sentence(waits.result(), 503)
    assert sentence == "the server is stopping; try again later"


def test_several_models(toy):
    with served.serving({"a": toy, "b": toy / "1"}) as server:
        for name in "ab":
            found = served.predict(server.rest_port, {"instances": ["x"]}, name)
            assert found[0] == 200
        found = served.predict(server.rest_port, {"instances": ["x"]}, "c")
        assert "there are a, b" in served.sentence(found, 404)
