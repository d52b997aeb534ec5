"""Where the reference data lies, and the --slow switch."""

import pathlib

import pytest

TESTS = pathlib.Path(__file__).parent
# A developer's checkout may have a folder of larger reference data beside it.
SHARED = TESTS.parent.parent / "shared"


def pytest_addoption(parser):
    parser.addoption(
        "--slow", action="store_true", help="also run the tests marked slow"
    )


def pytest_collection_modifyitems(config, items):
    if config.getoption("--slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="slow; run with --slow"))


@pytest.fixture(scope="session")
def golden():
    """Folder of outputs of the original BERT code and of transformers."""
    return TESTS / "golden"


@pytest.fixture(scope="session")
def shared():
    """Folder of larger reference data that the repository does not carry."""
    if not SHARED.is_dir():
        pytest.skip(f"the larger reference data is not at {SHARED}")
    return SHARED


@pytest.fixture(params=["on CPUs", "on other devices"])
def on_all_devices(request, monkeypatch):
    """What models compute on CPUs only in one way, in that way and in the other one."""
    from modeling import layers

    monkeypatch.setattr(layers, "makes_loops", lambda: request.param == "on CPUs")
