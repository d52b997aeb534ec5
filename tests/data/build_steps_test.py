"""The steps of a build, one by one; together they are tested with the script."""

import gzip
import json
import os
import pathlib

import numpy as np
import pytest

from data import (
    build_steps,
    corpus,
    masking,
    pretraining,
    pretraining_records,
    record_reading,
    records,
    text_files,
    tokenization,
)


@pytest.fixture
def job(golden, tmp_path):
    vocab_file = str(golden.parents[1] / "sample_data/vocab.txt")
    vocab = tokenization.load_vocab(vocab_file)
    special_ids = vocab["[CLS]"], vocab["[SEP]"]
    scheme = masking.Scheme(
        len(vocab), vocab["[MASK]"], special_ids, 10, 0.15, masking.by_token
    )
    settings = pretraining.Settings(*special_ids, scheme, max_seq_length=64)
    text = pretraining_records.Text(vocab_file, do_lower_case=True)
    outputs = tuple(str(tmp_path / name) for name in ("a", "b", "c.gz"))
    return build_steps.Job(str(tmp_path), text, settings, 2, outputs)


def test_the_steps(job, golden):
    path = str(golden / "pretraining_corpus.txt")
    [chunk] = corpus.make_chunks([(path, text_files.read_documents(path))])
    worker = build_steps.Worker(job)
    counts = worker.tokenize(chunk)
    stats = json.loads((golden / "pretraining_stats.json").read_text())
    assert counts["documents"] == len(stats["tokens_per_document"])
    assert counts["tokens"] == sum(stats["tokens_per_document"])

    part = worker.make_part(1, 0, range(1))
    name = job.part(1, 0)
    ends = np.load(job.ends(name))
    assert ends[0] == 0
    assert ends[-1] == os.path.getsize(name)
    num_records = len(ends) - 1
    assert num_records == part["counts"]["instances"]
    spec = records.pretraining_spec(64, 10)
    whole = record_reading.read_all([name], spec)
    assert len(whole["input_ids"]) == num_records
    assert int(whole["input_mask"].sum()) == part["counts"]["positions"]
    assert int(whole["next_sentence_labels"].sum()) == part["counts"]["random_next"]
    assert part["samples"] == []  # the first part has them

    for index, (first, last) in enumerate([(0, 5), (5, 9), (9, num_records)]):
        bounds = ends[first].item(), ends[last].item()
        shard = worker.make_shard(index, [name, name], [bounds, bounds])
        path = job.shard(index)
        assert shard["bytes"] == os.path.getsize(path)
        if index == 2:
            content = gzip.decompress(pathlib.Path(path).read_bytes())
            pathlib.Path(path).write_bytes(content)
        rows = record_reading.read_all([path], spec)["input_ids"]
        expected = whole["input_ids"][first:last]
        np.testing.assert_array_equal(rows, np.concatenate([expected, expected]))


def modified(folder):
    return {
        path.name: path.stat().st_mtime_ns for path in pathlib.Path(folder).iterdir()
    }


def test_what_is_there_is_not_done_again(job, golden):
    path = str(golden / "pretraining_corpus.txt")
    [chunk] = corpus.make_chunks([(path, text_files.read_documents(path))])
    worker = build_steps.Worker(job)
    counts = worker.tokenize(chunk)
    part = worker.make_part(0, 0, range(1))
    end = os.path.getsize(job.part(0, 0))
    shard = worker.make_shard(0, [job.part(0, 0)], [(0, end)])
    times = modified(job.folder)
    again = build_steps.Worker(job)
    assert again.tokenize(chunk) == counts
    assert again.make_part(0, 0, range(1)) == json.loads(json.dumps(part))
    assert again.make_shard(0, [], []) == shard
    assert modified(job.folder) == times


def test_what_is_damaged_is_made_again_or_refused(job, golden):
    path = str(golden / "pretraining_corpus.txt")
    [chunk] = corpus.make_chunks([(path, text_files.read_documents(path))])
    worker = build_steps.Worker(job)
    counts = worker.tokenize(chunk)
    for content in (b"", b"PK\x03\x04half", b"text"):
        pathlib.Path(job.chunk(0)).write_bytes(content)
        assert worker.tokenize(chunk) == counts  # made again
        assert worker.tokenize(chunk) == counts  # read
    worker.make_part(0, 0, range(1))
    end = os.path.getsize(job.part(0, 0))
    os.truncate(job.part(0, 0), end - 1)
    with pytest.raises(ValueError, match="is cut off; start anew"):
        worker.make_shard(0, [job.part(0, 0)], [(0, end)])
    assert not os.path.exists(job.shard(0))


def test_a_compressed_file_is_unpacked(job, tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"text"))
    build_steps.Worker(job).unpack(str(tmp_path / "a.gz"), str(tmp_path / "b"))
    assert (tmp_path / "b").read_bytes() == b"text"
