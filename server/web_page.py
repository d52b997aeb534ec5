"""A page for people to try the models, which asks the REST API from their browser.

Its files are in page/: no framework, nothing from elsewhere, nothing to build.
"""

import functools
import pathlib

import tornado.web

from server import handler

PATH = r"/([a-z_]+\.[a-z]+)?"
_FOLDER = pathlib.Path(__file__).with_name("page")
_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
# Nothing but its own files and this server's answers; no markup or code out of strings,
# for people and models write those.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "connect-src 'self'",
        "img-src 'self'",
        "script-src 'self'",
        "style-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)


@functools.cache
def files():
    """dict of name → bytes of what the page consists of."""
    paths = [path for end in _TYPES for path in sorted(_FOLDER.glob(f"[a-z]*.{end}"))]
    return {path.name: path.read_bytes() for path in paths}


class WebPage(handler.Handler):
    """GET / and what it refers to."""

    METHOD = "page"

    async def get(self, name):
        name = name or "index.html"
        if name not in files():
            raise tornado.web.HTTPError(404)
        self.set_header("Content-Type", _TYPES[name.rpartition(".")[2]])
        self.set_header("Cache-Control", "no-cache")  # It may change with the server.
        self.set_header("Content-Security-Policy", _POLICY)
        self.set_header("Referrer-Policy", "no-referrer")
        await self.finish(files()[name])
