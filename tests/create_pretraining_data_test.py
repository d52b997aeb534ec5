"""create_pretraining_data.py: what it writes, shows and refuses."""

import contextlib
import gzip
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import time
from unittest import mock

import numpy as np
import pytest

import command_line
import create_pretraining_data
from data import (
    build_steps,
    building,
    filesystem,
    manifests,
    record_reading,
    records,
    tokenization,
)
from tests import scripts

SCRIPT = "create_pretraining_data.py"
VOCAB = scripts.ROOT / "sample_data/vocab.txt"
CORPUS = scripts.ROOT / "sample_data/corpus.txt"
SPEC = records.pretraining_spec(64, 10)


@pytest.fixture
def flags(golden, tmp_path):
    """Flags for a few instances from the golden corpus, in a folder of their own."""
    return {
        "input_file": golden / "pretraining_corpus.txt",
        "output_file": tmp_path / "out/a.tfrecord",
        "vocab_file": VOCAB,
        "max_seq_length": 64,
        "max_predictions_per_seq": 10,
        "dupe_factor": 5,
    }


@pytest.fixture
def run(monkeypatch):
    """Function of flags that runs the script in this process."""
    defaults = {
        "do_lower_case": True,
        "do_whole_word_mask": False,
        "masked_lm_prob": 0.15,
        "short_seq_prob": 0.1,
        "random_seed": 12345,
        "overwrite": False,
        "num_output_shards": None,
        "num_workers": 1,
        "split_sentences": False,
        "deduplicate": False,
        "pre_segmented": False,
        "segment_pairs": True,
        "masking_mix": ["80", "10", "10"],
        "text_field": "text",
    }

    def run(**flags):
        given = {
            name: str(value) if isinstance(value, os.PathLike) else value
            for name, value in flags.items()
        }
        monkeypatch.setattr(command_line, "values", lambda: defaults | given)
        create_pretraining_data.main()

    return run


def test_it_shows_what_the_records_are(flags):
    result = scripts.run(SCRIPT, **flags)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("next sentence: [CLS]") == 5
    assert "to predict: " in result.stderr
    summary = {line[:13].strip(): line[13:] for line in result.stdout.splitlines()}
    path = str(flags["output_file"])
    record_reading.check([path], SPEC, vocab_size=30522)
    data = record_reading.read_all([path], SPEC)
    assert summary["documents"] == "2"
    assert summary["sentences"] == "29"
    assert summary["tokens"] == "444, 0.0 % unknown"
    assert summary["instances"] == str(record_reading.count([path]))
    random_next = 100 * data["next_sentence_labels"].mean()
    assert summary["random next"] == f"{random_next:.1f} % of the instances"
    masked = 100 * data["masked_lm_weights"].sum() / data["input_mask"].sum()
    assert summary["masked"] == f"{masked:.1f} % of their tokens"


def test_putting_the_labels_back_gives_sentences_of_the_text(run, flags, golden):
    run(**flags)
    data = record_reading.read_all([str(flags["output_file"])], SPEC)
    tokenizer = tokenization.FullTokenizer(str(VOCAB))
    text = (golden / "pretraining_corpus.txt").read_text()
    documents = [
        f" {' '.join(tokenizer.tokenize(part))} " for part in text.split("\n\n")
    ]
    for row, ids in enumerate(data["input_ids"]):
        is_real = data["masked_lm_weights"][row] == 1
        ids[data["masked_lm_positions"][row][is_real]] = data["masked_lm_ids"][row][
            is_real
        ]
        tokens = tokenizer.convert_ids_to_tokens(ids[data["input_mask"][row] == 1])
        a, b, end = " ".join(tokens).removeprefix("[CLS]").split("[SEP]")
        assert end == ""
        where = [[part in document for document in documents] for part in (a, b)]
        assert all(map(any, where))
        is_random = bool(data["next_sentence_labels"][row, 0])
        assert (where[0] != where[1]) == is_random


def test_the_manifest_of_what_was_always_so_is_what_it_always_was(run, flags):
    """Builds that lack the newest flags are known again."""
    run(**flags)
    (path,) = flags["output_file"].parent.glob("*.manifest.json")
    manifest = json.loads(path.read_text())
    assert "--masked_lm_prob" in manifest
    assert not {"--segment_pairs", "--masking_mix"} & manifest.keys()
    run(**flags)  # is built already
    with pytest.raises(ValueError, match="exists; choose another --output_file"):
        run(**flags, segment_pairs=False)


