"""What an export is compared with the model in memory on, and how."""

import numpy as np
import tensorflow as tf

# Plain, accents, CJK, symbols, spaces of all kinds, nothing, very long.
TEXTS = (
    "How do I locate my card?",
    "Crème brûlée, naïve Ångström; ÉCOLE",
    "東京は日本の首都です",
    "a\u00a0b\u2028c\u200bd 😀 100% [MASK] İstanbul ΣΊΣΥΦΟΣ",
    "",
    "word " * 600,
)


def difference(actual, expected):
    """The largest difference, relative to what is expected where that is above 1.

    Of large logits the same digits agree as of small ones. NaN if what came is not
    finite.

    Args:
        actual, expected: float, of the same shape.
    Returns:
        float.
    Raises:
        ValueError: their shapes differ.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        raise ValueError(
            f"the export gives values of shape {list(actual.shape)} where the model "
            f"in memory gives {list(expected.shape)}"
        )
    if not np.isfinite(actual).all():
        return float("nan")
    differences = np.abs(actual - expected) / np.maximum(1, np.abs(expected))
    return float(np.max(differences, initial=0))


def differences(actual, expected):
    """Yields `difference` of each of the values that are expected, by name.

    Args:
        actual: dict of name → float, which may have more names.
        expected: dict of name → float.
    """
    for name, values in sorted(expected.items()):
        yield difference(actual[name], values)


def mismatch(actual, expected):
    """0 if two lists of texts or numbers are the same, otherwise NaN.

    Args:
        actual, expected: arrays, or nested lists.
    """
    return 0.0 if np.array_equal(actual, expected) else float("nan")


def random_batches(config, max_seq_length, choices=(), sizes=None):
    """Yields sequences of one token, and long ones of several lengths.

    Args:
        config: BertConfig.
        max_seq_length: int.
        choices: (int,) if sequences come in groups of so many, else ().
        sizes: (rows, length) of each batch.
    Yields:
        dict with input_ids, input_mask and segment_ids, in this order: int32, [batch,
        *choices, seq_length].
    """
    rng = np.random.default_rng(0)
    for rows, length in sizes or ((1, 1), (3, max_seq_length)):
        shape = (rows, *choices, length)
        lengths = rng.integers(1, length + 1, (rows, *choices, 1))
        segments = rng.integers(0, min(2, config.type_vocab_size), shape)
        batch = {
            "input_ids": rng.integers(0, config.vocab_size, shape),
            "input_mask": np.arange(length) < lengths,
            "segment_ids": segments,
        }
        yield {name: tf.constant(ids, tf.int32) for name, ids in batch.items()}
