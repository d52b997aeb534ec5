"""What becomes of characters, as TensorFlow ops (`tokenization.BasicTokenizer`).

TensorFlow's own text ops follow the Unicode tables of the ICU versions they were built
with (13 for `tf.strings.lower`, 16 for TF.Text's NFD), not Python's, and differ from
the tokenizer that the model was trained with. So what becomes of each code point is
worked out in Python, once, and written into the graph as a table. Two rules look at
neighbours and are ops of their own: the final sigma and the order of combining marks.

N texts, C code points of all texts, R the longest replacement, [N, (x)] ragged.
"""

import functools
import unicodedata
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from data import characters

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


class GraphCharacters(tf.Module):
    """Normalises texts and sets their words apart.

    Args:
        do_lower_case: as of `BasicTokenizer`.
    """

    def __init__(self, do_lower_case: bool):
        super().__init__()
        self.do_lower_case = do_lower_case
        with tf.device("CPU"):
            page_of_block, pages, replacements = map(
                tf.constant, _character_table(do_lower_case)
            )
        self._page_of_block, self._pages = page_of_block, pages
        self._replacements = replacements

    def counts(self, codes: tf.Tensor) -> tf.Tensor:
        """How many characters of words each code point becomes; a space becomes none.

        Neighbours change only which characters, never how many.

        Args:
            codes: int32 [C].
        Returns:
            int32 [C].
        """
        written = self._written(codes)
        is_written = (written >= 0) & (_code(written) != ord(" "))
        return tf.math.count_nonzero(is_written, axis=1, dtype=tf.int32)

    def are_accents(self, codes: tf.Tensor) -> tf.Tensor:
        """Whether each code point is a mark that is dropped: int32 [C] to bool [C]."""
        written = self._written(codes)
        is_dropped = tf.reduce_all(written < 0, axis=1)
        return is_dropped & (written[:, 0] > _PADDING)

    def space_words(self, codes: tf.RaggedTensor) -> tf.Tensor:
        """[N, (code points)] to string [N], as `BasicTokenizer.space_words`."""
        flat = codes.flat_values  # [C]
        if self.do_lower_case:
            has_sigma = tf.reduce_any(flat == _SIGMA)
            flat = tf.cond(has_sigma, lambda: self._lower_sigmas(flat), lambda: flat)
        written = self._written(flat)  # [C, R]
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

    def _look_up(self, codes: tf.Tensor) -> tf.Tensor:
        """The entries of `pages` for some code points."""
        page = tf.gather(self._page_of_block, tf.bitwise.right_shift(codes, 8))
        return tf.gather(self._pages, page * 256 + tf.bitwise.bitwise_and(codes, 255))

    def _written(self, codes: tf.Tensor) -> tf.Tensor:
        """The rows of `replacements` for some code points: [C] to [C, R]."""
        return tf.gather(
            self._replacements, tf.bitwise.right_shift(self._look_up(codes), 2)
        )

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
