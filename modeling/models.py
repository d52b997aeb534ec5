"""Encoder and heads put together, one class a use. Built as soon as constructed.

Each is called as `model(batch, training=False)` with a dict as the record readers give
it and returns a dict: all of BertEncoder's outputs and the logits, in float32. A task's
model may stand on something other than BERT's encoder: `make_encoder` is a function of
the config and the keyword `name`.
"""

import keras
import tensorflow as tf

from modeling import dropout, encoder, heads, layers

# Of the task heads; fixed in the original, whatever the config says.
HEAD_DROPOUT_PROB = 0.1


class BertModel(keras.Model):
    """The encoder alone, for its hidden states.

    Args:
        config: BertConfig.
    Call arguments:
        batch: as for BertEncoder.
    Returns:
        dict of BertEncoder's outputs.
    """

    def __init__(self, config):
        super().__init__(name="model")
        self.config = config
        self.bert = encoder.BertEncoder(config, name="bert")
        self.build()

    def build(self, _=None):
        self.bert.build()

    def call(self, batch, training=False):
        return self.bert(batch, training=training)


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

    def __init__(self, config):
        super().__init__(name="pretraining")
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
        masked_lm = self.predictions(hidden_states, word_embeddings, training=training)
        next_sentence = self.seq_relationship(outputs["pooled_output"])
        return {
            **outputs,
            "masked_lm_logits": tf.cast(masked_lm, tf.float32),
            "next_sentence_logits": next_sentence,
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

    def __init__(self, config, num_labels, make_encoder=encoder.BertEncoder):
        super().__init__(name="classification")
        self.config, self.num_labels = config, num_labels
        self.bert = make_encoder(config, name="bert")
        self.dropout = dropout.Dropout(HEAD_DROPOUT_PROB, name="dropout")
        self.classifier = heads.OutputLayer(num_labels, name="classifier")
        self.build()

    def build(self, _=None):
        self.bert.build()
        self.classifier.build((None, self.config.hidden_size))

    def call(self, batch, training=False):
        outputs = self.bert(batch, training=training)
        pooled_output = self.dropout(outputs["pooled_output"], training=training)
        logits = self.classifier(pooled_output)
        return {**outputs, "logits": logits}


class BertForQuestionAnswering(keras.Model):
    """Start and end of an answer in a text (section 4.2; figure 4 c). No dropout.

    Args:
        config: BertConfig.
    Call arguments:
        batch: as for BertEncoder.
    Returns:
        dict with start_logits and end_logits, [batch, seq_length], over all positions.
    """

    def __init__(self, config, make_encoder=encoder.BertEncoder):
        super().__init__(name="question_answering")
        self.config = config
        self.bert = make_encoder(config, name="bert")
        self.squad = heads.OutputLayer(2, name="squad")
        self.build()

    def build(self, _=None):
        self.bert.build()
        with keras.name_scope("cls"):
            self.squad.build((None, None, self.config.hidden_size))

    def call(self, batch, training=False):
        outputs = self.bert(batch, training=training)
        logits = self.squad(outputs["sequence_output"])
        start_logits, end_logits = tf.unstack(logits, axis=-1)
        return {**outputs, "start_logits": start_logits, "end_logits": end_logits}


class BertForTokenClassification(keras.Model):
    """One label for every token (section 5.3; figure 4 d).

    Args:
        config: BertConfig.
        num_labels: int.
    Call arguments:
        batch: as for BertEncoder.
    Returns:
        dict with logits, [batch, seq_length, num_labels].
    """

    def __init__(self, config, num_labels, make_encoder=encoder.BertEncoder):
        super().__init__(name="token_classification")
        self.config, self.num_labels = config, num_labels
        self.bert = make_encoder(config, name="bert")
        self.dropout = dropout.Dropout(HEAD_DROPOUT_PROB, name="dropout")
        self.classifier = heads.OutputLayer(num_labels, name="classifier")
        self.build()

    def build(self, _=None):
        self.bert.build()
        self.classifier.build((None, None, self.config.hidden_size))

    def call(self, batch, training=False):
        outputs = self.bert(batch, training=training)
        x = self.dropout(outputs["sequence_output"], training=training)
        return {**outputs, "logits": self.classifier(x)}


class BertForMultipleChoice(keras.Model):
    """The best of several continuations (section 4.4).

    Every choice is a sequence of its own; a vector, the only new weight but a bias,
    scores its pooled output.

    Args:
        config: BertConfig.
    Call arguments:
        batch: dict with input_ids, input_mask and segment_ids, int32, [batch, choices,
            seq_length].
    Returns:
        dict with logits, [batch, choices]; the encoder's outputs are [batch * choices,
        ...].
    """

    def __init__(self, config, make_encoder=encoder.BertEncoder):
        super().__init__(name="multiple_choice")
        self.config = config
        self.bert = make_encoder(config, name="bert")
        self.dropout = dropout.Dropout(HEAD_DROPOUT_PROB, name="dropout")
        self.classifier = heads.OutputLayer(1, name="classifier")
        self.build()

    def build(self, _=None):
        self.bert.build()
        self.classifier.build((None, self.config.hidden_size))

    def call(self, batch, training=False):
        rows, choices, seq_length = layers.dims(batch["input_ids"])
        names = ("input_ids", "input_mask", "segment_ids")
        flat = {name: tf.reshape(batch[name], [-1, seq_length]) for name in names}
        outputs = self.bert(flat, training=training)
        x = self.dropout(outputs["pooled_output"], training=training)
        logits = tf.reshape(self.classifier(x), [rows, choices])
        return {**outputs, "logits": logits}
