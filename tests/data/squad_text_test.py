"""Spans of tokens to text: the original's, and exactly what stands there."""

import pytest

from data import squad, squad_text, squad_windows, tokenization
from tests import squad_files


@pytest.fixture(scope="module")
def vocab(golden):
    return golden.parent.parent / "sample_data/vocab.txt"


def texts_of(context, vocab, do_lower_case=True):
    tokenizer = tokenization.FullTokenizer(vocab, do_lower_case)
    paragraph = squad.Paragraph.from_text(context)
    tokens = squad_windows.tokenize_context(paragraph.words, tokenizer)
    names = tokenizer.convert_ids_to_tokens(tokens.ids.tolist())
    return squad_text.Texts(paragraph, tokens, tokenizer), names


def test_final_texts_are_the_originals(golden):
    rows = squad_files.golden_rows(golden / "squad_final_text.jsonl")
    assert len(rows) == 74
    for row in rows:
        expected = row.pop("final_text")
        assert squad_text.get_final_text(**row) == expected


@pytest.mark.parametrize(
    "context, first, last, final, exact",
    [
        # Attached punctuation is left out, in both.
        ("born (1821-1887), then", "1821", "1887", "1821-1887", "1821-1887"),
        ("of  Ada\nThornquist.", "ada", "##quist", "Ada Thornquist", "Ada\nThornquist"),
        ("José Müller-Brandão", "jose", "muller", "José Müller", "José Müller"),
        # A dropped character: the original gives up and returns the words.
        ("x zero\u200bwidth!", "zero", "##dt", "zero\u200bwidth!", "zero\u200bwidt"),
        # The same word twice: the original takes the first.
        ("a-b-a", "a", "a", "a-b-a", "a-b-a"),
        ("say [citation]", "citation", "citation", "citation", "citation"),
    ],
)
def test_texts_of_spans(vocab, context, first, last, final, exact):
    texts, names = texts_of(context, vocab)
    last = len(names) - 1 - names[::-1].index(last)
    start, end = texts.characters(names.index(first), last)
    assert context[start:end] == exact
    assert texts.final_text(names.index(first), last) == final


def test_unknown_words_have_exact_characters(vocab):
    context = "(" + "x" * 201 + ")."
    texts, names = texts_of(context, vocab)
    unknown = names.index("[UNK]")
    assert texts.final_text(unknown, unknown) == context
    assert texts.characters(unknown, unknown) == (1, 202)


def test_the_exact_place_of_a_repeated_word(vocab):
    context = "The river-bed of the river"
    texts, names = texts_of(context, vocab)
    places = [i for i, name in enumerate(names) if name == "river"]
    assert [texts.characters(i, i) for i in places] == [(4, 9), (21, 26)]


def test_failed_alignments_are_logged_on_demand(vocab, caplog):
    tokenizer = tokenization.FullTokenizer(vocab)
    paragraph = squad.Paragraph.from_text("zero\u200bwidth")
    tokens = squad_windows.tokenize_context(paragraph.words, tokenizer)
    with caplog.at_level("INFO", logger="absl"):
        squad_text.Texts(paragraph, tokens, tokenizer).final_text(0, 0)
        assert caplog.text == ""
        squad_text.Texts(paragraph, tokens, tokenizer, True).final_text(0, 0)
    assert "cannot find" in caplog.text
