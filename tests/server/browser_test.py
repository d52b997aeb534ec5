"""The page in a real browser, with models of all kinds and hostile texts."""

import pytest

from tests import browsing, page_models, served

pytestmark = pytest.mark.slow

HOSTILE = page_models.HOSTILE
LIMIT = 200_000


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    models = page_models.export(tmp_path_factory.mktemp("models"))
    with served.serving(models, max_body_bytes=LIMIT) as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    with browsing.browser() as driver:
        yield driver


@pytest.fixture
def bare_page(browser, server):
    page = browsing.Page(browser, server.rest_port)
    page.requests(), page.complaints()
    return page


@pytest.fixture
def page(bare_page):
    """The page; when a test ends, nothing is wrong and nothing came from elsewhere."""
    yield bare_page
    assert bare_page.complaints() == []
    assert bare_page.run("return window.pwned ?? null") is None
    assert bare_page.all("main script, main img, main b") == []
    urls = bare_page.requests()
    assert urls
    assert [url for url in urls if not url.startswith(bare_page.origin)] == []


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


def bars(page, within="#details"):
    """[(name, percent, share of the width)] of what is drawn, and the chosen names."""
    names = page.texts(f"{within} .bars li > :first-child")
    numbers = page.texts(f"{within} .bars .number")
    widths = page.run(
        "return [...document.querySelectorAll(arguments[0])].map((bar) =>"
        " parseFloat(getComputedStyle(bar, '::before').width) / bar.clientWidth)",
        f"{within} .bars .bar",
    )
    rows = list(zip(names, numbers, widths, strict=True))
    return rows, page.texts(f"{within} .bars .chosen > :first-child")


def test_the_bars_of_several_labels(page):
    page.open("labels")
    page.ask(text=HOSTILE[0])
    chosen = [HOSTILE[place] for place in (10, 2, 4)]  # 0.9, 0.6, 0.5
    assert page.text("#headline .text") == ", ".join(chosen)
    assert page.text("summary") == "2 more"
    page.one("summary").click()
    rows, marked = bars(page)
    assert marked == chosen
    order = sorted(range(len(HOSTILE)), key=lambda i: -page_models.SHARES[i])
    assert [name for name, *_ in rows] == [HOSTILE[i] for i in order]
    for (_, number, width), i in zip(rows, order, strict=True):
        assert number == f"{100 * page_models.SHARES[i]:.1f}%"
        assert width == pytest.approx(page_models.SHARES[i], abs=0.01)
    page.ask(text="none!")
    assert page.text("#headline .text") == "No label reaches 50%."
    assert bars(page)[1] == []


def test_the_bars_of_one_label(page):
    page.open("class")
    page.ask(text=HOSTILE[3])
    rows, marked = bars(page)
    names = [HOSTILE[i] for i in (1, 0, 3, 2)]
    assert [row[:2] for row in rows] == list(
        zip(names, ("50.0%", "20.0%", "20.0%", "10.0%"), strict=True)
    )
    assert marked == names[:1] == page.texts("#headline .text")
    page.ask(text_pair="second!")
    rows, marked = bars(page)
    assert (rows[0][:2], marked) == ((HOSTILE[2], "60.0%"), [HOSTILE[2]])


def test_a_label_without_the_names_of_others(page):
    page.open("nameless")
    page.ask(text="a")
    rows, _ = bars(page)
    assert [name for name, *_ in rows] == [
        HOSTILE[1],
        "number 0",
        "number 3",
        "number 2",
    ]
    page.ask(text_pair="!")
    assert bars(page)[0][0][0] == HOSTILE[2]


def test_a_number(page):
    page.open("number")
    page.ask(text="1234567")
    assert page.text("#headline .text") == "2.3333"
    page.ask(text_pair="89")
    assert page.text("#headline .text") == "3"
    assert page.texts("#details *") == []


@pytest.mark.parametrize("answer", [*HOSTILE[:8], "e\u0301", "\n\n", "x", "🎉"])
def test_the_answer_is_marked_where_it_is(page, answer):
    before, after = "é👩‍🚀\n<b>x\u0301</b> \u202e", f" 👋🏽 &amp; {'end ' * 50}"
    page.open("answers")
    page.ask(question=answer, context=before + answer + after)
    assert page.text("#headline .text") == answer
    assert page.text(".passage") == before + answer + after
    assert page.text(".passage mark") == answer
    nodes = page.run(
        "const mark = document.querySelector('.passage mark');"
        "return [mark.previousSibling.data, mark.nextSibling.data]"
    )
    # The very first place where it is.
    assert nodes == [(before + answer + after).partition(answer)[0], nodes[1]]
    assert "87.5%" in page.text("#headline .note")


