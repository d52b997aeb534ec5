"""Windows over texts as TensorFlow ops: what `squad_windows` does, in a graph.

N questions, W windows of all of them, T tokens of all contexts, [N, (x)] ragged.
"""

import dataclasses

import tensorflow as tf

from data import graph_tokenization, squad_windows


@dataclasses.dataclass(frozen=True)
class GraphWindows:
    """Parts of contexts, in the order of the questions.

    Attributes:
        rows: int32 [W], the question of each.
        numbers: int32 [W], counts the windows of the question.
        starts, ends: int32 [W], which tokens of the question's context are in it.
        rooms: int32 [N], the most tokens that fit behind the question.
        steps: int32 [N], tokens from one window to the next.
        num_tokens: int32 [N], of each context.
        num_windows: int32 [N].
    """

    rows: tf.Tensor
    numbers: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    rooms: tf.Tensor
    steps: tf.Tensor
    num_tokens: tf.Tensor
    num_windows: tf.Tensor

    def are_best(self, windows: tf.Tensor, tokens: tf.Tensor) -> tf.Tensor:
        """Whether no other window shows more of what is around a token.

        As `squad_windows.best_windows`, without asking every window: of those of full
        length the best are beside the one that would have the token in its middle.
        The last one may be shorter, and longer windows are preferred a little.

        Args:
            windows: int32 [S].
            tokens: int32 [S], of the question's context, in these windows.
        Returns:
            bool [S].
        """
        rows = tf.gather(self.rows, windows)
        room, step, num_tokens, count = (
            tf.gather(values, rows)
            for values in (self.rooms, self.steps, self.num_tokens, self.num_windows)
        )
        middle = (tokens - (room - 1) // 2) // step
        last_full = tf.maximum(count - 2, 0)
        choices = [tf.clip_by_value(middle + i, 0, last_full) for i in (-1, 0, 1)]
        choices = tf.stack([*choices, count - 1], axis=1)  # [S, 4]
        starts = choices * step[:, tf.newaxis]
        ends = tf.minimum(starts + room[:, tf.newaxis], num_tokens[:, tf.newaxis])
        tokens = tokens[:, tf.newaxis]
        around = tf.minimum(tokens - starts, ends - 1 - tokens)
        # In float64, as there, so that what is equal there is equal here.
        scores = tf.cast(around, tf.float64) + 0.01 * tf.cast(ends - starts, tf.float64)
        scores = tf.where(around >= 0, scores, -1.0)
        is_best = scores == tf.reduce_max(scores, axis=1, keepdims=True)
        first = tf.reduce_min(tf.where(is_best, choices, choices.dtype.max), axis=1)
        return first == tf.gather(self.numbers, windows)


def place_windows(
    num_tokens: tf.Tensor, query_lengths: tf.Tensor, sizes: squad_windows.WindowSizes
) -> GraphWindows:
    """Windows over each context, until all of it is covered; none if it is empty.

    Args:
        num_tokens: int32 [N], of each context.
        query_lengths: int32 [N], tokens of each question, without [CLS] and [SEP].
        sizes: how they share a sequence.
    """
    rooms = sizes.max_seq_length - query_lengths - 3
    steps = tf.minimum(rooms, sizes.doc_stride)
    more = -(-tf.maximum(num_tokens - rooms, 0) // steps)
    num_windows = tf.where(num_tokens > 0, 1 + more, 0)
    rows = graph_tokenization.row_numbers(num_windows)
    numbers = tf.ragged.range(num_windows).flat_values
    starts = numbers * tf.gather(steps, rows)
    ends = tf.minimum(starts + tf.gather(rooms, rows), tf.gather(num_tokens, rows))
    return GraphWindows(
        rows, numbers, starts, ends, rooms, steps, num_tokens, num_windows
    )


class Sequences:
    """Model inputs of windows: [CLS] question [SEP] part of the context [SEP].

    Args:
        query_ids: int32 [N, (question)], with [CLS] and [SEP].
        context_ids: int32 [N, (context)].
        windows: over the contexts.
    """

    def __init__(
        self,
        query_ids: tf.RaggedTensor,
        context_ids: tf.RaggedTensor,
        windows: GraphWindows,
    ):
        self._query_ids, self._context_ids = query_ids, context_ids
        self._windows = windows

    def batch(self, first: tf.Tensor, last: tf.Tensor) -> dict[str, tf.Tensor]:
        """The windows from number `first` to before `last`, as the model takes them.

        Returns:
            input_ids, input_mask, segment_ids: int32 [windows, L], L the longest.
        """
        rows, starts, ends = (
            values[first:last]
            for values in (self._windows.rows, self._windows.starts, self._windows.ends)
        )
        shift = tf.gather(tf.cast(self._context_ids.row_starts(), tf.int32), rows)
        places = tf.ragged.range(starts + shift, ends + shift)
        query = tf.gather(self._query_ids, rows)
        text = tf.gather(self._context_ids.flat_values, places)
        sep = query[:, -1:]
        ids = tf.concat([query, text, sep], axis=1)
        segments = [tf.zeros_like(query), tf.ones_like(text), tf.ones_like(sep)]
        return {
            "input_ids": ids.to_tensor(),
            "input_mask": tf.sequence_mask(ids.row_lengths(), dtype=tf.int32),
            "segment_ids": tf.concat(segments, axis=1).to_tensor(),
        }
