"""BERT's tokenizer written down step by step, and odd texts, to compare with.

Nothing is remembered, looked up in a table or done for more than one character at once.
"""

import random
import sys
import unicodedata

CJK_BLOCKS = [
    range(0x4E00, 0xA000),
    range(0x3400, 0x4DC0),
    range(0x20000, 0x2A6E0),
    range(0x2A700, 0x2B740),
    range(0x2B740, 0x2B820),
    range(0x2B820, 0x2CEB0),
    range(0xF900, 0xFB00),
    range(0x2F800, 0x2FA20),
]
ASCII_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


def words(text: str, do_lower_case: bool) -> list[str]:
    """What the basic tokenizer gives."""
    cleaned = ""
    for char in text:
        category = unicodedata.category(char)
        if char in " \t\n\r" or category == "Zs":
            cleaned += " "
        elif char in "\0\ufffd" or category in ("Cc", "Cf"):
            continue
        elif any(ord(char) in block for block in CJK_BLOCKS):
            cleaned += f" {char} "
        else:
            cleaned += char
    found = []
    for chunk in cleaned.split():
        word = chunk
        if do_lower_case:
            word = unicodedata.normalize("NFD", chunk.lower())
            word = "".join(c for c in word if unicodedata.category(c) != "Mn")
        spaced = ""
        for char in word:
            is_punctuation = (
                char in ASCII_PUNCTUATION or unicodedata.category(char)[0] == "P"
            )
            spaced += f" {char} " if is_punctuation else char
        found += spaced.split()
    return found


def pieces(word: str, vocab: dict[str, int]) -> list[str]:
    """What the WordPiece tokenizer gives for one word."""
    if len(word) > 200:
        return ["[UNK]"]
    found, start = [], 0
    while start < len(word):
        prefixes = [word[start:end] for end in range(len(word), start, -1)]
        if start:
            prefixes = ["##" + prefix for prefix in prefixes]
        match = next((prefix for prefix in prefixes if prefix in vocab), None)
        if match is None:
            return ["[UNK]"]
        found.append(match)
        start += len(match) - (2 if start else 0)
    return found


def tokenize(text: str, vocab: dict[str, int], do_lower_case: bool) -> list[str]:
    """What the full tokenizer gives."""
    return [p for word in words(text, do_lower_case) for p in pieces(word, vocab)]


def _chars(*blocks: tuple[int, int]) -> list[str]:
    return [chr(code) for first, last in blocks for code in range(first, last + 1)]


# All of Unicode but surrogates, which UTF-8 cannot write.
ALL_CHARS = _chars((0, 0xD7FF), (0xE000, sys.maxunicode))
_BY_CATEGORY: dict[str, list[str]] = {}
for _char in ALL_CHARS:
    _BY_CATEGORY.setdefault(unicodedata.category(_char), []).append(_char)
_MARKS = [c for c in ALL_CHARS if unicodedata.combining(c)]

ALPHABETS = [
    _chars((0x20, 0x7E)),
    list("etaoinshrdlu"),
    list("ETAOINSHRDLU"),
    list("0123456789.,-$%"),
    list(ASCII_PUNCTUATION),
    _chars((0xA0, 0x24F), (0x1E00, 0x1EFF)),  # Latin with accents
    _chars((0x370, 0x3FF), (0x1F00, 0x1FFF)),  # Greek
    list("ΣσςΑά. -'\u0301\u0345\u00ad\u00b7"),  # final sigma
    list("İıIiĞğ\u0307"),  # Turkish
    _chars((0x400, 0x52F)),  # Cyrillic
    _chars((0x590, 0x6FF)),  # Hebrew, Arabic
    _chars((0x900, 0x97F), (0xE00, 0xE7F)),  # Devanagari, Thai
    _chars((0x3400, 0x3410), (0x4DB0, 0x4E20), (0x9FF0, 0xA010)),
    _chars(
        (0xF8F0, 0xFB20), (0x2F7F0, 0x2FA30), (0x20000, 0x20010), (0x2CEA0, 0x2CEB8)
    ),
    _chars((0x3000, 0x30FF), (0xFF00, 0xFFEF)),  # kana, wide and narrow forms
    _chars((0xAC00, 0xD7A3)),  # Hangul syllables
    _chars((0x1100, 0x11FF)),  # Hangul letters
    [*_chars((0x1F300, 0x1F6FF), (0x2600, 0x27BF)), "\u200d", "\ufe0f"],  # emoji
    _chars((0x300, 0x36F)),  # accents
    _MARKS,
    _BY_CATEGORY["Mc"] + _BY_CATEGORY["Me"],
    _BY_CATEGORY["Cc"] + _BY_CATEGORY["Cf"],
    [*_BY_CATEGORY["Zs"], *"\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029\u200b"],
    _BY_CATEGORY["Co"],
    _BY_CATEGORY["Cn"],
    ALL_CHARS,
]
STRINGS = [
    "[MASK]",
    "[CLS] ",
    "[UNK]",
    "##ing",
    "\ufffd",
    "\0",
    "don't",
    " ",
    "  ",
    "\n",
]


def odd_text(rng: random.Random) -> str:
    """A few runs of characters, each of one kind; some are words of about 200."""
    parts = []
    for _ in range(rng.randint(0, 8)):
        if rng.random() < 0.15:
            parts.append(rng.choice(STRINGS))
            continue
        alphabet = rng.choice(ALPHABETS)
        parts.append("".join(rng.choices(alphabet, k=rng.randint(1, 6))))
        if rng.random() < 0.02:
            parts.append(rng.choice(alphabet) * rng.randint(190, 205))
        if rng.random() < 0.3:
            parts.append(" ")
    return "".join(parts)
