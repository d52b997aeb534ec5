"""Whole models: outputs, fresh weights, numbers of weights, dropout."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from modeling import config as config_lib
from modeling import dropout, models
from tests import numpy_bert, small_models
from tests.small_models import close


@pytest.mark.parametrize("seed", range(10))
def test_pretraining_outputs_equal_the_reference(seed):
    config = small_models.config(
        hidden_act=config_lib.ACTIVATIONS[seed % 5],
        layer_norm_eps=[1e-12, 1e-3][seed % 2],
    )
    model = models.BertForPretraining(config)
    weights = small_models.randomize(model, seed)
    batch = small_models.batch(config, seed, batch_size=seed % 4 + 1)
    actual = model(small_models.tensors(batch))
    expected = numpy_bert.pretraining(weights, config, batch)
    assert actual.keys() <= expected.keys()
    for name in ("masked_lm_logits", "next_sentence_logits", "pooled_output"):
        close(actual[name], expected[name], 2e-5)


def test_without_positions_every_position_is_predicted():
    config = small_models.config()
    model = models.BertForPretraining(config)
    small_models.randomize(model, 0)
    batch = small_models.batch(config, 0)
    everywhere = np.tile(np.arange(7, dtype=np.int32), (3, 1))
    expected = model(small_models.tensors({**batch, "masked_lm_positions": everywhere}))
    del batch["masked_lm_positions"]
    actual = model(small_models.tensors(batch))
    close(actual["masked_lm_logits"], expected["masked_lm_logits"], 1e-6)


@pytest.mark.parametrize("num_labels", [1, 2, 5])
def test_classifier_outputs_equal_the_reference(num_labels):
    config = small_models.config()
    model = models.BertForSequenceClassification(config, num_labels)
    weights = small_models.randomize(model, num_labels)
    batch = small_models.batch(config, num_labels)
    actual = model(small_models.tensors(batch))
    del batch["label_ids"]
    expected = numpy_bert.classify(weights, config, batch)
    assert actual["logits"].shape == (3, num_labels)
    assert actual["logits"].dtype == tf.float32
    close(actual["logits"], expected["logits"])


def test_names_and_shapes_are_those_of_the_original(golden):
    path = golden / "tiny_tf1" / "bert_config.json"
    config = config_lib.BertConfig.from_json_file(path)

    def ours(model):
        return {n: list(v.shape) for n, v in small_models.variables(model).items()}

    variables = json.loads((golden / "tiny_tf1" / "variables.json").read_text())
    expected = dict(variables["inference_variables"])
    assert ours(models.BertForPretraining(config)) == expected
    encoder = {n: shape for n, shape in expected.items() if n.startswith("bert/")}
    assert ours(models.BertModel(config)) == encoder

    variables = json.loads((golden / "tiny_tf1_runs" / "variables.json").read_text())
    expected = {
        name: shape
        for name, shape, _ in variables["classifier_mrpc"]
        if name != "global_step" and not name.endswith(("/adam_m", "/adam_v"))
    }
    assert ours(models.BertForSequenceClassification(config, 2)) == expected


def is_norm(name):
    return name.endswith(("gamma", "beta"))


@pytest.mark.parametrize("stddev", [0.02, 0.1])
def test_fresh_weights(stddev):
    keras.utils.set_random_seed(0)
    config = small_models.config(
        hidden_size=96, initializer_range=stddev, vocab_size=400, intermediate_size=200
    )
    weights = {
        **small_models.variables(models.BertForPretraining(config)),
        **{
            f"classifier/{name}": variable
            for name, variable in small_models.variables(
                models.BertForSequenceClassification(config, 50)
            ).items()
            if name.startswith("output_")
        },
    }
    assert len(weights) == 14 + 16 * 2 + 2
    for name, variable in weights.items():
        values = variable.numpy()
        if name.endswith("gamma"):
            assert (values == 1).all(), name
        elif name.endswith(("beta", "bias")):
            assert (values == 0).all(), name
        else:
            # The head of a task starts from 0.02 whatever the config says.
            spread = 0.02 if name.startswith("classifier") else stddev
            # Standard deviation of a normal cut at two of its own: 0.8796.
            few = 6 / np.sqrt(2 * values.size)
            assert values.std() == pytest.approx(0.8796 * spread, rel=few), name
            assert np.abs(values).max() <= 2 * spread * 1.0001, name
            assert abs(values.mean()) < 6 * spread / np.sqrt(values.size), name


def test_equal_seeds_make_equal_models():
    def fresh(seed):
        keras.utils.set_random_seed(seed)
        model = models.BertForPretraining(small_models.config())
        return [v.numpy() for v in model.weights if v.numpy().std()]

    first, again, other = fresh(1), fresh(1), fresh(2)
    assert all(map(np.array_equal, first, again))
    assert not any(map(np.array_equal, first, other))
    # Tables of equal shape are drawn apart.
    flat = [v.ravel()[:100] for v in first]
    assert len({v.tobytes() for v in flat}) == len(flat)


@pytest.mark.parametrize("rates", [(0.3, 0.1), (0.0, 0.2), (0.2, 0.0)])
def test_where_dropout_is_and_with_which_rate(monkeypatch, rates):
    """Dropout is replaced on both sides by a factor that depends on the rate."""

    def shrink(x, rate):
        return x * (1 - rate / 2)

    monkeypatch.setattr(dropout.Dropout, "mask", lambda self: self.rate)
    monkeypatch.setattr(dropout, "drop", shrink)
    config = small_models.config(
        hidden_dropout_prob=rates[0], attention_probs_dropout_prob=rates[1]
    )
    model = models.BertForSequenceClassification(config, 3)
    weights = small_models.randomize(model, 0)
    batch = small_models.batch(config, 0)
    for training, drop in [(True, shrink), (False, numpy_bert.no_dropout)]:
        actual = model(small_models.tensors(batch), training=training)
        expected = numpy_bert.classify(weights, config, batch, drop)
        for name in ("logits", "sequence_output"):
            close(actual[name], expected[name])
        for ours, theirs in zip(
            actual["encoder_outputs"], expected["encoder_outputs"], strict=True
        ):
            close(ours, theirs)

    model = models.BertForPretraining(config)
    weights = small_models.randomize(model, 0)
    actual = model(small_models.tensors(batch), training=True)
    expected = numpy_bert.pretraining(weights, config, batch, shrink)
    for name in ("masked_lm_logits", "next_sentence_logits"):
        close(actual[name], expected[name])


def test_dropout_is_a_function_of_the_seed():
    model = models.BertForSequenceClassification(small_models.config(), 2)
    small_models.randomize(model, 0)
    batch = small_models.tensors(small_models.batch(model.config, 0))

    def logits(seed):
        with dropout.dropout_seed(seed):
            return model(batch, training=True)["logits"].numpy()

    assert np.array_equal(logits([1, 2]), logits([1, 2]))
    assert not np.array_equal(logits([1, 2]), logits([3, 2]))
    graph = tf.function(lambda seed: logits_in_graph(model, batch, seed))
    close(graph(tf.constant([1, 2])), logits([1, 2]), 1e-6)
    close(graph(tf.constant([3, 2])), logits([3, 2]), 1e-6)


def logits_in_graph(model, batch, seed):
    with dropout.dropout_seed(seed):
        return model(batch, training=True)["logits"]


def test_every_dropout_draws_its_own_mask(monkeypatch):
    """All masks of one call differ: of layers, and of the places in a layer."""
    keys = []
    mask = dropout.Dropout.mask

    def record(self):
        drawn = mask(self)
        keys.append(tuple(drawn.keys.numpy().tolist()))
        return drawn

    monkeypatch.setattr(dropout.Dropout, "mask", record)
    config = small_models.config(
        num_hidden_layers=3,
        hidden_dropout_prob=0.5,
        attention_probs_dropout_prob=0.5,
    )
    model = models.BertForSequenceClassification(config, 2)
    with dropout.dropout_seed([0, 0]):
        model(small_models.tensors(small_models.batch(config, 0, 4)), training=True)
    assert len(keys) == 1 + 3 * 3 + 1
    assert len(set(keys)) == len(keys)


def sizes(config):
    """Weights of the encoder with pooler, and of the pre-training model, by hand."""
    size, inner = config.hidden_size, config.intermediate_size
    tables = config.vocab_size + config.max_position_embeddings + config.type_vocab_size
    norm = 2 * size
    block = 4 * (size * size + size) + norm
    block += size * inner + inner + inner * size + size + norm
    bert = tables * size + norm + config.num_hidden_layers * block + size * size + size
    heads = size * size + size + norm + config.vocab_size + 2 * size + 2
    return bert, bert + heads


def count(config):
    """The same, of the layers themselves; nothing is allocated."""
    with keras.StatelessScope(initialize_variables=False):
        model = models.BertForPretraining(config)
        return model.bert.count_params(), model.count_params()


def released(num_layers, size, vocab_size):
    return config_lib.BertConfig(
        vocab_size=vocab_size,
        hidden_size=size,
        num_hidden_layers=num_layers,
        num_attention_heads=size // 64,
        intermediate_size=4 * size,
        type_vocab_size=2,
    )


@pytest.mark.parametrize(
    ("config", "encoder_size", "model_size"),
    [
        (released(12, 768, 30522), 109_482_240, 110_106_428),
        (released(24, 1024, 30522), 335_141_888, 336_226_108),
    ],
)
def test_pinned_numbers_of_weights(config, encoder_size, model_size):
    assert count(config) == sizes(config) == (encoder_size, model_size)


# Millions of weights of the encoder, by layers, hidden size and vocabulary: the models
# of 2018 and 2019, then the 24 small ones of 2020 (Turc et al. 2019).
MILLIONS = {
    (12, 768, 30522): 109.5,
    (24, 1024, 30522): 335.1,
    (12, 768, 28996): 108.3,
    (24, 1024, 28996): 333.6,
    (12, 768, 119547): 177.9,
    (12, 768, 105879): 167.4,
    (12, 768, 21128): 102.3,
}
SMALL = {
    2: (4.4, 9.6, 22.5, 38.6),
    4: (4.8, 11.2, 28.8, 52.8),
    6: (5.2, 12.8, 35.1, 67.0),
    8: (5.6, 14.3, 41.4, 81.1),
    10: (6.0, 15.9, 47.7, 95.3),
    12: (6.4, 17.5, 54.0, 109.5),
}


def test_numbers_of_weights_of_all_released_models():
    table = MILLIONS | {
        (num_layers, size, 30522): millions
        for num_layers, row in SMALL.items()
        for size, millions in zip((128, 256, 512, 768), row, strict=True)
    }
    assert len(table) == 7 + 24 - 1  # Base uncased stands in both
    for key, millions in table.items():
        encoder_size, model_size = count(released(*key))
        assert (encoder_size, model_size) == sizes(released(*key))
        assert f"{encoder_size / 1e6:.1f}" == str(millions), key
