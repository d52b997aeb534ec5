"""What becomes of a single character when a text is cut into words (section 3).

Apart from lower-casing and NFD this is all that BERT's tokenizer does before it looks
for pieces, and it does it to each character alone. Categories are those of Python's
`unicodedata`.
"""

import unicodedata
from collections.abc import Callable

# Not kana, Hangul or U+3007: the blocks that the released models were trained with.
_CJK_BLOCKS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class _CharTable(dict):
    """A table for `str.translate` that works out each character when it first comes."""

    def __init__(self, replace: Callable[[str], str]):
        super().__init__()
        self._replace = replace

    def __missing__(self, code_point: int) -> str:
        self[code_point] = self._replace(chr(code_point))
        return self[code_point]


def clean(char: str) -> str:
    """Drops control characters, makes whitespace a space, sets CJK ideographs apart."""
    code_point, category = ord(char), unicodedata.category(char)
    if char in " \t\n\r" or category == "Zs":
        return " "
    if code_point in (0, 0xFFFD) or category in ("Cc", "Cf"):
        return ""
    if any(first <= code_point <= last for first, last in _CJK_BLOCKS):
        return f" {char} "
    return char


def set_punctuation_apart(char: str) -> str:
    """Spaces around punctuation, which is category P and every ASCII symbol."""
    is_ascii_symbol = "!" <= char <= "~" and not char.isalnum()
    is_punctuation = is_ascii_symbol or unicodedata.category(char).startswith("P")
    return f" {char} " if is_punctuation else char


def _drop_accent_or_set_apart(char: str) -> str:
    return "" if unicodedata.category(char) == "Mn" else set_punctuation_apart(char)


CLEAN = _CharTable(clean)
PUNCTUATION = _CharTable(set_punctuation_apart)
ACCENTS_AND_PUNCTUATION = _CharTable(_drop_accent_or_set_apart)
