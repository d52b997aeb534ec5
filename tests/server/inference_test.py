"""Limits that both protocols share, with 8 clients at once on one server."""

import asyncio
import concurrent.futures
import contextlib
import random
import types

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import (
    classification_pb2,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from server import errors, examples, inference, json_answers, messages, rpc, signatures
from tests import served

NUM_REQUESTS = 200


def texts_and_sizes(rng):
    texts = ["x" * rng.choice((0, 3, 50, 2000)) for _ in range(rng.randint(1, 5))]
    return texts, [len(text) for text in texts]


def by_rest(server, rng):
    """Sends a good or a bad request; returns whether its answer is right."""
    texts, sizes = texts_and_sizes(rng)
    kind = rng.choice(("good", "good", "ids", "bad_ids", "type", "cut"))
    if kind == "good":
        status, answer = served.predict(server.rest_port, {"instances": texts})
        return status == 200 and answer["predictions"] == [
            {"echo": text, "size": size}
            for text, size in zip(texts, sizes, strict=True)
        ]
    if kind in ("ids", "bad_ids"):
        ids = [[rng.randrange(10), rng.randrange(10)] for _ in range(rng.randint(1, 5))]
        if kind == "bad_ids":
            ids[0][1] = 10
        rows = [{"ids": row, "is_negative": False} for row in ids]
        body = {"signature_name": "look_up", "instances": rows}
        status, answer = served.predict(server.rest_port, body)
        if kind == "bad_ids":
            return status == 400 and "10 is not in [0, 10)" in answer["error"]
        sums = [10 * sum(row) for row in ids]
        return status == 200 and [r["sum"] for r in answer["predictions"]] == sums
    body = {"instances": [*texts, 1]} if kind == "type" else b'{"instances": ['
    return served.predict(server.rest_port, body)[0] == 400


def by_grpc(stub, rng):
    texts, sizes = texts_and_sizes(rng)
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "toy"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(texts))
    found = tf.make_ndarray(stub.Predict(request, timeout=60).outputs["size"])
    return found.tolist() == sizes


@pytest.mark.parametrize("max_batch_size", [1, 8])
def test_every_answer_is_right_under_load(toy, max_batch_size):
    with (
        served.serving({"toy": toy}, max_batch_size=max_batch_size) as server,
        grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel,
        concurrent.futures.ThreadPoolExecutor(8) as pool,
    ):
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

        def send(seed):
            rng = random.Random(seed)
            return by_grpc(stub, rng) if seed % 4 == 0 else by_rest(server, rng)

        found = list(pool.map(send, range(NUM_REQUESTS)))
        assert found == [True] * NUM_REQUESTS
        metrics = served.request(server.rest_port, "GET", "/metrics")[1].decode()
    runs = float(metrics.split("\nserving_batch_items_count ")[1].split("\n")[0])
    items = float(metrics.split("\nserving_batch_items_sum ")[1].split("\n")[0])
    assert items > runs


def test_items_of_a_request(toy):
    with served.serving({"toy": toy}, max_items=3) as server:
        assert served.predict(server.rest_port, {"instances": ["a"] * 3})[0] == 200
        found = served.predict(server.rest_port, {"instances": ["a"] * 4})
        assert "4 items, at most 3" in served.sentence(found, 400)


def test_what_is_large_leaves_the_event_loop_to_others(toy, monkeypatch):
    threads = {
        name: served.record_threads(monkeypatch, module, name)
        for module, name in (
            (examples, "from_json"),
            (examples, "from_message"),
            (examples, "classes"),
            (examples, "numbers"),
            (json_answers, "encode"),
            (messages, "inputs"),
            (messages, "example_inputs"),
            (messages, "to_tensor"),
            (rpc, "_add_classes"),
            (rpc, "_add_numbers"),
        )
    }
    texts = ["x" * 20] * 3000
    with (
        served.serving({"toy": toy}, max_items=3000) as server,
        grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel,
    ):
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        for signature, method in (("label", "classify"), ("score", "regress")):
            rows = [{"text": text} for text in texts]
            body = {"signature_name": signature, "examples": rows}
            found = served.predict(server.rest_port, body, method=method)
            assert found[0] == 200 and len(found[1]["results"]) == len(texts)
        request = predict_pb2.PredictRequest()
        request.model_spec.name = "toy"
        request.inputs["text"].CopyFrom(tf.make_tensor_proto(texts))
        outputs = stub.Predict(request, timeout=60).outputs
        assert tf.make_ndarray(outputs["size"]).tolist() == [20] * len(texts)
        for message, call in (
            (classification_pb2.ClassificationRequest(), stub.Classify),
            (regression_pb2.RegressionRequest(), stub.Regress),
        ):
            message.model_spec.name = "toy"
            is_label = call is stub.Classify
            message.model_spec.signature_name = "label" if is_label else "score"
            for text in texts:
                example = message.input.example_list.examples.add()
                feature = example.features.feature["text"]
                feature.bytes_list.value.append(text.encode())
            call(message, timeout=60)
    assert all(threads.values())
    assert served.EVENT_LOOP not in {n for names in threads.values() for n in names}


def test_the_time_for_an_answer_counts_the_reading():
    version = types.SimpleNamespace(
        signature=lambda *_: None, in_use=contextlib.nullcontext
    )
    repository = types.SimpleNamespace(find=lambda *_: version)
    service = inference.Inference(repository, None, signatures.Limits(1, 1, 1), 0.01)

    async def read(_):
        await asyncio.sleep(20)

    with pytest.raises(errors.RequestError, match="no answer within 0.01 seconds"):
        asyncio.run(service.predict(inference.Target("m"), read))
