"""The words of a text that a span of tokens stands for."""

import functools

from absl import logging

from data import squad, squad_windows, token_offsets, tokenization


class Alignment:
    """Finds in a text what was found in its normalised words.

    Args:
        text: words with single spaces.
        basic_tokenizer: what the text was tokenized with.
    """

    def __init__(self, text: str, basic_tokenizer: tokenization.BasicTokenizer):
        self.text = text
        self._normal = " ".join(basic_tokenizer.tokenize(text))
        # Apart from spaces, both should have the same number of characters.
        self._places = [place for place, char in enumerate(text) if char != " "]
        num_chars = len(self._normal) - self._normal.count(" ")
        self._is_regular = num_chars == len(self._places)

    def find(self, normal_text: str) -> str | None:
        """The part of the text that `normal_text` is from, by counting characters.

        The first, if it occurs more than once. None if it does not, or if characters
        were dropped or added anywhere in the text.
        """
        is_word = normal_text and " " not in (normal_text[0], normal_text[-1])
        if not (self._is_regular and is_word):
            return None
        start = self._normal.find(normal_text)
        if start < 0:
            return None
        first = start - self._normal.count(" ", 0, start)
        length = len(normal_text) - normal_text.count(" ")
        return self.text[self._places[first] : self._places[first + length - 1] + 1]


def get_final_text(pred_text: str, orig_text: str, do_lower_case: bool = True) -> str:
    """The part of `orig_text` that the normalised words `pred_text` are from.

    "steve smith" is from "Steve Smith" in "Steve Smith's". All of `orig_text` where the
    two cannot be aligned; see `Alignment`.
    """
    alignment = Alignment(orig_text, tokenization.BasicTokenizer(do_lower_case))
    found = alignment.find(pred_text)
    return orig_text if found is None else found


class Texts:
    """Turns spans of tokens of one context into text.

    Args:
        paragraph: the context.
        context: its tokens.
        tokenizer: that made them.
        verbose_logging: log where words cannot be aligned.
    """

    def __init__(
        self,
        paragraph: squad.Paragraph,
        context: squad_windows.TokenizedContext,
        tokenizer: tokenization.FullTokenizer,
        verbose_logging: bool = False,
    ):
        self._paragraph, self._context = paragraph, context
        self._tokenizer, self._verbose_logging = tokenizer, verbose_logging
        # Many candidates share words, and a word can be very long.
        self._alignment = functools.lru_cache(maxsize=64)(self._align_words)
        self._spans = functools.lru_cache(maxsize=64)(self._spans_of_word)

    def final_text(self, first: int, last: int) -> str:
        """The words of the tokens `first` to `last`, as the original gives them.

        Without what was attached to the first and the last word, where that can be
        told; with single spaces.
        """
        tokens = self._tokenizer.convert_ids_to_tokens(
            self._context.ids[first : last + 1].tolist()
        )
        # Pieces are glued, also a first one that continues a word before the span.
        glued = " ".join(tokens).replace(" ##", "").replace("##", "")
        predicted = " ".join(glued.split())
        words = self._context.word_of_token[[first, last]].tolist()
        alignment = self._alignment(*words)
        found = alignment.find(predicted)
        if found is None and self._verbose_logging:
            logging.info("cannot find %r in %r", predicted, alignment.text)
        return alignment.text if found is None else found

    def characters(self, first: int, last: int) -> tuple[int, int]:
        """The characters of the context that the tokens `first` to `last` are.

        Returns:
            the first of them and the one after the last.
        """
        return self._characters(first)[0], self._characters(last)[1]

    def _align_words(self, first: int, last: int) -> Alignment:
        text = " ".join(self._paragraph.words[first : last + 1])
        return Alignment(text, self._tokenizer.basic_tokenizer)

    def _characters(self, token: int) -> tuple[int, int]:
        word = int(self._context.word_of_token[token])
        start, end = self._spans(word)[token - int(self._context.first_tokens[word])]
        shift = self._paragraph.word_starts[word]
        return start + shift, end + shift

    def _spans_of_word(self, word: int) -> list[tuple[int, int]]:
        return token_offsets.token_spans(self._paragraph.words[word], self._tokenizer)
