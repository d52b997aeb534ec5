"""What every answer over HTTP has in common: limits, errors as sentences, counts."""

import asyncio
import gzip
import http
import io
import json
import time
import zlib

import tornado.iostream
import tornado.web
from absl import logging

from server import errors

# Larger bodies than are allowed are read up to here and thrown away, so that the client
# sees the answer; at still larger ones the connection is closed after it.
_MAX_DISCARDED = 64 << 20


@tornado.web.stream_request_body
class Handler(tornado.web.RequestHandler):
    """Answers errors as {"error": sentence}, limits the body, counts the request.

    Settings of the application: inference, monitor, max_body_bytes, client_timeout_s,
    is_stopping and requests, a set that holds the handlers of whole requests until they
    are answered.
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

    async def unpacked_body(self):
        """As `body`; unpacked if its Content-Encoding is gzip."""
        encoding = self.request.headers.get("Content-Encoding", "identity").lower()
        body = self.body()
        if encoding == "identity":
            return body
        if encoding != "gzip":
            raise tornado.web.HTTPError(
                415,
                f"Content-Encoding {errors.quoted(encoding)} is not read; send the "
                "body as it is, or by gzip",
            )
        limit = self.settings["max_body_bytes"]
        try:
            unpacked = await asyncio.to_thread(_unpack, body, limit + 1)
        except (OSError, EOFError, zlib.error):
            raise tornado.web.HTTPError(
                400, "the body is not gzip, which its Content-Encoding says"
            ) from None
        if len(unpacked) > limit:
            self._refuse_body()
        return unpacked

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
        stream = self.request.connection.stream
        try:
            answer = await self._task
            async with asyncio.timeout(self.settings["client_timeout_s"]):
                await self.finish(answer)
        except TimeoutError:  # The client does not read.
            stream.close()
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
        sentence = {
            404: f"there is nothing at {errors.quoted(self.request.path)}",
            405: f"{self.request.method} is not allowed here",
        }.get(status_code, http.HTTPStatus(status_code).phrase)
        if getattr(error, "log_message", None):  # It is a format, even of no arguments.
            sentence = error.log_message % error.args
        if status_code == 405:
            self.set_header("Allow", ", ".join(self._allowed()))
        self.finish(json.dumps({"error": sentence}))

    def _allowed(self):
        """The methods that this place has, which others are refused for."""
        base = tornado.web.RequestHandler
        return [
            name
            for name in self.SUPPORTED_METHODS
            if getattr(type(self), name.lower()) is not getattr(base, name.lower())
        ]

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


def _unpack(content, size):
    """The first bytes, `size` at most, of what gzip made `content` of."""
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        return file.read(size)
