"""Bidirectional LSTM, and one on top of the encoder (Devlin et al. 2018, v1, 5.1, 5.4).

The LSTM is that of Hochreiter and Schmidhuber 1997 with forget gates (Gers et al.
2000), a backward one beside it (Graves and Schmidhuber 2005). The loop over time does
only what must be done in turn, and both directions at once: on a CPU an update takes
half to two thirds of the time of Keras's layers.

B batch, T seq_length, D 2 directions, H units of a direction, Z the 4 H inputs of its
gates in Keras's order: input, forget, candidate, output.
"""

import math

import keras
import tensorflow as tf

from modeling import encoder, layers


def _scan(projected, kernel):
    """The states over time, from zeros.

    Args:
        projected: float, [T, D, B, Z], what the gates take from x.
        kernel: float, [D, H, Z], what they take from the states before.
    Returns:
        float, [T, D, B, H].
    """

    def step(before, z):
        h, c = before
        i, f, g, o = tf.split(z + tf.matmul(h, kernel), 4, axis=-1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(c), c

    nothing = tf.zeros_like(projected[0, ..., : kernel.shape[1]])
    return tf.scan(step, projected, (nothing, nothing))[0]


def _forget_open(shape, dtype=None):
    """The bias [D * Z]: 1 for forget gates (Jozefowicz et al. 2015), 0 for others."""
    of_gates = tf.constant([0, 1, 0, 0] * 2, dtype)
    return tf.repeat(of_gates, shape[0] // 8)


class BiLSTMLayer(keras.layers.Layer):
    """One layer of two directions; the backward one begins at the last real token.

    It computes in float32 under any policy: rounding errors add up over time.

    Args:
        units: int, of each direction.
    Call arguments:
        x: float, [batch, seq_length, size].
        lengths: int32, [batch], tokens of each sequence; padding is behind them.
    Returns:
        float32, [batch, seq_length, 2 * units], forward beside backward; those of
        padding mean nothing.
    """

    def __init__(self, units, **kwargs):
        super().__init__(dtype="float32", **kwargs)
        self.units = units

    def build(self, input_shape):
        size, width = input_shape[-1], 4 * self.units
        limit = math.sqrt(6 / (size + width))  # Glorot and Bengio 2010
        self.kernel = self.add_weight(
            name="kernel",
            shape=(size, 2 * width),
            initializer=keras.initializers.RandomUniform(-limit, limit),
        )
        # Of a stack of matrices this makes each orthogonal (Saxe et al. 2014).
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel",
            shape=(2, self.units, width),
            initializer=keras.initializers.Orthogonal(),
        )
        self.bias = self.add_weight(
            name="bias", shape=(2 * width,), initializer=_forget_open
        )

    def call(self, x, lengths, training=False):
        kernel, recurrent_kernel, bias = (
            tf.convert_to_tensor(w)
            for w in (self.kernel, self.recurrent_kernel, self.bias)
        )

        def turned(x):
            return tf.reverse_sequence(x, lengths, seq_axis=1)

        forward, backward = tf.split(
            layers.linear(x, kernel, bias, training), 2, axis=-1
        )  # [B, T, Z]
        projected = tf.stack([forward, turned(backward)], axis=1)  # [B, D, T, Z]
        projected = tf.transpose(projected, [2, 1, 0, 3])  # [T, D, B, Z]
        states = _scan(projected, recurrent_kernel)
        forward, backward = tf.unstack(tf.transpose(states, [1, 2, 0, 3]))  # [B, T, H]
        return tf.concat([forward, turned(backward)], axis=-1)


class BiLSTM(keras.layers.Layer):
    """Several of them, each on the states of the one below.

    Args:
        num_layers: int, at least 1.
        size: int, width of the result: half of it is of either direction.
    Call arguments:
        x: float, [batch, seq_length, any size].
        input_mask: int32, [batch, seq_length]; 1 for real tokens, 0 for padding, which
            is behind them.
    Returns:
        float32, [batch, seq_length, size]; those of padding mean nothing.
    Raises:
        ValueError: the size is odd.
    """

    def __init__(self, num_layers, size, **kwargs):
        super().__init__(dtype="float32", **kwargs)
        if size % 2:
            raise ValueError(
                f"the size of a bidirectional LSTM must be even, got {size}: half of "
                "it is of either direction"
            )
        self.size = size
        self.layers = [
            BiLSTMLayer(size // 2, name=f"layer_{i}") for i in range(num_layers)
        ]

    def build(self, input_shape):
        for layer in self.layers:
            layer.build(input_shape)
            input_shape = (*input_shape[:-1], self.size)

    def call(self, x, input_mask, training=False):
        lengths = tf.reduce_sum(input_mask, axis=-1)
        for layer in self.layers:
            x = layer(x, lengths, training=training)
        return x


class EncoderWithBiLSTM(encoder.BertEncoder):
    """BERT's encoder, and a fresh bidirectional LSTM of its width on it (v1, 5.1).

    Args:
        config: BertConfig.
        num_layers: int, of the LSTM. The paper does not say how many, nor how wide.
    Call arguments, returns:
        as for BertEncoder, but sequence_output has the states of the LSTM, and
        pooled_output its state at the config's pooled_position, without a pooler.
    Raises:
        ValueError: hidden_size is odd.
    """

    def __init__(self, config, num_layers, **kwargs):
        super().__init__(config, **kwargs)
        self.bilstm = BiLSTM(num_layers, config.hidden_size, name="bilstm")

    def build(self, _=None):
        super().build()
        # Beside the encoder, not in it: for checkpoints it is a head, which they may
        # lack and whose sizes may differ.
        above = self.path.rpartition("/")[0]
        with keras.name_scope("bilstm", caller=self.bilstm, override_parent=above):
            self.bilstm.build((None, None, self.config.hidden_size))

    def call(self, batch, attention_mask=None, training=False):
        outputs = super().call(batch, attention_mask, training=training)
        input_mask = batch.get("input_mask", tf.ones_like(batch["input_ids"]))
        states = self.bilstm(outputs["sequence_output"], input_mask, training=training)
        return {
            **outputs,
            "sequence_output": states,
            "pooled_output": self.pooled(states, input_mask),
        }
