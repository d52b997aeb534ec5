"""gRPC with the stubs of tensorflow-serving-api, as a client has them."""

import concurrent.futures

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from tests import served

Code = grpc.StatusCode


@pytest.fixture(scope="module")
def server(toy):
    limits = {"max_body_bytes": 1 << 20, "timeout_s": 2.0}
    with served.serving({"toy": toy}, **limits) as server:
        yield server


@pytest.fixture(scope="module")
def channel(server):
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        yield channel


@pytest.fixture(scope="module")
def stub(channel):
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


def predict_request(signature="", model="toy", version=None, **inputs):
    request = predict_pb2.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = model, signature
    if version is not None:
        request.model_spec.version.value = version
    for name, value in inputs.items():
        is_proto = isinstance(value, tensor_pb2.TensorProto)
        request.inputs[name].CopyFrom(
            value if is_proto else tf.make_tensor_proto(value)
        )
    return request


def arrays(response):
    return {name: tf.make_ndarray(t) for name, t in response.outputs.items()}


def refusal(call, request, code=Code.INVALID_ARGUMENT):
    """The sentence with which a call is refused."""
    with pytest.raises(grpc.RpcError) as error:
        call(request, timeout=60)
    assert error.value.code() == code, error.value
    assert "\n" not in error.value.details()
    return error.value.details()


def test_predict(stub):
    response = stub.Predict(predict_request(text=[b"ab", b"\xff\0", b""]))
    outputs = arrays(response)
    assert outputs["size"].tolist() == [2, 2, 0]
    assert outputs["echo"].tolist() == [b"ab", b"\xff\0", b""]
    spec = response.model_spec
    assert (spec.name, spec.version.value) == ("toy", 1)
    assert spec.signature_name == "serving_default"


def test_numbers_and_shapes(stub):
    x = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    np.testing.assert_array_equal(
        arrays(stub.Predict(predict_request("double", version=1, x=x)))["y"], 2 * x
    )
    total = arrays(stub.Predict(predict_request("total", x=x[0])))["total"]
    np.testing.assert_allclose(total, x[0].sum(), rtol=1e-6)
    # One value that stands for all of a shape.
    one = tf.make_tensor_proto(np.float32(3))
    one.tensor_shape.CopyFrom(tf.TensorShape([2, 2]).as_proto())
    outputs = arrays(stub.Predict(predict_request("double", x=one)))
    assert outputs["y"].tolist() == [[6, 6], [6, 6]]


def test_an_output_filter(stub):
    request = predict_request(text=["ab"])
    request.output_filter.append("size")
    assert set(stub.Predict(request).outputs) == {"size"}
    request.output_filter.append("other")
    assert '"other"' in refusal(stub.Predict, request)


def examples(*texts):
    def example(text):
        value = tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()]))
        return tf.train.Example(features=tf.train.Features(feature={"text": value}))

    return [example(text) for text in texts]


def bonus(number):
    value = tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))
    return tf.train.Example(features=tf.train.Features(feature={"bonus": value}))


def test_classify(stub):
    request = classification_pb2.ClassificationRequest()
    request.model_spec.name, request.model_spec.signature_name = "toy", "label"
    request.input.example_list.examples.extend(examples("four", "sevenny"))
    found = stub.Classify(request).result.classifications
    expected = [[("long", 4), ("short", -4)], [("long", 7), ("short", -7)]]
    assert [[(c.label, c.score) for c in row.classes] for row in found] == expected
    with_context = request.input.example_list_with_context
    with_context.examples.extend(examples("four"))
    with_context.context.CopyFrom(bonus(3))
    (row,) = stub.Classify(request).result.classifications
    assert [c.score for c in row.classes] == [7, -4]


def test_regress(stub):
    request = regression_pb2.RegressionRequest()
    request.model_spec.name, request.model_spec.signature_name = "toy", "score"
    request.input.example_list.examples.extend(examples("four", ""))
    found = stub.Regress(request).result.regressions
    assert [regression.value for regression in found] == [4, 0]


def test_several_inferences_of_the_same_examples(stub):
    request = inference_pb2.MultiInferenceRequest()
    for name, method in (("label", "classify"), ("score", "regress")):
        task = request.tasks.add(method_name=f"tensorflow/serving/{method}")
        task.model_spec.name, task.model_spec.signature_name = "toy", name
    request.input.example_list.examples.extend(examples("four"))
    first, second = stub.MultiInference(request).results
    assert first.classification_result.classifications[0].classes[0].score == 4
    assert second.regression_result.regressions[0].value == 4
    assert second.model_spec.signature_name == "score"
    request.tasks[0].method_name = "other"
    assert "method_name" in refusal(stub.MultiInference, request)
    request.tasks.extend([request.tasks[1]] * 16)
    assert "1 to 16 tasks" in refusal(stub.MultiInference, request)
    del request.tasks[:]
    assert "1 to 16 tasks" in refusal(stub.MultiInference, request)


def test_metadata_is_that_of_the_file(stub, toy):
    from tensorflow.core.protobuf import saved_model_pb2

    request = get_model_metadata_pb2.GetModelMetadataRequest()
    request.model_spec.name = "toy"
    assert "signature_def" in refusal(stub.GetModelMetadata, request)
    request.metadata_field.append("signature_def")
    response = stub.GetModelMetadata(request)
    assert response.model_spec.version.value == 1
    found = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(found)
    file = saved_model_pb2.SavedModel.FromString(
        (toy / "1/saved_model.pb").read_bytes()
    )
    expected = file.meta_graphs[0].signature_def
    for name in served.Toy.SIGNATURES:
        assert found.signature_def[name] == expected[name]


