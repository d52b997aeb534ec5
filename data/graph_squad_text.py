"""The text that a span of tokens stands for: `squad_text`, as TensorFlow ops.

Here as there words are what stands between spaces in a context, and its tokens are cut
from normalised words. N contexts; C code points, V words, T tokens and G characters of
normalised words, all of all contexts; [S] spans of tokens.
"""

import functools

import tensorflow as tf

from data import graph_tokenization

_WORD_ENDS = " \t\r\n\u202f"  # as in squad.Paragraph

_SEARCH_SIZE = 8192  # places that are compared at a time


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
        self._num_places = tf.size(self._joined, tf.int64) + 1
        # The normalised words with spaces, and where in it their characters stand.
        words = tokens.words.flat_values
        self._normal = tf.strings.unicode_decode(
            tf.strings.reduce_join(words, separator=" "), "UTF-8"
        )
        lengths = tf.strings.length(words, unit="UTF8_CHAR")
        word_of_normal = graph_tokenization.row_numbers(lengths)  # [G]
        self._normal_places = tf.range(tf.size(word_of_normal)) + word_of_normal

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

    def final_places(self, first: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
        """Where `squad_text.Texts.final_text` of tokens stands, as a number.

        Args:
            first, last: int32 [S], tokens counted over all contexts.
        Returns:
            int64 [S], for `final_texts`. 0, which is never given, stands for "".
        """
        starts, ends = (
            tf.cast(tf.gather(self._joined_before, codes), tf.int64)
            for codes in self._final_codes(first, last)
        )
        return starts * self._num_places + ends

    def final_texts(self, places: tf.Tensor) -> tf.Tensor:
        """The texts at int64 places [S], with single spaces: string [S]."""
        starts, ends = places // self._num_places, places % self._num_places
        return _encode(self._joined, tf.cast(starts, tf.int32), tf.cast(ends, tf.int32))

    def _final_codes(self, first: tf.Tensor, last: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Of the final text: the first code point and the one after the last, [S]."""
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
        end = tf.gather(tokens.firsts, last) + tf.gather(tokens.lengths, last)
        place = self._first_places(tf.where(is_found, start_normal, start), start, end)
        found = start_letter + place - start_normal
        start_letter = tf.where(is_found, found, start_letter)
        end_letter = tf.where(is_found, found + end - start, end_letter)
        return (
            tf.gather(self._letters, start_letter),
            tf.gather(self._letters, end_letter - 1) + 1,
        )

    def _first_places(
        self, earliest: tf.Tensor, start: tf.Tensor, end: tf.Tensor
    ) -> tf.Tensor:
        """Where what stands from `start` to `end` is first found, from `earliest` on.

        Args:
            earliest, start, end: int32 [S], normalised characters of all words.
        Returns:
            int32 [S], `start` if there is no earlier place.
        """
        rows = tf.where(earliest < start)  # [R, 1]
        earliest, last, end = (tf.gather_nd(x, rows) for x in (earliest, start, end))
        first = tf.gather(self._normal_places, last)
        length = tf.gather(self._normal_places, end - 1) + 1 - first
        columns = tf.range(tf.reduce_max(tf.pad(length, [[1, 0]])))
        wanted = self._normal_at(first, columns)  # [R, longest]
        width = tf.maximum(_SEARCH_SIZE // tf.maximum(tf.size(last), 1), 1)

        def is_unsure(offset, place):
            return tf.reduce_any(earliest + offset < place)

        def search(offset, place):
            places = (earliest + offset)[:, tf.newaxis] + tf.range(width)
            places = tf.minimum(places, place[:, tf.newaxis])  # [R, width]
            first = tf.gather(self._normal_places, places)
            # Few places have even the first character in common.
            pairs = tf.where(tf.gather(self._normal, first) == wanted[:, :1])
            row, places = pairs[:, 0], tf.gather_nd(places, pairs)  # [P]
            there = self._normal_at(tf.gather_nd(first, pairs), columns)
            is_same = there == tf.gather(wanted, row)  # [P, longest]
            is_same |= columns >= tf.gather(length, row)[:, tf.newaxis]
            is_same = tf.reduce_all(is_same, axis=1)
            row, places = (tf.boolean_mask(x, is_same) for x in (row, places))
            found = tf.math.unsorted_segment_min(places, row, tf.size(place))
            return offset + width, tf.minimum(place, found)

        _, place = tf.while_loop(is_unsure, search, [0, last], parallel_iterations=1)
        return tf.tensor_scatter_nd_update(start, rows, place)

    def _normal_at(self, first: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
        """What stands in the normalised words from each of [X] on: [X, columns]."""
        places = first[:, tf.newaxis] + columns
        return tf.gather(self._normal, tf.minimum(places, tf.size(self._normal) - 1))


def _where(mask: tf.Tensor) -> tf.Tensor:
    """The places of what is true, int32."""
    return tf.cast(tf.where(mask)[:, 0], tf.int32)


def _sums_before(values: tf.Tensor) -> tf.Tensor:
    """For each place of [X], and for the end, the sum of what is before: [X + 1]."""
    return tf.pad(tf.cumsum(tf.cast(values, tf.int32)), [[1, 0]])


def _encode(codes: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
    """Strings [S] of the codes from each start to each end."""
    parts = tf.gather(codes, tf.ragged.range(starts, ends))
    return tf.strings.unicode_encode(parts, "UTF-8")
