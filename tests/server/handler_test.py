"""What a handler does with whatever a subclass of it answers."""

import tornado.httpserver
import tornado.testing
import tornado.web

from server import errors, handler, monitoring


class _Echo(handler.Handler):
    METHOD = "echo"

    async def post(self, what):
        await self.answer(self._work(what, self.body()))

    async def _work(self, what, body):
        if what == "percent":
            raise errors.invalid('"100%" and "%s"')
        if what == "arguments":
            raise tornado.web.HTTPError(400, "%d of %s%%", 1, "100%")
        if what == "refused":
            raise errors.busy("not now")
        if what == "broken":
            raise RuntimeError("a secret")
        return {"size": len(body)}


class HandlerTest(tornado.testing.AsyncHTTPTestCase):
    def get_app(self):
        self.monitor, self.requests = monitoring.Monitor(), set()
        return tornado.web.Application(
            [("/(.*)", _Echo)],
            monitor=self.monitor,
            max_body_bytes=10,
            client_timeout_s=5.0,
            requests=self.requests,
            is_stopping=False,
            log_function=lambda _: None,
        )

    def post(self, path, body=b"abc"):
        response = self.fetch(path, method="POST", body=body)
        return response.code, tornado.escape.json_decode(response.body)

    def test_percent_signs_come_as_they_are(self):
        assert self.post("/percent") == (400, {"error": '"100%" and "%s"'})
        assert self.post("/arguments") == (400, {"error": "1 of 100%%"})

    def test_answers_and_errors_are_json_and_counted(self):
        assert self.post("/good") == (200, {"size": 3})
        assert self.post("/refused") == (503, {"error": "not now"})
        assert self.post("/broken") == (500, {"error": "Internal Server Error"})
        assert "10 bytes" in self.post("/good", b"x" * 11)[1]["error"]
        assert self.post("/good", b"x" * 10)[0] == 200
        refused = self.fetch("/good")
        assert (refused.code, refused.headers["Allow"]) == (405, "POST")
        assert self.requests == set()
        assert sorted(self.monitor.summary().split(", ")) == [
            "200 2",
            "405 1",
            "413 1",
            "500 1",
            "503 1",
        ]
