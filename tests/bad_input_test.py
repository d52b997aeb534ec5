"""Every script answers bad input with one sentence and leaves nothing half-written."""

import json
import os
import shutil
import subprocess

import pytest

from tests import scripts

RUN = "run_classifier.py"
PRETRAIN = "run_pretraining.py"
CREATE = "create_pretraining_data.py"


@pytest.fixture
def classify(golden, tmp_path):
    """Flags of a run_classifier.py that works."""
    return {
        "task_name": "mrpc",
        "data_dir": golden / "glue_samples/MRPC",
        "bert_config_file": golden / "tiny_tf1/bert_config.json",
        "vocab_file": golden / "tiny_tf1/vocab.txt",
        "init_checkpoint": golden / "tiny_tf1/bert_model.ckpt",
        "max_seq_length": 48,
        "output_dir": tmp_path / "out",
        "do_eval": True,
    }


@pytest.fixture
def pretrain(golden, tmp_path):
    """Flags of a run_pretraining.py that works."""
    return {
        "input_file": golden / "tiny_tf1_runs/pretraining/a.tfrecord",
        "bert_config_file": golden / "tiny_tf1/bert_config.json",
        "init_checkpoint": golden / "tiny_tf1/bert_model.ckpt",
        "max_seq_length": 64,
        "max_predictions_per_seq": 10,
        "output_dir": tmp_path / "out",
        "do_eval": True,
    }


@pytest.fixture
def create(golden, tmp_path):
    """Flags of a create_pretraining_data.py that works."""
    return {
        "input_file": golden / "pretraining_corpus.txt",
        "output_file": tmp_path / "out.tfrecord",
        "vocab_file": golden / "tiny_tf1/vocab.txt",
        "max_seq_length": 64,
        "max_predictions_per_seq": 10,
        "dupe_factor": 1,
    }


def file(tmp_path, name, content):
    """A file with these bytes, or this text, and its path."""
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def mentions(sentence, *words):
    """Whether a sentence says all of these."""
    return all(str(word) in sentence for word in words) or sentence


def test_missing_and_empty_files(classify, create, pretrain, tmp_path):
    empty = file(tmp_path, "empty.txt", "")
    for script, flags, flag in [
        (RUN, classify, "vocab_file"),
        (RUN, classify, "bert_config_file"),
        (RUN, classify, "data_dir"),
        (PRETRAIN, pretrain, "input_file"),
        (CREATE, create, "input_file"),
    ]:
        for path in (tmp_path / "nowhere", empty):
            sentence = scripts.refusal(script, **{**flags, flag: path})
            assert mentions(sentence, path) is True
    assert not os.path.exists(create["output_file"])


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda text: b"\xef\xbb\xbf" + text, ["byte order mark"]),
        (lambda text: text + b"[UNK]\n", ["[UNK]", "line 101"]),
        (lambda text: text.replace(b"[MASK]", b"mask!"), ["[MASK]"]),
        (lambda text: text + b"caf\xe9\n", ["UTF-8", "line 101"]),
        (lambda text: text + b"one\ntwo!\n", ["102", "100", "vocab_size"]),
    ],
    ids=["bom", "duplicate", "no mask", "latin-1", "too large"],
)
def test_vocabulary(classify, golden, tmp_path, spoil, words):
    good = (golden / "tiny_tf1/vocab.txt").read_bytes()
    classify["vocab_file"] = file(tmp_path, "vocab.txt", spoil(good))
    sentence = scripts.refusal(RUN, **classify)
    assert mentions(sentence, classify["vocab_file"], *words) is True


def test_vocabulary_with_windows_line_ends_is_read_as_by_the_original(
    classify, golden, tmp_path
):
    good = (golden / "tiny_tf1/vocab.txt").read_bytes()
    classify["vocab_file"] = file(tmp_path, "v.txt", good.replace(b"\n", b"\r\n"))
    scripts.succeed(RUN, **classify)


def config_with(golden, tmp_path, **changes):
    """The tiny model's config with other values."""
    values = json.loads((golden / "tiny_tf1/bert_config.json").read_text())
    return file(tmp_path, "bert_config.json", json.dumps({**values, **changes}))


def test_heads_that_do_not_divide_the_hidden_size(classify, golden, tmp_path):
    config = config_with(golden, tmp_path, num_attention_heads=5)
    sentence = scripts.refusal(RUN, **{**classify, "bert_config_file": config})
    assert mentions(sentence, config, "num_attention_heads", 32, 5) is True


def test_cased_model_with_lower_casing(classify, golden, tmp_path):
    folder = tmp_path / "cased_L-2_H-32_A-4"
    shutil.copytree(golden / "tiny_tf1", folder)
    classify["init_checkpoint"] = folder / "bert_model.ckpt"
    assert mentions(scripts.refusal(RUN, **classify), "do_lower_case", "cased") is True


def test_checkpoint_of_another_size(classify, golden, tmp_path):
    config = config_with(golden, tmp_path, intermediate_size=128)
    sentence = scripts.refusal(RUN, **{**classify, "bert_config_file": config})
    assert mentions(sentence, "intermediate_size", 64, 128) is True


def test_checkpoint_folder_without_index(classify, golden, tmp_path):
    name = "bert_model.ckpt.data-00000-of-00001"
    shutil.copy(golden / "tiny_tf1" / name, tmp_path / name)
    for path in (tmp_path, tmp_path / "bert_model.ckpt"):
        sentence = scripts.refusal(RUN, **{**classify, "init_checkpoint": path})
        assert "index" in sentence.lower()


