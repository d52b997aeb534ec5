"""From the scores of tokens to answers, as TensorFlow ops: `squad_answers` in a graph.

N questions, W windows of all of them, L positions of a window, n of its best ones, S
spans. As there, spans are rows of float64, here with their window before the rest.
"""

import tensorflow as tf

from data import graph_squad_text, graph_squad_windows, squad_answers

_NO_TOKEN = -1  # stands for the tokens of no answer
_MAX_TEXTS = 256  # at a time; one text can be as long as the context

ANSWER_SPEC = {
    "first": tf.TensorSpec([], tf.int32),
    "last": tf.TensorSpec([], tf.int32),
    "text": tf.TensorSpec([], tf.string),
    "score": tf.TensorSpec([], tf.float64),
    "probability": tf.TensorSpec([], tf.float64),
    "null_score": tf.TensorSpec([], tf.float64),
}


def window_spans(
    first_window: tf.Tensor,
    logits: tuple[tf.Tensor, tf.Tensor],
    batch: dict[str, tf.Tensor],
    windows: graph_squad_windows.GraphWindows,
    options: squad_answers.AnswerOptions,
) -> tf.Tensor:
    """The spans that the best starts and ends of some windows make.

    Padding is not considered, as by squad_answers with `drop_padding`.

    Args:
        first_window: int32 [], the number of the first of them.
        logits: float [w, L] of start and end.
        batch: model inputs of these windows.
        windows: all windows.
        options: how to choose.
    Returns:
        float64 [S, 5]: window, first and last token of the context, their logits.
    """
    is_real = batch["input_mask"] > 0
    count = tf.minimum(options.n_best_size, tf.shape(is_real)[1])
    starts, ends = (
        tf.math.top_k(tf.where(is_real, values, -float("inf")), count)
        for values in logits
    )
    # The text begins where the second segment does.
    lengths = tf.reduce_sum(batch["input_mask"], axis=1)
    offsets = lengths - tf.reduce_sum(batch["segment_ids"], axis=1)
    num_tokens = lengths - 1 - offsets
    offsets, num_tokens = offsets[:, tf.newaxis], num_tokens[:, tf.newaxis, tf.newaxis]
    first = (starts.indices - offsets)[:, :, tf.newaxis]  # [w, n, 1]
    last = (ends.indices - offsets)[:, tf.newaxis, :]  # [w, 1, n]
    valid = (first >= 0) & (last < num_tokens) & (last >= first)
    valid &= last - first < options.max_answer_length
    pairs = tf.cast(tf.where(valid), tf.int32)  # [S, 3]: window, start, end
    window, start, end = tf.unstack(pairs, axis=1)
    number = window + first_window
    shift = tf.gather(windows.starts, number)
    first = tf.gather_nd(first[:, :, 0], tf.stack([window, start], axis=1)) + shift
    last = tf.gather_nd(last[:, 0, :], tf.stack([window, end], axis=1)) + shift
    columns = (
        number,
        first,
        last,
        tf.gather_nd(starts.values, tf.stack([window, start], axis=1)),
        tf.gather_nd(ends.values, tf.stack([window, end], axis=1)),
    )
    spans = tf.stack([tf.cast(column, tf.float64) for column in columns], axis=1)
    return tf.boolean_mask(spans, windows.are_best(number, first))


def choose(
    spans: tf.Tensor,
    nulls: tf.Tensor,
    windows: graph_squad_windows.GraphWindows,
    texts: graph_squad_text.GraphTexts,
    first_tokens: tf.Tensor,
    options: squad_answers.AnswerOptions,
) -> dict[str, tf.Tensor]:
    """The answer to each question; see `squad_answers.find_answer`.

    Args:
        spans: float64 [S, 5], as of `window_spans`, in the order of the windows.
        nulls: float64 [W, 2], start and end logits of [CLS].
        windows: all windows.
        texts: of the contexts.
        first_tokens: int32 [N], where the tokens of each context begin.
        options: how to choose.
    Returns:
        dict, all [N]: first and last, the tokens of the answer, counted over all
        contexts, -1 for no answer; text, as the original gives it; score, probability
        and null_score, 0 where a context has no tokens.
    """
    num_rows = tf.size(windows.num_windows)
    rows = tf.gather(windows.rows, tf.cast(spans[:, 0], tf.int32))
    shifts = tf.cast(tf.gather(first_tokens, rows), tf.float64)[:, tf.newaxis]
    spans = tf.concat([spans[:, 1:3] + shifts, spans[:, 3:]], axis=1)  # [S, 4]
    by_row = tf.RaggedTensor.from_value_rowids
    return tf.map_fn(
        lambda row: _choose_one(*row, texts, options),
        (by_row(spans, rows, num_rows), by_row(nulls, windows.rows, num_rows)),
        fn_output_signature=ANSWER_SPEC,
    )


