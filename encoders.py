"""Which encoder a fine-tuned model stands on: BERT's, or with more on top of it."""

import functools

from modeling import bilstm, encoder


def find(bilstm_layers=0):
    """What makes the encoder: `make_encoder` of the classes in modeling.models.

    Args:
        bilstm_layers: int, of a bidirectional LSTM between encoder and head; 0: none.
    """
    if not bilstm_layers:
        return encoder.BertEncoder
    return functools.partial(bilstm.EncoderWithBiLSTM, num_layers=bilstm_layers)
