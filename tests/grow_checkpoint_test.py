"""grow_checkpoint.py: the new rows, everything else as it was, and what it refuses."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

import grow_checkpoint
from benchmarks import plain_tokenizer
from data import tokenization
from modeling import checkpoint, models
from tests import scripts

WORDS = "bert/embeddings/word_embeddings"
BIAS = "cls/predictions/output_bias"
NEW = ["hounddog", "zzz9", "##ingly"]


@pytest.fixture
def vocab(golden):
    """The entries of the tiny model."""
    return (golden / "tiny_tf1/vocab.txt").read_text("utf-8").split("\n")[:-1]


@pytest.fixture
def new_file(vocab, tmp_path):
    """The vocabulary with three more entries."""
    path = tmp_path / "new.txt"
    path.write_text("".join(f"{entry}\n" for entry in vocab + NEW), "utf-8")
    return path


def rows_before(entry, vocab):
    """Ids of the old pieces, by the plain tokenizer."""
    ids = {e: k for k, e in enumerate(vocab)}
    if not entry.startswith("##"):
        return [ids[piece] for piece in plain_tokenizer.pieces(entry, ids)]
    # "," continues nothing, so what comes after it is cut as it is inside a word.
    assert "," in ids
    assert not [e for e in vocab if e.startswith(",") and len(e) > 1]
    pieces = plain_tokenizer.pieces("," + entry[2:], ids)[1:] or ["[UNK]"]
    return [ids[piece] for piece in pieces]


def check(before, after, vocab, new):
    """New rows are means, all others have the same bits."""
    assert before.keys() == after.keys()
    for name, array in before.items():
        if name not in (WORDS, BIAS):
            assert after[name].tobytes() == array.tobytes(), name
            continue
        assert len(after[name]) == len(vocab) + len(new)
        assert after[name][: len(vocab)].tobytes() == array.tobytes()
        for row, entry in enumerate(new, len(vocab)):
            parts = array[rows_before(entry, vocab)].astype(np.float64)
            mean = parts.sum(axis=0) / len(parts)
            np.testing.assert_allclose(after[name][row], mean, rtol=1e-6, atol=1e-8)


def test_tf1(golden, tmp_path, vocab, new_file):
    source, output = golden / "tiny_tf1", tmp_path / "out"
    shown = grow_checkpoint.grow(str(source), str(output), str(new_file))
    before, after = checkpoint.read(source), checkpoint.read(output)
    assert {WORDS, BIAS} <= before.keys()
    check(before, after, vocab, NEW)
    assert len({tuple(rows_before(entry, vocab)) for entry in NEW}) > 1
    assert sorted(path.name for path in output.iterdir()) == [
        "bert_config.json",
        "bert_model.ckpt.data-00000-of-00001",
        "bert_model.ckpt.index",
        "vocab.txt",
    ]
    assert (output / "vocab.txt").read_bytes() == new_file.read_bytes()
    old_config, config = (
        json.loads((folder / "bert_config.json").read_text())
        for folder in (source, output)
    )
    assert config == old_config | {"vocab_size": 103}
    assert "entries     100 before, 3 new" in shown
    assert "\nhounddog = mean of " in shown


def test_old_text_has_the_same_vectors(golden, tmp_path, vocab, new_file):
    grow_checkpoint.grow(str(golden / "tiny_tf1"), str(tmp_path / "out"), str(new_file))
    rng = np.random.default_rng(1)
    batch = {
        "input_ids": rng.integers(0, len(vocab), (3, 20), np.int32),
        "input_mask": np.ones((3, 20), np.int32),
        "segment_ids": np.zeros((3, 20), np.int32),
        "masked_lm_positions": np.array([[1, 5]] * 3, np.int32),
    }
    outputs = []
    for folder in (golden / "tiny_tf1", tmp_path / "out"):
        model = models.BertForPretraining(checkpoint.read_config(folder))
        assert not checkpoint.load(model, folder).fresh
        outputs.append(model(batch))
    old, new = outputs
    for name in ("sequence_output", "pooled_output", "next_sentence_logits"):
        np.testing.assert_array_equal(old[name], new[name])
    old, new = (np.asarray(output["masked_lm_logits"]) for output in outputs)
    np.testing.assert_allclose(new[..., : len(vocab)], old, atol=1e-5)
    for row, entry in enumerate(NEW, len(vocab)):
        expected = old[..., rows_before(entry, vocab)].mean(-1)
        np.testing.assert_allclose(new[..., row], expected, atol=1e-5)


def test_hugging_face_folder(golden, tmp_path):
    source = tmp_path / "hf"
    shutil.copytree(golden / "hf_tiny/pretraining_gelu_new", source)
    size = checkpoint.read_config(source).vocab_size
    old = [*tokenization.SPECIAL_TOKENS, *"abcdefg,", "##a", "##b", "ab"]
    old += [f"[unused{k}]" for k in range(size - len(old))]
    new = [*old, "abba", "##bb"]
    (source / "vocab.txt").write_text("\n".join(old) + "\n", "utf-8")
    (tmp_path / "new.txt").write_text("\n".join(new) + "\n", "utf-8")
    output = tmp_path / "out"
    grow_checkpoint.grow(str(source), str(output), str(tmp_path / "new.txt"))
    check(checkpoint.read(source), checkpoint.read(output), old, new[size:])
    config = checkpoint.read_config(output)
    assert config.vocab_size == size + 2
    assert config.hidden_act == checkpoint.read_config(source).hidden_act


def test_unused_entries_and_spare_rows_are_replaced(golden, tmp_path, vocab):
    # 98 lines for 100 rows, one of the lines unused.
    old = [*vocab[:60], "[unused0]", *vocab[61:98]]
    new = [*old, "zzz9"]
    new[60] = "hounddog"
    for name, entries in (("old.txt", old), ("new.txt", new)):
        (tmp_path / name).write_text("\n".join(entries) + "\n", "utf-8")
    source, output = golden / "tiny_tf1", tmp_path / "out"
    names = [str(tmp_path / name) for name in ("new.txt", "old.txt")]
    grow_checkpoint.grow(str(source), str(output), *names)
    before, after = checkpoint.read(source), checkpoint.read(output)
    assert checkpoint.read_config(output).vocab_size == 100
    for name in (WORDS, BIAS):
        same = [k for k in range(100) if k not in (60, 98)]
        np.testing.assert_array_equal(after[name][same], before[name][same])
        for row, entry in ((60, "hounddog"), (98, "zzz9")):
            mean = before[name][rows_before(entry, old)].mean(axis=0, dtype=float)
            np.testing.assert_allclose(after[name][row], mean, rtol=1e-6, atol=1e-8)


def test_build_and_grow(golden, tmp_path, vocab):
    text = tmp_path / "text.txt"
    text.write_text("qoph qoph thethe\n" * 3, "utf-8")
    flags = {"vocab_file": golden / "tiny_tf1/vocab.txt", "num_words": 2}
    flags |= {"input_file": text, "output_file": tmp_path / "new.txt", "mode": "extend"}
    scripts.succeed("build_vocab.py", **flags)
    flags = {"input": golden / "tiny_tf1", "vocab_file": tmp_path / "new.txt"}
    flags |= {"output": tmp_path / "out"}
    scripts.succeed("grow_checkpoint.py", **flags)
    new = list(tokenization.load_vocab(tmp_path / "out/vocab.txt"))[len(vocab) :]
    assert sorted(new) == ["qoph", "thethe"]
    before, after = (checkpoint.read(p) for p in (flags["input"], flags["output"]))
    check(before, after, vocab, new)


def test_more_positions(golden, tmp_path):
    """Of a trained model, by the script; both halves of a text are the same then."""
    source, output = golden / "tiny_tf1", tmp_path / "out"
    old = checkpoint.read_config(source)
    flags = {"input": source, "output": output, "trained_positions": 10}
    result = scripts.run("grow_checkpoint.py", **flags, num_positions=100)
    assert "positions   10 trained, 100 now" in result.stdout
    assert (output / "vocab.txt").read_bytes() == (source / "vocab.txt").read_bytes()
    config = checkpoint.read_config(output)
    assert config == dataclasses.replace(old, max_position_embeddings=100)
    before, after = checkpoint.read(source), checkpoint.read(output)
    for name, array in before.items():
        if name == "bert/embeddings/position_embeddings":
            array = np.concatenate([array[:10]] * 10)  # noqa: PLW2901
        np.testing.assert_array_equal(after[name], array, err_msg=name)
    model = models.BertForPretraining(config)
    assert not checkpoint.load(model, output).fresh
    ids = np.tile(np.arange(10, dtype=np.int32), 10)[np.newaxis]
    vectors = np.asarray(model({"input_ids": ids})["sequence_output"])[0]
    np.testing.assert_allclose(vectors[:10], vectors[90:], atol=1e-5)
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-2


def test_nothing_to_grow(golden, tmp_path):
    flags = {"input": golden / "tiny_tf1", "output": tmp_path / "out"}
    sentence = scripts.refusal("grow_checkpoint.py", **flags)
    assert "give --vocab_file, --num_positions or --trained_positions" in sentence
    sentence = scripts.refusal("grow_checkpoint.py", **flags, num_positions=5)
    assert "cannot shrink to 5" in sentence
    flags |= {"num_positions": 600, "old_vocab_file": tmp_path / "vocab.txt"}
    sentence = scripts.refusal("grow_checkpoint.py", **flags)
    assert "--old_vocab_file has no effect without --vocab_file" in sentence
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "spoil, sentence",
    [
        (lambda new: new.remove("the"), "'the' .* is gone in the new one"),
        (lambda new: new.insert(3, "qoph"), "has the id 4 in the new one"),
        (lambda new: new.append("the"), "'the' is on line"),
        (lambda new: new.insert(100, "\u3000"), "line 101 .* blank or repeated"),
        (
            lambda new: [new.pop() for _ in NEW],
            "no entry that the model lacks",
        ),
    ],
    ids=["gone", "moved", "twice", "blank", "none"],
)
def test_vocabularies_that_do_not_fit(golden, tmp_path, vocab, spoil, sentence):
    new = vocab + NEW
    spoil(new)
    path, output = tmp_path / "new.txt", tmp_path / "out"
    path.write_text("\n".join(new) + "\n", "utf-8")
    with pytest.raises(ValueError, match=sentence):
        grow_checkpoint.grow(str(golden / "tiny_tf1"), str(output), str(path))
    assert not output.exists()


def test_inputs_that_do_not_fit(golden, tmp_path, new_file):
    source, output = tmp_path / "model", tmp_path / "out"
    shutil.copytree(golden / "tiny_tf1", source)
    with pytest.raises(ValueError, match="103 entries, .* is 100; .* --old_vocab_file"):
        grow_checkpoint.grow(str(source), str(output), str(new_file), str(new_file))
    (source / "vocab.txt").unlink()
    with pytest.raises(ValueError, match="no vocab.txt .* --old_vocab_file"):
        grow_checkpoint.grow(str(source), str(output), str(new_file))
    (source / "bert_config.json").unlink()
    with pytest.raises(ValueError, match="--bert_config_file"):
        grow_checkpoint.grow(str(source), str(output), str(new_file))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        grow_checkpoint.grow(str(tmp_path / "nowhere"), str(output), str(new_file))
    assert not output.exists()
