"""Vectors of tokens and sentences out of the layers of an encoder."""

import tensorflow as tf


def first(hidden_states, input_mask):
    """The vector of [CLS].

    Args:
        hidden_states: float, [batch, seq_length, hidden_size].
        input_mask: int32, [batch, seq_length]; 1 for real tokens, [CLS] and [SEP] too.
    Returns:
        float, [batch, hidden_size].
    """
    del input_mask  # [CLS] is always there
    return hidden_states[:, 0]


def mean(hidden_states, input_mask):
    """The mean over real tokens (Reimers and Gurevych 2019); shapes as in `first`."""
    # Not [:, :, None], which LiteRT cannot convert.
    weights = tf.expand_dims(tf.cast(input_mask, hidden_states.dtype), -1)
    total = tf.reduce_sum(hidden_states * weights, axis=1)
    return total / tf.maximum(tf.reduce_sum(weights, axis=1), 1)


def maximum(hidden_states, input_mask):
    """The largest value of each feature over real tokens; shapes as in `first`."""
    is_real = tf.expand_dims(tf.cast(input_mask, tf.bool), -1)
    least = tf.as_dtype(hidden_states.dtype).min
    return tf.reduce_max(tf.where(is_real, hidden_states, least), axis=1)


POOLINGS = {"cls": first, "mean": mean, "max": maximum}


def check(config, pooling):
    """Refuses the vector of a token that sees nothing of the text.

    Args:
        config: BertConfig.
        pooling: key of `POOLINGS`, or None.
    Raises:
        ValueError: [CLS] of a left-to-right model, which is the same for all texts.
    """
    if pooling == "cls" and config.visibility == "left_to_right":
        raise ValueError(
            "--pooling=cls takes the first token, which sees nothing but itself in "
            "this left-to-right model; take mean or max"
        )


def select(outputs, batch, layers, pooling=None):
    """The vectors of some layers.

    Args:
        outputs: dict of BertEncoder's outputs.
        batch: dict with input_mask, see `first`.
        layers: ints; 0 is the first encoder layer, -1 the last.
        pooling: key of `POOLINGS`, or None for the vectors of all tokens.
    Returns:
        float, [batch, layers, hidden_size], or without pooling [batch, seq_length,
        layers, hidden_size].
    """
    blocks = outputs["encoder_outputs"][1:]  # the first are the embeddings
    vectors = [blocks[layer] for layer in layers]
    if pooling:
        pool = POOLINGS[pooling]
        vectors = [pool(block, batch["input_mask"]) for block in vectors]
    return tf.stack(vectors, axis=-2)
