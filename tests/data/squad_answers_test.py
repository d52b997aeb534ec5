"""Logits to answers: the original's, brute force, and the edges of the rules."""

import itertools
import math
import random
import re

import numpy as np
import pytest

from data import squad, squad_answers, squad_windows, tokenization
from tests import squad_files

SIZES = squad_windows.WindowSizes(64, 16, 24)


@pytest.fixture(scope="module")
def vocab(golden):
    return golden.parent.parent / "sample_data/vocab.txt"


@pytest.fixture(scope="module")
def tokenizer(vocab):
    return tokenization.FullTokenizer(vocab)


def asked(context, question="who is it?"):
    return squad.SquadExample("q", question, squad.Paragraph.from_text(context))


def answer(example, tokenizer, logits, sizes=SIZES, **options):
    """The answer by `logits`: function of a window → (starts, ends)."""
    windows = list(squad_windows.make_windows([example], tokenizer, sizes))
    (found,) = squad_answers.find_answers(
        [example],
        windows,
        [logits(window) for window in windows],
        tokenizer,
        squad_answers.AnswerOptions(**options),
    )
    return found


def random_logits(seed, length=64):
    rng = np.random.default_rng(seed)
    return lambda _: tuple(rng.normal(size=(2, length)) * 3)


@pytest.mark.parametrize("number", range(6))
def test_answers_are_the_originals(golden, vocab, number):
    run = squad_files.golden_rows(golden / "squad_predictions.jsonl.gz")[number]
    tokenizer = tokenization.FullTokenizer(vocab, run["do_lower_case"])
    path = squad_files.golden_input(golden, run["version_2"])
    examples = squad.read_prediction_set(path)
    sizes = squad_windows.WindowSizes(
        run["max_seq_length"], run["doc_stride"], run["max_query_length"]
    )
    windows = list(squad_windows.make_windows(examples, tokenizer, sizes))
    assert [w.unique_id for w in windows] == [
        result["unique_id"] for result in run["raw_results"]
    ]
    logits = [
        (result["start_logits"], result["end_logits"]) for result in run["raw_results"]
    ]
    options = squad_answers.AnswerOptions(
        run["n_best_size"],
        run["max_answer_length"],
        run["version_2"],
        run["null_score_diff_threshold"],
    )
    answers = list(
        squad_answers.find_answers(examples, windows, logits, tokenizer, options)
    )
    assert {a.example.qas_id: a.text for a in answers} == run["predictions"]
    for found in answers:
        expected = run["nbest_predictions"][found.example.qas_id]
        assert [c.text for c in found.candidates] == [e["text"] for e in expected]
        for name in ("probability", "start_logit", "end_logit"):
            ours = [getattr(candidate, name) for candidate in found.candidates]
            assert ours == pytest.approx([e[name] for e in expected], abs=1e-9)
        if run["version_2"]:
            odds = run["null_odds"][found.example.qas_id]
            assert found.null_odds == pytest.approx(odds, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_span_by_brute_force(tokenizer, seed):
    """Over all pairs of positions, when no start or end is left out."""
    rng = random.Random(seed)
    letters = [rng.choice("abcdefgh") for _ in range(rng.randrange(1, 60))]
    example = asked(" ".join(letters))
    sizes = squad_windows.WindowSizes(24, rng.randrange(1, 20), 8)
    longest = rng.randrange(1, 9)
    scored, make = [], random_logits(seed, 24)

    def logits(window):
        scored.append((window, *make(window)))
        return scored[-1][1:]

    found = answer(
        example, tokenizer, logits, sizes, n_best_size=24, max_answer_length=longest
    )
    best = (-math.inf,)
    for window, starts, ends in scored:
        room = range(window.end - window.start)
        for i, j in itertools.product(room, room):
            if i <= j < i + longest and window.is_max_context[i]:
                shift = window.doc_offset
                score = starts[i + shift] + ends[j + shift]
                tokens = (window.start + i, window.start + j)
                best = max(best, (score, *tokens))
    score, first, last = best
    assert found.chosen.score == pytest.approx(score)
    assert found.chosen.span == (2 * first, 2 * last + 1)
    assert found.text == " ".join(letters[first : last + 1])


@pytest.mark.parametrize("seed", range(20))
def test_every_candidate_keeps_the_rules(tokenizer, seed):
    context = "Ada, of Saltmere (1821-1887); and others. " * 6
    found = answer(
        asked(context),
        tokenizer,
        random_logits(seed),
        max_answer_length=4,
        version_2_with_negative=seed % 2 == 1,
    )
    assert len(found.candidates) > 5
    texts = [candidate.text for candidate in found.candidates]
    assert len(set(texts)) == len(texts)
    scores = [c.score for c in found.candidates if c.text]
    assert scores == sorted(scores, reverse=True)
    assert sum(c.probability for c in found.candidates) == pytest.approx(1)
    for candidate in found.candidates:
        if candidate.text:
            exact = candidate.exact_text(context)
            assert exact
            assert exact in context
            assert len(tokenizer.tokenize(exact)) <= 4
    assert found.to_dict()["text"] == found.chosen.exact_text(context)


def test_the_score_of_no_answer_is_that_of_position_0_alone(tokenizer):
    context = "one two three " * 30
    base = random_logits(0)
    windows = {}

    def logits(window, at=None, change=0.0):
        if window.unique_id not in windows:
            windows[window.unique_id] = base(window)
        starts, ends = (values.copy() for values in windows[window.unique_id])
        if at is not None:
            starts[at] += change
            ends[at] += change
        return starts, ends

    options = {"version_2_with_negative": True}
    before = answer(asked(context), tokenizer, logits, **options)
    raised = answer(asked(context), tokenizer, lambda w: logits(w, 0, 0.25), **options)
    assert raised.null_odds == pytest.approx(before.null_odds + 0.5)
    assert raised.null_score == pytest.approx(before.null_score + 0.5)
    # A position of the question changes nothing.
    other = answer(asked(context), tokenizer, lambda w: logits(w, 2, -9.0), **options)
    assert other.null_odds == before.null_odds
    lowest = min(starts[0] + ends[0] for starts, ends in windows.values())
    assert before.null_score == pytest.approx(lowest)


def test_a_higher_threshold_gives_more_answers(tokenizer):
    texts = []
    for threshold in (-math.inf, -10.0, -5.0, 0.0, 5.0, 10.0, math.inf):
        options = {
            "n_best_size": 64,
            "version_2_with_negative": True,
            "null_score_diff_threshold": threshold,
        }
        found = [
            answer(asked("one two"), tokenizer, random_logits(seed), **options)
            for seed in range(30)
        ]
        texts.append([a.text for a in found])
    counts = [sum(map(bool, row)) for row in texts]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, 30)
    assert len(set(counts)) > 3
    # Without a threshold, the answers of 1.1.
    version_1 = [
        answer(asked("one two"), tokenizer, random_logits(seed), n_best_size=64)
        for seed in range(30)
    ]
    assert texts[-1] == [a.text for a in version_1]


