"""What stands on the encoder: masked LM, next sentence, class (Devlin et al. 2018)."""

import keras
import tensorflow as tf

from modeling import layer_norm, layers


def gather_positions(sequence_output, positions):
    """Hidden states at some positions of each sequence.

    Args:
        sequence_output: float, [batch, seq_length, hidden_size].
        positions: int32, [batch, num_positions].
    Returns:
        float, [batch, num_positions, hidden_size].
    """
    batch, seq_length, size = layers.dims(sequence_output)
    # One flat gather is faster than a batched one, forward and backward.
    offsets = tf.expand_dims(tf.range(batch) * seq_length, 1)
    return tf.gather(tf.reshape(sequence_output, [-1, size]), positions + offsets)


class MaskedLM(keras.layers.Layer):
    """Scores every word of the vocabulary at each given position (section 3.1, task 1).

    The output weights are the word embedding table.

    Call arguments:
        hidden_states: float, [batch, num_positions, hidden_size].
        word_embeddings: [vocab_size, hidden_size].
    Returns:
        float, [batch, num_positions, vocab_size], logits.
    """

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.vocab_size = config.vocab_size
        self.transform = layers.Linear(
            config.hidden_size, config.initializer_range, name="dense"
        )
        self.hidden_act = config.hidden_act
        self.layer_norm = layer_norm.LayerNorm(config.layer_norm_eps, name="LayerNorm")

    def build(self, input_shape):
        with keras.name_scope("transform"):
            self.transform.build(input_shape)
            self.layer_norm.build(input_shape)
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.vocab_size,), initializer="zeros"
        )

    def call(self, hidden_states, word_embeddings, training=False):
        *outer, size = layers.dims(hidden_states)
        x = tf.reshape(hidden_states, [-1, size])
        # In half precision the gradient of the form for inference is imprecise.
        is_imprecise = training and x.dtype.size < 4
        activation = layers.activation(self.hidden_act, is_imprecise)
        x = self.transform(x, training=training, function=activation)
        x = self.layer_norm(x, training=training)
        table = tf.cast(tf.convert_to_tensor(word_embeddings), x.dtype)
        logits = tf.matmul(x, table, transpose_b=True)
        logits = tf.nn.bias_add(logits, tf.convert_to_tensor(self.output_bias))
        return tf.reshape(logits, [*outer, self.vocab_size])


class OutputLayer(keras.layers.Layer):
    """x Wᵀ + b with W kept as [outputs, hidden_size], as the released checkpoints do.

    Used by the next sentence head (section 3.1, task 2) and the task heads (figure 4).
    It computes in float32 under any policy: with the 8 bits of bfloat16, logits tie.

    Args:
        num_outputs: int.
        stddev: float, of the truncated normal that W starts from.
    Call arguments:
        x: float, [..., hidden_size].
    Returns:
        float32, [..., num_outputs], logits.
    """

    def __init__(self, num_outputs, stddev=0.02, **kwargs):
        super().__init__(dtype="float32", **kwargs)
        self.num_outputs, self.stddev = num_outputs, stddev

    def build(self, input_shape):
        self.output_weights = self.add_weight(
            name="output_weights",
            shape=(self.num_outputs, input_shape[-1]),
            initializer=layers.initializer(self.stddev),
        )
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.num_outputs,), initializer="zeros"
        )

    def call(self, x):
        *outer, size = layers.dims(x)
        weights = tf.convert_to_tensor(self.output_weights)
        logits = tf.matmul(tf.reshape(x, [-1, size]), weights, transpose_b=True)
        logits = tf.nn.bias_add(logits, tf.convert_to_tensor(self.output_bias))
        return tf.reshape(logits, [*outer, self.num_outputs])
