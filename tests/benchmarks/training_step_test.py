"""The benchmark of training steps: its arithmetic, and how its processes take turns."""

import dataclasses
import json
import sys
import time
import types

import numpy as np
import pytest

from benchmarks import step_table, training_step
from benchmarks.step_workers import ours, protocol, transformers_model
from modeling import cost

TINY = training_step.SIZES["tiny"]


def measurement(name, cpu, wall=None, peak=2**30):
    """One with the given seconds of the steps of each round."""
    variant = dataclasses.asdict(training_step.VARIANTS[name])
    turns = [
        {"cpu": c, "wall": w, "peak_bytes": peak + i}
        for i, (c, w) in enumerate(zip(cpu, wall or cpu, strict=True))
    ]
    starts = [
        {"first_wall": s, "versions": {"package": "1.0"}} for s in (3.0, 9.0, 4.0)
    ]
    return {"name": name, **variant, "starts": starts, "turns": turns}


def test_a_row_has_medians_of_cpu_and_the_best_of_the_clock():
    cpu, wall = [[1.0, 9.0], [2.0, 3.0, 4.0]], [[0.8, 5.0], [0.7, 2.0, 2.0]]
    (row,) = step_table.make_rows([measurement("ours-float32", cpu, wall)], 6.0, 1.0)
    assert row["cpu_seconds"] == 3.0
    assert row["wall_seconds"] == 0.7
    assert row["flops_per_second"] == {"cpu": 2.0, "wall": pytest.approx(6 / 0.7)}
    assert row["first_wall"] == 4.0
    assert row["peak_bytes"] == 2**30 + 1


def test_ratios_of_cpu_go_round_by_round():
    # Everything takes four times as long in the second round, and ten in the third.
    mine = measurement("ours-float32", [[1.0], [4.0], [10.0]])
    peer = measurement("keras-hub-float32", [[1.5], [6.4], [14.0]], [[2.0], [9], [3]])
    expected = {"cpu": pytest.approx(1.5), "wall": 2.0}
    assert step_table.times_longer(peer, mine) == expected
    assert step_table.times_longer(peer, None) is None


def test_shares_and_ratios_are_those_of_the_same_precision():
    seconds = {
        "products-float32": (2.0, 1.0),
        "products-bfloat16": (1.0, 0.5),
        "ours-float32": (8.0, 5.0),
        "ours-bfloat16": (5.0, 3.0),
        "transformers-bfloat16": (10.0, 9.0),
    }
    measured = [measurement(n, [[c]], [[w]]) for n, (c, w) in seconds.items()]
    rows = step_table.make_rows(measured, step_flops=30.0, product_flops=10.0)
    rows = {row["name"]: row for row in rows}
    approx, mine = pytest.approx, rows["ours-float32"]
    assert mine["product_share"] == approx({"cpu": 0.75, "wall": 0.6})
    assert mine["beside_ours"] == {"cpu": 1.0, "wall": 1.0}
    assert mine["beside_bfloat16"] == approx({"cpu": 1.6, "wall": 5 / 3})
    assert rows["ours-bfloat16"]["product_share"] == approx({"cpu": 0.6, "wall": 0.5})
    peer = rows["transformers-bfloat16"]
    assert peer["beside_ours"] == peer["beside_bfloat16"] == {"cpu": 2.0, "wall": 3.0}
    assert rows["products-float32"]["flops_per_second"] == {"cpu": 5.0, "wall": 10.0}
    assert "product_share" not in rows["products-float32"]


def test_the_table_shows_what_there_is():
    measured = [
        measurement("products-float32", [[2.0]], [[1.0]]),
        measurement("ours-float32", [[4.0]], [[2.5]]),
        measurement("keras-hub-bfloat16", [[3.0]], [[2.0]]),
    ]
    rows = step_table.make_rows(measured, step_flops=8e9, product_flops=5e9)
    assert step_table.markdown(rows).splitlines()[1:] == [
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        "| `ours-float32`, as it comes | 4 | 2.5 | 80% / 64% | 1.00 / 1.00 | – | 4.0 "
        "| 1.00 |",
        "| `keras-hub-bfloat16` | 3 | 2 | – | – | – | 4.0 | 1.00 |",
        "",
        "Matrix products, GFLOPs a CPU second / a second: float32 2 / 5.",
        "",
        "ours: package 1.0; keras-hub: package 1.0",
    ]


