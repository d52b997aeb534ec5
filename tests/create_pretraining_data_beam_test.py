"""create_pretraining_data_beam.py: the instances of create_pretraining_data.py."""

import gzip
import hashlib
import json
import os
import re
import resource
import struct
import subprocess

import pytest

import command_line
import create_pretraining_data
import create_pretraining_data_beam
from data import corpus
from tests import flags_test, scripts

LOCAL, SCRIPT = "create_pretraining_data.py", "create_pretraining_data_beam.py"
VOCAB = scripts.ROOT / "sample_data/vocab.txt"
CORPUS = scripts.ROOT / "sample_data/corpus.txt"
MULTI = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]

needs_beam = pytest.mark.skipif(
    create_pretraining_data_beam.beam is None,
    reason="Apache Beam is not installed; see requirements-beam.txt",
)


def digest(folder):
    """Number and hash of the sorted records of all files; without TensorFlow, which the
    environment of Beam lacks."""
    found = []
    for path in folder.glob("*.tfrecord*"):
        if path.name.endswith("manifest.json"):
            continue
        content = path.read_bytes()
        if path.name.endswith(".gz"):
            content = gzip.decompress(content)
        place = 0
        while place < len(content):
            (length,) = struct.unpack_from("<Q", content, place)
            end = place + 16 + length  # with the length and two checksums
            found.append(content[place:end])
            place = end
        assert place == len(content)
    return len(found), hashlib.sha256(b"".join(sorted(found))).hexdigest()


