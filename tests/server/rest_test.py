"""REST as TensorFlow Serving speaks it."""

import base64
import http.client
import math

import numpy as np

from tests import served


def test_rows_of_several_outputs_are_objects(predict):
    expected = [{"echo": "ab", "size": 2}, {"echo": "é", "size": 2}]
    for instances in (["ab", "é"], [{"text": "ab"}, {"text": "é"}]):
        assert predict({"instances": instances}) == (200, {"predictions": expected})


def test_columns_of_several_outputs_are_an_object(predict):
    expected = {"echo": ["ab", ""], "size": [2, 0]}
    for inputs in (["ab", ""], {"text": ["ab", ""]}):
        assert predict({"inputs": inputs}) == (200, {"outputs": expected})


def test_an_only_output_is_bare(predict):
    body = {"signature_name": "double", "instances": [[1, 2.5], [-3, 0]]}
    assert predict(body) == (200, {"predictions": [[2, 5], [-6, 0]]})
    body = {"signature_name": "double", "inputs": {"x": [[1.5]]}}
    assert predict(body) == (200, {"outputs": [[3]]})


def test_outputs_without_rows_come_in_columns_only(predict):
    body = {"signature_name": "total", "inputs": [1, 2, 3]}
    assert predict(body) == (200, {"outputs": 6})
    body = {"signature_name": "total", "instances": [1, 2, 3]}
    assert '"inputs"' in served.sentence(predict(body), 400)


def test_several_inputs(predict):
    rows = [{"ids": [1, 2], "is_negative": True}, {"ids": [9, 9], "is_negative": False}]
    status, answer = predict({"signature_name": "look_up", "instances": rows})
    assert (status, [row["sum"] for row in answer["predictions"]]) == (200, [-30, 180])


def test_bytes_go_and_come_as_base64(predict):
    data = bytes(range(256))
    coded = {"b64": base64.b64encode(data).decode()}
    status, answer = predict({"signature_name": "raw", "instances": [coded, "plain"]})
    assert status == 200
    first, second = answer["predictions"]
    # What is not UTF-8 is base64 under any name.
    assert first == {"data": coded, "data_bytes": coded}
    plain = {"b64": base64.b64encode(b"plain").decode()}
    assert second == {"data": "plain", "data_bytes": plain}


def test_zero_bytes_and_empty_texts_are_kept(predict):
    texts = ["a\0b\0", "", "\0"]
    status, answer = predict({"instances": texts})
    assert status == 200
    assert [row["echo"] for row in answer["predictions"]] == texts
    assert [row["size"] for row in answer["predictions"]] == [4, 0, 1]


def test_numbers_that_are_none_pass_through_floats(predict):
    body = b'{"signature_name": "double", "instances": [[NaN, Infinity, -Infinity]]}'
    status, answer = predict(body)
    assert status == 200
    nan, high, low = answer["predictions"][0]
    assert math.isnan(nan) and (high, low) == (math.inf, -math.inf)


def test_the_longest_text_is_left_to_the_model(predict):
    status, answer = predict({"instances": ["x" * 131072]})
    assert (status, answer["predictions"][0]["size"]) == (200, 131072)


def test_large_answers(predict):
    rows = np.random.default_rng(0).normal(size=(200, 500)).astype(np.float32)
    body = {"signature_name": "double", "instances": rows.tolist()}
    status, answer = predict(body)
    assert status == 200
    np.testing.assert_array_equal(np.float32(answer["predictions"]), 2 * rows)


def test_classify_and_regress(predict):
    rows = [{"text": "four"}, {"text": "seven77"}]
    body = {"signature_name": "label", "examples": rows, "context": {"bonus": 1}}
    expected = [[["long", 5], ["short", -4]], [["long", 8], ["short", -7]]]
    assert predict(body, "classify") == (200, {"results": expected})
    body = {"signature_name": "score", "examples": rows}
    assert predict(body, "regress") == (200, {"results": [4, 7]})


def test_status_and_metadata(get):
    entry = {"version": "1", "state": "AVAILABLE"}
    entry["status"] = {"error_code": "OK", "error_message": ""}
    for path in ("/v1/models/toy", "/v1/models/toy/versions/1"):
        assert get(path) == (200, {"model_version_status": [entry]})
    status, answer = get("/v1/models/toy/versions/1/metadata")
    assert status == 200
    assert answer["model_spec"] == {
        "name": "toy",
        "signature_name": "",
        "version": "1",
    }
    signatures = answer["metadata"]["signature_def"]["signature_def"]
    assert set(served.Toy.SIGNATURES) <= set(signatures)
    double = signatures["double"]
    assert double["method_name"] == "tensorflow/serving/predict"
    assert double["inputs"]["x"]["dtype"] == "DT_FLOAT"
    sizes = [dim["size"] for dim in double["inputs"]["x"]["tensor_shape"]["dim"]]
    assert sizes == ["-1", "-1"]


def test_the_list_of_models(get):
    assert get("/v1/models") == (200, {"models": ["toy"]})


def test_head_is_get_without_its_body(server):
    for path in ("/healthz", "/v1/models/toy"):
        found = []
        for method in ("GET", "HEAD"):
            connection = http.client.HTTPConnection("127.0.0.1", server.rest_port)
            connection.request(method, path)
            response = connection.getresponse()
            length = int(response.headers["Content-Length"])
            found.append((response.status, length, len(response.read())))
            connection.close()
        (status, length, sent), head = found
        assert (status, sent) == (200, length)
        assert head == (200, length, 0)


def test_health_and_metrics(get, predict):
    assert get("/healthz") == (200, {"status": "ok"})
    predict({"instances": ["a"]})
    for path in ("/metrics", "/monitoring/prometheus/metrics"):
        status, text = get(path)
        assert status == 200
        assert b'code="200",method="predict",protocol="rest"' in text
