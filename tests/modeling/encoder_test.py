"""The encoder against the original's outputs, a NumPy rebuild, and its own laws."""

import numpy as np
import pytest
import tensorflow as tf

from modeling import config as config_lib
from modeling import dropout, models
from tests import numpy_bert, small_models
from tests.small_models import close


def compare(actual, expected, tolerance=1e-5):
    for name in ("sequence_output", "pooled_output"):
        close(actual[name], expected[name], tolerance)
    for name in ("encoder_outputs", "attention_probs"):
        assert len(actual[name]) == len(expected[name])
        for ours, theirs in zip(actual[name], expected[name], strict=True):
            close(ours, theirs, tolerance)


def random_config(seed):
    """Random sizes: most differ, so that no two can be mixed up unnoticed."""
    rng = np.random.default_rng(seed)
    heads = int(rng.integers(1, 5))
    return small_models.config(
        vocab_size=int(rng.integers(5, 40)),
        hidden_size=heads * int(rng.integers(1, 7)) if heads > 1 else 5,
        num_hidden_layers=int(rng.integers(1, 4)),
        num_attention_heads=heads,
        intermediate_size=int(rng.integers(1, 30)),
        hidden_act=config_lib.ACTIVATIONS[seed % len(config_lib.ACTIVATIONS)],
        type_vocab_size=int(rng.integers(1, 4)),
        layer_norm_eps=[1e-12, 1e-5, 1e-2][seed % 3],
    )


@pytest.mark.parametrize("seed", range(20))
def test_outputs_equal_the_numpy_reference(seed):
    config = random_config(seed)
    rng = np.random.default_rng(seed)
    batch = small_models.batch(
        config, seed, int(rng.integers(1, 5)), int(rng.integers(1, 17))
    )
    model = models.BertForPretraining(config)
    weights = small_models.randomize(model, seed)
    actual = model.bert(small_models.tensors(batch))
    compare(actual, numpy_bert.encode(weights, config, batch), 2e-5)


def test_outputs_at_the_released_width():
    config = small_models.config(
        hidden_size=768, num_attention_heads=12, intermediate_size=3072, vocab_size=100
    )
    model = models.BertForPretraining(config)
    weights = {v: w * 0.07 for v, w in small_models.randomize(model, 0).items()}
    weights |= {v: w + 1 for v, w in weights.items() if v.endswith("gamma")}
    small_models.assign(model, weights)
    batch = small_models.batch(config, 0, 2, 16)
    actual = model.bert(small_models.tensors(batch))
    compare(actual, numpy_bert.encode(weights, config, batch), 2e-5)


@pytest.fixture(scope="module")
def tiny(golden):
    """The original's tiny model and what it gave."""
    folder = golden / "tiny_tf1"
    config = config_lib.BertConfig.from_json_file(folder / "bert_config.json")
    model = models.BertForPretraining(config)
    small_models.assign(model, small_models.read_checkpoint(folder / "bert_model.ckpt"))
    return model, dict(np.load(folder / "expected.npz"))


def test_outputs_equal_the_original(tiny):
    model, expected = tiny
    names = ("input_ids", "input_mask", "segment_ids")
    actual = model.bert({name: tf.constant(expected[name]) for name in names})
    close(actual["encoder_outputs"][0], expected["embedding_output"])
    close(actual["encoder_outputs"][1], expected["encoder_layer_0"])
    close(actual["encoder_outputs"][2], expected["encoder_layer_1"])
    close(actual["sequence_output"], expected["sequence_output"])
    close(actual["pooled_output"], expected["pooled_output"])


def test_mask_and_segments_may_be_left_out(tiny):
    model, expected = tiny
    actual = model.bert({"input_ids": tf.constant(expected["input_ids"])})
    for name in ("sequence_output", "pooled_output"):
        close(actual[name], expected[f"{name}_without_mask_and_segments"])


def test_a_row_without_any_real_token_stays_finite(tiny):
    model, expected = tiny
    batch = {name: expected[name][:1] for name in ("input_ids", "segment_ids")}
    batch["input_mask"] = np.zeros_like(batch["input_ids"])
    actual = model.bert(small_models.tensors(batch))["sequence_output"]
    # Adding -10000 in float32 costs 1e-3 in the scores.
    close(actual, expected["sequence_output_all_zero_mask_row0"], 2e-3)


@pytest.fixture(scope="module")
def model():
    model = models.BertForPretraining(small_models.config())
    small_models.randomize(model, 0)
    return model


