"""Cutting prose into sentences."""

import random
import signal

import pytest

from data import sentences, text_files

# Cut by hand, by the rules that the module states.
CASES = [
    ["Mr. Bennet was here.", '"Is he?"', '"He is!"', "He paid 3.50 dollars."],
    ["J. S. Bach wrote it!", "What?!", "No. 5 is (almost) done.)", "[So it is.]"],
    ["He waited...", "Then he went.", "\u201cNever,\u201d said St. John.", "Why?"],
    ["\u6211\u6765\u4e86\u3002", "\u4f60\u5462\uff1f", "\u597d\uff01"],
    ["Er kam z.B. am Abend.", "\xbbJa?\xab", "\xdcber Nacht blieb er."],
    [
        "He said so, i.e. he lied",
    ],
    ["What?.", "No!\u2026", "Oh\u2026!?", "(Ha!?.)", "He ... Said ?! And ! Then?"],
    ["It cost 5 p. and then some. or not; e.g. a small letter goes on."],
    ["\u041e\u043d \u0431\u044b\u043b.", "\u0418 \u0443\u0448\u0451\u043b."],
]


@pytest.mark.parametrize("expected", CASES)
def test_sentences(expected):
    between = "" if expected[0][0] > "\u3000" else "  "
    assert sentences.split(between.join(expected)) == expected


def test_nothing_is_lost():
    rng = random.Random(0)
    for _ in range(2000):
        text = "".join(rng.choices('aB. !?"()Mr1\u3002\u201d\n', k=30))
        parts = sentences.split(text)
        assert "".join("".join(parts).split()) == "".join(text.split())
        assert all(part == part.strip() != "" for part in parts)


@pytest.fixture
def a_second():
    """Function that ends the test after a second of the CPU from then on."""

    def give_up(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, give_up)
    yield lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 1)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize(
    "run", ["!", "?", "\u2026", ".", "!?", "\u3002", '"', "(", " ", "! ", '!"', "Mr. "]
)
def test_long_runs_take_time_that_grows_with_their_length(run, a_second):
    for start, end in (("a", ""), ("a!", "b"), ("a! ", " B")):
        text = start + run * (2**20 // len(run)) + end
        a_second()
        parts = sentences.split(text)
        assert "".join("".join(parts).split()) == "".join(text.split())


def test_novels_have_sentences_of_usual_length(shared):
    path = str(shared / "data/pretrain/en_novels/Doyle_Hound_1902.txt.gz")
    words = [
        len(sentence.split())
        for line in text_files.read_lines([path])
        for sentence in sentences.split(line)
    ]
    # Novels of the time have means of 13 to 25 words a sentence.
    assert 10 < sum(words) / len(words) < 25
    assert max(words) < 150
