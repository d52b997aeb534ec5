"""Updates come out equal however the batch is cut; what is not finite has no effect."""

import dataclasses
import json
import os
import socket
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import strategies
import trainer as trainer_lib
import training
from modeling import checkpoint, losses, models, optimization
from tests import scripts, small_models, training_ways


def start(golden, output, ways, environment=None):
    """A process that trains in several ways, one after the other."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.training_ways", golden, output, *ways],
        env={**os.environ, **(environment or {})},
        stderr=subprocess.PIPE,
        text=True,
        cwd=scripts.ROOT,
    )


def finish(*processes):
    for process in processes:
        _, shown = process.communicate()
        assert process.returncode == 0, shown[-3000:]


def cluster(workers=2):
    """TF_CONFIG of each of some workers on this machine."""
    sockets = [socket.socket() for _ in range(workers)]
    for one in sockets:
        one.bind(("localhost", 0))
    addresses = [f"localhost:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return [
        json.dumps(
            {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": i}}
        )
        for i in range(workers)
    ]


@pytest.fixture(scope="module")
def reference(golden, tmp_path_factory):
    """What one device makes of the whole batch."""
    output = tmp_path_factory.mktemp("reference")
    finish(start(golden, output, ["one"]))
    return np.load(output / "one.npz")


def check(golden, reference, path):
    """Compares with one device, and with the original's training."""
    weights = np.load(path)
    np.testing.assert_allclose(weights["losses"], reference["losses"], rtol=1e-5)
    for name in reference.files:
        # The key's bias has no gradient but rounding, divided by itself in Adam.
        if name != "losses" and not name.endswith("key|bias"):
            np.testing.assert_allclose(
                weights[name], reference[name], atol=2e-6, err_msg=name
            )
    expected = np.load(golden / "tiny_tf1/training_trace.npz")
    traced = np.load(path.with_suffix(".trace.npz"))
    losses_before = expected["losses_before_each_step"]
    np.testing.assert_allclose(traced["losses"], losses_before, atol=1e-4)
    for name in reference.files:
        if name != "losses" and not name.endswith("key|bias"):
            trace = expected[f"param/{name.replace('|', '/')}"]
            np.testing.assert_allclose(traced[name], trace, atol=1e-4, err_msg=name)