def test_single_spans_of_another_mix(run, flags):
    run(**flags, segment_pairs=False, masking_mix=["0", "0", "100"])
    data = record_reading.read_all([str(flags["output_file"])], SPEC)
    special = {
        token: (data["input_ids"] == i).sum()
        for token, i in tokenization.load_vocab(str(VOCAB)).items()
        if token in ("[CLS]", "[SEP]", "[MASK]")
    }
    rows = len(data["input_ids"])
    # Random tokens may be special ones, too; the vocabulary has 30522.
    assert rows <= special["[CLS]"] <= rows + 3
    assert rows <= special["[SEP]"] <= rows + 3 and special["[MASK]"] <= 3
    assert not data["segment_ids"].any() and not data["next_sentence_labels"].any()
    for mix, message in (
        (["80", "20"], "masking_mix must be three percentages that add up to 100"),
        (["80", "x", "20"], "--masking_mix must be numbers .* got '80,x,20'"),
    ):
        with pytest.raises(ValueError, match=message):
            run(**flags, masking_mix=mix)


def test_fewer_instances_than_are_shown(run, flags, tmp_path):
    path = tmp_path / "two.txt"
    path.write_text("the cat sat\n\na dog ran\n")
    run(**{**flags, "input_file": path, "dupe_factor": 1})
    assert record_reading.count([str(flags["output_file"])]) == 2


def test_whole_words_are_masked(run, flags):
    run(**flags, do_whole_word_mask=True)
    data = record_reading.read_all([str(flags["output_file"])], SPEC)
    vocab = tokenization.load_vocab(str(VOCAB))
    is_piece = np.zeros(len(vocab), bool)
    is_piece[[i for token, i in vocab.items() if token.startswith("##")]] = True
    num_pieces = 0
    for row, ids in enumerate(data["input_ids"]):
        is_real = data["masked_lm_weights"][row] == 1
        positions = data["masked_lm_positions"][row][is_real]
        ids[positions] = data["masked_lm_ids"][row][is_real]
        is_chosen = np.isin(np.arange(64), positions)
        for place in range(2, 64):
            # In B, a first piece that truncation cut off is no longer there.
            if is_piece[ids[place]] and ids[place - 1] != vocab["[SEP]"]:
                assert is_chosen[place] == is_chosen[place - 1]
                num_pieces += is_chosen[place]
    assert num_pieces > 20


def test_equal_seeds_give_equal_files(run, flags, tmp_path):
    contents = {}
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        flags["output_file"] = tmp_path / name
        run(**flags, random_seed=seed)
        contents[name] = (tmp_path / name).read_bytes()
    assert contents["a"] == contents["b"] != contents["c"]


def rows_of(paths):
    """The records as a sorted list of bytes."""
    data = record_reading.read_all([str(path) for path in paths], SPEC)
    columns = [values.reshape(len(values), -1) for values in data.values()]
    return sorted(
        b"".join(c[i].tobytes() for c in columns) for i in range(len(columns[0]))
    )


def test_instances_are_shared_equally_by_the_files(run, flags, tmp_path):
    run(**flags)
    paths = [str(tmp_path / "new/folder/x"), str(tmp_path / "y.gz")]
    run(**flags | {"output_file": ",".join(paths)})
    counts = [record_reading.count([path]) for path in paths]
    assert max(counts) - min(counts) <= 1
    assert (tmp_path / "y.gz").read_bytes()[:2] == b"\x1f\x8b"
    rows = rows_of(paths[:1]) + rows_of(paths[1:])
    assert sorted(rows) == rows_of([flags["output_file"]])


def test_shards_are_numbered(run, flags, tmp_path):
    run(**flags | {"output_file": tmp_path / "a.tfrecord.gz", "num_output_shards": 3})
    names = [f"a-0000{i}-of-00003.tfrecord.gz" for i in range(3)]
    assert sorted(os.listdir(tmp_path)) == [*names, "a.tfrecord.gz.manifest.json"]
    manifest = json.loads((tmp_path / "a.tfrecord.gz.manifest.json").read_text())
    for name, entry in zip(names, manifest["result"]["outputs"], strict=True):
        content = (tmp_path / name).read_bytes()
        assert entry["bytes"] == len(content)
        assert entry["sha256"] == hashlib.sha256(content).hexdigest()
        assert entry["records"] == record_reading.count([str(tmp_path / name)])
    assert manifest["inputs"][0]["path"] == str(flags["input_file"])
    assert manifest["--dupe_factor"] == 5
    with pytest.raises(ValueError, match="needs one name"):
        run(**flags | {"output_file": "a,b", "num_output_shards": 3})