@pytest.mark.parametrize("size, gflops", [("small", 275), ("base", 536)])
def test_the_sizes_cost_what_was_worked_out_by_hand(size, gflops):
    # 3 (24 H² + 4 S H) a layer and token.
    setting = training_step.SIZES[size]
    config = ours.make_config(setting)
    flops = cost.training_flops(config, setting.batch_size, setting.seq_length)
    assert flops / 1e9 == pytest.approx(gflops, rel=0.005)


def test_a_batch_has_padding_and_predicts_real_tokens():
    setting = dataclasses.replace(
        training_step.SIZES["small"], num_predictions=20, batch_size=50
    )
    batch = protocol.random_batch(setting)
    lengths = batch["input_mask"].sum(1)
    assert lengths.min() < 80 and 120 < lengths.max() <= 128
    assert np.all(np.diff(batch["input_mask"], axis=1) <= 0)
    assert np.all((batch["input_ids"] > 0) == batch["input_mask"])
    assert np.all(batch["segment_ids"] <= batch["input_mask"])
    positions = batch["masked_lm_positions"]
    assert positions.shape == batch["masked_lm_ids"].shape == (50, 20)
    assert np.all(np.diff(positions, axis=1) > 0)
    assert np.all(np.take_along_axis(batch["input_mask"], positions, 1) == 1)


def test_labels_of_transformers_stand_where_the_predictions_are():
    setting = dataclasses.replace(TINY, num_predictions=2)
    batch = protocol.random_batch(setting)
    labels = transformers_model.to_inputs(batch)["labels"]
    assert (labels != -100).sum() == batch["masked_lm_ids"].size
    for row, positions in enumerate(batch["masked_lm_positions"]):
        assert list(labels[row, positions]) == list(batch["masked_lm_ids"][row])


def test_a_step_is_timed_by_the_clock_and_by_the_cpu():
    def burn():
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass
        return 1.0

    burnt = protocol.measure(burn, 2)
    slept = protocol.measure(lambda: time.sleep(0.03) or 1.0, 3)
    assert [len(slept["wall"]), len(slept["cpu"])] == [3, 3]
    assert min(slept["wall"]) >= 0.03 and max(slept["cpu"]) < 0.02 <= min(burnt["cpu"])
    assert slept["loss"] == 1.0 and slept["peak_bytes"] > 2**20


# A Python that serves a step of its own, whatever module it is asked for.
FAKE = """#!{python}
import os, sys
sys.path.insert(0, os.getcwd())
sys.argv = sys.argv[2:]
from benchmarks.step_workers import protocol

def prepare(setting):
    print("libraries may print", setting.precision)
    losses = iter({losses})
    return lambda: next(losses)

protocol.serve(prepare, {modules})
"""


@pytest.fixture
def make_python(tmp_path):
    """Function of losses of steps and modules to import; the path of a fake Python."""

    def make(losses=(0.5,) * 9, modules=("json", "numpy")):
        path = tmp_path / f"python{len(list(tmp_path.glob('python*')))}"
        path.write_text(
            FAKE.format(python=sys.executable, losses=losses, modules=modules), "utf-8"
        )
        path.chmod(0o755)
        return str(path)

    return make


def start(python, tmp_path):
    return training_step.Worker("ours-float32", TINY, python, tmp_path / "log")


def test_a_worker_answers_about_the_start_and_each_turn(make_python, tmp_path):
    began = time.perf_counter()
    worker = start(make_python(), tmp_path)
    assert 0 < worker.start["first_wall"] < time.perf_counter() - began
    assert worker.start["versions"] == {"numpy": np.__version__}
    for steps in (1, 3):
        assert len(worker.run(steps)["cpu"]) == steps
    worker.close()
    assert worker.process.returncode == 0
    assert (tmp_path / "log").read_text() == "libraries may print float32\n"


def test_workers_that_cannot_go_on_say_why(make_python, tmp_path):
    python = make_python(modules=["no_such_module"])
    with pytest.raises(training_step.LeftOut, match=f"{python} has no no_such_module"):
        start(python, tmp_path)
    worker = start(make_python("[0.5, 0.5, float('inf')]"), tmp_path)
    with pytest.raises(training_step.LeftOut, match=f"ended with 1; see {worker.log}"):
        worker.run(1)
    assert "the loss is inf, so the time means nothing" in worker.log.read_text()


