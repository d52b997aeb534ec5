"""The tokenizer as TensorFlow ops: strings in, the ids of `FullTokenizer` out.

A model exported with it takes raw text. TensorFlow's own text ops follow the Unicode
tables of the ICU versions they were built with (13 for `tf.strings.lower`, 16 for
TF.Text's NFD), not Python's, and differ from the tokenizer that the model was trained
with. So what becomes of each code point is worked out in Python, once, and written into
the graph as a table. Two rules look at neighbours and are ops of their own: the final
sigma and the order of combining marks.

N texts, C code points of all texts, R the longest replacement, [N, (x)] ragged.
"""

import functools
import os
import unicodedata
from collections.abc import Iterator

import numpy as np
import tensorflow as tf
import tensorflow_text

from data import characters, tokenization

_SIGMA, _SMALL_SIGMA, _FINAL_SIGMA = 0x3A3, 0x3C3, 0x3C2

# A replacement is a row of numbers: code + (combining class << 21) for a code point
# that stays; -1 - combining class for an accent, which is dropped once it has had its
# say in the order of marks; padding is an accent behind all others, of class 255.
_CLASS_SHIFT = 21
_CODE_MASK = (1 << _CLASS_SHIFT) - 1
_ITSELF = 0x110000  # Beyond Unicode; stands for the code point that is replaced.
_PADDING = -256

# What a code point is to a sigma nearby (Unicode, section 3.13, Final_Sigma).
_CASED, _TRANSPARENT = 1, 2


def _replacement(char: str, do_lower_case: bool) -> Iterator[int]:
    """The row, without padding, that stands for `char`: see `BasicTokenizer`."""
    text = characters.clean(char)
    if do_lower_case:
        text = unicodedata.normalize("NFD", text.lower())
    for part in text:
        combining_class = unicodedata.combining(part) if do_lower_case else 0
        if do_lower_case and unicodedata.category(part) == "Mn":
            yield -1 - combining_class
            continue
        for written in characters.set_punctuation_apart(part):
            code = _ITSELF if written == char else ord(written)
            code = ord(" ") if written.isspace() else code
            yield code | combining_class << _CLASS_SHIFT


def _role_beside_sigma(char: str) -> int:
    """_CASED, _TRANSPARENT (the next one decides) or 0, found by asking `str.lower`."""
    if not characters.clean(char):
        return _TRANSPARENT
    if f"{char}Σ".lower().endswith("ς"):
        return _CASED
    return _TRANSPARENT if f"A{char}Σ".lower().endswith("ς") else 0


