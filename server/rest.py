"""TensorFlow Serving's REST API, health and metrics, over HTTP."""

import asyncio
import http
import json
import time

import tornado.httpserver
import tornado.iostream
import tornado.web
from absl import logging
from google.protobuf import json_format

from server import errors, examples, inference, json_tensors, metadata

# Larger bodies than are allowed are read up to here and thrown away, so that the client
# sees the answer; at still larger ones the connection is closed after it.
_MAX_DISCARDED = 64 << 20
_LARGE = 1 << 15  # bytes of a body, values of an answer: about a millisecond
# Of what clients of TensorFlow Serving send; curl calls every body a form.
_CONTENT_TYPES = ("", "application/json", "application/x-www-form-urlencoded")


@tornado.web.stream_request_body
class Handler(tornado.web.RequestHandler):
    """Answers errors as {"error": sentence}, limits the body, counts the request.

    Settings of the application: inference, monitor, max_body_bytes, is_stopping and
    requests, a set that holds the handlers of whole requests until they are answered.
    """

    METHOD = "other"  # for the counts; None is not counted

    def set_default_headers(self):
        self.set_header("Content-Type", "application/json")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.clear_header("Server")

    def initialize(self):
        self._chunks, self._num_bytes, self._task = [], 0, None
        self._started = time.perf_counter()

    def prepare(self):
        allowed = self.settings["max_body_bytes"]
        # curl asks before it sends a large body; others just send it.
        if "Expect" not in self.request.headers:
            allowed = max(allowed, _MAX_DISCARDED)
        self.request.connection.set_max_body_size(allowed)
        length = self.request.headers.get("Content-Length", "")
        if length.isdecimal() and (len(length) > 18 or int(length) > allowed):
            self._refuse_body()

    def data_received(self, chunk):
        self._num_bytes += len(chunk)
        if self._num_bytes <= self.settings["max_body_bytes"]:
            self._chunks.append(chunk)

    def body(self):
        """bytes, the whole body; raises tornado.web.HTTPError if it is too large."""
        if self._num_bytes > self.settings["max_body_bytes"]:
            self._refuse_body()
        return b"".join(self._chunks)

    def _refuse_body(self):
        limit = self.settings["max_body_bytes"]
        raise tornado.web.HTTPError(
            413, f"the body has more than {limit} bytes; send several requests"
        )

    async def answer(self, work):
        """Sends what a coroutine gives, bytes or an object of JSON, or its error.

        Args:
            work: coroutine; may raise errors.RequestError. It is cancelled when the
                client goes away.
        """
        self.settings["requests"].add(self)
        self._started = time.perf_counter()
        self._task = asyncio.ensure_future(work)
        try:
            await self.finish(await self._task)
        except errors.RequestError as error:
            raise tornado.web.HTTPError(
                errors.HTTP_STATUS[error.code], error.sentence
            ) from None
        except (asyncio.CancelledError, tornado.iostream.StreamClosedError):
            self.set_status(499, "Client Closed Request")  # for the counts
        finally:
            self.settings["requests"].discard(self)

    def on_connection_close(self):
        super().on_connection_close()
        if self._task:
            self._task.cancel()

    def write_error(self, status_code, **kwargs):
        error = kwargs.get("exc_info", (None, None))[1]
        sentence = getattr(error, "log_message", None) or {
            404: f"there is nothing at {errors.quoted(self.request.path)}",
            405: f"{self.request.method} is not allowed here",
        }.get(status_code, http.HTTPStatus(status_code).phrase)
        self.finish(json.dumps({"error": sentence}))

    def log_exception(self, kind, error, trace):
        if not isinstance(error, tornado.web.HTTPError):
            logging.error("request failed", exc_info=(kind, error, trace))

    def finish(self, chunk=None):
        if self.settings["is_stopping"]:
            self.set_header("Connection", "close")
        return super().finish(chunk)

    def on_finish(self):
        if self.METHOD:
            seconds = time.perf_counter() - self._started
            status = str(self.get_status())
            self.settings["monitor"].answered("rest", self.METHOD, status, seconds)