def test_what_is_built_is_not_built_again(run, flags):
    run(**flags)
    path = flags["output_file"]
    before = path.stat().st_mtime_ns
    run(**flags)
    assert path.stat().st_mtime_ns == before
    with pytest.raises(ValueError, match="a.tfrecord exists; .*--overwrite"):
        run(**flags | {"random_seed": 1})
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="a.tfrecord exists; .*--overwrite"):
        run(**flags)


def write_corpus(folder):
    """Three files of different kinds with repeated documents; the folder."""
    folder.mkdir()
    documents = CORPUS.read_text("utf-8").split("\n\n")[:12]
    (folder / "a.txt").write_text("\n\n".join(documents[:6]))
    lines = [json.dumps({"text": document}) for document in documents[4:]]
    (folder / "b.jsonl").write_text("\n".join(lines))
    zipped = gzip.compress("\n\n".join(documents[:3]).encode())
    (folder / "c.txt.gz").write_bytes(zipped)
    return folder


def test_the_kinds_of_text_and_repeated_documents(flags, tmp_path):
    flags["input_file"] = write_corpus(tmp_path / "in")
    result = scripts.run(SCRIPT, **flags, num_workers=1)
    assert "documents    17\n" in result.stdout, result.stderr
    flags |= {"output_file": tmp_path / "b", "deduplicate": True}
    result = scripts.run(SCRIPT, **flags, num_workers=1)
    assert "documents    12\n" in result.stdout, result.stderr
    assert "left out 5 repeated documents" in result.stderr


def test_other_inputs_or_flags_are_not_mixed(run, flags, tmp_path, monkeypatch):
    """A build that stopped half-way goes on with the same flags and text only."""
    folder = write_corpus(tmp_path / "in")
    flags["input_file"] = folder
    make_shard = build_steps.Worker.make_shard

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(build_steps.Worker, "make_shard", fail)
    with pytest.raises(OSError, match="disk"):
        run(**flags)
    assert not flags["output_file"].exists()
    for change, what in (
        ({"random_seed": 3}, "--random_seed 12345, not 3"),
        ({"input_file": folder / "a.txt"}, "other text: .*b.jsonl, .*c.txt.gz is .*"),
    ):
        with pytest.raises(ValueError, match=f"begun with {what}; .*--overwrite"):
            run(**flags | change)
    monkeypatch.setattr(build_steps.Worker, "make_shard", make_shard)
    monkeypatch.setattr(build_steps.Worker, "_load_pool", fail)  # all parts are there
    run(**flags)
    monkeypatch.undo()
    assert record_reading.count([str(flags["output_file"])]) > 0
    assert not any(name.startswith(".") for name in os.listdir(tmp_path / "out"))


def test_what_is_there_is_kept_though_a_build_was_begun(run, flags, monkeypatch):
    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(build_steps.Worker, "make_shard", fail)
    with pytest.raises(OSError, match="disk"):
        run(**flags)
    monkeypatch.undo()
    flags["output_file"].write_text("precious")
    result = scripts.run(SCRIPT, **flags)
    assert result.returncode == 1
    assert flags["output_file"].read_text() == "precious"
    assert "a.tfrecord exists" in result.stderr


@pytest.mark.parametrize("step", ["publish", "discard", "write_json"])
def test_a_kill_at_the_end(step, run, flags, tmp_path, monkeypatch, caplog):
    """When the records are made, they are moved, described, and the rest removed."""
    caplog.set_level("INFO", logger="absl")
    flags = {**flags, "output_file": tmp_path / "a", "num_output_shards": 3}
    run(**{**flags, "output_file": tmp_path / "whole/a"})
    owner = {"write_json": filesystem}.get(step, building.Build)
    original = getattr(owner, step)

    def stop(*arguments):
        if step != "write_json" or "a.manifest.json" in arguments[0]:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(owner, step, stop)
    with pytest.raises(KeyboardInterrupt):
        run(**flags)
    monkeypatch.undo()
    assert "going on" not in caplog.text
    run(**flags)
    assert "going on with the build" in caplog.text
    assert contents(tmp_path) == contents(tmp_path / "whole")
    assert (tmp_path / "a.manifest.json").exists()
    assert not (tmp_path / ".a.build").exists()