def test_equal_to_the_threshold_is_answered(tokenizer):
    def logits(_):
        starts, ends = np.full((2, 64), -9.0)
        starts[0] = ends[0] = 1.5
        starts[10] = ends[10] = 1.0  # the text starts there: 8 tokens before
        return starts, ends

    def text(threshold):
        options = {
            "version_2_with_negative": True,
            "null_score_diff_threshold": threshold,
        }
        return answer(asked("a b c d e f"), tokenizer, logits, **options).text

    assert text(1.0) == text(1.1) != ""
    assert text(0.9) == ""


@pytest.mark.parametrize("version_2", [False, True])
def test_no_span_survives(tokenizer, version_2):
    """All of the best starts and ends are outside of the text."""

    def logits(window):
        starts, ends = np.zeros((2, 64))
        starts[: window.doc_offset] = ends[: window.doc_offset] = 5.0
        return starts, ends

    found = answer(
        asked("one two"),
        tokenizer,
        logits,
        n_best_size=3,
        version_2_with_negative=version_2,
    )
    # 1.1 has a word for it, as in the original, but no place.
    assert found.text == ("" if version_2 else "empty")
    assert found.best_text == ""
    assert found.null_odds == squad_answers.NO_SPAN_ODDS
    assert math.isfinite(found.null_odds)
    assert found.null_score == 10.0
    assert (found.to_dict()["text"], found.to_dict()["start"]) == ("", None)


