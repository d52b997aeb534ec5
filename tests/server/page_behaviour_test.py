"""Errors, keys, security and the layout of the page, in a real browser."""

import pytest

from tests import page_models, served

pytestmark = pytest.mark.slow

HOSTILE = page_models.HOSTILE


def test_no_markup_and_no_code_out_of_strings(bare_page):
    bare_page.open()
    for script in (
        "document.body.innerHTML = '<b>b</b>'",
        "document.body.append(Object.assign(document.createElement('script'),"
        " {text: 'window.pwned = 1'}))",
    ):
        with pytest.raises(Exception, match="(?i)trusted"):
            bare_page.run(script)
    bare_page.run("location.href = 'javascript:window.pwned = 1'")
    assert bare_page.run("return window.pwned ?? null") is None


def test_a_model_of_no_known_kind(page):
    page.open("unknown")
    assert "model unknown" in page.error()
    assert not page.one("#form").is_displayed()
    page.open("number")
    assert page.error() == ""


def test_errors_are_the_servers_sentences(bare_page, page_server):
    page = bare_page
    page.open("class")
    for text in ("refuse", "x" * page_models.MAX_BODY_BYTES):
        page.ask(text=text)
        body = {"signature_name": "classify", "examples": [{"text": text}]}
        answer = served.predict(page_server.rest_port, body, "class", "classify")
        assert page.error() == answer[1]["error"]
        assert not page.one("#answer").is_displayed()
    page.run("document.getElementById('box-text').value = '\\ud800'")
    page.ask()
    assert "surrogate" in page.error()
    page.ask(text="good")
    assert page.error() == "" and page.one("#answer").is_displayed()
    assert page.all("main script") == []
    assert all(
        "the server responded with a status of 4" in c for c in page.complaints()
    )


def test_what_is_no_json_and_a_server_that_is_gone(bare_page):
    page = bare_page
    page.open("number")
    page.run("fetch = async () => new Response('{\"predictions\": [NaN]}')")
    page.ask(text="a")
    assert "not JSON" in page.error()
    page.run("fetch = async () => { throw new TypeError('Failed to fetch') }")
    page.ask()
    assert "does not answer" in page.error()


def test_an_old_answer_does_not_replace_a_new_one(page):
    page.open("number")
    page.run(
        "const real = fetch; window.waiting = [];"
        "fetch = (...all) => new Promise((go) =>"
        " waiting.push(() => go(real(all[0], {...all[1], signal: undefined}))));"
    )
    for text in ("123", "123456"):
        page.fill(text=text)
        page.one("[type=submit]").click()
    page.run("waiting[1]()")
    page.wait()
    page.run("waiting[0]()")
    page.run("return new Promise((go) => setTimeout(go, 300))")
    assert page.text("#headline .text") == "2"


def test_keys_alone_do(page):
    from selenium.webdriver.common.keys import Keys

    page.open("answers")
    names = [
        element.accessible_name
        for element in page.all("select, textarea, button, form")
    ]
    assert names == [
        "Model",
        "What to ask",
        "Question",
        "Text with the answer",
        "Ask the model",
    ]
    page.one("#model").send_keys(Keys.TAB, "who")
    page.driver.switch_to.active_element.send_keys(Keys.TAB, "see who it is")
    assert page.value("question") == "who"
    page.driver.switch_to.active_element.send_keys(Keys.CONTROL, Keys.ENTER)
    page.wait()
    assert page.text(".passage mark") == "who"
    assert page.one("#answer").accessible_name == "Answer"
    assert page.text("#latency").endswith(" ms")
    # A change makes the answer an old one.
    page.one("#box-question").send_keys("!")
    assert page.run("return document.getElementById('answer').inert")


def test_nothing_is_wider_than_a_narrow_window(page):
    page.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 320, "height": 700, "deviceScaleFactor": 1, "mobile": False},
    )
    wide = " ".join([*HOSTILE, "W" * 3000, "[MASK]", "V" * 500, "7"])
    try:
        for model in page_models.MODELS:
            page.open(model)
            names = [box.get_attribute("id")[4:] for box in page.all("textarea")]
            if page.one("#form").is_displayed():
                page.ask(**dict.fromkeys(names, f"{wide}\n{wide}"))
                assert page.error() == ""
            assert page.run("return document.documentElement.scrollWidth") <= 320
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
