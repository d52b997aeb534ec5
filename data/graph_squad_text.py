"""The text that a span of tokens stands for: `squad_text`, as TensorFlow ops.

Here as there words are what stands between spaces in a context, and its tokens are cut
from normalised words. N contexts; C code points, V words, T tokens and G characters of
normalised words, all of all contexts; [S] spans of tokens.
"""

import functools

import tensorflow as tf

from data import graph_tokenization

_WORD_ENDS = " \t\r\n\u202f"  # as in squad.Paragraph

_SEARCH_WIDTH = 512  # places that are compared at a time


class GraphTexts:
    """Turns spans of tokens into text.

    Args:
        tokens: graph_tokenization.GraphTokens of the contexts.
    """

    def __init__(self, tokens: graph_tokenization.GraphTokens):
        self._tokens = tokens
        codes = tokens.codes.flat_values
        is_space = functools.reduce(
            tf.logical_or, [codes == ord(space) for space in _WORD_ENDS]
        )
        # Every context begins with a space, which the tokenizer put there.
        after_space = tf.pad(is_space, [[1, 0]])[:-1]
        starts_word = ~is_space & after_space
        self._word_of_code = tf.cumsum(tf.cast(starts_word, tf.int32)) - 1  # [C]
        # By word, and for the end of all: characters before it, as they stand in the
        # context and as normalised, [V + 1].
        first_codes = tf.concat([_where(starts_word), [tf.size(codes)]], axis=0)
        self._letters_before = tf.gather(_sums_before(~is_space), first_codes)
        self._normal_before = tf.gather(_sums_before(tokens.counts), first_codes)
        self._letters = _where(~is_space)  # which code points are not spaces
        self._unknown_before = _sums_before(tokens.are_unknown)  # [T + 1]
        # Words with single spaces, as the original joins them.
        self._joined_before = _sums_before(~is_space | ~after_space)  # [C + 1]
        self._joined = tf.boolean_mask(
            tf.where(is_space, ord(" "), codes), ~is_space | ~after_space
        )
        self._set_up_search(tokens.words.flat_values)

    def _set_up_search(self, words: tf.Tensor):
        """Writes down where in the normalised words, with spaces, characters stand."""
        self._normal = tf.strings.reduce_join(words, separator=" ")
        letters = tf.strings.unicode_decode(tf.strings.reduce_join(words), "UTF-8")
        self._sizes = _utf8_size(letters)  # [G]
        lengths = tf.strings.length(words, unit="UTF8_CHAR")
        spaces_before = tf.repeat(tf.range(tf.size(words)), lengths)
        self._bytes_before = tf.cumsum(self._sizes, exclusive=True) + spaces_before

    def characters(self, first: tf.Tensor, last: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The code points that the tokens `first` to `last` are, exactly.

        Args:
            first, last: int32 [S], counted over all contexts.
        Returns:
            two int32 [S]: the first of them and the one after the last, counted over
            all contexts and the spaces before them.
        """
        starts = tf.gather(self._tokens.starts, first)
        return starts, tf.gather(self._tokens.ends, last)

    def exact_texts(self, starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
        """Strings [S] of code points as `characters` gives them."""
        return _encode(self._tokens.codes.flat_values, starts, ends)

    def final_texts(self, first: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
        """As `squad_text.Texts.final_text`.

        Args:
            first, last: int32 [S], tokens counted over all contexts.
        Returns:
            string [S].
        """
        starts, ends = self._final_places(first, last)
        starts = tf.gather(self._joined_before, starts)
        ends = tf.gather(self._joined_before, ends)
        # Many spans have the same text, and it can be very long.
        size = tf.cast(tf.size(self._joined) + 1, tf.int64)
        keys = tf.cast(starts, tf.int64) * size + tf.cast(ends, tf.int64)
        keys, numbers = tf.unique(keys)
        starts, ends = (tf.cast(part, tf.int32) for part in (keys // size, keys % size))
        return tf.gather(_encode(self._joined, starts, ends), numbers)

    def _final_places(self, first: tf.Tensor, last: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Of `final_texts`: the first code point and the one after the last, [S]."""
        tokens = self._tokens
        start_word, end_word = (
            tf.gather(self._word_of_code, tf.gather(tokens.starts, token))
            for token in (first, last)
        )
        start_letter = tf.gather(self._letters_before, start_word)
        end_letter = tf.gather(self._letters_before, end_word + 1)
        start_normal = tf.gather(self._normal_before, start_word)
        end_normal = tf.gather(self._normal_before, end_word + 1)
        # What is found in the normalised words is found in the context by counting, if
        # both have the same number of characters. The words of "[UNK]" are not found.
        num_unknown = tf.gather(self._unknown_before, last + 1) - tf.gather(
            self._unknown_before, first
        )
        is_found = end_normal - start_normal == end_letter - start_letter
        is_found &= num_unknown == 0
        start = tf.gather(tokens.firsts, first)
        end = tf.gather(tokens.firsts + tokens.lengths, last)
        place = self._first_place(tf.where(is_found, start_normal, start), start, end)
        found = start_letter + place - start_normal
        start_letter = tf.where(is_found, found, start_letter)
        end_letter = tf.where(is_found, found + end - start, end_letter)
        return (
            tf.gather(self._letters, start_letter),
            tf.gather(self._letters, end_letter - 1) + 1,
        )

    def _first_place(
        self, earliest: tf.Tensor, start: tf.Tensor, end: tf.Tensor
    ) -> tf.Tensor:
        """Where what stands from `start` to `end` is first found, from `earliest` on.

        Args:
            earliest, start, end: int32 [S], normalised characters of all words.
        Returns:
            int32 [S], `start` if there is no earlier place.
        """
        first_byte = tf.gather(self._bytes_before, start)
        end_byte = tf.gather(self._bytes_before + self._sizes, end - 1)
        length = end_byte - first_byte
        wanted = tf.strings.substr(self._normal, first_byte, length)[:, tf.newaxis]
        width = tf.minimum(tf.reduce_max(start - earliest) + 1, _SEARCH_WIDTH)

        def is_unsure(offset, place):
            # From `earliest + offset` on there is more to compare.
            return tf.reduce_any(earliest + offset < place)

        def search(offset, place):
            places = (earliest + offset)[:, tf.newaxis] + tf.range(width)
            places = tf.minimum(places, place[:, tf.newaxis])  # [S, width]
            there = tf.strings.substr(
                self._normal,
                tf.gather(self._bytes_before, places),
                tf.broadcast_to(length[:, tf.newaxis], tf.shape(places)),
            )
            places = tf.where(there == wanted, places, place[:, tf.newaxis])
            return offset + width, tf.reduce_min(places, axis=1)

        _, place = tf.while_loop(is_unsure, search, [0, start], parallel_iterations=1)
        return place


def _where(mask: tf.Tensor) -> tf.Tensor:
    """The places of what is true, int32."""
    return tf.cast(tf.where(mask)[:, 0], tf.int32)


def _sums_before(values: tf.Tensor) -> tf.Tensor:
    """For each place of [X], and for the end, the sum of what is before: [X + 1]."""
    return tf.pad(tf.cumsum(tf.cast(values, tf.int32)), [[1, 0]])


def _utf8_size(codes: tf.Tensor) -> tf.Tensor:
    """How many bytes each code point has, int32."""
    return 1 + sum(
        tf.cast(codes >= first, tf.int32) for first in (0x80, 0x800, 0x10000)
    )


def _encode(codes: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
    """Strings [S] of the codes from each start to each end."""
    parts = tf.gather(codes, tf.ragged.range(starts, ends))
    return tf.strings.unicode_encode(parts, "UTF-8")
