"""Writing TF1 checkpoints: read by others, whole or not there, the newest kept."""

import os
import resource

import numpy as np
import pytest
import tensorflow as tf

from modeling import checkpoint, checkpoint_state


def some_weights(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "bert/pooler/dense/kernel": rng.normal(size=(3, 4)).astype(np.float32),
        "bert/pooler/dense/kernel/adam_m": np.zeros((3, 4), np.float32),
        "global_step": np.int64(seed),
    }


def assert_same(actual, expected):
    assert actual.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array, strict=True, err_msg=name)


def test_written_checkpoint_is_read_by_tensorflow(tmp_path):
    weights = some_weights(3)
    checkpoint.write_tf1(tmp_path / "new" / "model.ckpt-3", weights)
    prefix = tf.train.latest_checkpoint(str(tmp_path / "new"))
    assert prefix == str(tmp_path / "new" / "model.ckpt-3")
    shapes = dict(tf.train.list_variables(prefix))
    assert shapes == {name: list(np.shape(array)) for name, array in weights.items()}
    for name, array in weights.items():
        np.testing.assert_array_equal(tf.train.load_variable(prefix, name), array)


def test_written_checkpoint_is_restored_by_a_tf1_graph(golden, tmp_path):
    weights = checkpoint.read(golden / "tiny_tf1")
    prefix = str(tmp_path / "bert_model.ckpt")
    checkpoint.write_tf1(prefix, weights)
    with tf.Graph().as_default():
        variables = {
            name: tf.compat.v1.get_variable(name, array.shape, use_resource=False)
            for name, array in weights.items()
        }
        saver = tf.compat.v1.train.Saver(list(variables.values()))
        with tf.compat.v1.Session() as session:
            saver.restore(session, prefix)
            restored = session.run(variables)
    assert_same(restored, weights)


@pytest.mark.parametrize("run", ["classifier_mrpc", "pretraining"])
def test_copy_of_a_run_is_bitwise_equal(golden, tmp_path, run):
    weights = checkpoint.read(golden / "tiny_tf1_runs" / run, with_slots=True)
    checkpoint.write_tf1(tmp_path / "model.ckpt-1", weights)
    assert_same(checkpoint.read(tmp_path, with_slots=True), weights)


def test_only_the_newest_are_kept(tmp_path):
    for step in (1, 2, 3, 4):
        prefix = tmp_path / f"model.ckpt-{step}"
        checkpoint.write_tf1(prefix, some_weights(step), max_to_keep=2)
    # Another file that begins alike is not ours to remove.
    (tmp_path / "model.ckpt-30.index").write_text("")
    checkpoint.write_tf1(tmp_path / "model.ckpt-5", some_weights(5), max_to_keep=1)
    ends = ("index", "data-00000-of-00001")
    expected = {"checkpoint", "model.ckpt-30.index"}
    expected |= {f"model.ckpt-5.{end}" for end in ends}
    assert set(os.listdir(tmp_path)) == expected
    assert (tmp_path / "checkpoint").read_text() == (
        'model_checkpoint_path: "model.ckpt-5"\n'
        'all_model_checkpoint_paths: "model.ckpt-5"\n'
    )


def killed_after(count, *functions):
    """The functions, which may be called so many times together."""
    left = iter(range(count))

    def limited(function):
        def call(*args):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return function(*args)

        return call

    return map(limited, functions)


@pytest.mark.parametrize("count", range(8))
def test_a_kill_leaves_no_checkpoint_that_is_never_removed(tmp_path, count):
    def write(step, max_to_keep=2):
        prefix = tmp_path / f"model.ckpt-{step}"
        checkpoint.write_tf1(prefix, some_weights(step), max_to_keep)

    for step in (1, 2, 3):
        write(step, max_to_keep=None)
    with pytest.MonkeyPatch.context() as patch:
        remove, replace = killed_after(count, os.remove, os.replace)
        patch.setattr(os, "remove", remove)
        patch.setattr(os, "replace", replace)
        with pytest.raises(KeyboardInterrupt):
            write(4)
    newest = int(checkpoint.read(tmp_path, with_slots=True)["global_step"])
    assert newest == (3 if count < 3 else 4)
    for step in range(newest + 1, 7):
        write(step)
    there = {path.name.split(".")[1] for path in tmp_path.glob("model*")}
    assert there == {"ckpt-5", "ckpt-6"}
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert list(state.all_model_checkpoint_paths) == [
        str(tmp_path / f"model.ckpt-{step}") for step in (5, 6)
    ]