def run(*beam_options, **flags):
    command = [*scripts.command(SCRIPT, **flags), "--", *beam_options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def summary(result):
    """What was printed, without the time."""
    return result.stdout.partition("time ")[0]


@pytest.fixture
def flags(golden, tmp_path):
    return {
        "input_file": golden / "pretraining_corpus.txt",
        "output_file": tmp_path / "out/a.tfrecord",
        "vocab_file": VOCAB,
        "max_seq_length": 64,
        "max_predictions_per_seq": 10,
        "dupe_factor": 3,
    }


@pytest.fixture
def run_here(monkeypatch):
    """Function of a script and flags that runs it in this process."""
    defaults = flags_test.defined(SCRIPT.removesuffix(".py"))

    def run_here(module, *arguments, **flags):
        values = {**defaults, "num_workers": 1}
        values |= {
            name: str(value) if isinstance(value, os.PathLike) else value
            for name, value in flags.items()
        }
        monkeypatch.setattr(command_line, "values", lambda: values)
        module.main(*arguments)

    return run_here


@pytest.fixture(scope="module")
def many_kinds(tmp_path_factory):
    """Flags for files of several kinds with repeated documents, more than a chunk."""
    folder = tmp_path_factory.mktemp("text")
    documents = CORPUS.read_text("utf-8").split("\n\n")
    (folder / "a.txt").write_text("\n\n".join(documents), "utf-8")
    lines = [json.dumps({"body": document}) for document in documents[:30]]
    (folder / "in").mkdir()
    (folder / "in/b.jsonl").write_text("\n".join(lines))
    zipped = gzip.compress("\n\n".join(documents[20:]).encode())
    (folder / "in/c.txt.gz").write_bytes(zipped)
    return {
        "input_file": folder,
        "vocab_file": VOCAB,
        "text_field": "body",
        "split_sentences": True,
        "do_whole_word_mask": True,
        "dupe_factor": 1,
        "num_output_shards": 3,
    }


def test_without_beam_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(create_pretraining_data_beam, "beam", None)
    with pytest.raises(ValueError, match=r"pip install -r requirements-beam\.txt"):
        create_pretraining_data_beam.main([])


def test_flags_are_those_of_the_other_script():
    ours, others = (
        flags_test.defined(script.removesuffix(".py")) for script in (SCRIPT, LOCAL)
    )
    del others["num_workers"]
    assert ours == others


@needs_beam
def test_instances_are_the_same_in_one_process_and_in_several(many_kinds, tmp_path):
    name = "a.tfrecord"
    results = [
        scripts.run(LOCAL, **many_kinds, output_file=tmp_path / "local" / name),
        run(**many_kinds, output_file=tmp_path / "one" / f"{name}.gz"),
        run(*MULTI, **many_kinds, output_file=tmp_path / "several" / name),
    ]
    for result in results:
        assert result.returncode == 0, result.stderr
    shards = [f"a-0000{i}-of-00003.tfrecord" for i in range(3)]
    assert sorted(os.listdir(tmp_path / "several")) == shards
    assert sorted(os.listdir(tmp_path / "one")) == [f"{name}.gz" for name in shards]
    count, expected = digest(tmp_path / "local")
    assert count > 2000
    assert digest(tmp_path / "one") == (count, expected)
    assert digest(tmp_path / "several") == (count, expected)
    assert len({summary(result) for result in results}) == 1


@needs_beam
@pytest.mark.parametrize("deduplicate", [False, True])
def test_pools_and_repeated_documents(
    deduplicate, many_kinds, tmp_path, run_here, monkeypatch
):
    monkeypatch.setattr(corpus, "CHUNK_BYTES", 50_000)
    monkeypatch.setattr(corpus, "POOL_TOKENS", 60_000)
    flags = {**many_kinds, "deduplicate": deduplicate}
    pools = []
    make_pool = corpus.make_pool

    def spy(index, chunks):
        pools.append((index, len(chunks)))
        return make_pool(index, chunks)

    monkeypatch.setattr(corpus, "make_pool", spy)
    run_here(create_pretraining_data, **flags, output_file=tmp_path / "l/a.tfrecord")
    expected_pools = sorted(pools)
    pools.clear()
    run_here(
        create_pretraining_data_beam, [], **flags, output_file=tmp_path / "b/a.tfrecord"
    )
    assert sorted(pools) == expected_pools
    assert len(set(pools)) >= 3
    assert digest(tmp_path / "b") == digest(tmp_path / "l")


@needs_beam
def test_files_that_beam_alone_reaches(flags, tmp_path, run_here):
    """A scheme of our own stands in for gs:// and its like."""
    from apache_beam.io import localfilesystem

    class There(localfilesystem.LocalFileSystem):
        @classmethod
        def scheme(cls):
            return "there"

        def _list(self, place):
            for entry in super()._list(place.replace("there:/", "")):
                entry.path = f"there:/{entry.path}"
                yield entry

        def open(self, path, *args, **kwargs):
            return super().open(path.replace("there:/", ""), *args, **kwargs)

    folder = tmp_path / "in/b"
    folder.mkdir(parents=True)
    documents = flags["input_file"].read_text().split("\n\n")
    (tmp_path / "in/a.txt").write_text("\n\n".join(documents * 3))
    (folder / "c.txt.gz").write_bytes(gzip.compress("\n\n".join(documents).encode()))
    (folder / "d.csv").write_text("no text")
    flags["input_file"] = tmp_path / "in"
    run_here(create_pretraining_data, **flags)
    expected = digest(tmp_path / "out")
    flags["output_file"] = tmp_path / "beam/a.tfrecord"
    flags["input_file"] = f"there:/{tmp_path}/in/"
    run_here(create_pretraining_data_beam, [], **flags)
    assert digest(tmp_path / "beam") == expected
    flags["input_file"] = f"there:/{tmp_path}/in/b/*.none"
    with pytest.raises(FileNotFoundError, match="no file with text .*none"):
        run_here(create_pretraining_data_beam, [], **flags, overwrite=True)


BAD = {
    "one document": (b"One.\nTwo.\n", "holds 1; separate documents by empty lines"),
    "no text": (b"\n \n", "there are no words in the text"),
    "Latin-1": (b"One.\n\nGem\xe4lde.\n", "text.txt, line 3, byte 4: "),
}


@needs_beam
@pytest.mark.parametrize("name", BAD)
def test_text_that_cannot_be_used_is_refused(flags, tmp_path, run_here, name):
    content, message = BAD[name]
    flags["input_file"] = tmp_path / "text.txt"
    flags["input_file"].write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        run_here(create_pretraining_data_beam, [], **flags)
    assert "while running" not in str(caught.value)
    assert os.listdir(tmp_path / "out") == []


@needs_beam
@pytest.mark.parametrize("overwrite", [False, True])
def test_files_without_records_are_not_made(flags, tmp_path, run_here, overwrite):
    flags |= {"dupe_factor": 1, "num_output_shards": 99, "overwrite": overwrite}
    there = tmp_path / "out/a-00000-of-00099.tfrecord"
    there.parent.mkdir()
    if overwrite:
        there.write_text("kept")
    message = "every file needs a record, .* of 99 files got some; name fewer files"
    with pytest.raises(ValueError, match=message):
        run_here(create_pretraining_data_beam, [], **flags)
    assert os.listdir(there.parent) == [there.name] * overwrite


@needs_beam
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
    assert "Traceback" not in result.stderr
    last = result.stderr.splitlines()[-1]
    assert last.startswith("create_pretraining_data_beam: error: ")
    assert last.endswith("File too large")
    assert os.listdir(flags["output_file"].parent) == []


@needs_beam
@pytest.mark.slow
def test_errors_of_other_processes_end_in_a_sentence_too(flags, tmp_path):
    flags["input_file"] = tmp_path / "text.txt"
    flags["input_file"].write_bytes(BAD["Latin-1"][0])
    result = run(*MULTI, **flags)
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith("create_pretraining_data_beam: error: ")
    assert BAD["Latin-1"][1] in last
    assert last.endswith("(for instance with iconv)")
    assert os.listdir(tmp_path / "out") == []


@needs_beam
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"output_file": "{}/a,{}/b"}, "must be one name"),
        ({"output_file": "{}/a.tfrecord"}, "a.tfrecord exists; .*--overwrite"),
        ({"output_file": "{}"}, "is a folder"),
        ({"output_file": "{}/new/"}, "new/ is a folder"),
        ({"output_file": str(VOCAB), "overwrite": True}, "vocab.txt is an input file"),
        ({"input_file": "nowhere://a/*"}, "nowhere://a"),
        ({"pre_segmented": True}, "--pre_segmented is for"),
        ({"vocab_file": "{}/a.tfrecord"}, "a.tfrecord lacks"),
    ],
)
def test_flags_that_cannot_be_used_are_refused(
    flags, change, message, tmp_path, run_here
):
    (tmp_path / "a.tfrecord").write_text("kept\n")
    change = {
        name: value.replace("{}", str(tmp_path)) if isinstance(value, str) else value
        for name, value in change.items()
    }
    with pytest.raises(ValueError, match=message):
        run_here(create_pretraining_data_beam, [], **flags | change)
    assert os.listdir(tmp_path) == ["a.tfrecord"]
    assert (tmp_path / "a.tfrecord").read_text() == "kept\n"


def test_what_is_no_option_is_refused(flags):
    result = run("MULTI", **flags)
    assert result.returncode == 1
    assert "unexpected argument 'MULTI'" in result.stderr
