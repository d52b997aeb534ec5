"""create_pretraining_data.py: what it writes, shows and refuses."""

import os
import re
import resource
import signal
import subprocess
import time
import types

import numpy as np
import pytest

import create_pretraining_data
from data import batching, records, tokenization
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
    }

    def run(**flags):
        given = {
            name: str(value) if isinstance(value, os.PathLike) else value
            for name, value in flags.items()
        }
        values = types.SimpleNamespace(**defaults | given)
        monkeypatch.setattr(create_pretraining_data, "FLAGS", values)
        create_pretraining_data.main()

    return run


def test_it_shows_what_the_records_are(flags):
    result = scripts.run(SCRIPT, **flags)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("next sentence: [CLS]") == 5
    assert "to predict: " in result.stderr
    summary = {line[:13].strip(): line[13:] for line in result.stdout.splitlines()}
    path = str(flags["output_file"])
    records.check([path], SPEC, vocab_size=30522)
    data = batching.read_all([path], SPEC)
    assert summary["documents"] == "2"
    assert summary["sentences"] == "29"
    assert summary["tokens"] == "444, 0.0 % unknown"
    assert summary["instances"] == str(records.count([path]))
    random_next = 100 * data["next_sentence_labels"].mean()
    assert summary["random next"] == f"{random_next:.1f} % of the instances"
    masked = 100 * data["masked_lm_weights"].sum() / data["input_mask"].sum()
    assert summary["masked"] == f"{masked:.1f} % of their tokens"


def test_putting_the_labels_back_gives_sentences_of_the_text(run, flags, golden):
    run(**flags)
    data = batching.read_all([str(flags["output_file"])], SPEC)
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


def test_fewer_instances_than_are_shown(run, flags, tmp_path):
    path = tmp_path / "two.txt"
    path.write_text("the cat sat\n\na dog ran\n")
    run(**{**flags, "input_file": path, "dupe_factor": 1})
    assert records.count([str(flags["output_file"])]) == 2


def test_whole_words_are_masked(run, flags):
    run(**flags, do_whole_word_mask=True)
    data = batching.read_all([str(flags["output_file"])], SPEC)
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


def test_instances_go_to_the_files_in_turn(run, flags, tmp_path):
    run(**flags)
    whole = batching.read_all([str(flags["output_file"])], SPEC)
    paths = [str(tmp_path / "new/folder/x"), str(tmp_path / "y")]
    flags["output_file"] = ",".join(paths)
    run(**flags)
    for start, path in enumerate(paths):
        part = batching.read_all([path], SPEC)
        for name, values in part.items():
            np.testing.assert_array_equal(values, whole[name][start::2])


def test_an_existing_file_is_kept_without_overwrite(run, flags):
    path = flags["output_file"]
    path.parent.mkdir()
    path.write_text("kept")
    message = scripts.refusal(SCRIPT, **flags)
    assert "a.tfrecord exists" in message
    assert "--overwrite" in message
    assert path.read_text() == "kept"
    run(**flags, overwrite=True)
    records.check([str(path)], SPEC)


def test_an_input_file_is_never_overwritten(run, flags, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("One.\n\nTwo.\n")
    flags |= {"input_file": path, "output_file": path, "overwrite": True}
    with pytest.raises(ValueError, match=r"text\.txt is an input file"):
        run(**flags)
    assert path.read_text() == "One.\n\nTwo.\n"


BAD_TEXTS = {
    "one document": (b"One.\nTwo.\n", "holds 1; separate documents by empty lines"),
    "no text": (b"\n \n", "holds 0; separate documents by empty lines"),
    "empty": (b"", "text.txt is empty"),
    "Latin-1": (b"One.\n\nGem\xe4lde.\n", "text.txt, line 3, byte 4: "),
}


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
    assert os.listdir(flags["output_file"].parent) == []


def test_a_killed_run_leaves_no_file_that_looks_complete(run, flags):
    folder = flags["output_file"].parent
    folder.mkdir()
    process = subprocess.Popen(
        scripts.command(SCRIPT, **flags | {"dupe_factor": 100_000}),
        stderr=subprocess.DEVNULL,
    )
    while not os.listdir(folder):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not flags["output_file"].exists()
    with pytest.raises(FileNotFoundError):
        records.expand(f"{folder}/*")  # what is left is hidden
    run(**flags)
    assert records.expand(f"{folder}/*") == [str(flags["output_file"])]


def peak_memory(flags):
    """Peak resident memory of a run, in bytes."""
    process = subprocess.Popen(
        scripts.command(SCRIPT, **flags),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss * 1024


@pytest.mark.slow
def test_memory_does_not_grow_with_the_corpus(flags, tmp_path):
    text = CORPUS.read_bytes() + b"\n"
    peaks = []
    for copies in (6, 50):  # 5 MB and 40 MB
        (tmp_path / "text.txt").write_bytes(text * copies)
        flags |= {
            "input_file": tmp_path / "text.txt",
            "max_seq_length": 128,
            "dupe_factor": 1,
            "overwrite": True,
        }
        peaks.append(peak_memory(flags))
    # The token ids of the 35 MB alone would take as much.
    assert peaks[1] - peaks[0] < 35e6, peaks
