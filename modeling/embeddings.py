"""Token, segment and position embeddings (Devlin et al. 2018, figure 2)."""

import keras
import tensorflow as tf

from modeling import dropout, layer_norm, layers


class BertEmbeddings(keras.layers.Layer):
    """Sum of three embeddings, layer norm, dropout.

    A segment id outside the table adds a zero vector, as in the original.

    Args:
        config: BertConfig.
    Call arguments:
        input_ids: int32, [batch, seq_length].
        segment_ids: int32, [batch, seq_length].
    Returns:
        float, [batch, seq_length, hidden_size].
    Raises:
        ValueError: seq_length is over max_position_embeddings.
    """

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.layer_norm = layer_norm.LayerNorm(config.layer_norm_eps, name="LayerNorm")
        self.dropout = dropout.Dropout(config.hidden_dropout_prob, name="dropout")

    def build(self, _=None):
        config = self.config

        def table(name, rows):
            return self.add_weight(
                name=name,
                shape=(rows, config.hidden_size),
                initializer=layers.initializer(config.initializer_range),
                # Under mixed policies, rows that occur often are added up in float32,
                # and only the rows that occur are converted.
                autocast=False,
            )

        self.word_embeddings = table("word_embeddings", config.vocab_size)
        self.token_type_embeddings = table(
            "token_type_embeddings", config.type_vocab_size
        )
        self.position_embeddings = table(
            "position_embeddings", config.max_position_embeddings
        )
        self.layer_norm.build((None, None, config.hidden_size))

    def call(self, input_ids, segment_ids, training=False):
        _, seq_length = layers.dims(input_ids)
        limit = self.config.max_position_embeddings
        if isinstance(seq_length, int) and seq_length > limit:
            raise ValueError(
                f"sequences have {seq_length} tokens, but max_position_embeddings is "
                f"{limit}; use a shorter max_seq_length"
            )
        x = tf.gather(tf.convert_to_tensor(self.word_embeddings), input_ids)
        # A product with one-hot rows: its gradient is a product too, not a scatter.
        segments = tf.convert_to_tensor(self.token_type_embeddings)
        one_hot = tf.one_hot(segment_ids, self.config.type_vocab_size, dtype=x.dtype)
        x += tf.reshape(
            tf.matmul(tf.reshape(one_hot, [-1, self.config.type_vocab_size]), segments),
            layers.dims(x),
        )
        x += tf.convert_to_tensor(self.position_embeddings)[:seq_length]
        return self.dropout(self.layer_norm(x, training=training), training=training)
