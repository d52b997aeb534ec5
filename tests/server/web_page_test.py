"""The files of the page, over HTTP; page_*_test.py try them in a browser."""

import http.client

from server import web_page
from tests import served


def test_its_files_and_nothing_else(get, server):
    files = web_page.files()
    assert set(files) >= {"index.html", "page.js", "page.css", "icon.svg"}
    for name, content in files.items():
        assert get(f"/{name}") == (200, content)
    assert get("/") == get("/index.html")
    for path in ("/none.js", "/page/page.js", "/web_page.py", "/..%2frest.py"):
        assert served.sentence(get(path), 404)
    assert served.sentence(served.request(server.rest_port, "POST", "/", {}), 405)


def test_they_name_nothing_elsewhere_and_make_no_markup():
    for content in web_page.files().values():
        text = content.decode().replace("http://www.w3.org/2000/svg", "")
        for part in ("://", '"//', "@import", "innerHTML", "eval(", " style="):
            assert part not in text


def test_headers(server):
    kinds = {"/": "text/html", "/page.js": "text/javascript", "/page.css": "text/css"}
    for path, kind in kinds.items():
        connection = http.client.HTTPConnection("127.0.0.1", server.rest_port)
        connection.request("GET", path)
        headers = connection.getresponse().headers
        connection.close()
        assert headers["Content-Type"] == f"{kind}; charset=utf-8"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
