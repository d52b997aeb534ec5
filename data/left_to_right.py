"""Masked LM records for a model that reads left to right (Devlin et al. 2018, 5.1).

The comparison wants all else equal, so the left-to-right model trains on the very same
records: masked tokens are put back, and each position predicts the next token.
"""

import tensorflow as tf

from data import padding


def next_tokens(batch: padding.Batch) -> padding.Batch:
    """Replaces the masked LM of a batch by the prediction of every next token.

    Args:
        batch: features of `records.pretraining_spec`, M predictions of L positions.

    Returns:
        the batch with `input_ids` int32 [B, L] unmasked, `masked_lm_positions` int32
        [B, L - 1] of all positions but the last, `masked_lm_ids` int32 [B, L - 1], the
        tokens that follow these, and `masked_lm_weights` float32 [B, L - 1], 1 where
        the following token is real.
    """
    input_ids = _unmasked(batch)
    positions = tf.range(tf.shape(input_ids)[1] - 1)
    return {
        **batch,
        "input_ids": input_ids,
        "masked_lm_positions": tf.zeros_like(input_ids[:, 1:]) + positions,
        "masked_lm_ids": input_ids[:, 1:],
        "masked_lm_weights": tf.cast(batch["input_mask"][:, 1:], tf.float32),
    }


def _unmasked(batch: padding.Batch) -> tf.Tensor:
    """The tokens before any was replaced, int32 [B, L]."""
    shown, positions = batch["input_ids"], batch["masked_lm_positions"]
    shape = tf.shape(shown)
    # Of filling, the weight is 0, and its position is that of a real token.
    changes = batch["masked_lm_ids"] - tf.gather(shown, positions, batch_dims=1)
    changes *= tf.cast(batch["masked_lm_weights"], tf.int32)
    rows = tf.range(shape[0])[:, None] + tf.zeros_like(positions)
    return shown + tf.scatter_nd(tf.stack([rows, positions], axis=-1), changes, shape)
