"""inspect_records.py: what it shows, what it refuses, and with which exit status."""

import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from tests import pretraining_records, scripts

SCRIPT = "inspect_records.py"
VOCAB = scripts.ROOT / "sample_data/vocab.txt"


@pytest.fixture(scope="module")
def built(golden, tmp_path_factory):
    """Folder with three record files and their manifest."""
    folder = tmp_path_factory.mktemp("built")
    scripts.succeed(
        "create_pretraining_data.py",
        input_file=golden / "pretraining_corpus.txt",
        output_file=folder / "x.tfrecord",
        num_output_shards=3,
        vocab_file=VOCAB,
        max_seq_length=64,
        max_predictions_per_seq=10,
        num_workers=1,
        dupe_factor=5,
    )
    return folder


@pytest.fixture
def flags(built):
    """Flags under which the built files fit."""
    return {
        "input_file": f"{built}/*.tfrecord",
        "vocab_file": VOCAB,
        "bert_config_file": scripts.ROOT / "sample_data/tiny_bert_config.json",
        "max_seq_length": 64,
        "max_predictions_per_seq": 10,
    }


def test_single_spans_and_another_mix_are_what_was_asked_for(golden, flags, tmp_path):
    built = tmp_path / "built"
    scripts.succeed(
        "create_pretraining_data.py",
        input_file=golden / "pretraining_corpus.txt",
        output_file=built / "x.tfrecord",
        vocab_file=VOCAB,
        max_seq_length=64,
        max_predictions_per_seq=10,
        num_workers=1,
        dupe_factor=5,
        segment_pairs=False,
        masking_mix="0,20,80",
    )
    flags |= {"input_file": built / "x.tfrecord"}
    result = scripts.run(SCRIPT, **flags)
    assert result.returncode == 0, result.stdout
    assert "0 % of the predicted tokens shown as [MASK], 20 % kept" in result.stdout
    # Without the manifest they are expected to be as the original's.
    (built / "x.tfrecord.manifest.json").unlink()
    result = scripts.run(SCRIPT, **flags)
    assert result.returncode == 1
    assert re.search(r"NO +next sentence", result.stdout)
    assert re.search(r"NO +masking", result.stdout)


def test_files_that_fit(flags, tmp_path):
    output = tmp_path / "new/report.json"
    result = scripts.run(SCRIPT, **flags, output_file=output)
    assert result.returncode == 0, result.stderr
    assert "NO  " not in result.stdout
    assert result.stdout.count("\nok  ") >= 20
    assert result.stdout.count("next sentence:\n  [CLS]") == 3
    assert "unknown          0.000 %" in result.stdout
    assert "Traceback" not in result.stderr
    report = json.loads(output.read_text())
    assert [file["records"] for file in report["files"]]
    assert report["pretraining"]["records"] == sum(
        file["records"] for file in report["files"]
    )
    assert all(check["fits"] for check in report["checks"])
    assert {"manifest", "vocabulary", "masked share"} <= {
        check["name"] for check in report["checks"]
    }
    assert len(report["samples"]) == 3
    message = scripts.refusal(SCRIPT, **flags, output_file=output)
    assert f"{output} exists" in message
    scripts.succeed(SCRIPT, **flags, output_file=output, overwrite=True)


def test_files_that_do_not_fit(flags, tmp_path, golden):
    output = tmp_path / "report.json"
    flags |= {"max_seq_length": 128, "vocab_file": golden / "tiny_tf1/vocab.txt"}
    result = scripts.run(SCRIPT, **flags, output_file=output)
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1].rpartition("\r")[2]
    assert last.startswith("inspect_records: error: ")
    assert "max_seq_length: expected 128 positions" in last
    assert "pass --max_seq_length=64, or build the records again with 128" in last
    assert last.endswith("for others stands above, after NO")
    shown = " ".join(result.stdout.split())
    assert "NO max_seq_length expected 128 positions" in shown
    assert "came no entry (id 101, " in shown
    checks = json.loads(output.read_text())["checks"]
    wrong = [check["name"] for check in checks if not check["fits"]]
    assert wrong == [
        "max_seq_length",
        "token ids",
        "vocabulary",
        "masking",
        "[CLS]",
        "[SEP]",
    ]
    assert f"{len(wrong)} of {len(checks)} checks failed ({', '.join(wrong)})" in last


def test_the_original_s_files_fit(golden):
    result = scripts.run(
        SCRIPT,
        input_file=golden / "tiny_tf1_runs/pretraining/*.tfrecord",
        vocab_file=golden / "tiny_tf1/vocab.txt",
        bert_config_file=golden / "tiny_tf1/bert_config.json",
        max_seq_length=64,
        max_predictions_per_seq=10,
        masked_lm_prob=0.15,
        num_samples=0,
    )
    assert result.returncode == 0, result.stderr
    assert "NO  " not in result.stdout
    assert "2, 44 records" in result.stdout
    assert "answers in braces" not in result.stdout


def test_records_of_other_scripts(golden):
    for name, kind in (
        ("classifier_mrpc/eval.tf_record", "run_classifier.py or run_swag.py"),
        ("squad_v1/eval.tf_record", "run_squad.py"),
    ):
        path = golden / "tiny_tf1_runs" / name
        result = scripts.run(SCRIPT, input_file=path)
        assert result.returncode == 0, result.stderr
        assert f"as {kind} writes them" in " ".join(result.stdout.split())
        message = scripts.refusal(SCRIPT, input_file=path, max_predictions_per_seq=20)
        assert "layout: expected records of pre-training" in message
        assert "create_pretraining_data.py writes those" in message