class FakeWorker:
    """Notes what is asked of it."""

    def __init__(self, name, notes, ends_at=None):
        self.name, self.notes, self.ends_at = name, notes, ends_at
        self.start = {"first_wall": 1.0, "versions": {}}
        notes.append(f"start {name}")

    def run(self, steps):
        if self.ends_at == len([n for n in self.notes if n == f"run {self.name}"]):
            raise training_step.LeftOut("it ended")
        self.notes.append(f"run {self.name}")
        return {"cpu": [1.0] * steps, "wall": [1.0] * steps, "peak_bytes": 0}

    def close(self):
        self.notes.append(f"close {self.name}")


NAMES = ["ours-float32", "ours-bfloat16", "transformers-float32"]


def test_variants_take_turns_and_one_that_ends_is_left_out(capsys):
    notes = []
    ends_at = {NAMES[1]: 1}
    rounds = training_step.measure(
        NAMES, lambda n: FakeWorker(n, notes, ends_at.get(n)), lambda: True, 3, 2
    )
    rest = [NAMES[0], NAMES[2]]
    assert [[m["name"] for m in round_] for round_ in rounds] == [NAMES, rest, rest]
    order = [*NAMES, *rest[::-1], *rest]
    assert [n for n in notes if n.startswith("run")] == [f"run {n}" for n in order]
    assert [n for n in notes if n.startswith("start")] == [f"start {n}" for n in NAMES]
    assert notes[-2:] == [f"close {n}" for n in rest]
    assert f"{NAMES[1]} is left out: it ended\n" in capsys.readouterr().out


def test_where_memory_is_short_the_longest_idle_ends():
    notes = []

    def count(what):
        return sum(note.startswith(what) for note in notes)

    (*_, last) = training_step.measure(
        NAMES,
        lambda n: FakeWorker(n, notes),
        lambda: count("start") - count("close") < 2,
        rounds=2,
        steps=1,
    )
    first = "start 0, run 0, start 1, run 1, close 0, start 2, run 2"
    second = "run 2, run 1, close 2, start 0, run 0, close 1, close 0"
    for number, name in enumerate(NAMES):
        notes = [note.replace(name, str(number)) for note in notes]
    assert notes == f"{first}, {second}".split(", ")
    assert [len(m["starts"]) for m in last] == [2, 1, 1]
    assert training_step.available_memory() > 2**20


@pytest.fixture
def benchmark(tmp_path, monkeypatch):
    """Function of flags, running the benchmark; returns its table."""

    def run(**given):
        values = {
            "output_dir": str(tmp_path / "out"),
            "task": "classifier",
            "size": "tiny",
            "variants": list(training_step.VARIANTS),
            "python": [],
            "rounds": 1,
            "steps": 2,
        }
        flags = types.SimpleNamespace(**values | given)
        monkeypatch.setattr(training_step, "FLAGS", flags)
        training_step.main()
        return (tmp_path / "out/table.md").read_text("utf-8")

    return run


def test_one_command_writes_the_table(benchmark, make_python, tmp_path):
    libraries = ("ours", "transformers")
    table = benchmark(
        variants=["transformers-float32", "ours-bfloat16", "products-bfloat16"],
        python=[f"{name}={make_python()}" for name in libraries]
        + [f"products={make_python(modules=['absent'])}"],
        task="pretraining",
    )
    assert table.startswith("2 predictions, L1 H16 A2, batch 2 x 16; 1 rounds of 2 ")
    first_cells = [line.split(" | ")[0] for line in table.splitlines()[2:]]
    assert first_cells[2:4] == [
        "| `ours-bfloat16`",
        "| `transformers-float32`, as it comes",
    ]
    rows = map(json.loads, (tmp_path / "out/table.jsonl").read_text().splitlines())
    assert [len(row["turns"][0]["cpu"]) for row in rows] == [2, 2]


def test_flags_that_cannot_be_are_refused(benchmark, tmp_path):
    with pytest.raises(ValueError, match="--variants must be of .*, got ours-int8"):
        benchmark(variants=["ours-int8"])
    for wrong in (f"torch={sys.executable}", "transformers=/no/python", "transformers"):
        with pytest.raises(ValueError, match=f"LIBRARY=PATH .* got '{wrong}'"):
            benchmark(python=[wrong])
    assert not (tmp_path / "out").exists()
