"""Who may look at whom, and multi-head self-attention (Vaswani et al. 2017, 3.2).

Letters in shapes: B batch, F from (query) position, T to (key) position, N heads,
S size of a head, H hidden size = N * S.
"""

import keras
import tensorflow as tf

from modeling import dropout, layers


def _transpose_bits(x, order):
    """tf.transpose of floats, taken for integers, which has no gradient.

    On CPUs TensorFlow has oneDNN swap axes of floats, which wakes its threads and takes
    ten times as long for a short text as TensorFlow's own way, that of integers.
    """
    integers = {2: tf.int16, 4: tf.int32, 8: tf.int64}[x.dtype.size]
    return tf.bitcast(tf.transpose(tf.bitcast(x, integers), order), x.dtype)


def _swap(x):
    """[B, F, N, S] as [B, N, F, S], or the other way."""
    transpose = tf.transpose if layers.has_gradients() else _transpose_bits
    return transpose(x, [0, 2, 1, 3])


def padding_mask(input_mask):
    """Every position may look at the real tokens.

    Args:
        input_mask: int, [B, T], 1 for real tokens, 0 for padding.
    Returns:
        bool, [B, 1, T], which stands for all F.
    """
    return tf.expand_dims(tf.cast(input_mask, tf.bool), 1)


def left_to_right_mask(input_mask):
    """Every position may look at itself and the real tokens before it.

    Args:
        input_mask: int, [B, T], 1 for real tokens, 0 for padding.
    Returns:
        bool, [B, T, T].
    """
    places = tf.range(layers.dims(input_mask)[1])
    is_before = tf.expand_dims(places, 0) <= tf.expand_dims(places, 1)
    return padding_mask(input_mask) & is_before


# By BertConfig.visibility.
MASKS = {"bidirectional": padding_mask, "left_to_right": left_to_right_mask}


def score_bias(attention_mask, dtype):
    """What is added to the attention scores so that masked keys get no weight.

    It is -10000 as in the original, not -inf: a row without any key stays finite.

    Args:
        attention_mask: bool, [B, F or 1, T].
    Returns:
        float, [B, 1, F or 1, T].
    """
    blocked = tf.cast(tf.logical_not(attention_mask), dtype)
    return tf.expand_dims(blocked, 1) * tf.constant(-10000.0, dtype)


def probabilities(query, key, bias):
    """softmax(Q Kᵀ / sqrt(S) + bias), in float32.

    Args:
        query: float, [B, N, F, S].
        key: float, [B, N, T, S].
        bias: float, [B, 1, F or 1, T].
    Returns:
        float32, [B, N, F, T].
    """
    scale = tf.constant(query.shape[-1] ** -0.5, query.dtype)
    # On CPU, TensorFlow makes one operation of these three if they are in this order.
    scores = tf.matmul(query, key, transpose_b=True) * scale + bias
    return tf.nn.softmax(tf.cast(scores, tf.float32))


@layers.one_loop
def _gradient_of_scores(probs, dprobs, mask, total):
    """That of softmax and dropout; dprobs is that of what dropout left of probs."""
    return probs * (dropout.masked(dprobs, mask) - total)


def _context_in_training(query, key, value, bias, mask):
    """masked(probabilities) V, [B, N, F, S], with a gradient that takes less.

    Less memory, because only Q, K, V, the result and, in their type, the probabilities
    and what dropout leaves of them are kept; less time, because fewer passes go over
    [B, N, F, T].
    """

    @tf.custom_gradient
    def context_of(query, key, value):
        probs = tf.cast(probabilities(query, key, bias), query.dtype)
        dropped = probs if mask is None else dropout.drop(probs, mask)
        context = tf.matmul(dropped, value)

        def gradient(dcontext):
            dvalue = tf.matmul(dropped, dcontext, transpose_a=True)
            dprobs = tf.matmul(dcontext, value, transpose_b=True)
            # The gradient of softmax needs the sum of `dropped` times dprobs over T. It
            # is that of context * dcontext over S, which is shorter (Dao et al. 2022,
            # B.2).
            product = tf.cast(context, tf.float32) * tf.cast(dcontext, tf.float32)
            total = tf.cast(tf.reduce_sum(product, -1, keepdims=True), probs.dtype)
            dscores = _gradient_of_scores(probs, dprobs, mask, total)
            scale = tf.constant(query.shape[-1] ** -0.5, query.dtype)
            dquery = tf.matmul(dscores, key) * scale
            dkey = tf.matmul(dscores, query, transpose_a=True) * scale
            return dquery, dkey, dvalue

        return context, gradient

    return context_of(query, key, value)


class SelfAttention(keras.layers.Layer):
    """Each position gathers from the positions its mask allows.

    Args:
        config: BertConfig.
    Call arguments:
        hidden_states: float, [B * F, H].
        bias: float, [B, 1, F or 1, T], from `score_bias`; T is F.
    Returns:
        context: float, [B * F, H], the heads side by side.
        attention_probs: float32, [B, N, F, T], before dropout.
    """

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = config.num_attention_heads
        self.head_size = config.hidden_size // config.num_attention_heads
        size, stddev = config.hidden_size, config.initializer_range
        self.query = layers.Linear(size, stddev, name="query")
        self.key = layers.Linear(size, stddev, name="key")
        self.value = layers.Linear(size, stddev, name="value")
        self.dropout = dropout.Dropout(
            config.attention_probs_dropout_prob, name="dropout"
        )

    def build(self, input_shape):
        for layer in (self.query, self.key, self.value):
            layer.build(input_shape)

    def _project(self, x, batch, length):
        """Q, K and V, each [B, N, F, S]."""
        shape = [batch, length, self.num_heads, self.head_size]
        return [
            _swap(tf.reshape(part(x), shape))
            for part in (self.query, self.key, self.value)
        ]

    def _project_in_training(self, x, batch, length):
        """The same in one product, whose gradient takes less than that of three.

        Without a gradient three are faster, as the weights are not put together.
        """
        parts = (self.query, self.key, self.value)
        kernel = tf.concat([tf.convert_to_tensor(p.kernel) for p in parts], axis=1)
        bias = tf.concat([tf.convert_to_tensor(p.bias) for p in parts], axis=0)
        y = layers.linear(x, kernel, bias, training=True)
        y = tf.reshape(y, [batch, length, 3, self.num_heads, self.head_size])
        return tf.unstack(tf.transpose(y, [2, 0, 3, 1, 4]))

    def call(self, hidden_states, bias, training=False):
        project = self._project_in_training if training else self._project
        batch, _, _, length = layers.dims(bias)
        query, key, value = project(hidden_states, batch, length)
        attention_probs = probabilities(query, key, bias)
        if training:
            # It makes them again. Those above are for who asks, such as distillation;
            # a compiled step leaves out what nobody asks for.
            mask = self.dropout.mask()
            context = _context_in_training(query, key, value, bias, mask)
        else:
            context = tf.matmul(tf.cast(attention_probs, value.dtype), value)
        context = _swap(context)
        size = self.num_heads * self.head_size
        return tf.reshape(context, [-1, size]), attention_probs
