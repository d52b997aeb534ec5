"""Where in a text its tokens stand, whatever was normalised away."""

import unicodedata

from data import tokenization


def token_spans(
    text: str, tokenizer: tokenization.FullTokenizer
) -> list[tuple[int, int]]:
    """The characters that each token of a word, or of a short text, comes from.

    Accents that were dropped belong to the character before them; other characters that
    were dropped (zero-width spaces, control characters) belong to a token only if they
    stand within it. Where one character became several (a Hangul syllable), tokens may
    share it.

    Args:
        text: what was tokenized.
        tokenizer: that did it.
    Returns:
        for each of `tokenizer.tokenize(text)`, the first of its characters and the one
        after its last.
    """
    basic, wordpiece = tokenizer.basic_tokenizer, tokenizer.wordpiece_tokenizer
    # A character becomes as many characters alone as among others: neighbours matter
    # only to the form of a sigma and to the order of accents.
    counts = [len("".join(basic.space_words(char).split())) for char in text]
    sources = [index for index, count in enumerate(counts) for _ in range(count)]
    spans, position = [], 0
    for word in basic.split_words(text):
        pieces = wordpiece.tokenize_word(word)
        lengths = [len(piece) - 2 * bool(number) for number, piece in enumerate(pieces)]
        if pieces == [wordpiece.unk_token]:
            lengths = [len(word)]
        for length in lengths:
            start, end = sources[position], sources[position + length - 1] + 1
            position += length
            while end < len(text) and not counts[end] and _is_accent(text[end]):
                end += 1
            spans.append((start, end))
    return spans


def _is_accent(char: str) -> bool:
    return unicodedata.category(char) == "Mn"
