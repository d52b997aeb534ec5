"""A model as export_saved_model.py writes it, from raw text, by both protocols."""

import concurrent.futures
import json
import shutil

import grpc
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the ops of text signatures
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from modeling import checkpoint
from tests import export_saved_model_test, served

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def export(golden, tmp_path_factory):
    """Folder of the versions of a classifier with the golden weights of a tiny BERT."""
    folder = tmp_path_factory.mktemp("classifier")
    source = golden / "hf_tiny/classification"
    shutil.copytree(source, folder / "weights")
    config = checkpoint.read_config(source)
    export_saved_model_test.export_of(
        folder, config, labels=list("abc"), label_type="class"
    )
    return folder / "e"


@pytest.fixture(scope="module")
def direct(export):
    """The signatures, called without the server."""
    return tf.saved_model.load(str(export / "1")).signatures


@pytest.fixture(scope="module")
def server(export):
    with served.serving({"c": export}, max_batch_size=16) as server:
        yield server


@pytest.fixture(scope="module")
def texts(golden):
    with open(golden / "tokenization.jsonl", encoding="utf-8") as file:
        found = [json.loads(line)["text"] for line in file]
    # JSON carries lone surrogates, TensorFlow strings cannot.
    found = [text for text in found if text.encode("utf-8", "ignore").decode() == text]
    return found[:150] + [f"word{i} word{i % 7} " * (i % 30) for i in range(50)]


def assert_same(answers, expected):
    """Compares lists of dicts of outputs, one a row, with a dict of tensors."""
    assert [row["label"] for row in answers] == [
        label.decode() for label in expected["label"].numpy()
    ]
    for name in ("score", "probabilities", "logits"):
        found = np.array([row[name] for row in answers])
        np.testing.assert_allclose(found, expected[name], rtol=0, atol=1e-5)


def test_texts_one_by_one_from_8_clients(server, direct, texts):
    def ask(text):
        status, answer = served.predict(server.rest_port, {"instances": [text]}, "c")
        assert status == 200, answer
        return answer["predictions"][0]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, texts))
    for text, answer in zip(texts, answers, strict=True):
        assert_same([answer], direct["serving_default"](text=tf.constant([text])))


def test_pairs_by_grpc(server, direct, texts):
    request = predict_pb2.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = "c", "pair"
    inputs = {"text": texts, "text_pair": texts[::-1]}
    for name, values in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(values))
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        outputs = stub.Predict(request, timeout=60).outputs
    expected = direct["pair"](**{n: tf.constant(v) for n, v in inputs.items()})
    for name in expected:
        found = tf.make_ndarray(outputs[name])
        if name == "label":
            assert found.tolist() == expected[name].numpy().tolist()
        else:
            np.testing.assert_allclose(found, expected[name], rtol=0, atol=1e-5)


def test_ids_and_ids_that_are_wrong(server, direct):
    ids = np.random.default_rng(0).integers(0, 100, (3, 9))
    row = {"input_mask": [1] * 9, "segment_ids": [0] * 9}
    rows = [{"input_ids": values, **row} for values in ids.tolist()]
    body = {"signature_name": "ids", "instances": rows}
    status, answer = served.predict(server.rest_port, body, "c")
    assert status == 200
    expected = direct["ids"](
        input_ids=tf.constant(ids, tf.int32),
        input_mask=tf.ones((3, 9), tf.int32),
        segment_ids=tf.zeros((3, 9), tf.int32),
    )
    assert_same(answer["predictions"], expected)
    too_long = {name: [1] * 100_000 for name in rows[0]}
    for wrong in ({**rows[0], "input_ids": [10**6] * 9}, too_long):
        body["instances"] = [wrong]
        found = served.predict(server.rest_port, body, "c")
        assert "the model refuses" in served.sentence(found, 400)


def test_a_text_as_long_as_allowed_is_cut(server, direct):
    text = "word1 " * 21_000  # a little less than --max_text_bytes
    status, answer = served.predict(server.rest_port, {"instances": [text]}, "c")
    assert status == 200
    expected = direct["serving_default"](text=tf.constant([text[:2000]]))
    assert_same(answer["predictions"], expected)


def test_examples(server, direct):
    body = {"signature_name": "classify", "examples": [{"text": "word1 word2"}]}
    status, answer = served.predict(server.rest_port, body, "c", "classify")
    assert status == 200
    expected = direct["serving_default"](text=tf.constant(["word1 word2"]))
    (labels,) = answer["results"]
    assert [name for name, _ in labels] == list("abc")
    found = [score for _, score in labels]
    np.testing.assert_allclose(found, expected["probabilities"][0], rtol=0, atol=1e-5)