@pytest.mark.parametrize("seed", range(5))
def test_padding_does_not_change_real_positions(model, seed):
    batch = small_models.batch(model.config, seed)
    expected = model.bert(small_models.tensors(batch))
    rng = np.random.default_rng(seed)
    longer = {
        name: np.concatenate(
            [batch[name], rng.integers(0, 2, (3, 9), np.int32)], axis=1
        )
        for name in ("input_ids", "segment_ids", "input_mask")
    }
    longer["input_mask"][:, 7:] = 0
    # What stands in the places that were padding already does not matter either.
    padding = longer["input_mask"] == 0
    longer["input_ids"][padding] = rng.integers(0, 29, padding.sum())
    actual = model.bert(small_models.tensors(longer))
    real = batch["input_mask"].astype(bool)
    for ours, theirs in zip(
        actual["encoder_outputs"], expected["encoder_outputs"], strict=True
    ):
        close(ours.numpy()[:, :7][real], theirs.numpy()[real], 2e-6)
    close(actual["pooled_output"], expected["pooled_output"], 2e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_the_batch_does_not_matter(model, seed):
    batch = small_models.batch(model.config, seed, batch_size=6)
    order = np.random.default_rng(seed).permutation(6)
    expected = model.bert(small_models.tensors(batch))
    shuffled = {name: array[order] for name, array in batch.items()}
    actual = model.bert(small_models.tensors(shuffled))
    for name in ("sequence_output", "pooled_output"):
        close(actual[name], expected[name].numpy()[order], 2e-6)


@pytest.mark.parametrize("seed", range(5))
def test_attention_is_shared_among_real_tokens_only(model, seed):
    batch = small_models.batch(model.config, seed)
    for probs in model.bert(small_models.tensors(batch))["attention_probs"]:
        assert probs.shape == (3, 3, 7, 7)
        close(tf.reduce_sum(probs, axis=-1), np.ones((3, 3, 7)), 1e-6)
        padding = np.broadcast_to(batch["input_mask"][:, None, None] == 0, probs.shape)
        assert padding.any() and not probs.numpy()[padding].any()
        assert (probs.numpy()[~padding] > 0).all()


def test_a_mask_of_ones_own(model):
    """With a left-to-right mask, nothing depends on what comes later."""
    batch = small_models.batch(model.config, 1)
    causal = tf.constant(np.tril(np.ones((1, 7, 7), bool)).repeat(3, axis=0))
    before = model.bert(small_models.tensors(batch), attention_mask=causal)
    batch["input_ids"][:, 4:] = (
        batch["input_ids"][:, 4:] + 1
    ) % model.config.vocab_size
    after = model.bert(small_models.tensors(batch), attention_mask=causal)
    change = np.abs(after["sequence_output"] - before["sequence_output"])
    close(change[:, :4], 0, 1e-6)
    assert (change[:, 4:].max(axis=-1) > 1e-3).all()
    both_ways = model.bert(small_models.tensors(batch))["sequence_output"]
    assert np.abs(after["sequence_output"] - both_ways)[:, 0].max() > 1e-3


@pytest.mark.parametrize("seq_length", [None, 7])
def test_graphs_with_unknown_sizes_give_the_same(model, seq_length):
    names = ("input_ids", "input_mask", "segment_ids")
    spec = {name: tf.TensorSpec([None, seq_length], tf.int32) for name in names}
    function = tf.function(model.bert.call, input_signature=[spec])
    for seed, batch_size in [(0, 1), (1, 4)]:
        batch = small_models.tensors(small_models.batch(model.config, seed, batch_size))
        batch = {name: batch[name] for name in names}
        compare(function(batch), model.bert(batch), 2e-6)


def test_shapes_are_static_when_those_of_the_batch_are(model):
    names = ("input_ids", "input_mask", "segment_ids")
    spec = {name: tf.TensorSpec([3, 7], tf.int32) for name in names}
    outputs = (
        tf.function(model.bert.call).get_concrete_function(spec).structured_outputs
    )
    assert outputs["sequence_output"].shape == (3, 7, 12)
    assert outputs["pooled_output"].shape == (3, 12)
    assert [x.shape for x in outputs["encoder_outputs"]] == [(3, 7, 12)] * 3
    assert [x.shape for x in outputs["attention_probs"]] == [(3, 3, 7, 7)] * 2


def loss_and_gradients(model, batch, recompute, jit_compile):
    model.bert.recompute = recompute

    @tf.function(jit_compile=jit_compile)
    def step(seed):
        with dropout.dropout_seed(seed), tf.GradientTape() as tape:
            outputs = model(batch, training=True)
            loss = tf.reduce_mean(outputs["masked_lm_logits"] ** 2)
            loss += tf.reduce_mean(outputs["next_sentence_logits"] ** 2)
        weights = [w.value for w in model.trainable_variables]
        return loss, [tf.convert_to_tensor(g) for g in tape.gradient(loss, weights)]

    return step(tf.constant([1, 2]))


@pytest.mark.parametrize(
    "jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_recompute_gives_the_same_gradients(jit_compile):
    config = small_models.config(
        hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.3
    )
    model = models.BertForPretraining(config)
    small_models.randomize(model, 0)
    batch = small_models.tensors(small_models.batch(config, 0))
    loss, expected = loss_and_gradients(model, batch, False, jit_compile)
    again, actual = loss_and_gradients(model, batch, True, jit_compile)
    assert float(loss) == pytest.approx(float(again), rel=1e-6)
    assert len(actual) == len(model.trainable_variables)
    for ours, theirs in zip(actual, expected, strict=True):
        close(ours, theirs, 1e-6 + 2e-6 * np.abs(theirs).max())


def test_recompute_keeps_no_attention_probs_in_training_alone():
    model = models.BertForPretraining(small_models.config())
    model.bert.recompute = True
    batch = small_models.tensors(small_models.batch(model.config, 0))
    with dropout.dropout_seed([0, 0]):
        assert model(batch, training=True)["attention_probs"] == []
    assert len(model(batch)["attention_probs"]) == model.config.num_hidden_layers


def with_token(batch, row, place):
    """A batch in which one token is another."""
    ids = batch["input_ids"].copy()
    ids[row, place] += 1 if ids[row, place] == 0 else -1
    return {**batch, "input_ids": ids}


@pytest.mark.parametrize("seed", range(5))
def test_left_to_right_a_token_changes_nothing_before_it(seed):
    config = small_models.config(visibility="left_to_right", pooled_position="last")
    model = models.BertForPretraining(config)
    small_models.randomize(model, seed)
    batch = small_models.batch(config, seed, seq_length=9)
    place = int(np.random.default_rng(seed).integers(9))
    before = model(small_models.tensors(batch))
    after = model(small_models.tensors(with_token(batch, 1, place)))
    for old, new in zip(
        before["encoder_outputs"], after["encoder_outputs"], strict=True
    ):
        same = (old.numpy() == new.numpy()).all(axis=-1)
        assert same[1, :place].all() and not same[1, place]
        assert same[[0, 2]].all()


@pytest.mark.parametrize("seed", range(3))
def test_left_to_right_outputs_equal_the_numpy_reference(seed):
    config = small_models.config(visibility="left_to_right", pooled_position="last")
    model = models.BertForPretraining(config)
    weights = small_models.randomize(model, seed)
    batch = small_models.batch(config, seed, seq_length=9)
    actual = model.bert(small_models.tensors(batch))
    # The reference takes a mask of its own for each query.
    triangle = batch["input_mask"][:, None] * np.tri(9, dtype=int)
    expected = numpy_bert.encode(weights, config, {**batch, "input_mask": triangle})
    for name in ("encoder_outputs", "attention_probs"):
        for ours, theirs in zip(actual[name], expected[name], strict=True):
            close(ours, theirs, 2e-5)


def test_in_both_directions_a_token_changes_all_positions(model):
    batch = small_models.batch(model.config, 0, seq_length=9)
    batch["input_mask"][:] = 1
    before = model.bert(small_models.tensors(batch))
    after = model.bert(small_models.tensors(with_token(batch, 1, 8)))
    same = before["sequence_output"].numpy() == after["sequence_output"].numpy()
    assert not same[1].any() and same[[0, 2]].all()


def test_the_last_real_token_is_pooled():
    config = small_models.config(pooled_position="last")
    model = models.BertForPretraining(config)
    weights = small_models.randomize(model, 0)
    batch = small_models.batch(config, 0)
    outputs = model(small_models.tensors(batch))
    lasts = [
        states[mask.sum() - 1]
        for states, mask in zip(
            outputs["sequence_output"].numpy(), batch["input_mask"], strict=True
        )
    ]
    kernel, bias = (weights[f"bert/pooler/dense/{n}"] for n in ("kernel", "bias"))
    close(outputs["pooled_output"], np.tanh(np.array(lasts) @ kernel + bias))
