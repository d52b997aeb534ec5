"""The Transformer encoder of BERT (Devlin et al. 2018, section 3; post-norm blocks).

Layers are named after the scopes of the released checkpoints, so that the path of a
weight, without the model's name, is its name there.
"""

import functools

import keras
import tensorflow as tf

from modeling import attention, dropout, embeddings, layer_norm, layers


class ResidualOutput(keras.layers.Layer):
    """LayerNorm(residual + dropout(x W + b)): the end of both sub-layers.

    Call arguments:
        x: float, [batch * seq_length, size].
        residual: float, [batch * seq_length, hidden_size].
    Returns:
        float, [batch * seq_length, hidden_size].
    """

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.dense = layers.Linear(
            config.hidden_size, config.initializer_range, name="dense"
        )
        self.layer_norm = layer_norm.LayerNorm(config.layer_norm_eps, name="LayerNorm")
        self.dropout = dropout.Dropout(config.hidden_dropout_prob, name="dropout")

    def build(self, input_shape):
        self.dense.build(input_shape)
        self.layer_norm.build((*input_shape[:-1], self.dense.units))

    def call(self, x, residual, training=False):
        x = self.dropout(self.dense(x, training=training), training=training)
        return self.layer_norm(residual + x, training=training)


class EncoderLayer(keras.layers.Layer):
    """Self-attention and a position-wise feed-forward network.

    Tokens are in one axis here: to ask for batch and seq_length everywhere, where they
    are not known beforehand, is a fifth of the time of a short text.

    Call arguments:
        hidden_states: float, [batch * seq_length, hidden_size].
        bias: float, [batch, 1, seq_length or 1, seq_length], see attention.score_bias.
    Returns:
        hidden_states: float, [batch * seq_length, hidden_size].
        attention_probs: float, [batch, num_heads, seq_length, seq_length].
    """

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.self_attention = attention.SelfAttention(config, name="self")
        self.attention_output = ResidualOutput(config, name="output")
        self.intermediate = layers.Linear(
            config.intermediate_size, config.initializer_range, name="dense"
        )
        self.hidden_act = config.hidden_act
        self.feed_forward_output = ResidualOutput(config, name="output")

    def build(self, input_shape):
        with keras.name_scope("attention"):
            self.self_attention.build(input_shape)
            self.attention_output.build(input_shape)
        with keras.name_scope("intermediate"):
            self.intermediate.build(input_shape)
        self.feed_forward_output.build((*input_shape[:-1], self.intermediate.units))

    def call(self, hidden_states, bias, training=False):
        context, attention_probs = self.self_attention(
            hidden_states, bias, training=training
        )
        attended = self.attention_output(context, hidden_states, training=training)
        activation = layers.activation(self.hidden_act, training)
        inner = self.intermediate(attended, training=training, function=activation)
        return self.feed_forward_output(
            inner, attended, training=training
        ), attention_probs


def _hidden_states(layer, bias, x):
    """Of an EncoderLayer in training."""
    return layer(x, bias, training=True)[0]


def _last_token(hidden_states, input_mask):
    """The vector of the last real token, [batch, hidden_size]."""
    places = tf.range(layers.dims(input_mask)[1]) * input_mask
    return tf.gather(hidden_states, tf.reduce_max(places, axis=1), batch_dims=1)


class BertEncoder(keras.layers.Layer):
    """Embeddings, N encoder layers, pooler.

    Args:
        config: BertConfig.
    Attributes:
        recompute: bool, False. In training, keep only the results of each layer and
            make what is inside again for the gradient: less memory for a third more
            time. There are no attention_probs then.
    Call arguments:
        batch: dict with input_ids, int32, [batch, seq_length], and optionally
            input_mask (default all ones) and segment_ids (default all zeros) of the
            same shape. Other keys are not looked at.
        attention_mask: bool, [batch, seq_length or 1, seq_length]; True where looking
            is allowed. Default: what the config's visibility says.
    Returns:
        dict of
        sequence_output: float, [batch, seq_length, hidden_size], of the last layer.
        pooled_output: float, [batch, hidden_size].
        encoder_outputs: list of num_hidden_layers + 1 times [batch, seq_length,
            hidden_size]: the embeddings, then every layer.
        attention_probs: list of num_hidden_layers times [batch, num_heads, seq_length,
            seq_length].
    """

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.config, self.recompute = config, False
        self.embeddings = embeddings.BertEmbeddings(config, name="embeddings")
        self.layers = [
            EncoderLayer(config, name=f"layer_{i}")
            for i in range(config.num_hidden_layers)
        ]
        self.pooler = layers.Linear(
            config.hidden_size, config.initializer_range, name="dense"
        )

    def build(self, _=None):
        size = self.config.hidden_size
        self.embeddings.build()
        with keras.name_scope("encoder"):
            for layer in self.layers:
                layer.build((None, size))
        with keras.name_scope("pooler"):
            self.pooler.build((None, size))

    def call(self, batch, attention_mask=None, training=False):
        input_ids = batch["input_ids"]
        segment_ids = batch.get("segment_ids", tf.zeros_like(input_ids))
        input_mask = batch.get("input_mask", tf.ones_like(input_ids))
        if attention_mask is None:
            attention_mask = attention.MASKS[self.config.visibility](input_mask)

        x = self.embeddings(input_ids, segment_ids, training=training)
        bias = attention.score_bias(attention_mask, x.dtype)
        shape, encoder_outputs, attention_probs = layers.dims(x), [x], []
        x = tf.reshape(x, [-1, shape[-1]])
        for layer in self.layers:
            if training and self.recompute:
                x = dropout.recompute(functools.partial(_hidden_states, layer, bias), x)
            else:
                x, probs = layer(x, bias, training=training)
                attention_probs.append(probs)
            encoder_outputs.append(tf.reshape(x, shape))
        sequence_output = encoder_outputs[-1]
        pooled = self.pooled(sequence_output, input_mask)
        return {
            "sequence_output": sequence_output,
            "pooled_output": tf.tanh(self.pooler(pooled)),
            "encoder_outputs": encoder_outputs,
            "attention_probs": attention_probs,
        }

    def pooled(self, hidden_states, input_mask):
        """The vectors that stand for whole sequences, by the config's pooled_position.

        Args:
            hidden_states: float, [batch, seq_length, size].
            input_mask: int32, [batch, seq_length].
        Returns:
            float, [batch, size].
        """
        if self.config.pooled_position == "last":
            return _last_token(hidden_states, input_mask)
        return hidden_states[:, 0]