@functools.cache
def _character_table(do_lower_case: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What becomes of each code point.

    Returns:
        page_of_block: int32 [4352], the page for each block of 256 code points.
        pages: int32 [pages * 256], 4 * row in `replacements` + role beside a sigma.
        replacements: int32 [rows, R].
    """
    rows = {(_ITSELF,): 0}
    table = np.zeros([0x110000 // 256, 256], np.int32)
    for block, entries in enumerate(table):
        chars = [chr(block * 256 + i) for i in range(256)]
        # Most of Unicode: unassigned, private or surrogate, which stays as it is.
        if {unicodedata.category(char) for char in chars} <= {"Cn", "Co", "Cs"}:
            continue
        for i, char in enumerate(chars):
            row = rows.setdefault(tuple(_replacement(char, do_lower_case)), len(rows))
            entries[i] = 4 * row + _role_beside_sigma(char)
    pages, page_of_block = np.unique(table, axis=0, return_inverse=True)
    width = max(map(len, rows))
    replacements = [row + (_PADDING,) * (width - len(row)) for row in rows]
    return (
        page_of_block.ravel().astype(np.int32),
        pages.ravel(),
        np.array(replacements, np.int32),
    )


class GraphTokenizer(tf.Module):
    """Text to ids inside a graph, equal to `FullTokenizer.encode` on every text.

    Its only op from outside TensorFlow is TF.Text's `FastWordpieceTokenizeWithOffsets`:
    a program that loads a SavedModel of it must import tensorflow_text first.

    Args:
        vocab_file: path of the model's vocab.txt.
        do_lower_case: as of `FullTokenizer`.

    Raises:
        FileNotFoundError, ValueError: as `tokenization.load_vocab`.
    """

    def __init__(
        self,
        vocab_file: str | os.PathLike,
        do_lower_case: bool = True,
        name: str | None = None,
    ):
        super().__init__(name)
        vocab = tokenization.load_vocab(vocab_file)
        self.do_lower_case = do_lower_case
        self._cls_id, self._sep_id = vocab["[CLS]"], vocab["[SEP]"]
        # No text holds an empty piece. Ids are looked up, since a vocabulary with a
        # token on two lines skips one.
        pieces = [token for token in vocab if token not in ("", "##")]
        self._wordpiece = tensorflow_text.FastWordpieceTokenizer(
            pieces,
            token_out_type=tf.int32,
            no_pretokenization=True,
            max_bytes_per_word=4 * tokenization.MAX_CHARS_PER_WORD,
        )
        with tf.device("CPU"):
            self._ids = tf.constant([vocab[piece] for piece in pieces], tf.int32)
            page_of_block, pages, replacements = map(
                tf.constant, _character_table(do_lower_case)
            )
        self._page_of_block, self._pages = page_of_block, pages
        self._replacements = replacements

    def __call__(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Tokenizes each text.

        Args:
            text: string [N], UTF-8; bytes that are not UTF-8 are left out.

        Returns:
            int32 [N, (pieces)].
        """
        words = self.words(text)  # [N, (words)]
        with tf.device("CPU"):
            lengths = tf.strings.length(words.flat_values, unit="UTF8_CHAR")
            is_long = lengths > tokenization.MAX_CHARS_PER_WORD
            # More bytes than the op takes for a word: it gives [UNK].
            unknown = "?" * (4 * tokenization.MAX_CHARS_PER_WORD + 1)
            flat_words = tf.where(is_long, unknown, words.flat_values)
            pieces = self._wordpiece.tokenize(words.with_flat_values(flat_words))
            pieces = pieces.merge_dims(-2, -1)
            return pieces.with_flat_values(tf.gather(self._ids, pieces.flat_values))

    def words(self, text: tf.Tensor) -> tf.RaggedTensor:
        """As `BasicTokenizer.tokenize`: string [N] to string [N, (words)]."""
        with tf.device("CPU"):  # The ops on strings have no other kernels.
            # The space keeps a text's marks and sigmas from those of the text before.
            text = tf.strings.join([" ", text])
            codes = tf.strings.unicode_decode(text, "UTF-8", errors="ignore")
            return tf.strings.split(self._space_words(codes))

    def pack(
        self,
        ids_a: tf.RaggedTensor,
        ids_b: tf.RaggedTensor | None,
        max_seq_length: int | tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Joins texts as the model takes them: [CLS] a [SEP], or [CLS] a [SEP] b [SEP].

        Too long a pair loses tokens from the end of the longer text, of the second if
        they are equal. An empty second text counts as none.

        Args:
            ids_a: int32 [N, (a)].
            ids_b: int32 [N, (b)] or None.
            max_seq_length: the most tokens in a row, at least 3.

        Returns:
            input_ids, input_mask, segment_ids: int32 [N, L], L the longest row.

        Raises:
            ValueError: max_seq_length is an int below 3.
        """
        if isinstance(max_seq_length, int) and max_seq_length < 3:
            raise ValueError(
                "max_seq_length must be at least 3, for [CLS] and two [SEP], got "
                f"{max_seq_length}"
            )
        with tf.device("CPU"):  # As `__call__`, where the ids come from.
            num_texts = ids_a.nrows()
            if ids_b is None:
                ids_b = tf.RaggedTensor.from_row_lengths(
                    tf.zeros([0], tf.int32), tf.zeros([num_texts], tf.int64)
                )
            length_a, length_b = ids_a.row_lengths(), ids_b.row_lengths()  # [N]
            is_pair = tf.cast(length_b > 0, tf.int64)
            room = tf.cast(max_seq_length, tf.int64) - 2 - is_pair
            # What taking away one by one from the longer, or from b, comes to.
            half = (room + 1) // 2
            length_a = tf.minimum(length_a, tf.maximum(room - length_b, half))
            length_b = tf.minimum(length_b, room - length_a)
            is_pair = tf.cast(length_b > 0, tf.int64)  # If b has been cut away: no.
            cls = tf.fill([num_texts, 1], self._cls_id)
            sep = tf.fill([num_texts, 1], self._sep_id)
            first = tf.concat([cls, _cut(ids_a, length_a), sep], axis=1)
            second = tf.concat([_cut(ids_b, length_b), _cut(sep, is_pair)], axis=1)
            segments = [tf.zeros_like(first), tf.ones_like(second)]
            ids = tf.concat([first, second], axis=1)
            return {
                "input_ids": ids.to_tensor(),
                "input_mask": tf.sequence_mask(ids.row_lengths(), dtype=tf.int32),
                "segment_ids": tf.concat(segments, axis=1).to_tensor(),
            }

    def _look_up(self, codes: tf.Tensor) -> tf.Tensor:
        """The entries of `pages` for some code points."""
        page = tf.gather(self._page_of_block, tf.bitwise.right_shift(codes, 8))
        return tf.gather(self._pages, page * 256 + tf.bitwise.bitwise_and(codes, 255))

    def _space_words(self, codes: tf.RaggedTensor) -> tf.Tensor:
        """[N, (code points)] to string [N], as `BasicTokenizer.space_words`."""
        flat = codes.flat_values  # [C]
        if self.do_lower_case:
            has_sigma = tf.reduce_any(flat == _SIGMA)
            flat = tf.cond(has_sigma, lambda: self._lower_sigmas(flat), lambda: flat)
        rows = tf.bitwise.right_shift(self._look_up(flat), 2)
        written = tf.gather(self._replacements, rows)  # [C, R]
        itself = tf.expand_dims(flat, 1) + written - _ITSELF
        written = tf.where(_code(written) == _ITSELF, itself, written)
        if self.do_lower_case:
            has_spacing_mark = tf.reduce_any(written > _CODE_MASK)
            written = tf.cond(
                has_spacing_mark, lambda: _order_marks(written), lambda: written
            )
        stays = written >= 0
        counts = tf.math.count_nonzero(stays, axis=1)  # [C]
        ends = tf.pad(tf.cumsum(counts), [[1, 0]])
        spaced = tf.RaggedTensor.from_row_splits(
            tf.boolean_mask(written, stays),
            tf.gather(ends, codes.row_splits),
            validate=False,
        )
        return tf.strings.unicode_encode(spaced, "UTF-8")

    def _lower_sigmas(self, codes: tf.Tensor) -> tf.Tensor:
        """Makes each capital sigma in [C] a small one, final where a word ends."""
        roles = self._look_up(codes) % 4
        counts = roles != _TRANSPARENT
        cased = tf.boolean_mask(roles, counts) == _CASED
        before, after = tf.pad(cased, [[1, 0]])[:-1], tf.pad(cased, [[0, 1]])[1:]
        small = tf.where(before & ~after, _FINAL_SIGMA, _SMALL_SIGMA)
        small = tf.boolean_mask(small, tf.boolean_mask(codes, counts) == _SIGMA)
        return tf.tensor_scatter_nd_update(codes, tf.where(codes == _SIGMA), small)


def _code(written: tf.Tensor) -> tf.Tensor:
    """Numbers of `replacements` without their combining class."""
    return tf.bitwise.bitwise_and(written, _CODE_MASK)


def _order_marks(written: tf.Tensor) -> tf.Tensor:
    """Sorts the marks behind each base by class, and takes the classes off: [C, R].

    NFD has this order. Once the accents are gone it shows only where marks are left,
    such as the virama of Javanese, so other texts are spared the work.
    """
    flat = tf.reshape(written, [-1])
    classes = tf.where(flat < 0, -1 - flat, tf.bitwise.right_shift(flat, _CLASS_SHIFT))
    run = tf.cumsum(tf.cast(classes == 0, tf.int64))
    order = tf.argsort(run * 256 + tf.cast(classes, tf.int64), stable=True)
    flat = tf.gather(tf.where(flat < 0, flat, _code(flat)), order)
    return tf.reshape(flat, tf.shape(written))


def _cut(ids: tf.RaggedTensor | tf.Tensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """The first `lengths` [N] ids of each row."""
    longest = tf.reduce_max(tf.pad(lengths, [[1, 0]]))
    ids = ids[:, :longest]
    if isinstance(ids, tf.RaggedTensor):
        ids = ids.to_tensor()
    return tf.RaggedTensor.from_tensor(ids, lengths=lengths)
