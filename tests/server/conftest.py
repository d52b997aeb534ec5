"""One export for all tests of the server, and a server of it."""

import pytest

from tests import served


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
