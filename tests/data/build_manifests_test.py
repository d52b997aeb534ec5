"""What decides on record files, and how two builds differ."""

import hashlib

import pytest

from data import build_manifests, corpus


def described(inputs=("x", "y"), vocabulary="v", **settings):
    """A description; contents are told by the last letters of the names."""
    return {
        "inputs": [{"path": path, "sha256": path[-1]} for path in inputs],
        "vocabulary": {"path": vocabulary, "sha256": vocabulary[-1]},
        **settings,
    }


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (described(), described(), ""),
        (described(), described(["a/x", "y"], "b/v"), ""),
        (described(a=1, b=2), described(a=1, b=3), "b 2, not 3"),
        (described(a=1), described(a=1, b=3), "b None, not 3"),
        (described(), described(["x"]), "other text: y is different now, or missing"),
        (described(["x"]), described(), "other text: without y"),
        (described(), described(["y", "x"]), "the same files in another order"),
        (described(), described(vocabulary="w"), "another vocabulary, v, not w"),
        (
            described(list("abcdef")),
            described(["a"]),
            "b, c, d and 2 more is",
        ),
    ],
)
def test_differences_are_told(old, new, words):
    told = build_manifests.difference(old, new)
    assert words in told
    assert bool(told) == bool(words)


def test_a_description_is_of_contents(tmp_path):
    for name in "abv":
        (tmp_path / name).write_text(name)
    a, b, v = (build_manifests.checksum(str(tmp_path / name)) for name in "abv")
    one = build_manifests.describe([a, b], v, ["out/x", "y/z"], "out", {"seed": 1})
    assert one["outputs"] == ["x", "../y/z"]
    assert one["--seed"] == 1
    assert one["inputs"][1]["sha256"] == hashlib.sha256(b"b").hexdigest()
    assert one["inputs"][1]["bytes"] == 1


def test_pools_of_another_size_are_another_build(monkeypatch):
    what = [], {"path": "v", "sha256": "v"}, ["x"], ".", {}
    one = build_manifests.describe(*what)
    monkeypatch.setattr(corpus, "POOL_TOKENS", 7)
    told = build_manifests.difference(one, build_manifests.describe(*what))
    assert "tokens of a pool" in told
    assert "not 7" in told
