"""Texts longer than a model takes: overlapping windows, and one answer from them all.

Each window is an example of its own with the label of its document. The answer is the
mean of their logits (Devlin et al. 2018 cut such texts off; windows with a stride are
their way for SQuAD).
"""

from collections.abc import Sequence

import numpy as np
import tqdm

from data import classification, features, targets


def cut(ids: Sequence[int], size: int, stride: int) -> list[Sequence[int]]:
    """Windows of `size` tokens, one every `stride` tokens until the end is in one.

    Raises:
        ValueError: tokens would be left out between windows.
    """
    if not 1 <= stride <= size:
        raise ValueError(
            f"the stride must be between 1 and {size}, the tokens of a text in a "
            f"window, got {stride}"
        )
    starts = range(0, max(len(ids) - size, 0) + stride, stride)
    return [ids[start : start + size] for start in starts]


def documents_to_arrays(
    examples: Sequence[classification.InputExample],
    labels: Sequence[str],
    max_seq_length: int,
    tokenizer: features.Tokenizer,
    stride: int,
    kind: targets.Kind = targets.Kind.CLASS,
) -> dict[str, np.ndarray]:
    """Featurizes a data set of single texts, showing progress.

    Returns:
        What `features.examples_to_arrays` returns, with a row for every window, and
        document_ids, int32 [windows]: the index of its example, in ascending order.

    Raises:
        ValueError: an example is a pair; the stride is larger than a window.
    """
    rows, document_ids = [], []
    progress = tqdm.tqdm(examples, desc="tokenizing", unit=" documents", delay=1)
    for index, example in enumerate(progress):
        if example.text_b:
            raise ValueError(
                f"only single texts can be cut into windows, but {example.guid} is a "
                "pair; leave out the second text or the stride"
            )
        ids = np.array(tokenizer.encode(example.text_a), np.int32)
        for window in cut(ids, max_seq_length - 2, stride):
            rows.append(features.join_segments(window, [], max_seq_length, tokenizer))
            document_ids.append(index)
    document_ids = np.array(document_ids, np.int32)
    label_ids = targets.encode([e.label for e in examples], labels, kind)
    return {
        **features.pad(rows, len(rows), max_seq_length),
        "label_ids": label_ids[document_ids],
        "is_real_example": np.ones(len(rows), np.int32),
        "document_ids": document_ids,
    }


def mean_of_windows(values: np.ndarray, document_ids: np.ndarray) -> np.ndarray:
    """Means over the windows of each document.

    Args:
        values: float [windows, ...].
        document_ids: int [windows], ascending.

    Returns:
        float32 [documents, ...].
    """
    starts = np.flatnonzero(np.diff(document_ids, prepend=-1))
    sums = np.add.reduceat(values.astype(np.float64), starts)
    counts = np.diff(starts, append=len(document_ids))
    shape = (-1, *(1 for _ in values.shape[1:]))
    return (sums / counts.reshape(shape)).astype(np.float32)
