"""Gives positions that were never trained something to start from.

In phase 1 of pre-training (Devlin et al. 2018, A.2) a model sees 128 positions. Those
behind are random when phase 2 begins, and a short phase 2 does not mend that. As copies
of the trained ones they bring what was learnt about neighbours: so Beltagy et al. 2020,
"Longformer", section 5, went from 512 positions to 4,096.
"""

import numpy as np

_POSITION_EMBEDDINGS = "bert/embeddings/position_embeddings"


def grow(weights, num_positions, num_trained=None):
    """Makes every position behind the trained ones a copy of one of them.

    Args:
        weights: {TF1 name: np.ndarray}, with the position embeddings.
        num_positions: int, rows of the result; not fewer than before.
        num_trained: int, rows at the beginning that were trained; None for all.
    Returns:
        {TF1 name: np.ndarray}, a new dict, in which row p of the position embeddings is
        row p modulo num_trained of before. The other arrays are the same objects.
    Raises:
        ValueError: there are no position embeddings, or not so many.
    """
    if _POSITION_EMBEDDINGS not in weights:
        raise ValueError(f"the checkpoint has no {_POSITION_EMBEDDINGS}")
    old = weights[_POSITION_EMBEDDINGS]
    if num_positions < len(old):
        raise ValueError(
            f"the model has {len(old)} positions and cannot shrink to {num_positions}"
        )
    num_trained = num_trained or len(old)
    if num_trained > len(old):
        raise ValueError(
            f"{num_trained} trained positions are more than the model's {len(old)}"
        )
    return {
        **weights,
        _POSITION_EMBEDDINGS: old[np.arange(num_positions) % num_trained],
    }