class Infer(Handler):
    """POST ...:predict, :classify or :regress."""

    async def post(self, name, version, method):
        self.METHOD = method
        kind = self.request.headers.get("Content-Type", "").partition(";")[0]
        if kind.strip().lower() not in _CONTENT_TYPES:
            raise tornado.web.HTTPError(
                415, "Content-Type must be application/json, as the body must be"
            )
        await self.answer(self._infer(name, version, method, self.body()))

    async def _infer(self, name, version, method, body):
        service = self.settings["inference"]
        service.repository.find(name, _number(version))  # before what is in the body
        document = await _aside(len(body), json_tensors.parse, body)
        target = inference.Target(
            name, _number(version), json_tensors.signature_name(document)
        )
        if method == "predict":

            async def read(signature):
                return await _aside(len(body), json_tensors.inputs, document, signature)

            answer = await service.predict(target, read)
            size = sum(array.size for array in answer.outputs.values())
            return await _aside(size, _write, answer.outputs, "instances" in document)
        rows = await _aside(len(body), examples.from_json, document, service.max_items)
        run = service.classify if method == "classify" else service.regress
        _, results = await run(target, rows)
        return {"results": results}


class Status(Handler):
    """GET /v1/models/NAME[/versions/NUMBER]."""

    METHOD = "status"

    async def get(self, name, version):
        await self.answer(self._status(name, version))

    async def _status(self, name, version):
        repository = self.settings["inference"].repository
        return _to_dict(metadata.status(repository, name, _number(version)))


class Metadata(Handler):
    """GET /v1/models/NAME[/versions/NUMBER]/metadata."""

    METHOD = "metadata"

    async def get(self, name, version):
        await self.answer(self._metadata(name, version))

    async def _metadata(self, name, version):
        repository = self.settings["inference"].repository
        found = repository.find(name, _number(version))
        spec = {"name": name, "signature_name": "", "version": str(found.number)}
        signatures = _to_dict(metadata.signature_map(found))
        return {"model_spec": spec, "metadata": {"signature_def": signatures}}


class Health(Handler):
    """GET /healthz."""

    METHOD = None  # Machines ask all the time.

    async def get(self):
        await self.finish({"status": "ok"})


class Metrics(Handler):
    """GET /metrics, for Prometheus."""

    METHOD = None

    async def get(self):
        self.set_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        await self.finish(self.settings["monitor"].text())


class Missing(Handler):
    """Everything else."""

    def _miss(self):
        raise tornado.web.HTTPError(404)

    get = head = post = put = delete = patch = options = _miss


async def _aside(size, function, *arguments):
    """Calls a function, in a thread if it takes so long that others would wait."""
    if size > _LARGE:
        return await asyncio.to_thread(function, *arguments)
    return function(*arguments)


def _write(outputs, is_row):
    return json_tensors.encode(json_tensors.from_outputs(outputs, is_row))


def _number(version):
    return None if version is None else int(version)


def _to_dict(message):
    return json_format.MessageToDict(
        message,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
    )


_MODEL = r"/v1/models/([^/:]+)(?:/versions/([0-9]{1,18}))?"
# What is served; a page is a line of its own.
ROUTES = [
    (_MODEL, Status),
    (f"{_MODEL}/metadata", Metadata),
    (f"{_MODEL}:(predict|classify|regress)", Infer),
    ("/healthz", Health),
    ("(?:/monitoring/prometheus)?/metrics", Metrics),
    (".*", Missing),
]


class Server:
    """The HTTP server.

    Args:
        service: inference.Inference.
        monitor: monitoring.Monitor.
        max_body_bytes: int.
        client_timeout_s: float, for a client to send its headers, and its body, and to
            come back on an open connection.
    """

    def __init__(self, service, monitor, max_body_bytes, client_timeout_s):
        self._requests = set()
        self._application = tornado.web.Application(
            ROUTES,
            inference=service,
            monitor=monitor,
            max_body_bytes=max_body_bytes,
            requests=self._requests,
            is_stopping=False,
            log_function=lambda _: None,  # counted, not logged
        )
        self._server = tornado.httpserver.HTTPServer(
            self._application,
            idle_connection_timeout=client_timeout_s,
            body_timeout=client_timeout_s,
            max_header_size=16 << 10,
        )

    def listen(self, bound):
        """Starts to accept connections at a socket that listens."""
        bound.setblocking(False)
        self._server.add_sockets([bound])

    async def stop(self, grace_s):
        """Accepts no more, and answers what came.

        Args:
            grace_s: float, at most so long.
        Returns:
            bool, whether all is answered.
        """
        self._server.stop()
        self._application.settings["is_stopping"] = True
        loop = asyncio.get_running_loop()
        end = loop.time() + grace_s
        quiet_since = loop.time()
        # What clients of open connections have just sent is not read yet.
        while loop.time() < min(end, quiet_since + 0.2):
            await asyncio.sleep(0.02)
            if self._requests:
                quiet_since = loop.time()
        is_done = not self._requests
        await self._server.close_all_connections()
        return is_done
