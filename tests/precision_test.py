"""--precision=bfloat16: what is computed in it, and what is not."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import trainer as trainer_lib
import training
from modeling import config as config_lib
from modeling import dropout, losses, models, optimization

CONFIG = config_lib.BertConfig(
    vocab_size=50,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    initializer_range=0.2,
)


@pytest.fixture(autouse=True)
def restored_policy():
    policy = keras.config.dtype_policy()
    yield
    keras.config.set_dtype_policy(policy)


def make_batch(seed, rows=8, length=16):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(4, length + 1, rows)
    mask = (np.arange(length) < lengths[:, None]).astype(np.int32)
    return {
        "input_ids": tf.constant(rng.integers(1, 50, mask.shape) * mask, tf.int32),
        "input_mask": tf.constant(mask),
        "segment_ids": tf.zeros_like(mask),
        "masked_lm_positions": tf.constant(rng.integers(0, 4, (rows, 3)), tf.int32),
        "masked_lm_ids": tf.constant(rng.integers(1, 50, (rows, 3)), tf.int32),
        "masked_lm_weights": tf.ones((rows, 3)),
        "next_sentence_labels": tf.constant(rng.integers(0, 2, (rows, 1)), tf.int32),
    }


def make_model(precision, seed=0):
    training.set_seed(seed)
    training.set_precision(precision)
    return models.BertForPretraining(CONFIG)


def gradients_of(model, batch):
    with tf.GradientTape() as tape, dropout.dropout_seed([0, 0]):
        outputs = model(batch, training=True)
        numerators = losses.PRETRAINING.numerators(outputs, batch)
        loss = tf.add_n(list(numerators.values()))
    gradients = tape.gradient(loss, model.trainable_variables)
    return loss, [tf.convert_to_tensor(g).numpy() for g in gradients]


def test_weights_gradients_and_losses_are_float32():
    model = make_model("bfloat16")
    assert {v.value.dtype for v in model.weights} == {tf.float32}
    batch = make_batch(0)
    outputs = model(batch)
    assert outputs["masked_lm_logits"].dtype == tf.float32
    assert outputs["sequence_output"].dtype == tf.bfloat16
    assert {p.dtype for p in outputs["attention_probs"]} == {tf.float32}
    loss, gradients = gradients_of(model, batch)
    assert loss.dtype == tf.float32
    assert {g.dtype for g in gradients} == {np.dtype(np.float32)}


def test_products_are_bfloat16():
    model = make_model("bfloat16")
    graph = tf.function(model).get_concrete_function(make_batch(0)).graph
    ops = [
        op
        for function in (graph, *map(lambda f: f.graph, graph._functions.values()))
        for op in getattr(function, "get_operations", lambda: [])()
        if op.type in ("MatMul", "BatchMatMulV2")
    ]
    # All but the product with one-hot segments, which belongs to the embeddings, and
    # that of the head.
    wide = [op.name for op in ops if op.outputs[0].dtype != tf.bfloat16]
    assert len(ops) == 2 * 8 + 5  # of each layer, and outside of them
    assert ["embeddings" in name for name in wide] == [True, False]
    assert "seq_relationship" in wide[1]


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (models.BertForPretraining, "next_sentence_logits"),
        (lambda config: models.BertForSequenceClassification(config, 3), "logits"),
        (lambda config: models.BertForTokenClassification(config, 3), "logits"),
        (models.BertForQuestionAnswering, "start_logits"),
    ],
)
def test_logits_of_heads_are_not_rounded(make, name):
    """In 8 bits many would be equal, and the best answer a matter of order."""
    training.set_precision("bfloat16")
    logits = make(CONFIG)(make_batch(0, rows=64))[name]
    rounded = tf.cast(tf.cast(logits, tf.bfloat16), tf.float32)
    assert logits.dtype == tf.float32
    assert np.mean(logits == rounded) < 0.1


def test_gradients_are_those_of_float32_but_for_rounding():
    """bfloat16 has 8 bits: a relative error of 2**-9 an operation."""
    for seed in range(5):
        batch = make_batch(seed)
        exact_loss, exact = gradients_of(make_model("float32", seed), batch)
        model = make_model("bfloat16", seed)
        loss, rounded = gradients_of(model, batch)
        assert abs(float(loss / exact_loss) - 1) < 0.01
        whole = np.sqrt(sum(np.square(a).sum() for a in exact))
        for a, b, variable in zip(
            exact, rounded, model.trainable_variables, strict=True
        ):
            # That of the keys' bias, for one, is 0: softmax does not see it.
            error = np.linalg.norm(a - b) / max(np.linalg.norm(a), 0.02 * whole)
            assert error < 0.1, (variable.path, error)


def test_rows_that_occur_often_are_added_up_in_float32():
    """In bfloat16 a sum of ones would stop at 256."""
    model = make_model("bfloat16")
    table = model.bert.embeddings.word_embeddings
    with tf.GradientTape() as tape:
        rows = tf.gather(tf.convert_to_tensor(table), tf.zeros(1000, tf.int32))
        total = tf.reduce_sum(rows)
    gradient = tf.convert_to_tensor(tape.gradient(total, table.value))
    np.testing.assert_array_equal(gradient[0], np.full(32, 1000.0))


def test_training_lowers_the_loss_as_in_float32(tmp_path):
    def train(precision):
        model = make_model(precision)
        strategy = tf.distribute.get_strategy()
        optimizer = training.make_optimizer(
            strategy, model, optimization.warmup_then_decay(2e-3, 60, 5)
        )
        trainer = trainer_lib.Trainer(strategy, model, optimizer, losses.PRETRAINING, 1)
        batches = iter(tf.data.Dataset.from_tensors(make_batch(0)).repeat())
        results = [float(trainer.update(batches)["loss"]) for _ in range(40)]
        trainer.save(str(tmp_path / precision))
        return results

    wide, narrow = train("float32"), train("bfloat16")
    assert wide[-1] < 0.7 * wide[0]
    assert abs(narrow[-1] - wide[-1]) < 0.05 * wide[0]
    # What was trained in one precision goes on in the other.
    model = make_model("float32", seed=3)
    optimizer = training.make_optimizer(
        tf.distribute.get_strategy(), model, optimization.warmup_then_decay(2e-3, 60, 5)
    )
    strategy = tf.distribute.get_strategy()
    trainer = trainer_lib.Trainer(strategy, model, optimizer, losses.PRETRAINING, 1)
    trainer.restore(str(tmp_path / "bfloat16"))
    batches = iter(tf.data.Dataset.from_tensors(make_batch(0)).repeat())
    assert abs(float(trainer.update(batches)["loss"]) - narrow[-1]) < 0.05 * wide[0]
