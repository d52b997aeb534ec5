"""TensorFlow Serving's REST API, health, metrics and a page, over HTTP."""

import asyncio
import urllib.parse

import tornado.httpserver
import tornado.web
from google.protobuf import json_format

from server import (
    aside,
    errors,
    examples,
    handler,
    inference,
    json_answers,
    json_tensors,
    metadata,
    web_page,
)

# Of what clients of TensorFlow Serving send; curl calls every body a form.
_CONTENT_TYPES = ("", "application/json", "application/x-www-form-urlencoded")


class Infer(handler.Handler):
    """POST ...:predict, :classify or :regress."""

    async def post(self, name, version, method):
        self.METHOD = method
        kind = self.request.headers.get("Content-Type", "").partition(";")[0]
        if kind.strip().lower() not in _CONTENT_TYPES:
            raise tornado.web.HTTPError(
                415, "Content-Type must be application/json, as the body must be"
            )
        origin = self.request.headers.get("Origin")
        if origin and urllib.parse.urlsplit(origin).netloc != self.request.host:
            raise tornado.web.HTTPError(
                403, f"pages of {errors.quoted(origin)} may not ask this server"
            )
        body = await self.unpacked_body()
        await self.answer(self._infer(name, version, method, body))

    async def _infer(self, name, version, method, body):
        service = self.settings["inference"]
        service.repository.find(name, _number(version))  # before what is in the body
        size = len(body)
        document = await aside.call(json_tensors.parse, body, num_bytes=size)
        target = inference.Target(
            name, _number(version), json_tensors.signature_name(document)
        )
        if method == "predict":

            async def read(signature):
                return await aside.call(
                    json_tensors.inputs, document, signature, num_bytes=size
                )

            answer = await service.predict(target, read)
            return await aside.call(
                _write,
                answer.outputs,
                "instances" in document,
                num_bytes=size,
                num_values=aside.size(answer.outputs),
            )
        rows = await aside.call(
            examples.from_json, document, service.max_items, num_bytes=size
        )
        run = service.classify if method == "classify" else service.regress
        answer, results = await run(target, rows, size)
        return await aside.call(
            json_answers.encode,
            {"results": results},
            num_values=aside.size(answer.outputs),
        )


class Models(handler.Handler):
    """GET /v1/models, the names of all; TensorFlow Serving has no such list."""

    METHOD = "models"

    async def get(self):
        await self.finish({"models": self.settings["inference"].repository.names})


class Status(handler.Handler):
    """GET /v1/models/NAME[/versions/NUMBER]."""

    METHOD = "status"

    async def get(self, name, version):
        await self.answer(self._status(name, version))

    head = get

    async def _status(self, name, version):
        repository = self.settings["inference"].repository
        return _to_dict(metadata.status(repository, name, _number(version)))


class Metadata(handler.Handler):
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


class Health(handler.Handler):
    """GET /healthz."""

    METHOD = None  # Machines ask all the time.

    async def get(self):
        await self.finish({"status": "ok"})

    head = get


class Metrics(handler.Handler):
    """GET /metrics, for Prometheus."""

    METHOD = None

    async def get(self):
        self.set_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        await self.finish(self.settings["monitor"].text())


class Missing(handler.Handler):
    """Everything else."""

    def _miss(self):
        raise tornado.web.HTTPError(404)

    get = head = post = put = delete = patch = options = _miss


def _write(outputs, is_row):
    return json_answers.encode(json_answers.from_outputs(outputs, is_row))


def _number(version):
    return None if version is None else int(version)


def _to_dict(message):
    return json_format.MessageToDict(
        message,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
    )


_MODEL = r"/v1/models/([^/:]+)(?:/versions/([0-9]{1,18}))?"
ROUTES = [
    (web_page.PATH, web_page.WebPage),
    ("/v1/models", Models),
    (_MODEL, Status),
    (f"{_MODEL}/metadata", Metadata),
    (f"{_MODEL}:(predict|classify|regress)", Infer),
    ("/healthz", Health),
    ("(?:/monitoring/prometheus)?/metrics", Metrics),
    (".*", Missing),
]


class _Connections(tornado.httpserver.HTTPServer):
    """Closes what comes beyond `most` connections, before file descriptors run out."""

    most = None

    def handle_stream(self, stream, address):
        if len(self._connections) >= self.most:
            stream.close()
        else:
            super().handle_stream(stream, address)


class Server:
    """The HTTP server.

    Args:
        service: inference.Inference.
        monitor: monitoring.Monitor.
        max_body_bytes: int.
        client_timeout_s: float, for a client to send its headers, and its body, to
            read its answer, and to come back on an open connection.
        max_connections: int, at the same time.
    """

    def __init__(
        self, service, monitor, max_body_bytes, client_timeout_s, max_connections
    ):
        self._requests = set()
        self._application = tornado.web.Application(
            ROUTES,
            inference=service,
            monitor=monitor,
            max_body_bytes=max_body_bytes,
            client_timeout_s=client_timeout_s,
            requests=self._requests,
            is_stopping=False,
            log_function=lambda _: None,  # counted, not logged
        )
        self._server = _Connections(
            self._application,
            idle_connection_timeout=client_timeout_s,
            body_timeout=client_timeout_s,
            max_header_size=16 << 10,
        )
        self._server.most = max_connections

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