@pytest.mark.parametrize(
    "ways",
    [
        ["one", "four_parts"],
        ["two", "two_in_two_parts"],
        pytest.param(["jit", "jit_two_parts"], marks=pytest.mark.slow),
        pytest.param(["two_jit"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_all_ways_train_as_one_device(golden, reference, tmp_path, ways):
    finish(start(golden, tmp_path, ways))
    for way in ways:
        check(golden, reference, tmp_path / f"{way}.npz")


def test_two_workers_train_as_one_device(golden, reference, tmp_path):
    ways = list(training_ways.WORKERS)
    finish(
        *(start(golden, tmp_path, ways, {"TF_CONFIG": config}) for config in cluster())
    )
    for way in ways:
        files = sorted(tmp_path.glob(f"{way}-*[0-9].npz"))
        assert len(files) == 2
        for file in files:
            check(golden, reference, file)


CONFIG = small_models.config(hidden_dropout_prob=0.3)
ONE_PART = trainer_lib.Execution()


def make_trainer(execution=ONE_PART, seed=1, kind="adamw", **changes):
    training.set_seed(0)
    model = models.BertForSequenceClassification(
        dataclasses.replace(CONFIG, **changes), 2
    )
    strategy = strategies.make()
    optimizer = training.make_optimizer(
        strategy, model, optimization.warmup_then_decay(1e-2, 100, 0), kind
    )
    return trainer_lib.Trainer(
        strategy, model, optimizer, losses.CLASSIFICATION, seed, execution
    )


def repeated(batch):
    return iter(tf.data.Dataset.from_tensors(batch).repeat())


def values(trainer):
    return {n: v.numpy() for n, v in trainer._variables().items()}


def test_dropout_differs_between_parts_and_updates_and_seeds():
    """Equal examples have equal losses only under equal masks."""
    batch = small_models.batch(CONFIG, 0, batch_size=1)
    batch = {name: np.repeat(x, 4, axis=0) for name, x in batch.items()}
    seen = set()
    for seed in (1, 2):
        for parts in (1, 2, 4):
            trainer = make_trainer(trainer_lib.Execution(parts), seed)
            # No rate: the weights stay, so that only the masks change.
            trainer.optimizer.schedule = lambda _: tf.constant(0.0)
            iterator = repeated(batch)
            seen |= {float(trainer.update(iterator)["loss"]) for _ in range(3)}
    assert len(seen) == 18
    again = make_trainer(trainer_lib.Execution(4), 2)
    assert float(again.update(repeated(batch))["loss"]) in seen


@pytest.mark.parametrize("kind", ["adamw", "lamb"])
def test_an_update_that_is_not_finite_changes_nothing_but_the_count(kind):
    trainer = make_trainer(kind=kind)
    batch = small_models.batch(CONFIG, 0, batch_size=4)
    trainer.update(repeated(batch))
    before = values(trainer)
    bad = {**batch, "is_real_example": np.float32([1, np.nan, 1, 1])}
    results = trainer.update(repeated(bad))
    assert not results["finite"]
    after = values(trainer)
    assert after.pop("global_step") == before.pop("global_step") + 1
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)
    assert trainer.update(repeated(batch))["finite"]
    moved = values(trainer)
    assert any(np.any(moved[name] != value) for name, value in before.items())


def test_float16_finds_its_loss_scale(tmp_path):
    """Overflows at the first scale are left out until it fits; then it trains."""
    policy = keras.config.dtype_policy()
    training.set_precision("float16")
    try:
        # A mask may bring a gradient that overflows late, which is no fault.
        steady = dict.fromkeys(
            ("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0
        )
        trainer = make_trainer(**steady)
        trainer.loss_scale.value.assign(2.0**30)
        iterator = repeated(small_models.batch(CONFIG, 0, batch_size=4))
        results = [trainer.update(iterator) for _ in range(40)]
        finite = [bool(r["finite"]) for r in results]
        assert not finite[0]
        assert all(finite[-10:])
        scales = [float(r["loss_scale"]) for r in results]
        for now, then, good in zip(scales[:-1], scales[1:], finite[:-1], strict=True):
            assert then == (now if good else now / 2)
        first = finite.index(True)
        assert float(results[-1]["loss"]) < 0.5 * float(results[first]["loss"])
        trainer.save(str(tmp_path))
        # A float32 run leaves the scale alone; a float16 one goes on with it.
        again = make_trainer(hidden_dropout_prob=0.0)
        again.restore(str(tmp_path))
        assert float(again.loss_scale.value) == scales[-1]
        training.set_precision("float32")
        wide = make_trainer()
        wide.restore(str(tmp_path))
        wide.save(str(tmp_path / "wide"))
        training.set_precision("float16")
        make_trainer().restore(str(tmp_path / "wide"))
    finally:
        keras.config.set_dtype_policy(policy)


def test_a_checkpoint_of_another_optimizer_is_refused(tmp_path):
    make_trainer(kind="lamb").save(str(tmp_path))
    with pytest.raises(ValueError, match="adam_m is missing there.*--optimizer"):
        make_trainer().restore(str(tmp_path))
    make_trainer(kind="lamb").restore(str(tmp_path))
    # As weights to start from it is as good as any.
    names = checkpoint.read(str(tmp_path))
    assert not [name for name in names if "lamb" in name]


def test_frozen_layers_and_decayed_rates():
    """Where all moments are equal, a step is as long as the rate."""
    model = make_trainer().model
    rates = training.learning_rates(model, frozen_layers=1, decay=0.5)
    expected = {"classifier": 1, "bert/pooler": 1, "bert/encoder/layer_1": 0.5}
    expected |= {"bert/encoder/layer_0": 0, "bert/embeddings": 0, "output_": 1}
    assert set(rates) == set(checkpoint.weight_names(model))
    for name, rate in rates.items():
        (key,) = [key for key in expected if name.startswith(key)]
        assert rate == expected[key], name
    assert set(training.learning_rates(model).values()) == {1.0}
    assert min(training.learning_rates(model, 0).values()) == 0.0
