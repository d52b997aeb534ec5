"""What hostile and slow clients send is refused, and the server stays up."""

import concurrent.futures
import gzip
import json
import socket
import time

import pytest

from tests import served

POST = b"POST /v1/models/toy:predict HTTP/1.1\r\nHost: x\r\n"
BAD_BODIES = {
    "nothing": (b"", "not JSON"),
    "malformed": (b'{"instances": ["a"', "not JSON"),
    "not_utf8": (b'{"instances": ["\xff"]}', "not UTF-8 at byte 16"),
    "utf16": ('{"instances": ["a"]}'.encode("utf-16"), "not UTF-8"),
    "compressed": (b"\x1f\x8b\x08\x00", "not UTF-8"),
    "a_list": (b"[1]", "must be an object"),
    "neither": (b"{}", 'either "instances" or "inputs"'),
    "both": (b'{"instances": ["a"], "inputs": ["a"]}', "either"),
    "deep": (b'{"instances": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "deep"),
    "deeper_than_wanted": (b'{"instances": [["a"]]}', "deep"),
    "huge_number": (b'{"instances": [' + b"9" * 10_000 + b"]}", "too many digits"),
    "twice": (b'{"instances": ["a"], "instances": ["b"]}', "twice"),
    "twice_below": (b'{"instances": [{"text": "a", "text": "b"}]}', "twice"),
    "surrogate": (rb'{"instances": ["a\ud800"]}', "surrogate"),
    "surrogate_name": (rb'{"instances": [{"\udfff": "a"}]}', "takes text"),
    "no_items": (b'{"instances": []}', "at least one item"),
    "no_rows": (b'{"inputs": []}', "at least one item"),
    "not_a_list": (b'{"instances": "a"}', "list"),
    "null": (b'{"instances": [null]}', "must be a string"),
    "number": (b'{"instances": ["a", 1]}', "must be a string"),
    "bad_base64": (b'{"instances": [{"b64": "?"}]}', "base64"),
    "cut_base64": (b'{"instances": [{"b64": "YWJjZ"}]}', "base64"),
    "base64_number": (b'{"instances": [{"b64": 1}]}', "base64"),
    "unknown_input": (b'{"instances": [{"texts": "a"}]}', "takes text; got"),
    "extra_input": (b'{"inputs": {"text": ["a"], "more": ["b"]}}', "takes text; got"),
    "missing_input": (b'{"inputs": {}}', "takes text; got nothing"),
    "mixed_rows": (b'{"instances": [{"text": "a"}, "b"]}', "objects"),
    "object_in_rows": (b'{"instances": ["b", {"text": "a"}]}', "must be a string"),
    "signature_type": (b'{"signature_name": 1, "instances": ["a"]}', "signature_name"),
    "signature": (b'{"signature_name": "no", "instances": ["a"]}', "serving_default"),
    "no_signature": (
        b'{"signature_name": "__saved_model_init_op", "instances": ["a"]}',
        "no signature",
    ),
    "unnamed": (b'{"signature_name": "look_up", "instances": [[1]]}', "name the inp"),
    "too_many": (json.dumps({"instances": ["a"] * 10_000}).encode(), "at most 256"),
    "scalar": (b'{"signature_name": "double", "inputs": 1.0}', "shape [any, any]"),
    "ragged": (b'{"signature_name": "double", "instances": [[1], [1, 2]]}', "ragged"),
    "half_list": (b'{"signature_name": "double", "instances": [[1], 2]}', "ragged"),
    "bool_float": (b'{"signature_name": "double", "instances": [[true]]}', "float32"),
    "text_float": (b'{"signature_name": "double", "instances": [["1"]]}', "float32"),
    "large_float": (b'{"signature_name": "double", "instances": [[1e300]]}', "range"),
    "large_int": (
        b'{"signature_name": "double", "instances": [[1' + b"0" * 400 + b"]]}",
        "range",
    ),
}


@pytest.mark.parametrize("name", sorted(BAD_BODIES))
def test_a_bad_body_is_refused_in_one_sentence(predict, name):
    body, part = BAD_BODIES[name]
    assert part in served.sentence(predict(body), 400)
    assert predict({"instances": ["still there"]})[0] == 200


IDS = [("2147483648", "between"), ("1.0", "int32"), ("NaN", "int32"), ("true", "int32")]


@pytest.mark.parametrize(("value", "part"), [*IDS, ("10", "the model refuses")])
def test_bad_ids_are_refused(predict, value, part):
    row = f'{{"ids": [1, {value}], "is_negative": false}}'
    body = f'{{"signature_name": "look_up", "instances": [{row}]}}'.encode()
    assert part in served.sentence(predict(body), 400)


def test_no_depth_of_nesting_is_too_much(predict):
    for depth in (10, 100, *range(800, 1000, 8), 10_000):
        for opening, end in (('{"a": ', "}"), ("[", "]")):
            value = opening * depth + "1" + end * depth
            found = predict(f'{{"instances": [{value}]}}'.encode())
            assert served.sentence(found, 400)


def test_many_keys_take_no_more_than_their_time(predict):
    keys = [f'"{number}": 1' for number in range(200_000)]
    began = time.monotonic()
    found = predict(f"{{{', '.join([*keys, keys[-1]])}}}".encode())
    assert "twice" in served.sentence(found, 400)
    found = predict(f'{{"inputs": {{{", ".join(keys)}}}}}'.encode())
    assert "takes text; got" in served.sentence(found, 400)
    context = {key[1:-4]: 1 for key in keys[:50_000]}
    body = {"examples": [{"text": "a"}] * 250, "context": context}
    assert "too large" in served.sentence(predict(body, "classify"), 400)
    assert time.monotonic() - began < 20


BAD_EXAMPLES = {
    "many": ({"examples": [{}] * 10_000}, "at most 256"),
    "none": ({"examples": []}, "at least one"),
    "no_list": ({"examples": {"text": "a"}}, "at least one"),
    "no_object": ({"examples": ["a"]}, "objects"),
    "context": ({"examples": [{"text": "a"}], "context": 1}, "objects"),
    "in_both": ({"examples": [{"text": "a"}], "context": {"text": "b"}}, "both"),
    "missing": ({"examples": [{"bonus": 1}]}, "the model refuses"),
    "wrong_type": ({"examples": [{"text": 1}]}, "the model refuses"),
    "mixed": ({"examples": [{"text": ["a", 1]}]}, "strings, whole numbers"),
    "null": ({"examples": [{"text": None}]}, "strings, whole numbers"),
    "large": ({"examples": [{"text": "a", "bonus": 2**63}]}, "64-bit"),
}


@pytest.mark.parametrize("name", sorted(BAD_EXAMPLES))
def test_bad_examples_are_refused(predict, name):
    body, part = BAD_EXAMPLES[name]
    found = predict({"signature_name": "label", **body}, "classify")
    assert part in served.sentence(found, 400)


def test_a_signature_serves_its_own_method_only(predict):
    body = {"examples": [{"text": "a"}]}
    assert "predict, not" in served.sentence(predict(body, "classify"), 400)
    body["signature_name"] = "label"
    assert "classify, not" in served.sentence(predict(body, "regress"), 400)


@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/v1/models/",
        "/v1/models/other",
        "/v1/models/..%2f..%2fetc%2fpasswd",
        "/v1/models/../../etc/passwd",
        "/v1/models/toy/versions/2",
        "/v1/models/toy/versions/-1",
        "/v1/models/toy/versions/99999999999999999999",
        "/v1/models/toy/labels/stable",
        "/v1/models/toy%00/metadata",
        "/metricsx",
    ],
)
def test_what_is_not_there(get, server, path):
    assert served.sentence(get(path), 404)
    found = served.request(server.rest_port, "POST", f"{path}:predict", {})
    assert served.sentence(found, 404)


