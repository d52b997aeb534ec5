"""Order of batches: exact epochs, resuming at any step, exact evaluation."""

import gzip
import re

import numpy as np
import pytest
import tensorflow as tf

from data import batching, record_reading, records

SPEC = records.pretraining_spec(4, 2)


def make_data(num_rows):
    """Rows that are told apart by their first token."""
    data = {
        name: np.ones(
            (num_rows, feature.length),
            np.int32 if feature.dtype == "int64" else np.float32,
        )
        for name, feature in SPEC.items()
    }
    data["input_ids"][:, 0] = np.arange(num_rows)
    return data


@pytest.fixture
def files(tmp_path):
    """Three files with 12, 12 and 11 of 35 records."""
    paths = [str(tmp_path / f"{i}.tfrecord") for i in range(3)]
    data = make_data(35)
    for number, path in enumerate(paths):
        records.write(path, {k: v[number::3] for k, v in data.items()}, SPEC)
    return paths


def from_memory(batch_size, seed=1, first_step=0, num_rows=35, **_):
    batches = batching.InMemoryBatches(make_data(num_rows), batch_size, seed)
    return batches.starting_at(first_step)


def rows_of(dataset, num_batches):
    """int [num_batches, B], which row stands where."""
    batches = dataset.take(num_batches).as_numpy_iterator()
    return np.array([batch["input_ids"][:, 0] for batch in batches])


@pytest.fixture(params=["memory", "files", "files, small windows"])
def training_batches(request, files, monkeypatch):
    """Function of (batch_size, seed, first_step) -> dataset of 35 records."""
    if request.param == "memory":
        return from_memory
    if "small" in request.param:
        monkeypatch.setattr(batching, "WINDOW", 8)
    return lambda batch_size, seed=1, first_step=0: batching.FileBatches(
        files, SPEC, batch_size, seed
    ).starting_at(first_step)