@pytest.mark.parametrize("version_2", [False, True])
@pytest.mark.parametrize("context", ["", "\u200b"])
def test_texts_without_tokens(tokenizer, context, version_2):
    examples = [asked("one"), asked(context), asked("two")]
    windows = list(squad_windows.make_windows(examples, tokenizer, SIZES))
    logits = [random_logits(seed)(None) for seed in range(2)]
    options = squad_answers.AnswerOptions(
        n_best_size=64,
        version_2_with_negative=version_2,
        null_score_diff_threshold=math.inf,
    )
    found = list(
        squad_answers.find_answers(examples, windows, logits, tokenizer, options)
    )
    assert [a.text for a in found] == ["one", "" if version_2 else "empty", "two"]
    assert found[1].null_score is None
    assert found[1].null_odds == squad_answers.NO_SPAN_ODDS


def test_a_missing_row_of_logits_is_noticed(tokenizer):
    examples = [asked("one two " * 50), asked("one")]
    windows = list(squad_windows.make_windows(examples, tokenizer, SIZES))
    logits = [random_logits(0)(None) for _ in windows]
    options = squad_answers.AnswerOptions()
    for wrong in (logits[:-1], [*logits, logits[0]]):
        with pytest.raises(ValueError, match="zip"):
            list(
                squad_answers.find_answers(examples, windows, wrong, tokenizer, options)
            )


def test_padding_takes_places_unless_it_is_dropped(tokenizer):
    example = asked("Ada Thornquist built it, in 1887.")
    whole = random_logits(3)(None)
    for values in whole:
        values[40:] += 99.0
    trimmed = tuple(values[:40] for values in whole)

    def found(logits, **options):
        return answer(example, tokenizer, lambda _: logits, **options)

    assert found(whole).text == "empty"  # as the original
    assert found(whole, drop_padding=True) == found(trimmed, drop_padding=True)
    assert found(trimmed, drop_padding=True).text != "empty"


def test_only_the_window_with_most_context_may_propose_a_start(tokenizer):
    # Room for 8 tokens, stride 4: token 6 is in windows 0 (1 on its right) and 1
    # (2 on its left).
    example = asked(" ".join("abcdefghijklmnop"))
    sizes = squad_windows.WindowSizes(13, 4, 2)
    for proposing in range(3):

        def logits(window, proposing=proposing):
            starts, ends = np.zeros((2, 13))
            if window.doc_span_index == proposing and window.start <= 6 < window.end:
                place = window.doc_offset + 6 - window.start
                starts[place] = ends[place] = 9.0
            return starts, ends

        found = answer(example, tokenizer, logits, sizes)
        assert (found.text == "g" and found.chosen.score == 18.0) == (proposing == 1)


def test_a_word_of_100000_characters(tokenizer):
    context = "it is " + "ab-" * 33_333
    sizes = squad_windows.WindowSizes(384, 128, 64)
    make = random_logits(0, 384)
    found = answer(asked(context), tokenizer, make, sizes)
    start, end = found.chosen.span
    assert found.to_dict()["text"] == context[start:end]
    assert len(found.candidates) == 20


@pytest.mark.parametrize(
    "name, most", [("dev-v1.1.part.json", 0.005), ("xquad.en.part.json", 0.005)]
)
def test_gold_positions_give_the_answers_of_real_sets(shared, tokenizer, name, most):
    """Perfect logits on real questions: the share of answers not given back."""
    path = shared / "data/squad" / name
    examples = squad.read_training_set([path], several_answers="first")
    sizes = squad_windows.WindowSizes(384, 128, 64)
    windows = list(squad_windows.make_windows(examples, tokenizer, sizes))
    logits = []
    for window in windows:
        starts, ends = np.zeros((2, 384))
        if window.end_position:
            starts[window.start_position] = ends[window.end_position] = 9.0
        logits.append((starts, ends))
    options = squad_answers.AnswerOptions(max_answer_length=384)
    wrong = {"text": [], "exact": []}
    answers = squad_answers.find_answers(examples, windows, logits, tokenizer, options)
    for example, found in zip(examples, answers, strict=True):
        exact = found.chosen.exact_text(example.paragraph.text)
        for kind, text in (("text", found.text), ("exact", exact)):
            if plain_words(text) != plain_words(example.orig_answer_text):
                wrong[kind].append((text, example.orig_answer_text))
    assert len(examples) >= 815
    for kind, cases in wrong.items():
        assert len(cases) <= most * len(examples), (kind, cases)


def plain_words(text):
    return re.findall(r"\w+", text.lower())