def test_records_of_another_length(pretrain):
    sentence = scripts.refusal(PRETRAIN, **{**pretrain, "max_seq_length": 32})
    assert mentions(sentence, "a.tfrecord", 64, "--max_seq_length=32") is True


def test_truncated_records(pretrain, golden, tmp_path):
    content = (golden / "tiny_tf1_runs/pretraining/a.tfrecord").read_bytes()
    for cut in (7, 1000, len(content) - 3):
        path = file(tmp_path, "cut.tfrecord", content[:cut])
        sentence = scripts.refusal(PRETRAIN, **{**pretrain, "input_file": path})
        assert mentions(sentence, path) is True


def test_records_that_are_no_examples(pretrain, tmp_path):
    path = tmp_path / "text.tfrecord"
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(b"just some text")
    sentence = scripts.refusal(PRETRAIN, **{**pretrain, "input_file": path})
    assert mentions(sentence, path, "Example") is True


def own_task(tmp_path, classify, dev):
    """Flags for one's own data with this dev.csv."""
    file(tmp_path, "train.csv", "text,label\nthe cat,a\nthe dog,b\n")
    file(tmp_path, "dev.csv", dev)
    return {**classify, "task_name": "own", "data_dir": tmp_path, "do_train": True}


def test_unknown_label(classify, tmp_path):
    flags = own_task(tmp_path, classify, "text,label\nthe cat,a\nthe cow,c\n")
    sentence = scripts.refusal(RUN, **flags)
    assert mentions(sentence, "dev.csv", "line 3", "'c'", "'a', 'b'") is True
    assert not (tmp_path / "out").exists()


def test_wrong_column(classify, tmp_path):
    flags = own_task(tmp_path, classify, "text,label\nthe cat,a\n")
    sentence = scripts.refusal(RUN, **{**flags, "label_column": "labl"})
    assert mentions(sentence, "train.csv", "'labl'", "'text', 'label'") is True


def test_invalid_utf8(classify, create, tmp_path):
    flags = own_task(tmp_path, classify, b"text,label\nthe cat,a\ncaf\xe9,b\n")
    sentence = scripts.refusal(RUN, **flags)
    assert mentions(sentence, "dev.csv", "line 3", "UTF-8") is True
    path = file(tmp_path, "corpus.txt", b"the cat\n\nthe d\xf6g\n")
    sentence = scripts.refusal(CREATE, **{**create, "input_file": path})
    assert mentions(sentence, path, "line 3", "UTF-8") is True
    assert not os.path.exists(create["output_file"])


def test_more_tokens_than_positions(classify):
    sentence = scripts.refusal(RUN, **{**classify, "max_seq_length": 65})
    assert mentions(sentence, "--max_seq_length", 65, 64) is True


def test_unknown_flag(classify):
    result = scripts.run(RUN, **classify, do_lower=True)
    assert result.returncode != 0
    assert "Traceback" not in result.stderr
    assert "'do_lower'" in result.stderr
    assert "do_lower_case" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "more"),
    [
        (RUN, {"data_dir": "x"}),
        ("run_ner.py", {}),
        ("run_swag.py", {"data_dir": "x", "task_name": "swag"}),
        ("run_squad.py", {"train_file": "x"}),
    ],
)
def test_flags_without_effect(tmp_path, script, more):
    flags = {**more, "output_dir": tmp_path / "out"}
    assert scripts.refusal(script, **flags).startswith("nothing to do: give --do_tr")
    sentence = scripts.refusal(script, **flags, do_train=True, patience=2)
    assert mentions(sentence, "--patience=2", "--keep_best") is True
    assert not (tmp_path / "out").exists()


def test_output_folder_of_another_model(classify, golden, tmp_path):
    scripts.succeed(RUN, **classify)
    before = (tmp_path / "out/eval_results.txt").read_text()
    config = config_with(golden, tmp_path, hidden_dropout_prob=0.2)
    sentence = scripts.refusal(RUN, **{**classify, "bert_config_file": config})
    assert mentions(sentence, "hidden_dropout_prob", 0.1, 0.2, "--output_dir") is True
    flags = {**classify, "task_name": "mnli", "data_dir": golden / "glue_samples/MNLI"}
    sentence = scripts.refusal(RUN, **flags)
    assert mentions(sentence, "labels", "contradiction") is True
    assert (tmp_path / "out/eval_results.txt").read_text() == before


def test_existing_output_is_not_overwritten(create, tmp_path):
    path = file(tmp_path, "out.tfrecord", "precious")
    assert mentions(scripts.refusal(CREATE, **create), path, "--overwrite") is True
    assert path.read_text() == "precious"


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 600 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False).returncode:
        pytest.skip("needs the right to mount a small file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_full_disk(classify, create, small_disk):
    flags = {**classify, "do_train": True, "do_eval": False, "num_train_epochs": 30}
    flags |= {"output_dir": small_disk / "out", "save_checkpoints_steps": 3}
    sentence = scripts.refusal(RUN, **flags)
    assert "space" in sentence
    # What is there is whole: the run resumes from it once there is room.
    from modeling import checkpoint, checkpoint_state

    left = {path.name for path in (small_disk / "out").iterdir()}
    assert not [name for name in left if "partial" in name or name.endswith(".tmp")]
    prefix = checkpoint_state.latest(small_disk / "out")
    assert prefix and checkpoint.read(prefix, with_slots=True)

    output = small_disk / "out.tfrecord"
    sentence = scripts.refusal(
        CREATE, **{**create, "output_file": output, "dupe_factor": 100}
    )
    assert "space" in sentence
    names = {p.name for p in small_disk.iterdir()}
    assert names == {"out", ".out.tfrecord.build"}  # it goes on from there