def test_a_model_from_hugging_face(flags, golden):
    config = next(iter(sorted((golden / "hf_tiny").rglob("config.json"))))
    message = scripts.refusal(SCRIPT, **flags | {"bert_config_file": config})
    assert "token ids" in message


def test_damaged_files(flags, built, tmp_path):
    for path in built.iterdir():
        shutil.copy(path, tmp_path)
    path = tmp_path / "x-00001-of-00003.tfrecord"
    path.write_bytes(path.read_bytes()[:-1])
    flags["input_file"] = f"{tmp_path}/*.tfrecord"
    message = scripts.refusal(SCRIPT, **flags)
    assert "checks failed (files, manifest); files: expected whole TFRec" in message
    assert "x-00001-of-00003.tfrecord is damaged or cut off after" in message
    flags["input_file"] = path
    path.write_bytes(b"no record at all, but a text")
    message = scripts.refusal(SCRIPT, **flags)
    assert message.startswith(f"{path} is no TFRecord file")


def test_old_files_beside_new_ones(flags, built, tmp_path):
    for path in built.iterdir():
        shutil.copy(path, tmp_path)
    for name in ("x-00000-of-00002.tfrecord", "x-00001-of-00002.tfrecord"):
        shutil.copy(built / "x-00000-of-00003.tfrecord", tmp_path / name)
    (tmp_path / "site.manifest.json").write_text('{"name": "a web page"}')
    flags["input_file"] = f"{tmp_path}/*.tfrecord"
    message = scripts.refusal(SCRIPT, **flags)
    assert message.startswith("1 of ")
    assert "builds: expected no files of another build than" in message
    assert (
        "came 2: x-00000-of-00002.tfrecord, x-00001-of-00002.tfrecord; remove these"
        in message
    )
    flags["input_file"] = f"{tmp_path}/*-of-00003.tfrecord"
    assert scripts.run(SCRIPT, **flags).returncode == 0


def test_compressed_files_and_a_manifest_elsewhere(flags, built, tmp_path):
    path = tmp_path / "x-00000-of-00003.tfrecord"
    shutil.copy(built / path.name, path)
    manifest = built / "x.tfrecord.manifest.json"
    flags = {"input_file": path, "manifest_file": manifest}
    result = scripts.run(SCRIPT, **flags)
    assert "1 of the 3 files of" in " ".join(result.stdout.split()), result.stderr
    zipped = tmp_path / "y.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    assert scripts.run(SCRIPT, input_file=zipped).returncode == 0
    message = scripts.refusal(SCRIPT, input_file=f"{path},{zipped}")
    assert "compression: expected all files compressed" in message
    message = scripts.refusal(SCRIPT, input_file=zipped, manifest_file=manifest)
    assert "none of which is among the files" in message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_file": "missing*"}, "no file matches 'missing*'"),
        ({"input_file": "{}"}, "is a folder"),
        ({"input_file": "{}/empty"}, "empty is empty"),
        ({"vocab_file": "missing.txt"}, "missing.txt does not exist"),
        ({"bert_config_file": "missing.json"}, "missing.json"),
        ({"bert_config_file": "{}/text"}, "text"),
        ({"manifest_file": "{}/text"}, "text is no manifest"),
        ({"output_file": "{}"}, "is a folder; --output_file must name a file"),
        (
            {"input_file": "{}/text", "output_file": "{}/text"},
            "text is an input file; choose another --output_file",
        ),
        (
            {"vocab_file": "{}/text", "output_file": "{}/text"},
            "text is an input file; choose another --output_file",
        ),
    ],
)
def test_files_that_cannot_be_used(change, message, flags, tmp_path):
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("a text")
    change = {name: text.replace("{}", str(tmp_path)) for name, text in change.items()}
    assert message in scripts.refusal(SCRIPT, **flags | change)
    assert sorted(os.listdir(tmp_path)) == ["empty", "text"]


def test_it_does_without_tensorflow():
    code = (
        "import sys, inspect_records; assert 'tensorflow' not in sys.modules, 'there'"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=scripts.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def peak_memory(path):
    """Peak resident memory of a run, in bytes."""
    # Not ru_maxrss, in which the process that starts it counts too.
    code = (
        "import atexit, runpy; "
        "atexit.register(lambda: print(open('/proc/self/status').read())); "
        f"runpy.run_path({str(scripts.ROOT / SCRIPT)!r}, run_name='__main__')"
    )
    command = [sys.executable, "-c", code, f"--input_file={path}"]
    result = subprocess.run(
        command, capture_output=True, text=True, cwd=scripts.ROOT, check=False
    )
    assert "error:" not in result.stderr, result.stderr
    return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", result.stdout).group(1))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_files(tmp_path):
    data = pretraining_records.make(5000, 128, 20)
    content = pathlib.Path(pretraining_records.write(tmp_path / "a", data)).read_bytes()
    peaks = []
    for copies in (2, 30):  # 8 MB and 120 MB
        with open(tmp_path / "b", "wb") as file:
            for _ in range(copies):
                file.write(content)
        peaks.append(peak_memory(tmp_path / "b"))
    assert peaks[1] - peaks[0] < 25e6, peaks
    assert peaks[1] < 120e6, peaks