def test_names_of_bytes_are_refused(get):
    assert served.sentence(get("/v1/models/%ff"), 400)


def test_wrong_methods_and_types(server):
    def send(method, path, body=None, **headers):
        return served.request(server.rest_port, method, path, body, headers.items())

    path, body = "/v1/models/toy:predict", {"instances": ["a"]}
    for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert method in served.sentence(send(method, path, body), 405)
    assert served.sentence(send("BREW", path), 405)
    assert served.sentence(send("POST", "/v1/models/toy", body), 405)
    assert served.sentence(send("POST", "/healthz", b"x" * 100_000), 405)
    kinds = ("text/html", "multipart/form-data; boundary=x", "application/grpc")
    for kind in kinds:
        found = send("POST", path, body, **{"Content-Type": kind})
        assert "application/json" in served.sentence(found, 415)
    for kind in ("application/json; charset=utf-8", "Application/JSON"):
        assert send("POST", path, body, **{"Content-Type": kind})[0] == 200


@pytest.mark.parametrize("num_bytes", [(3 << 20) + 1, 20 << 20])
def test_a_large_body_is_refused_and_read(predict, num_bytes):
    found = predict(b'{"instances": ["' + b"x" * num_bytes)
    assert "3145728 bytes" in served.sentence(found, 413)