def _choose_one(
    spans: tf.Tensor,
    nulls: tf.Tensor,
    texts: graph_squad_text.GraphTexts,
    options: squad_answers.AnswerOptions,
) -> dict[str, tf.Tensor]:
    """Of one question, from spans [S, 4] and the logits of [CLS], [windows, 2]."""
    version_2 = options.version_2_with_negative
    nulls = tf.pad(nulls, [[0, tf.cast(tf.shape(nulls)[0] == 0, tf.int32)], [0, 0]])
    null = nulls[tf.argmin(tf.reduce_sum(nulls, axis=1))]  # [2]
    none = tf.fill([2], tf.constant(_NO_TOKEN, tf.float64))
    none = tf.concat([none, null if version_2 else tf.zeros_like(null)], axis=0)[None]
    if version_2:
        spans = tf.concat([spans, none], axis=0)
    order = tf.argsort(-(spans[:, 2] + spans[:, 3]), stable=True)
    kept, kept_texts = _distinct(tf.gather(spans, order), texts, options.n_best_size)
    # No answer is among the candidates of 2.0; in 1.1 it stands for there being none.
    is_missing = tf.reduce_all(kept[:, 0] >= 0) if version_2 else tf.size(kept) == 0
    is_missing = tf.cast(is_missing, tf.int32)
    kept = tf.concat([kept, none[:is_missing]], axis=0)
    no_text = tf.constant(["" if version_2 else squad_answers.NO_CANDIDATE])
    kept_texts = tf.concat([kept_texts, no_text[:is_missing]], axis=0)
    scores = kept[:, 2] + kept[:, 3]
    exponentials = tf.exp(scores - tf.reduce_max(scores))
    chosen = _choice(kept, null, options) if version_2 else 0
    return {
        "first": tf.cast(kept[chosen, 0], tf.int32),
        "last": tf.cast(kept[chosen, 1], tf.int32),
        "text": kept_texts[chosen],
        "score": scores[chosen],
        "probability": exponentials[chosen] / tf.reduce_sum(exponentials),
        "null_score": tf.reduce_sum(null),
    }


def _choice(
    kept: tf.Tensor, null: tf.Tensor, options: squad_answers.AnswerOptions
) -> tf.Tensor:
    """Which of the candidates, [K, 4], is given in SQuAD 2.0."""
    is_span = tf.cast(kept[:, 0] >= 0, tf.int32)
    best, no_answer = tf.argmax(is_span), tf.argmin(is_span)
    odds = tf.reduce_sum(null) - kept[best, 2] - kept[best, 3]
    give_none = odds > options.null_score_diff_threshold
    give_none |= tf.reduce_max(is_span) == 0
    return tf.where(give_none, no_answer, best)


def _distinct(
    ranked: tf.Tensor, texts: graph_squad_text.GraphTexts, n_best_size: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """The first `n_best_size` of [S, 4] whose text did not come before, and texts."""
    num_spans = tf.shape(ranked)[0]

    def is_unsure(position, _, kept, *__):
        return (position < num_spans) & (tf.size(kept) < n_best_size)

    def add(position, size, kept, places, kept_texts):
        block = tf.range(position, tf.minimum(position + size, num_spans))
        block_places = _places_of(tf.gather(ranked, block), texts)
        kept = tf.concat([kept, block], axis=0)
        places = tf.concat([places, block_places], axis=0)
        # Of many spans the text stands at the same place, and it can be very long.
        firsts = _firsts(places)
        kept, places = tf.gather(kept, firsts), tf.gather(places, firsts)
        new_texts = texts.final_texts(places[tf.size(kept_texts) :])
        kept_texts = tf.concat([kept_texts, new_texts], axis=0)
        firsts = _firsts(kept_texts)[:n_best_size]
        values = (tf.gather(x, firsts) for x in (kept, places, kept_texts))
        return position + size, tf.minimum(2 * size, most), *values

    # As many as are enough if no text comes twice; then more and more at a time.
    most = max(n_best_size, _MAX_TEXTS)
    types = (tf.int32, tf.int64, tf.string)
    _, _, kept, _, kept_texts = tf.while_loop(
        is_unsure,
        add,
        (0, n_best_size, *(tf.zeros([0], dtype) for dtype in types)),
        tuple(map(tf.TensorShape, ([], [], [None], [None], [None]))),
        parallel_iterations=1,
    )
    return tf.gather(ranked, kept), kept_texts


def _firsts(values: tf.Tensor) -> tf.Tensor:
    """Where in [X] each of the different values first stands, in order."""
    different, numbers = tf.unique(values)
    return tf.math.unsorted_segment_min(
        tf.range(tf.size(values)), numbers, tf.size(different)
    )


def _places_of(spans: tf.Tensor, texts: graph_squad_text.GraphTexts) -> tf.Tensor:
    """Where the texts of spans [S, 4] stand; 0 of no answer."""
    first, last = tf.unstack(tf.cast(spans[:, :2], tf.int32), axis=1)
    rows = tf.where(first >= 0)
    places = texts.final_places(*(tf.gather_nd(token, rows) for token in (first, last)))
    return tf.scatter_nd(rows, places, tf.shape(first, tf.int64))
