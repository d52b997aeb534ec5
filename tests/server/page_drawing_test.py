"""What the page draws for models of all kinds from hostile texts, in a browser."""

import pytest

from tests import page_models

pytestmark = pytest.mark.slow

HOSTILE = page_models.HOSTILE


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