def test_little_that_would_ask_much_of_a_model(predict):
    found = predict({"instances": ["x" * 1_000_000]})
    assert "has 1000000 bytes, at most 131072" in served.sentence(found, 400)
    # Padded to one another, these would take 256 times 100 kB.
    words = {"signature_name": "words", "instances": ["a " * 50_000] + [""] * 255}
    found = predict(words)
    assert "padded to the longest of 100000 bytes" in served.sentence(found, 400)
    assert predict(words | {"instances": ["a " * 500] + [""] * 255})[0] == 200


def test_what_is_compressed(server):
    def ask(body, encoding):
        path, headers = "/v1/models/toy:predict", {"Content-Encoding": encoding}
        return served.request(server.rest_port, "POST", path, body, headers.items())

    plain = json.dumps({"instances": ["a"]}).encode()
    packed = gzip.compress(plain)
    assert ask(packed, "gzip") == ask(plain, "identity")
    assert ask(packed, "gzip")[0] == 200
    for encoding in ("br", "x", "gzip, gzip"):
        assert "send the body as it is" in served.sentence(ask(packed, encoding), 415)
    for damaged in (plain, packed[:-9], packed[:12] + b"x" * 20):
        assert "is not gzip" in served.sentence(ask(damaged, "gzip"), 400)
    bomb = gzip.compress(b"[" * (1 << 24))  # 16 kB
    assert "bytes; send several" in served.sentence(ask(bomb, "gzip"), 413)


def test_pages_of_others_may_not_ask(server):
    port = server.rest_port

    def ask(origin):
        headers = {"Origin": origin, "Content-Type": "application/json"}
        body = {"instances": ["a"]}
        path = "/v1/models/toy:predict"
        return served.request(port, "POST", path, body, headers.items())

    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{port + 1}"):
        assert "may not ask" in served.sentence(ask(origin), 403)
    assert ask(f"http://127.0.0.1:{port}")[0] == 200


def test_clients_that_do_not_read_are_dropped(toy):
    body = json.dumps({"instances": ["x" * 100_000] * 30}).encode()
    request = POST + b"Content-Length: %d\r\n\r\n" % len(body) + body
    began = time.monotonic()
    with served.serving({"toy": toy}, client_timeout_s=1.0, grace_s=30.0) as server:
        clients = []
        for _ in range(3):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", server.rest_port))
            client.sendall(request)
            clients.append(client)
        requests = server._http._requests
        runs = "serving_batch_items_count"
        served.wait_for(lambda: served.metric(server.rest_port, runs) == 3)
        served.wait_for(lambda: not requests)
        for client in clients:
            client.close()
    assert time.monotonic() - began < 25  # and the end did not wait for them


