"""Makes room for new entries of the vocabulary in trained weights.

A new entry starts as the mean of the pieces that stood for it before, in the word
embeddings and in the bias of the masked LM. Both are linear in the logit of an entry,
so the logit of a new one is the mean of those of its old pieces: it cannot drown the
others. All other weights stay as they are, bit by bit.
"""

import numpy as np

_WORD_EMBEDDINGS = "bert/embeddings/word_embeddings"
# Every variable with a row for each entry. The masked LM's output weights are the word
# embeddings.
_PER_ENTRY = (_WORD_EMBEDDINGS, "cls/predictions/output_bias")


def grow(weights, sources, vocab_size):
    """Adds or replaces rows.

    Args:
        weights: {TF1 name: np.ndarray}, with the word embeddings.
        sources: {int, id of a new entry: list of int, old ids of its pieces}.
        vocab_size: int, rows of the result; not fewer than before.
    Returns:
        {TF1 name: np.ndarray}, a new dict. Arrays without a row per entry are the same
        objects; the old rows that are not in `sources` have the same bits.
    Raises:
        ValueError: there are no word embeddings, rows would be lost, or a row that is
            added has no source.
    """
    if _WORD_EMBEDDINGS not in weights:
        raise ValueError(f"the checkpoint has no {_WORD_EMBEDDINGS}")
    num_old = len(weights[_WORD_EMBEDDINGS])
    if vocab_size < num_old:
        raise ValueError(
            f"the model has {num_old} entries and cannot shrink to {vocab_size}"
        )
    lacking = sorted(set(range(num_old, vocab_size)) - sources.keys())
    if lacking:
        raise ValueError(
            f"line {lacking[0] + 1} of the new vocabulary is blank or repeated, so its "
            "embedding has no value to start from; remove it"
        )
    grown = dict(weights)
    for name in set(_PER_ENTRY) & weights.keys():
        old = weights[name]
        new = np.zeros((vocab_size, *old.shape[1:]), old.dtype)
        new[:num_old] = old
        for row, pieces in sources.items():
            new[row] = np.mean(old[pieces], axis=0, dtype=np.float64)
        grown[name] = new
    return grown
