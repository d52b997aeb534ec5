"""Feature-based tagging: a BiLSTM on vectors of a frozen encoder (v1, section 5.4).

The encoder is not part of the model: its hidden states h_0 (the embeddings) to h_L come
in the batch.
"""

import keras
import tensorflow as tf

from modeling import bilstm, dropout, heads, layers, models

# Which of h_0 to h_L, from the number of the last; those of table 7 of the paper.
_LAYERS = {
    "embeddings": lambda _: [0],
    "second_to_last": lambda last: [last - 1],
    "last": lambda last: [last],
    "sum_last4": lambda last: range(last - 3, last + 1),
    "concat_last4": lambda last: range(last - 3, last + 1),
    "sum_all": lambda last: range(1, last + 1),
}
CHOICES = tuple(_LAYERS)


def num_vectors(choice, num_hidden_layers, weighted_sums=False):
    """How many vectors of a token `select` gives.

    Raises:
        ValueError: the encoder has too few layers.
    """
    count = len(chosen_layers(choice, num_hidden_layers))
    return 1 if is_sum(choice) and not weighted_sums else count


def is_sum(choice):
    """Whether it adds vectors of several layers up."""
    return choice.startswith("sum_")


def chosen_layers(choice, num_hidden_layers):
    """Numbers of the hidden states of a choice, 0 for the embeddings; list of int.

    Raises:
        ValueError: the encoder has too few layers.
    """
    if choice.endswith("_last4") and num_hidden_layers < 4:
        raise ValueError(
            f"{choice} needs 4 encoder layers, the model has {num_hidden_layers}; take "
            "sum_all or another choice"
        )
    return list(_LAYERS[choice](num_hidden_layers))


def select(encoder_outputs, choice, weighted_sums=False):
    """The vectors that a FeatureTagger takes.

    Args:
        encoder_outputs: list of float [batch, seq_length, hidden_size], h_0 to h_L.
        choice: str, of CHOICES.
        weighted_sums: bool, leave the vectors that are to be added up side by side, for
            learned weights.
    Returns:
        float32, [batch, seq_length, vectors, hidden_size].
    """
    numbers = chosen_layers(choice, len(encoder_outputs) - 1)
    chosen = [tf.cast(encoder_outputs[number], tf.float32) for number in numbers]
    if is_sum(choice) and not weighted_sums:
        chosen = [tf.add_n(chosen)]
    return tf.stack(chosen, axis=2)


class WeightedSum(keras.layers.Layer):
    """Learned factors, one a layer, and the sum; the "weighted sum" of v2, table 7.

    The factors are free numbers, at first all 1 / layers: no softmax as in ELMo, so
    they may leave the mean by sign and by size, which the paper does not rule out.

    Call arguments:
        x: float, [batch, seq_length, layers, size].
    Returns:
        float, [batch, seq_length, size].
    """

    def build(self, input_shape):
        count = input_shape[-2]
        self.factors = self.add_weight(
            name="factors",
            shape=(count,),
            initializer=keras.initializers.Constant(1 / count),
        )

    def call(self, x):
        return tf.einsum("btlh,l->bth", x, tf.convert_to_tensor(self.factors))


class FeatureTagger(keras.Model):
    """A label for every token, from vectors that do not change.

    Args:
        num_labels: int.
        vectors_shape: (vectors, hidden_size) of the batches' `vectors`, see `select`.
        bilstm_layers: int.
        bilstm_size: int, of the states, both directions together; 768 in v2.
        weighted_sums: bool, add the vectors of a token up with learned factors;
            otherwise they stand side by side.
    Call arguments:
        batch: dict with vectors, float32, [batch, seq_length, vectors, hidden_size],
            and input_mask, int32, [batch, seq_length].
    Returns:
        dict with logits, float32, [batch, seq_length, num_labels].
    """

    def __init__(
        self,
        num_labels,
        vectors_shape,
        bilstm_layers=2,
        bilstm_size=768,
        weighted_sums=False,
        name="feature_tagger",
    ):
        super().__init__(name=name)
        self.vectors_shape = tuple(vectors_shape)
        self.weighted_sum = WeightedSum(name="weighted_sum") if weighted_sums else None
        self.bilstm = bilstm.BiLSTM(bilstm_layers, bilstm_size, name="bilstm")
        self.dropout = dropout.Dropout(models.HEAD_DROPOUT_PROB, name="dropout")
        self.classifier = heads.OutputLayer(num_labels, name="classifier")
        self.build()

    def build(self, _=None):
        count, size = self.vectors_shape
        if self.weighted_sum:
            self.weighted_sum.build((None, None, count, size))
            count = 1
        self.bilstm.build((None, None, count * size))
        self.classifier.build((None, None, self.bilstm.size))

    def call(self, batch, training=False):
        x = batch["vectors"]
        if self.weighted_sum:
            x = self.weighted_sum(x)
        else:
            *outer, count, size = layers.dims(x)
            x = tf.reshape(x, [*outer, count * size])
        x = self.bilstm(x, batch["input_mask"], training=training)
        return {"logits": self.classifier(self.dropout(x, training=training))}