def test_without_a_limit_all_are_kept_and_listed(tmp_path):
    for step in (1, 2):
        checkpoint.write_tf1(tmp_path / f"model.ckpt-{step}", some_weights(step))
    state = tf.train.get_checkpoint_state(str(tmp_path))
    names = [os.path.basename(path) for path in state.all_model_checkpoint_paths]
    assert names == ["model.ckpt-1", "model.ckpt-2"]
    assert_same(checkpoint.read(tmp_path, with_slots=True), some_weights(2))


def test_same_prefix_is_replaced(tmp_path):
    for seed in (1, 2):
        checkpoint.write_tf1(tmp_path / "model.ckpt", some_weights(seed))
    assert_same(checkpoint.read(tmp_path, with_slots=True), some_weights(2))
    text = (tmp_path / "checkpoint").read_text()
    assert text.count("all_model_checkpoint_paths") == 1


def test_state_file_may_be_left_alone(tmp_path):
    checkpoint.write_tf1(tmp_path / "x.ckpt", some_weights(), update_state=False)
    assert not (tmp_path / "checkpoint").exists()


def test_folder_with_quotes_and_accents(tmp_path):
    folder = tmp_path / '[a "b" é'
    checkpoint.write_tf1(folder / "model.ckpt-1", some_weights(1), max_to_keep=1)
    checkpoint.write_tf1(folder / "model.ckpt-2", some_weights(2), max_to_keep=1)
    assert len(os.listdir(folder)) == 3
    assert_same(checkpoint.read(folder, with_slots=True), some_weights(2))


def test_leftovers_of_a_killed_run_are_cleared_and_never_read(tmp_path):
    checkpoint.write_tf1(tmp_path / "model.ckpt-1", some_weights(1))
    (tmp_path / "checkpoint").unlink()
    for name in ("index", "data-00000-of-00001.tempstate123"):
        (tmp_path / f".partial-model.ckpt-2.{name}").write_bytes(b"half")
    assert_same(checkpoint.read(tmp_path, with_slots=True), some_weights(1))
    checkpoint.write_tf1(tmp_path / "model.ckpt-3", some_weights(3))
    assert [name for name in os.listdir(tmp_path) if name.startswith(".")] == []


@pytest.fixture
def full_disk():
    """Lets no file grow beyond 64 kB."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("full_disk")
def test_full_disk_leaves_what_was_there(tmp_path):
    checkpoint.write_tf1(tmp_path / "model.ckpt-1", some_weights(1))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    large = {"bert/large": np.zeros(100_000, np.float32)}
    for name in ("model.ckpt-2", "model.ckpt-1"):
        with pytest.raises(OSError, match=f"{name} could not be written: File too l"):
            checkpoint.write_tf1(tmp_path / name, large, max_to_keep=1)
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert after == before


def test_full_disk_at_the_state_file_is_named(tmp_path):
    checkpoint.write_tf1(tmp_path / "model.ckpt-1", some_weights(1))
    before = (tmp_path / "checkpoint").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # With so many names the state file is larger than the checkpoint itself.
    names = [f"model.ckpt-{'x' * 40}{k}" for k in range(100)]
    for name in names:
        (tmp_path / f"{name}.index").write_text("")
    lines = [f'all_model_checkpoint_paths: "{name}"\n' for name in names]
    (tmp_path / "checkpoint").write_bytes(before + "".join(lines).encode())
    before = (tmp_path / "checkpoint").read_bytes()
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        with pytest.raises(
            OSError, match="checkpoint could not be written: File too l"
        ):
            checkpoint.write_tf1(tmp_path / "model.ckpt-2", some_weights(2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "checkpoint").read_bytes() == before
    assert checkpoint_state.latest(str(tmp_path)) == str(tmp_path / "model.ckpt-1")
