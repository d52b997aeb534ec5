"""Text to WordPiece tokens and ids, exactly as the models were trained (section 3).

Devlin et al. 2018, "BERT: Pre-training of Deep Bidirectional Transformers for Language
Understanding". A text is first cut into words at whitespace, punctuation and CJK
ideographs (`BasicTokenizer`), then each word into the longest pieces that are in the
vocabulary (`WordpieceTokenizer`). `FullTokenizer` does both and remembers the results.
"""

import itertools
import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable

from data import characters

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

# A longer word is [UNK]. Many other tokenizers stop at 100, the original never did.
MAX_CHARS_PER_WORD = 200

# Together these bound a tokenizer's memory on any corpus: 40 MB for English words.
_MAX_CACHE_ENTRIES = 1 << 17
_MAX_CACHED_LENGTH = 32

_ASCII_WORDS = re.compile("[0-9A-Za-z]+|[!-~]")


def load_vocab(vocab_file: str | os.PathLike) -> dict[str, int]:
    """Reads a vocabulary: UTF-8, one token a line, the id is the line number from 0.

    Lines end at "\\n" only (the Chinese vocabulary has a line that holds U+2028) and
    are stripped, so a blank line is the empty token. Of lines that differ only in the
    whitespace around the token, the last gives the id.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is empty, starts with a byte order mark, is not UTF-8, has
            the same line twice or lacks one of `SPECIAL_TOKENS`.
    """
    if not os.path.exists(vocab_file):
        raise FileNotFoundError(
            f"vocabulary {vocab_file} does not exist; name a file that does: that of "
            "a released model came with it, build_vocab.py makes others"
        )
    with open(vocab_file, "rb") as file:
        lines = _decode_vocab(file.read(), vocab_file).split("\n")
    if not lines[-1]:
        lines.pop()
    vocab, first_line = {}, {}
    for token_id, line in enumerate(lines):
        if line.strip() and line in first_line:
            raise ValueError(
                f"{vocab_file}, line {token_id + 1}: token {line.strip()!r} is on line "
                f"{first_line[line]} already; remove one and check that the number of "
                "lines is still the model's vocab_size"
            )
        first_line[line] = token_id + 1
        vocab[line.strip()] = token_id
    missing = [token for token in SPECIAL_TOKENS if token not in vocab]
    if missing:
        raise ValueError(
            f"{vocab_file} lacks {' and '.join(missing)} in its {len(lines)} lines; "
            "pass the vocab.txt that came with the model"
        )
    return vocab