def test_shards_of_an_earlier_build_do_not_stay(run, flags, tmp_path):
    flags = {**flags, "output_file": tmp_path / "a", "num_output_shards": 3}
    run(**flags)
    flags |= {"num_output_shards": 5}
    with pytest.raises(ValueError, match="a-00000-of-00003 exists; .*--overwrite"):
        run(**flags)
    run(**flags, overwrite=True)
    names = [f"a-0000{i}-of-00005" for i in range(5)]
    assert sorted(os.listdir(tmp_path)) == [*names, "a.manifest.json"]


def test_outputs_in_several_folders(run, flags, tmp_path):
    """Others' files of the same names are not taken for theirs."""
    mine = tmp_path / "d1/y.tfrecord"
    mine.parent.mkdir()
    mine.write_text("precious")
    paths = tmp_path / "d1/x.tfrecord", tmp_path / "d2/y.tfrecord"
    flags["output_file"] = ",".join(map(str, paths))
    run(**flags)
    before = [path.stat().st_mtime_ns for path in paths]
    found = manifests.find(list(map(str, paths))).manifest_of
    assert [found[str(p)].entry(str(p))["path"] for p in paths] == list(map(str, paths))
    run(**flags)  # there is nothing to do
    assert [path.stat().st_mtime_ns for path in paths] == before
    run(**flags, overwrite=True)
    run(**{**flags, "output_file": paths[0]}, overwrite=True)
    assert not paths[1].exists()  # now it would be left over
    assert mine.read_text() == "precious"


@pytest.mark.parametrize("content", ["[]", "{}", '{"inputs": 1}', "x"])
def test_a_manifest_that_is_none(content, run, flags):
    run(**flags)
    path = flags["output_file"].with_name("a.tfrecord.manifest.json")
    path.write_text(content)
    with pytest.raises(ValueError, match="manifest.json is damaged, remove it"):
        run(**flags)


def damage(path):
    """Zeros where there was something else, as after a power cut."""
    content = path.read_bytes()
    half = len(content) // 2
    path.write_bytes(content[:half] + bytes(900) + content[half + 900 :])