def test_no_more_connections_than_allowed(toy):
    with served.serving({"toy": toy}, max_connections=2) as server:
        first, second = connect(server), connect(server)
        get = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        for client in (first, second):
            client.sendall(get)
            assert client.recv(1000).startswith(b"HTTP/1.1 200")
        with connect(server) as third:
            assert third.recv(1000) == b""
        first.close()
        second.close()

        def is_open():
            try:
                return served.request(server.rest_port, "GET", "/healthz")[0] == 200
            except OSError:
                return False

        served.wait_for(is_open)


def connect(server):
    return socket.create_connection(("127.0.0.1", server.rest_port), timeout=20)


def test_a_chunked_body_is_limited_too(server, predict):
    with connect(server) as client:
        client.sendall(POST + b"Transfer-Encoding: chunked\r\n\r\n")
        chunk = b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"
        client.sendall(4 * chunk + b"0\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 413 ")
    assert predict({"instances": ["a"]})[0] == 200


@pytest.mark.parametrize(
    "headers",
    [b"Content-Length: 1000000000000000000000", b"Content-Length: 100000000"]
    + [b"Content-Length: 4000000\r\nExpect: 100-continue"],
)
def test_a_huge_body_is_refused_before_it_comes(server, headers):
    with connect(server) as client:
        client.sendall(POST + headers + b"\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    "start",
    [
        b"",
        POST,
        POST + b"Content-Length: 9\r\n\r\n{",
    ],
    ids=["no_headers", "half_headers", "half_body"],
)
def test_a_slow_client_is_cut_off_and_blocks_nobody(server, predict, start):
    with connect(server) as client:
        client.sendall(start)
        began = time.monotonic()
        assert predict({"instances": ["a"]})[0] == 200
        assert client.recv(1000) == b""
        assert 0.5 < time.monotonic() - began < 10


@pytest.mark.parametrize(
    "start",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: \xb2\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 100_000 + b"\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=["tls", "negative_length", "odd_length", "long_header", "http2"],
)
def test_what_is_not_http_is_cut_off(server, predict, start):
    with connect(server) as client:
        client.sendall(start)
        try:
            answer = client.recv(1000)
        except ConnectionResetError:
            answer = b""
        assert answer.startswith(b"HTTP/1.1 400") or not answer
    assert predict({"instances": ["a"]})[0] == 200


def test_a_model_that_takes_too_long(predict, gate):
    body = {"signature_name": "wait", "instances": [gate.path]}
    assert "2 seconds" in served.sentence(predict(body), 504)
    gate.open()
    assert predict({"instances": ["a"]})[0] == 200


def test_a_full_queue_refuses_and_a_client_that_goes_leaves_it(toy, gate):
    body = {"signature_name": "wait", "instances": [gate.path]}
    with (
        served.serving({"toy": toy}, max_queue=2, max_batch_size=1) as server,
        concurrent.futures.ThreadPoolExecutor(8) as pool,
    ):
        port = server.rest_port

        def wait_for(number, name="serving_waiting_requests"):
            served.wait_for(lambda: served.metric(port, name) == number)

        slow = pool.submit(served.predict, port, body)
        wait_for(1, "serving_batch_items_count")
        kept = pool.submit(served.predict, port, {"instances": ["kept"]})
        wait_for(1)
        with connect(server) as client:
            client.sendall(POST + b'Content-Length: 20\r\n\r\n{"instances": ["a"]}')
            wait_for(2)
            found = served.predict(port, {"instances": ["late"]})
            assert "try again" in served.sentence(found, 503)
        wait_for(1)
        gate.open()
        assert slow.result()[0] == 200
        assert kept.result()[1]["predictions"][0]["echo"] == "kept"
