"""Models for all tests of the server, servers of them, and a browser."""

import pytest

from tests import browsing, page_models, served


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    """Folder of a model with version 1."""
    folder = tmp_path_factory.mktemp("models") / "toy"
    served.export_toy(folder / "1")
    return folder


@pytest.fixture
def gate(tmp_path):
    with served.Gate(tmp_path) as gate:
        yield gate


@pytest.fixture(scope="module")
def server(toy):
    limits = {"client_timeout_s": 1.0, "timeout_s": 2.0, "max_body_bytes": 3 << 20}
    with served.serving({"toy": toy}, **limits) as server:
        yield server


@pytest.fixture
def predict(server):
    """function (body, method) → (status, answer)."""
    return lambda body, method="predict": served.predict(
        server.rest_port, body, method=method
    )


@pytest.fixture
def get(server):
    return lambda path: served.request(server.rest_port, "GET", path)


@pytest.fixture(scope="session")
def page_server(tmp_path_factory):
    models = page_models.export(tmp_path_factory.mktemp("models"))
    limit = page_models.MAX_BODY_BYTES
    with served.serving(models, max_body_bytes=limit) as server:
        yield server


@pytest.fixture(scope="session")
def browser():
    with browsing.browser() as driver:
        yield driver


@pytest.fixture
def bare_page(browser, page_server):
    """The page, of which nothing is expected."""
    return browsing.Page(browser, page_server.rest_port)


@pytest.fixture
def page(bare_page):
    """The page; when a test ends, nothing is wrong and nothing came from elsewhere."""
    yield bare_page
    bare_page.check()
