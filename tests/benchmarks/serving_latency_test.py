"""The latency benchmark counts every call, and compares with the peer."""

import time

import pytest

from benchmarks import serving_latency


def test_medians_and_ratios_are_those_of_the_calls(monkeypatch):
    monkeypatch.setattr(serving_latency, "SHAPES", ((1, 16), (2, 8)))
    seen = {"fast": [], "slow": []}

    def make(name, seconds):
        def call(batch):
            seen[name].append(batch["input_ids"].shape)
            time.sleep(seconds)

        return call

    calls = {serving_latency.PEER: make("fast", 0.001), "ids": make("slow", 0.02)}
    rows = serving_latency.measure(calls, rounds=2, seconds=0.0)
    assert [(r["batch"], r["length"], r["runtime"]) for r in rows] == [
        (batch, length, name)
        for batch, length in ((1, 16), (2, 8))
        for name in (serving_latency.PEER, "ids")
    ]
    for peer, ours in (rows[:2], rows[2:]):
        assert peer["times_the_peer"] == 1.0
        assert ours["times_the_peer"] == pytest.approx(ours["p50_ms"] / peer["p50_ms"])
        assert ours["p50_ms"] >= 20 and ours["p99_ms"] >= ours["p50_ms"]
    # Per shape one to compile; per block one to wake and three to count.
    assert len(seen["slow"]) == 2 * (1 + 2 * 4)
    assert "| 2 x 8 | ids |" in serving_latency.table(rows)


@pytest.mark.slow
def test_all_runtimes_hold_the_same_model(tmp_path):
    calls = serving_latency.make_calls("tiny", tmp_path)
    batch = serving_latency.make_batch(2, 16)
    expected = calls[serving_latency.PEER](batch)
    for name, atol in (("ids", 1e-5), ("xla", 1e-5)):
        assert calls[name](batch) == pytest.approx(expected, abs=atol)
    assert calls["bfloat16"](batch).shape == expected.shape
