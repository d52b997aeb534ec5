"""Adds words to a vocabulary that has a model, and tells where their rows come from.

The ids of all old entries stay, so the model keeps what it knows.
"""

import os
import re
from collections.abc import Iterator, Mapping

from data import tokenization, vocabulary_audit

_UNUSED = re.compile(r"\[unused\d+\]")


def choose_words(
    counts: Mapping[str, int],
    vocab: Mapping[str, int],
    num_words: int,
    min_frequency: int,
) -> list[str]:
    """The words that save the most pieces if they become entries, those first.

    A word saves, wherever it occurs, its pieces but one. The pieces of an unknown word
    are its characters, and it saves one at least.

    Raises:
        ValueError: fewer words than that are fragmented or unknown.
    """
    tokenizer = tokenization.WordpieceTokenizer(vocab)
    saved = {}
    for word, count in counts.items():
        if count < min_frequency or len(word) > tokenization.MAX_CHARS_PER_WORD:
            continue
        pieces = tokenizer.tokenize_word(word)
        if pieces == [tokenizer.unk_token]:
            saved[word] = count * max(1, len(word) - 1)
        elif len(pieces) > 1:
            saved[word] = count * (len(pieces) - 1)
    if len(saved) < num_words:
        raise ValueError(
            f"only {len(saved):,} words that occur {min_frequency} times or more are "
            f"fragmented or unknown, but {num_words:,} are asked for; lower "
            "--num_words or --min_frequency, or give more text"
        )
    ranked = vocabulary_audit.by_frequency(saved)
    return [word for word, _ in ranked[:num_words]]


def extend(
    vocab_file: str | os.PathLike, words: list[str], fill_unused: bool
) -> list[str]:
    """The lines of a vocabulary with new entries.

    Args:
        vocab_file: the old one; its lines stay as they are.
        words: entries that it does not have.
        fill_unused: whether they take the places of [unused0], [unused1], ..., instead
            of coming after the last entry.

    Raises:
        FileNotFoundError, ValueError: as `tokenization.load_vocab`; or there are not so
            many unused entries.
    """
    tokenization.load_vocab(vocab_file)  # which refuses what is no vocabulary
    with open(vocab_file, encoding="utf-8", newline="\n") as file:
        lines = file.read().removesuffix("\n").split("\n")
    if not fill_unused:
        return lines + words
    places = [k for k, line in enumerate(lines) if _UNUSED.fullmatch(line.strip())]
    if len(places) < len(words):
        raise ValueError(
            f"{vocab_file} has {len(places):,} [unused] entries for {len(words):,} "
            "words; lower --num_words, or append the words (--nofill_unused)"
        )
    for place, word in zip(places, words, strict=False):
        lines[place] = word
    return lines


def old_pieces(
    old_vocab: Mapping[str, int], new_vocab: Mapping[str, int]
) -> dict[str, list[str]]:
    """What the old vocabulary made of the new entries.

    Returns:
        New entry to its pieces, in the order of the new ids.

    Raises:
        ValueError: an old entry is gone or has another id. Only unused ones may go.
    """
    for entry, entry_id in old_vocab.items():
        new_id = new_vocab.get(entry)
        if new_id != entry_id and not (new_id is None and _UNUSED.fullmatch(entry)):
            where = "is gone" if new_id is None else f"has the id {new_id}"
            raise ValueError(
                f"{entry!r} has the id {entry_id} in the old vocabulary, but {where} "
                "in the new one; new entries must come after the old ones, or in the "
                "place of [unused] ones"
            )
    # A blank line is no entry that could stand in a text.
    new = sorted(new_vocab.keys() - old_vocab.keys() - {""}, key=new_vocab.__getitem__)
    return dict(_cut(new, old_vocab))


def _cut(
    entries: list[str], vocab: Mapping[str, int]
) -> Iterator[tuple[str, list[str]]]:
    """Yields entries with their pieces. Those of ##entries continue a word as well."""
    starting = tokenization.WordpieceTokenizer(vocab)
    # The first piece of a ##entry is looked up without its mark.
    inner = {piece for piece in vocab if piece.startswith("##")}
    inner |= {piece.removeprefix("##") for piece in inner}
    continuing = tokenization.WordpieceTokenizer(inner)
    for entry in entries:
        if not (entry.startswith("##") and len(entry) > 2):
            yield entry, starting.tokenize_word(entry)
            continue
        first, *others = continuing.tokenize_word(entry.removeprefix("##"))
        unknown = first == continuing.unk_token
        yield entry, [first if unknown else f"##{first}", *others]