@pytest.mark.parametrize("batch_size", [1, 5, 8, 40])
def test_every_epoch_is_a_permutation(training_batches, batch_size):
    rows = rows_of(training_batches(batch_size), -(-35 * 6 // batch_size)).ravel()
    epochs = rows[: 35 * 6].reshape(6, 35)
    np.testing.assert_array_equal(np.sort(epochs), [np.arange(35)] * 6)
    assert len({epoch.tobytes() for epoch in epochs}) == 6


@pytest.mark.parametrize("batch_size", [5, 8, 40])
def test_starting_late_continues_the_order(training_batches, batch_size):
    expected = rows_of(training_batches(batch_size), 24)
    for first_step in (1, 3, 4, 5, 7, 14, 20):
        rows = rows_of(training_batches(batch_size, first_step=first_step), 4)
        np.testing.assert_array_equal(rows, expected[first_step : first_step + 4])


def test_what_is_skipped_is_not_read(training_batches):
    # 10^11 steps would take months.
    rows = rows_of(training_batches(7, first_step=10**11), 5)
    np.testing.assert_array_equal(np.sort(rows.ravel()), np.arange(35))


def test_only_the_seed_decides_on_the_order(training_batches):
    expected = rows_of(training_batches(8, seed=3), 10)
    tf.random.set_seed(99)
    np.testing.assert_array_equal(rows_of(training_batches(8, seed=3), 10), expected)
    for seed in (4, -3, 2**40):
        assert (rows_of(training_batches(8, seed=seed), 10) != expected).any()


def test_whole_batches_of_static_shape(training_batches):
    spec = training_batches(8).element_spec
    assert set(spec) == set(SPEC)
    assert {(x.shape[0], x.shape[1]) for x in spec.values()} == {(8, 4), (8, 2), (8, 1)}
    assert spec["input_ids"].dtype == tf.int32
    assert spec["masked_lm_weights"].dtype == tf.float32


@pytest.mark.parametrize("training_batches", ["memory", "files"], indirect=True)
def test_every_row_comes_equally_often_at_every_place(training_batches):
    counts = np.zeros((35, 35))
    for epoch in rows_of(training_batches(35), 700):
        counts[np.arange(35), epoch] += 1
    deviation = np.sqrt(20 * 34 / 35)
    assert abs(counts - 20).max() < 5.5 * deviation  # the largest of 1225


def test_records_of_all_files_are_mixed_over_windows(tmp_path, monkeypatch):
    monkeypatch.setattr(batching, "WINDOW", 100)
    paths = []
    for number in range(4):
        paths.append(str(tmp_path / f"{number}"))
        data = make_data(100)
        data["input_ids"][:, 0] += 100 * number
        records.write(paths[-1], data, SPEC)
    rows = rows_of(batching.FileBatches(paths, SPEC, 100, seed=1).starting_at(0), 8)
    for batch in rows[:4]:
        assert set(batch // 100) == {0, 1, 2, 3}
    assert set(rows[0]) != set(rows[4])  # other windows in the next epoch


def test_the_order_is_that_of_earlier_versions(tmp_path):
    # Printed by the first version: whoever resumes a run after an update goes on in it.
    paths = [str(tmp_path / f"{i}") for i in range(7)]
    data = make_data(200)
    for number, path in enumerate(paths):
        records.write(path, {k: v[number::7] for k, v in data.items()}, SPEC)
    batches = batching.FileBatches(paths, SPEC, 6, seed=3)
    first, late = (rows_of(batches.starting_at(s), 1)[0].tolist() for s in (0, 40))
    assert (first, late) == (
        [186, 166, 48, 31, 30, 173],
        [169, 36, 164, 17, 49, 149],
    )
    batches = batching.InMemoryBatches(data, 6, seed=3)
    first, late = (rows_of(batches.starting_at(s), 1)[0].tolist() for s in (0, 40))
    assert (first, late) == (
        [188, 66, 162, 166, 47, 132],
        [175, 119, 130, 29, 19, 189],
    )


@pytest.mark.parametrize("window", [8, batching.WINDOW])
@pytest.mark.parametrize("batch_size, seed", [(1, 0), (8, -3), (80, 2**40)])
def test_a_description_names_the_records_of_the_batch(
    window, batch_size, seed, files, monkeypatch
):
    monkeypatch.setattr(batching, "WINDOW", window)
    contents = {  # file -> its rows, in order
        path: record_reading.read_all([path], SPEC)["input_ids"][:, 0] for path in files
    }
    from_files = batching.FileBatches(files, SPEC, batch_size, seed)
    in_memory = batching.InMemoryBatches(make_data(35), batch_size, seed)
    for step in (0, 4, 30, 10**9):
        rows = np.sort(rows_of(from_files.starting_at(step), 1)[0])
        text = from_files.describe(step)
        named = [
            contents[path][int(number) - 1]
            for path, numbers in re.findall(r"(\S+\.tfrecord): (\d+(?:, \d+)*)", text)
            for number in numbers.split(", ")
        ]
        np.testing.assert_array_equal(np.sort(named), rows)
        assert re.fullmatch(r"records [^\n]*, counted from 1", text)
        rows = np.sort(rows_of(in_memory.starting_at(step), 1)[0])
        numbers = ", ".join(map(str, rows))
        expected = f"rows {numbers} of the training data, counted from 0"
        assert in_memory.describe(step) == expected


def test_a_description_of_compressed_files(tmp_path):
    path = tmp_path / "a.tfrecord"
    records.write(str(path), make_data(35), SPEC)
    packed = tmp_path / "a.tfrecord.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    text, same = (
        batching.FileBatches([str(p)], SPEC, 4, 1).describe(3) for p in (packed, path)
    )
    assert text == same.replace(str(path), str(packed))


def test_batches_are_transformed(files):
    def double(batch):
        return {"twice": 2 * batch["input_ids"]}

    data = make_data(35)
    for plain, doubled in (
        (
            batching.InMemoryBatches(data, 4, 1).starting_at(2),
            batching.InMemoryBatches(data, 4, 1, double).starting_at(2),
        ),
        (
            batching.FileBatches(files, SPEC, 4, 1).starting_at(2),
            batching.FileBatches(files, SPEC, 4, 1, double).starting_at(2),
        ),
        (
            batching.in_memory_evaluation_batches(data, 4),
            batching.in_memory_evaluation_batches(data, 4, double),
        ),
        (
            batching.evaluation_batches(files, SPEC, 4),
            batching.evaluation_batches(files, SPEC, 4, double),
        ),
    ):
        for before, after in zip(plain.take(3), doubled.take(3), strict=True):
            np.testing.assert_array_equal(after["twice"], 2 * before["input_ids"])
        # Files need not be as many as workers.
        policy = doubled.options().experimental_distribute.auto_shard_policy
        assert policy == tf.data.experimental.AutoShardPolicy.DATA


def test_no_examples_to_train_on_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no examples to train on"):
        from_memory(2, num_rows=0)
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(gzip.compress(b""))
    for step in (0, 3):
        with pytest.raises(ValueError, match=r"no record in .*a\.tfrecord\.gz"):
            batching.FileBatches([str(path)], SPEC, 2, 1).starting_at(step)


def evaluation_batches(source, files, batch_size):
    if source == "memory":
        return batching.in_memory_evaluation_batches(make_data(35), batch_size)
    return batching.evaluation_batches(files, SPEC, batch_size)


@pytest.mark.parametrize("source", ["memory", "files"])
@pytest.mark.parametrize("batch_size", [1, 7, 8, 35, 36])
def test_evaluation_sees_every_row_once_in_order(source, batch_size, files):
    dataset = evaluation_batches(source, files, batch_size)
    assert {x.shape[0] for x in dataset.element_spec.values()} == {batch_size}
    batches = list(dataset.as_numpy_iterator())
    joined = {name: np.concatenate([b[name] for b in batches]) for name in batches[0]}
    is_real = joined["is_real_example"]
    assert is_real.dtype == np.int32
    assert is_real.tolist() == [1] * 35 + [0] * (len(is_real) - 35)
    expected = (
        record_reading.read_all(files, SPEC) if source == "files" else make_data(35)
    )
    for name, values in expected.items():
        np.testing.assert_array_equal(joined[name][:35], values)
        assert joined[name].dtype == values.dtype
        assert not joined[name][35:].any()


def test_evaluation_keeps_is_real_example_of_the_records():
    data = {"label_ids": np.array([5, 6, 7]), "is_real_example": np.array([1, 0, 1])}
    batches = batching.in_memory_evaluation_batches(data, 2).as_numpy_iterator()
    assert [batch["is_real_example"].tolist() for batch in batches] == [[1, 0], [1, 0]]


def test_reading_all_keeps_the_order_of_the_files(files):
    data = record_reading.read_all(files, SPEC)
    expected = [*range(0, 35, 3), *range(1, 35, 3), *range(2, 35, 3)]
    assert data["input_ids"][:, 0].tolist() == expected
