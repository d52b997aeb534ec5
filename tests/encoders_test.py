"""--bilstm_layers: part of a run's model in training, evaluation and export."""

import encoders
from modeling import bilstm, encoder
from tests import small_models


def test_what_makes_the_encoder():
    assert encoders.find(0) is encoder.BertEncoder
    made = encoders.find(2)(small_models.config(), name="bert")
    assert isinstance(made, bilstm.EncoderWithBiLSTM) and len(made.bilstm.layers) == 2
