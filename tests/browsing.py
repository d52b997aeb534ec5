"""A headless Chromium, and the page that serve.py serves in it."""

import contextlib
import json
import os
import shutil

import pytest

from tests import served

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextlib.contextmanager
def browser():
    """Starts Chromium, which can reach this machine only; gives selenium's driver."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    driver = shutil.which("chromedriver")
    if not (program and driver):
        pytest.skip("there is no Chromium with its chromedriver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in (
        "--headless=new",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        "--window-size=1000,900",
        *(["--no-sandbox"] if os.geteuid() == 0 else []),  # as in containers
    ):
        options.add_argument(argument)
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    service = webdriver.ChromeService(executable_path=driver)
    with webdriver.Chrome(options=options, service=service) as chrome:
        yield chrome


class Page:
    """The page of a server.

    Args:
        driver: selenium's.
        port: int.
    """

    def __init__(self, driver, port):
        self.driver, self.origin = driver, f"http://127.0.0.1:{port}"
        self.complaints(), self.requests()  # those of others

    def open(self, model=None):
        """Loads the page, and chooses a model."""
        self.driver.get(f"{self.origin}/")
        self.wait()
        if model:
            self.run(
                "const chooser = document.getElementById('model');"
                "chooser.value = arguments[0];"
                "chooser.dispatchEvent(new Event('change'));",
                model,
            )
            self.wait()

    def fill(self, **values):
        """Writes into boxes; the driver can only type what is in Unicode's first plane.

        Args:
            values: str by name of the box.
        """
        for name, value in values.items():
            self.run(
                "const box = document.getElementById(`box-${arguments[0]}`);"
                "box.value = arguments[1];"
                "box.dispatchEvent(new Event('input', {bubbles: true}));",
                name,
                value,
            )

    def ask(self, **values):
        """Writes into boxes and asks the model."""
        self.fill(**values)
        self.one("[type=submit]").click()
        self.wait()

    def wait(self):
        """Until nothing is under way."""
        served.wait_for(lambda: not self.all("[aria-busy]"))

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def one(self, selector):
        (found,) = self.all(selector)
        return found

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def texts(self, selector):
        """list of str, the whole texts of elements as they stand in the document."""
        script = "return [...document.querySelectorAll(arguments[0])]"
        return self.run(f"{script}.map((one) => one.textContent)", selector)

    def text(self, selector):
        (found,) = self.texts(selector)
        return found

    def value(self, box):
        return self.one(f"#box-{box}").get_property("value")

    def error(self):
        """str, the sentence that is shown; "" if none is."""
        element = self.one("#error")
        return element.text if element.is_displayed() else ""

    def complaints(self):
        """list of str, what the browser has found wrong since this was last asked."""
        log = self.driver.get_log("browser")
        return [entry["message"] for entry in log if entry["level"] == "SEVERE"]

    def requests(self):
        """list of str, the URLs of all requests since this was last asked."""
        log = self.driver.get_log("performance")
        messages = [json.loads(entry["message"])["message"] for entry in log]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def check(self):
        """Fails if errors were logged, texts became markup, or others were asked."""
        assert self.complaints() == []
        assert self.run("return window.pwned ?? null") is None
        assert self.all("main script, main img, main b") == []
        urls = self.requests()
        assert urls
        assert [url for url in urls if not url.startswith(f"{self.origin}/")] == []