def interrupted_at(step, run, flags):
    """Runs a build until a step; returns the folder of what it has made so far."""
    with (
        mock.patch.object(build_steps.Worker, step, side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        run(**flags)
    return flags["output_file"].with_name(".a.tfrecord.build")


@pytest.mark.parametrize("what", ["chunk-*.npz", "part-*.tfrecord", "cut part"])
@pytest.mark.parametrize("start", ["another", None])
def test_a_power_cut(what, start, run, flags, tmp_path):
    """What had not reached the disk is made again when the machine is up."""
    expected = {**flags, "output_file": tmp_path / "whole/a.tfrecord"}
    run(**expected)

    folder = interrupted_at("make_shard", run, flags)
    if what == "cut part":
        os.truncate(sorted(folder.glob("part-*.tfrecord"))[0], 0)
    else:
        damage(sorted(folder.glob(what))[0])
    (folder / "start").unlink()
    if start:
        (folder / "start").write_text(start)
    if what.startswith("chunk"):  # so that it is needed
        for path in folder.glob("part*.json"):
            path.unlink()
    run(**flags)
    found = flags["output_file"].read_bytes()
    assert found == expected["output_file"].read_bytes()


def test_a_power_cut_after_unpacking(run, flags, tmp_path):
    packed = gzip.compress(flags["input_file"].read_bytes())
    flags["input_file"] = tmp_path / "text.txt.gz"
    flags["input_file"].write_bytes(packed)
    expected = {**flags, "output_file": tmp_path / "whole/a.tfrecord"}
    run(**expected)

    folder = interrupted_at("tokenize", run, flags)
    [text] = folder.glob("text-*")
    os.truncate(text, len(text.read_bytes()) // 2)
    (folder / "start").write_text("another")
    run(**flags)
    found = flags["output_file"].read_bytes()
    assert found == expected["output_file"].read_bytes()


def test_what_a_killed_end_left_is_removed(run, flags):
    run(**flags)
    left = flags["output_file"].with_name(".a.tfrecord.build.done-1")
    left.mkdir()
    (left / "x").touch()
    run(**flags)  # there is nothing else to do
    assert not left.exists()


def test_more_files_than_records_are_refused(run, flags, tmp_path):
    (tmp_path / "two.txt").write_text("the cat sat\n\na dog ran\n")
    flags |= {"input_file": tmp_path / "two.txt", "dupe_factor": 2}
    run(**flags, num_output_shards=4)
    flags["output_file"] = tmp_path / "b"
    with pytest.raises(ValueError, match="there are 4 for 5 files; name fewer"):
        run(**flags, num_output_shards=5)
    assert not list(tmp_path.glob("*b*"))


def test_many_unknown_tokens_are_told(flags, tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n")
    result = scripts.run(SCRIPT, **flags | {"vocab_file": tmp_path / "vocab.txt"})
    assert re.search(r"9\d\.\d % of the tokens are \[UNK\]: .*vocab", result.stderr)


def test_a_file_without_empty_lines_is_told(flags, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.txt").write_text("One.\n\nTwo.\n")
    (tmp_path / "in/b.txt").write_text("A line.\n" * 1200)
    result = scripts.run(SCRIPT, **flags | {"input_file": tmp_path / "in"})
    assert result.returncode == 0
    [line] = [x for x in result.stderr.splitlines() if "no empty line" in x]
    assert "b.txt holds no empty line, so its 1200 lines are one document" in line


def test_words_of_a_segmented_text_are_masked_whole(run, flags, tmp_path):
    """Chinese: the tokenizer cuts the characters apart, spaces tell the words."""
    words = ["\u4e2d\u56fd", "\u5317\u4eac", "\u4eba", "\u56fe\u4e66\u9986", "a"]
    rng = np.random.default_rng(0)
    lines = [" ".join(rng.choice(words, 12)) for _ in range(40)]
    text = "\n".join(lines[:20]) + "\n\n" + "\n".join(lines[20:])
    (tmp_path / "text.txt").write_text(text, "utf-8")
    characters = sorted(set("".join(words)))
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters]
    (tmp_path / "vocab.txt").write_text("\n".join(vocab), "utf-8")
    flags |= {
        "input_file": tmp_path / "text.txt",
        "vocab_file": tmp_path / "vocab.txt",
        "do_whole_word_mask": True,
    }
    with pytest.raises(ValueError, match="--pre_segmented is for"):
        run(**flags | {"do_whole_word_mask": False, "pre_segmented": True})
    run(**flags, pre_segmented=True)
    data = record_reading.read_all([str(flags["output_file"])], SPEC)
    parts = {w: i for word in words if len(word) > 1 for i, w in enumerate(word)}
    num_words = 0
    for row, ids in enumerate(data["input_ids"]):
        is_real = data["masked_lm_weights"][row] == 1
        positions = data["masked_lm_positions"][row][is_real]
        original = ids.copy()
        original[positions] = data["masked_lm_ids"][row][is_real]
        chosen = set(positions.tolist())
        for position in chosen:
            # A part of a word is masked with the parts beside it.
            place = parts.get(vocab[original[position]])
            if place and original[position - 1] > 4:
                assert position - 1 in chosen
                num_words += 1
    assert num_words > 50


def test_an_existing_file_is_kept_without_overwrite(run, flags):
    path = flags["output_file"]
    path.parent.mkdir()
    path.write_text("kept")
    message = scripts.refusal(SCRIPT, **flags)
    assert "a.tfrecord exists" in message
    assert "--overwrite" in message
    assert path.read_text() == "kept"
    run(**flags, overwrite=True)
    record_reading.check([str(path)], SPEC)


def test_an_input_file_is_never_overwritten(run, flags, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("One.\n\nTwo.\n")
    flags |= {"input_file": path, "output_file": path, "overwrite": True}
    with pytest.raises(ValueError, match=r"text\.txt is an input file"):
        run(**flags)
    assert path.read_text() == "One.\n\nTwo.\n"


def test_the_vocabulary_is_never_overwritten(run, flags, tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes(VOCAB.read_bytes())
    flags |= {"vocab_file": path, "output_file": path, "overwrite": True}
    with pytest.raises(ValueError, match=r"vocab\.txt is an input file"):
        run(**flags)
    assert path.read_bytes() == VOCAB.read_bytes()


BAD_TEXTS = {
    "one document": (b"One.\nTwo.\n", "holds 1; separate documents by empty lines"),
    "no text": (b"\n \n", "there are no words in the text"),
    "empty": (b"", "text.txt is empty"),
    "Latin-1": (b"One.\n\nGem\xe4lde.\n", "text.txt, line 3, byte 4: "),
}


def test_one_document_is_enough_for_single_spans(run, flags, tmp_path):
    flags["input_file"] = tmp_path / "text.txt"
    flags["input_file"].write_text("One.\nTwo.\n")
    with pytest.raises(ValueError, match="or give --nosegment_pairs"):
        run(**flags)
    run(**flags, segment_pairs=False)
    assert (
        len(record_reading.read_all([str(flags["output_file"])], SPEC)["input_ids"])
        == 5
    )


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_text_that_cannot_be_used_is_refused(run, flags, tmp_path, name):
    text, message = BAD_TEXTS[name]
    (tmp_path / "text.txt").write_bytes(text)
    flags["input_file"] = tmp_path / "text.txt"
    with pytest.raises(ValueError, match=re.escape(message)):
        run(**flags)
    assert not any((tmp_path / "out").glob("*"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_file": "missing*.txt"}, "no file matches 'missing*.txt'"),
        ({"output_file": ","}, "--output_file must name a file"),
        ({"output_file": "{}"}, "is a folder; --output_file must name a file"),
        ({"output_file": "{}/a,{}/a"}, "must differ"),
        ({"vocab_file": "missing.txt"}, "missing.txt does not exist"),
        ({"vocab_file": "{}/vocab.txt"}, "[MASK]"),
    ],
)
def test_files_that_cannot_be_used_are_refused(run, flags, tmp_path, change, message):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n")
    change = {name: text.replace("{}", str(tmp_path)) for name, text in change.items()}
    with pytest.raises((ValueError, FileNotFoundError), match=re.escape(message)):
        run(**flags | change)
    assert not any((tmp_path / "out").glob("*"))


def test_flags_out_of_range_are_refused(flags):
    result = scripts.run(SCRIPT, **flags | {"max_seq_length": 4})
    assert result.returncode != 0
    assert "max_seq_length" in result.stderr
    assert "Traceback" not in result.stderr
    assert not flags["output_file"].exists()


def test_a_full_disk_leaves_nothing(flags):
    def limit_files():  # stands in for a full disk: writing fails in the same place
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    result = subprocess.run(
        scripts.command(SCRIPT, **flags),
        preexec_fn=limit_files,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("create_pretraining_data: error: ")
    assert "Traceback" not in result.stderr
    assert "File too large" in result.stderr
    # What is done is kept for the next try, out of sight.
    assert os.listdir(flags["output_file"].parent) == [".a.tfrecord.build"]
    scripts.succeed(SCRIPT, **flags)
    names = ["a.tfrecord", "a.tfrecord.manifest.json"]
    assert sorted(os.listdir(flags["output_file"].parent)) == names


def start(flags):
    return subprocess.Popen(
        scripts.command(SCRIPT, **flags),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_two_builds_of_one_file_at_once_are_refused(flags):
    flags = flags | {"dupe_factor": 100_000}
    process = start(flags)
    folder = flags["output_file"].parent / ".a.tfrecord.build"
    while not (folder / "manifest.json").exists():
        assert process.poll() is None
        time.sleep(0.05)
    message = scripts.refusal(SCRIPT, **flags)
    kill(process)
    assert "another process is building" in message


@pytest.fixture(scope="module")
def many_chunks(tmp_path_factory):
    """Flags of a build of a dozen chunks and parts, and its files' contents."""
    folder = tmp_path_factory.mktemp("many")
    text = CORPUS.read_text("utf-8").encode() + b"\n\n"
    (folder / "text.txt").write_bytes(text * 5)
    flags = {
        "input_file": folder / "text.txt",
        "vocab_file": VOCAB,
        "dupe_factor": 4,
        "num_output_shards": 3,
        "split_sentences": True,
    }
    scripts.succeed(SCRIPT, **flags, output_file=folder / "whole/a", num_workers=1)
    return flags, contents(folder / "whole")


def contents(folder):
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and "manifest" not in path.name
    }


@pytest.mark.parametrize("num_workers", [2, 3])
def test_the_number_of_processes_does_not_show(num_workers, many_chunks, tmp_path):
    flags, expected = many_chunks
    flags = {**flags, "output_file": tmp_path / "a", "num_workers": num_workers}
    scripts.succeed(SCRIPT, **flags)
    assert contents(tmp_path) == expected
    assert len(expected) == 3


def start_up_to(step, folder, flags):
    """A process of a build, at work in a step, whose first file is there.

    Where the machine has other work, a step may pass unseen, and the build be complete:
    then it is thrown away and made again.
    """
    for _ in range(20):
        process = start(flags)
        while process.poll() is None:
            with contextlib.suppress(FileNotFoundError):
                if any(step in name for name in os.listdir(folder)):
                    return process
            time.sleep(0.001)
        assert process.returncode == 0
        for path in folder.parent.glob("a*"):
            path.unlink()
    raise AssertionError(f"{step} was never seen")


@pytest.mark.parametrize(("num_workers", "seed"), [(1, 0), (2, 1), (2, 2)])
def test_a_killed_build_goes_on(num_workers, seed, many_chunks, tmp_path):
    """Killed in every step; with three outputs, there are joins to be killed in."""
    flags, expected = many_chunks
    flags = {**flags, "output_file": tmp_path / "a", "num_workers": num_workers}
    folder = tmp_path / ".a.build"
    rng = random.Random(seed)
    for step in ("chunk-", "part-", "shard-"):
        process = start_up_to(step, folder, flags)
        time.sleep(rng.random() * {"chunk-": 0.3, "part-": 0.5, "shard-": 0.02}[step])
        kill(process)
    scripts.succeed(SCRIPT, **flags)
    assert contents(tmp_path) == expected
    assert not folder.exists()


def test_processes_end_with_the_first(many_chunks, tmp_path):
    flags = {**many_chunks[0], "output_file": tmp_path / "a", "num_workers": 2}
    process = start(flags)
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while len(pids := children.read_text().split()) < 2:
        assert process.poll() is None
        time.sleep(0.01)
    kill(process)
    deadline = time.time() + 20
    while any(os.path.exists(f"/proc/{pid}") for pid in pids):
        assert time.time() < deadline
        time.sleep(0.1)


def test_two_interruptions_end_it(many_chunks, tmp_path):
    flags = {**many_chunks[0], "output_file": tmp_path / "a", "num_workers": 2}
    process = start(flags)
    folder = tmp_path / ".a.build"
    while not (folder.exists() and any(folder.glob("chunk-*"))):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) in (130, -signal.SIGINT)
    scripts.succeed(SCRIPT, **flags)
    assert contents(tmp_path) == many_chunks[1]


def test_a_killed_worker_is_told(many_chunks, tmp_path):
    flags = {**many_chunks[0], "output_file": tmp_path / "a", "num_workers": 2}
    process = subprocess.Popen(
        scripts.command(SCRIPT, **flags), stderr=subprocess.PIPE, text=True
    )
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while (
        not (tmp_path / ".a.build").exists()
        or len(pids := children.read_text().split()) < 2
    ):
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(int(pids[-1]), signal.SIGKILL)
    _, shown = process.communicate()
    assert process.returncode == 1
    last = shown.splitlines()[-1]
    assert "a worker was killed" in last and "--num_workers" in last, shown
    scripts.succeed(SCRIPT, **flags)
    assert contents(tmp_path) == many_chunks[1]


def peak_memory(flags):
    """Peak resident memory of a run, in bytes."""
    # By way of a small process: what a new one inherits from its parent counts, too.
    code = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True, capture_output=True)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [sys.executable, "-c", code, *scripts.command(SCRIPT, **flags)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(result.stdout) * 1024


@pytest.mark.slow
def test_memory_does_not_grow_with_the_corpus(flags, tmp_path):
    text = CORPUS.read_bytes() + b"\n"
    peaks = []
    for copies in (70, 140):  # 56 MB and 112 MB: one full pool and two
        (tmp_path / "text.txt").write_bytes(text * copies)
        flags |= {
            "input_file": tmp_path / "text.txt",
            "max_seq_length": 128,
            "dupe_factor": 1,
            "num_workers": 1,
            "overwrite": True,
        }
        peaks.append(peak_memory(flags))
    # The token ids of the other 56 MB alone would take as much.
    assert peaks[1] - peaks[0] < 50e6, peaks
    assert peaks[1] < 350e6, peaks