def _decode_vocab(content: bytes, vocab_file: str | os.PathLike) -> str:
    """The file's text, or a ValueError that says where it is not UTF-8."""
    if not content:
        raise ValueError(f"vocabulary {vocab_file} is empty; it needs one token a line")
    if content.startswith(b"\xef\xbb\xbf"):
        raise ValueError(
            f"{vocab_file}, line 1: starts with a byte order mark, which would become "
            "part of the first token; save the file as UTF-8 without it"
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{vocab_file}, line {line}: byte {content[error.start]:#04x} at offset "
            f"{error.start} is not valid UTF-8; save the file as UTF-8"
        ) from None


def convert_to_unicode(text: str | bytes) -> str:
    """`text` as str; bytes are read as UTF-8 and what is not UTF-8 is left out."""
    if isinstance(text, str):
        return text
    if isinstance(text, bytes):
        return text.decode("utf-8", "ignore")
    raise ValueError(f"text must be str or bytes, got {type(text).__name__}")


def printable_text(text: str | bytes) -> str:
    """`text` in the form that print() and logging take."""
    return convert_to_unicode(text)


def validate_case_matches_checkpoint(
    do_lower_case: bool, init_checkpoint: str | os.PathLike | None
) -> None:
    """Refuses a `do_lower_case` that the checkpoint's folder contradicts by its name.

    `init_checkpoint` is a file or prefix in that folder, or the folder itself. A name
    that does not tell ("my_model") and no checkpoint at all are accepted.

    Raises:
        ValueError: the two contradict each other.
    """
    # With either separator: a path may come from a config written on another system.
    parts = re.split(r"[/\\]+", str(init_checkpoint or "").rstrip("/\\"))
    verdicts = [(name, _names_uncased_model(name)) for name in reversed(parts[-2:])]
    name, is_uncased = next((v for v in verdicts if v[1] is not None), ("", None))
    if is_uncased is None or is_uncased == bool(do_lower_case):
        return
    kind = "an uncased" if is_uncased else "a cased"
    raise ValueError(
        f"{init_checkpoint} is {kind} model by its folder's name, {name!r}, but "
        f"do_lower_case is {bool(do_lower_case)}; pass --do_lower_case={is_uncased}, "
        "or rename the folder if its name misleads"
    )


def _names_uncased_model(name: str) -> bool | None:
    """True for an uncased model's name, False for a cased one's, None if it is open."""
    words = re.split(r"[^a-z0-9]+", name.lower())
    if "uncased" in words or "cased" in words:
        return None if {"uncased", "cased"} <= set(words) else "uncased" in words
    # These two released models lower-case although their names do not say so.
    return True if re.match(r"(multilingual|chinese)_L-12", name) else None


class BasicTokenizer:
    """Cuts a text into words, without whitespace and control characters.

    Args:
        do_lower_case: lower-case the words and strip their accents. What stays is in
            decomposed form (NFD), as in the vocabularies. If False, only cut.
    """

    def __init__(self, do_lower_case: bool = True):
        self.do_lower_case = do_lower_case

    def tokenize(self, text: str | bytes) -> list[str]:
        """The words of `text`; every punctuation mark and CJK ideograph is a word."""
        return self.split_words(convert_to_unicode(text))

    def split_words(self, text: str) -> list[str]:
        """As `tokenize`, for str only."""
        if text.isascii() and text.isprintable():  # Nothing to drop or to normalise.
            return _ASCII_WORDS.findall(text.lower() if self.do_lower_case else text)
        return self.space_words(text).split()

    def space_words(self, text: str) -> str:
        """`text`, normalised and with whitespace between any two of its words.

        Nothing looks across a space (final sigma and the order of accents depend on
        neighbours), so a text gives what its parts between spaces give.
        """
        text = text.translate(characters.CLEAN)
        if not self.do_lower_case:
            return text.translate(characters.PUNCTUATION)
        text = unicodedata.normalize("NFD", text.lower())
        return text.translate(characters.ACCENTS_AND_PUNCTUATION)


class WordpieceTokenizer:
    """Cuts a word into pieces of the vocabulary, greedily, the longest piece first.

    Args:
        vocab: the pieces; those that continue a word start with "##".
        unk_token: stands for a word that cannot be cut, as a whole.
        max_input_chars_per_word: a longer word, in code points, is `unk_token` too.
    """

    def __init__(
        self,
        vocab: Collection[str],
        unk_token: str = "[UNK]",
        max_input_chars_per_word: int = MAX_CHARS_PER_WORD,
    ):
        self.vocab = vocab
        self.unk_token = unk_token
        self.max_input_chars_per_word = max_input_chars_per_word
        self._max_piece_length = max([1, *map(len, vocab)])

    def tokenize(self, text: str | bytes) -> list[str]:
        """The pieces of the words in `text`, which whitespace separates."""
        words = convert_to_unicode(text).split()
        return [piece for word in words for piece in self.tokenize_word(word)]

    def tokenize_word(self, word: str) -> list[str]:
        """The pieces of one word."""
        if len(word) > self.max_input_chars_per_word:
            return [self.unk_token]
        vocab, longest = self.vocab, self._max_piece_length
        if word in vocab:
            return [word]
        pieces, prefix = [], ""
        while word:
            end = min(len(word), longest)
            while (piece := prefix + word[:end]) not in vocab:
                end -= 1
                if not end:
                    return [self.unk_token]
            pieces.append(piece)
            word, prefix = word[end:], "##"
        return pieces


class _IdCache(dict):
    """The ids of each string, computed when it first comes. Full, it starts anew."""

    def __init__(self, compute: Callable[[str], tuple[int, ...]]):
        super().__init__()
        self._compute = compute

    def __missing__(self, text: str) -> tuple[int, ...]:
        ids = self._compute(text)
        if len(text) <= _MAX_CACHED_LENGTH:
            if len(self) >= _MAX_CACHE_ENTRIES:
                self.clear()
            self[text] = ids
        return ids


class FullTokenizer:
    """Text to WordPiece tokens or ids.

    Args:
        vocab_file: path of the model's vocab.txt.
        do_lower_case: True for uncased models, see `BasicTokenizer`.

    Attributes:
        vocab: dict, token to id.
        inv_vocab: dict, id to token.

    Raises:
        FileNotFoundError, ValueError: as `load_vocab`.
    """

    def __init__(self, vocab_file: str | os.PathLike, do_lower_case: bool = True):
        self.vocab = load_vocab(vocab_file)
        self.inv_vocab = {token_id: token for token, token_id in self.vocab.items()}
        self.basic_tokenizer = BasicTokenizer(do_lower_case)
        self.wordpiece_tokenizer = WordpieceTokenizer(self.vocab)
        # A chunk is what stands between two spaces. Most of a text is chunks that came
        # before, and then one lookup does for all the work above.
        self._chunk_ids = _IdCache(self._encode_chunk)
        self._word_ids = _IdCache(self._encode_word)

    def tokenize(self, text: str | bytes) -> list[str]:
        """The tokens of `text`. Special tokens in it are cut like any other text."""
        return self.convert_ids_to_tokens(self.encode(text))

    def encode(self, text: str | bytes) -> list[int]:
        """The ids of the tokens of `text`."""
        # A line end is whitespace too, and must not tie two chunks into a rare one.
        chunks = convert_to_unicode(text).replace("\n", " ").split(" ")
        ids = map(self._chunk_ids.__getitem__, chunks)
        return list(itertools.chain.from_iterable(ids))

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """The id of each token; KeyError names one that the vocabulary lacks."""
        return list(map(self.vocab.__getitem__, tokens))

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """The token of each id; KeyError names one that the vocabulary lacks."""
        return list(map(self.inv_vocab.__getitem__, ids))

    def _encode_chunk(self, chunk: str) -> tuple[int, ...]:
        words, word_ids = self.basic_tokenizer.split_words(chunk), self._word_ids
        if len(words) == 1:
            return word_ids[words[0]]  # Both caches hold the same tuple.
        ids = []
        for word in words:
            ids += word_ids[word]
        return tuple(ids)

    def _encode_word(self, word: str) -> tuple[int, ...]:
        pieces = self.wordpiece_tokenizer.tokenize_word(word)
        return tuple(map(self.vocab.__getitem__, pieces))
