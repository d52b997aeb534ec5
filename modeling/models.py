"""Encoder and heads put together, one class a use. Built as soon as constructed.

Each is called as `model(batch, training=False)` with a dict as the record readers give
it and returns a dict: all of BertEncoder's outputs and the logits, in float32.
"""

import keras
import tensorflow as tf

from modeling import encoder, heads, layers


class BertForPretraining(keras.Model):
    """Masked LM and next sentence prediction (Devlin et al. 2018, section 3.1).

    Args:
        config: BertConfig.
    Call arguments:
        batch: as for BertEncoder, and masked_lm_positions, int32, [batch,
            max_predictions_per_seq]; without them every position is predicted.
    Returns:
        dict with masked_lm_logits, [batch, positions, vocab_size], and
        next_sentence_logits, [batch, 2]; index 0 says that B follows A.
    """

    def __init__(self, config, name="pretraining"):
        super().__init__(name=name)
        self.config = config
        self.bert = encoder.BertEncoder(config, name="bert")
        self.predictions = heads.MaskedLM(config, name="predictions")
        self.seq_relationship = heads.OutputLayer(
            2, config.initializer_range, name="seq_relationship"
        )
        self.build()

    def build(self, _=None):
        self.bert.build()
        with keras.name_scope("cls"):
            self.predictions.build((None, None, self.config.hidden_size))
            self.seq_relationship.build((None, self.config.hidden_size))

    def call(self, batch, training=False):
        outputs = self.bert(batch, training=training)
        hidden_states = outputs["sequence_output"]
        if "masked_lm_positions" in batch:
            hidden_states = heads.gather_positions(
                hidden_states, batch["masked_lm_positions"]
            )
        word_embeddings = self.bert.embeddings.word_embeddings
        masked_lm = self.predictions(hidden_states, word_embeddings)
        next_sentence = self.seq_relationship(outputs["pooled_output"])
        return {
            **outputs,
            "masked_lm_logits": tf.cast(masked_lm, tf.float32),
            "next_sentence_logits": tf.cast(next_sentence, tf.float32),
        }


class BertForSequenceClassification(keras.Model):
    """One label, or one number, for a sentence or a pair (section 4.1; figure 4 a, b).

    Args:
        config: BertConfig.
        num_labels: int; 1 for regression.
    Call arguments:
        batch: as for BertEncoder.
    Returns:
        dict with logits, [batch, num_labels].
    """

    # Fixed in the original, whatever the config says.
    dropout_prob = 0.1

    def __init__(self, config, num_labels, name="classification"):
        super().__init__(name=name)
        self.config, self.num_labels = config, num_labels
        self.bert = encoder.BertEncoder(config, name="bert")
        self.dropout = layers.Dropout(self.dropout_prob, name="dropout")
        self.classifier = heads.OutputLayer(num_labels, name="classifier")
        self.build()

    def build(self, _=None):
        self.bert.build()
        self.classifier.build((None, self.config.hidden_size))

    def call(self, batch, training=False):
        outputs = self.bert(batch, training=training)
        pooled_output = self.dropout(outputs["pooled_output"], training=training)
        logits = self.classifier(pooled_output)
        return {**outputs, "logits": tf.cast(logits, tf.float32)}