def test_no_answer(page):
    page.open("answers")
    page.ask(question="what?", context="no")
    assert page.text("#headline .text") == "The text has no answer."
    assert page.texts("mark") == []


def test_entities_and_their_legend(page):
    text = "Anna van\n Vries met <b>bold</b> &lt;  42 times, Émile  v. 🎉 7"
    page.open("tags")
    page.ask(text=text)
    markup = HOSTILE[0]
    # A name goes on with "van"; "Vries" begins another.
    assert page.texts(".passage mark") == [
        f"{shown}{kind}"
        for shown, kind in (
            ("Anna van", "PER"),
            ("Vries", "PER"),
            ("42", markup),
            ("Émile  v.", "PER"),
            ("7", markup),
        )
    ]
    page.run("document.querySelectorAll('.passage .kind').forEach((k) => k.remove())")
    assert page.text(".passage") == text
    assert page.texts(".legend li") == ["PER 3", f"{markup} 2"]
    colours = page.run(
        "return [...document.querySelectorAll('.legend li, .passage mark')]"
        ".map((one) => getComputedStyle(one).backgroundColor)"
    )
    person, other = colours[:2]
    assert person != other
    assert colours[2:] == [person, person, other, person, other]
    assert page.one("mark:first-of-type").get_attribute("title") == "PER, 75.0%"
    page.ask(text="nothing")
    assert page.text("#headline .text") == "Nothing is tagged in this text."


def test_choices(page):
    page.open("choices")
    page.ask(context=HOSTILE[4], choices="\n".join(["a", "", *HOSTILE[:2], "  ", ""]))
    rows, marked = bars(page)
    assert [row[:2] for row in rows] == [
        ("a", "15.0%"),
        (HOSTILE[0], "70.0%"),
        (HOSTILE[1], "15.0%"),
    ]
    assert marked == [HOSTILE[0]] == page.texts("#headline .text")


def test_suggestions_go_into_the_text_and_out_again(page):
    page.open("masks")
    page.ask(text="The 🎉 [MASK] on [MASK].")
    assert page.texts("h3") == ["[MASK] 1 of 2", "[MASK] 2 of 2"]
    assert page.texts(".masks button") == [*page_models.WORDS] * 2
    assert page.texts(".masks .number")[:3] == ["50.0%", "30.0%", "10.0%"]
    assert page.text("#headline") == "The 🎉 sat on sat."
    buttons = page.all(".masks button")
    buttons[1].click()
    assert page.value("text") == f"The 🎉 {HOSTILE[1]} on [MASK]."
    buttons[5].click()  # The end of a word joins it.
    assert page.value("text") == f"The 🎉 {HOSTILE[1]} onting."
    assert page.text("#headline") == page.value("text")
    pressed = [button.get_attribute("aria-pressed") == "true" for button in buttons]
    assert [place for place, is_pressed in enumerate(pressed) if is_pressed] == [1, 5]
    buttons[0].click()
    assert page.value("text") == "The 🎉 sat onting."
    buttons[0].click()
    buttons[5].click()
    assert page.value("text") == "The 🎉 [MASK] on [MASK]."


def test_masks_that_are_none_or_too_many(page):
    page.open("masks")
    page.ask(text="[mask]")
    assert page.text("#headline .text") == "The text has no [MASK]."
    page.ask(text="[MASK]" * 4)
    assert page.text("#headline") == "satsatsat[MASK]"
    assert "behind the end" in page.text(".masks .note")
    page.fill(text="ab")
    page.run("document.getElementById('box-text').setSelectionRange(1, 1)")
    page.one(".box button").click()
    assert page.value("text") == "a[MASK]b"
    assert page.run("return document.getElementById('answer').inert")


def test_the_similarity_of_texts(page):
    page.open("vectors")
    page.ask(text="a", other="ab <b>")
    assert page.text("#headline .text") == "0.447"  # of (1, 0) and (1, 2): 1 / √5
    page.ask(text="x")
    assert "no similarity" in page.text("#headline .text")


def test_a_model_of_no_known_kind(page):
    page.open("unknown")
    assert "model unknown" in page.error()
    assert not page.one("#form").is_displayed()
    page.open("number")
    assert page.error() == ""


def test_errors_are_the_servers_sentences(bare_page, server):
    page = bare_page
    page.open("class")
    for text in ("refuse", "x" * LIMIT):
        page.ask(text=text)
        body = {"signature_name": "classify", "examples": [{"text": text}]}
        answer = served.predict(server.rest_port, body, "class", "classify")
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