def test_status(channel):
    stub = model_service_pb2_grpc.ModelServiceStub(channel)
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "toy"
    (status,) = stub.GetModelStatus(request).model_version_status
    assert (status.version, status.state) == (1, status.AVAILABLE)
    request.model_spec.version.value = 2
    refusal(stub.GetModelStatus, request, Code.NOT_FOUND)
    request.model_spec.name = "other"
    refusal(stub.GetModelStatus, request, Code.NOT_FOUND)


def tensor(dtype, sizes, **values):
    proto = tensor_pb2.TensorProto(dtype=dtype.as_datatype_enum, **values)
    for size in sizes:
        proto.tensor_shape.dim.add(size=size)
    return proto


def bad_requests():
    x, text = [[1.0]], ["a"]
    yield predict_request("no", text=text), "no signature"
    yield predict_request(), "takes text; got nothing"
    yield predict_request(text=text, more=text), "takes text; got"
    yield predict_request(text=[1]), "must be string, got int32"
    yield predict_request("double", x=np.float64(x)), "must be float32, got float64"
    yield predict_request("double", x=[1.0]), "shape [any, any], got [1]"
    yield predict_request(text=np.array([], object)), "at least one item"
    yield predict_request(text=["a"] * 257), "at most 256"
    yield predict_request(text=tensor(tf.string, [3], string_val=[b"a"] * 5)), "values"
    negative = tensor(tf.string, [-1], string_val=[b"a"])
    yield predict_request(text=negative), "must have a shape"
    huge = tensor(tf.float32, [1 << 20, 1 << 20], float_val=[1])
    yield predict_request("double", x=huge), "fewer values"
    cut = tensor(tf.float32, [1, 2], tensor_content=b"abc")
    yield predict_request("double", x=cut), "values"
    rank = tensor(tf.float32, [1] * 100, float_val=[1])
    yield predict_request("double", x=rank), "fewer values"
    many = tensor(tf.int32, [1, 1 << 18], int_val=[1])
    yield predict_request("look_up", ids=many, is_negative=[True]), "fewer values"
    rows = tensor(tf.int32, [512, 64], int_val=[1])
    yield predict_request("look_up", ids=rows, is_negative=[True]), "at most 256"
    nothing = tensor_pb2.TensorProto()
    yield predict_request(text=nothing), "must be string, got type 0"
    unknown = tensor_pb2.TensorProto(dtype=999)
    yield predict_request(text=unknown), "must be string, got type 999"
    long = tensor(tf.string, [1 << 20], string_val=[b"a" * 1000])
    yield predict_request(text=long), "fewer values"
    bad_id = predict_request("look_up", ids=[[10]], is_negative=[True])
    yield bad_id, "the model refuses"
    label = predict_request(text=text)
    label.model_spec.version_label = "stable"
    yield label, "no labels"


def test_bad_requests_are_refused_in_one_sentence(stub):
    for request, part in bad_requests():
        assert part in refusal(stub.Predict, request)
        assert arrays(stub.Predict(predict_request(text=["a"])))["size"] == [1]


def test_what_is_not_there(stub):
    for request in (
        predict_request(model="../toy", text=["a"]),
        predict_request(model="", text=["a"]),
        predict_request(version=2, text=["a"]),
        predict_request(version=-1, text=["a"]),
    ):
        refusal(stub.Predict, request, Code.NOT_FOUND)


def test_examples_that_are_none(stub):
    request = classification_pb2.ClassificationRequest()
    request.model_spec.name, request.model_spec.signature_name = "toy", "label"
    assert "no examples" in refusal(stub.Classify, request)
    request.input.example_list.examples.add()
    assert "the model refuses" in refusal(stub.Classify, request)
    request.model_spec.signature_name = "double"
    assert "predict, not" in refusal(stub.Classify, request)
    with_context = request.input.example_list_with_context
    with_context.context.CopyFrom(examples("x" * 500_000)[0])
    with_context.examples.extend([bonus(1)] * 100)
    assert "context is too large" in refusal(stub.Classify, request)
    with_context.examples.extend([tf.train.Example()] * 200)
    assert "300 items" in refusal(stub.Classify, request)


def test_large_messages_are_refused(stub):
    refusal(
        stub.Predict, predict_request(text=["x" * 2_000_000]), Code.RESOURCE_EXHAUSTED
    )
    assert arrays(stub.Predict(predict_request(text=["a"])))["size"] == [1]


def test_bytes_that_are_no_message(channel, stub):
    call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
    with pytest.raises(grpc.RpcError):
        call(b"\xff" * 100, timeout=60)
    assert arrays(stub.Predict(predict_request(text=["a"])))["size"] == [1]


def test_models_that_take_too_long(stub, gate):
    request = predict_request("wait", fifo=[gate.path])
    assert "2 seconds" in refusal(stub.Predict, request, Code.DEADLINE_EXCEEDED)


def test_a_full_queue(toy, gate):
    limits = {"max_queue": 1, "max_batch_size": 1}
    with (
        served.serving({"toy": toy}, **limits) as server,
        grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel,
        concurrent.futures.ThreadPoolExecutor(8) as pool,
    ):
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        calls = [
            pool.submit(stub.Predict, predict_request("wait", fifo=[gate.path]))
            for _ in range(4)
        ]
        served.wait_for(lambda: sum(call.done() for call in calls) == 2)
        for call in calls:
            if call.done():
                assert call.exception().code() == Code.UNAVAILABLE
        gate.open()
        assert sum(call.exception() is None for call in calls) == 2
