"""Real corpora become records: vocabulary, records, inspection."""

import gzip
import json
import random

import pytest

from data import text_files
from tests import scripts

CREATE, INSPECT = "create_pretraining_data.py", "inspect_records.py"


def inspect(path, vocab_file):
    """The report on record files, which must fit."""
    report = path.parent / "report.json"
    flags = {"input_file": path, "vocab_file": vocab_file, "output_file": report}
    scripts.succeed(INSPECT, **flags, overwrite=True)
    return json.loads(report.read_text("utf-8"))


@pytest.mark.slow
def test_german_novels_with_a_vocabulary_learnt_from_them(shared, tmp_path):
    novels, vocab_file = shared / "data/pretrain/de_novels", tmp_path / "vocab.txt"
    text = {"input_file": novels, "do_lower_case": False}
    scripts.succeed("build_vocab.py", **text, output_file=vocab_file, vocab_size=8000)
    entries = vocab_file.read_text("utf-8").splitlines()
    assert len(entries) == len(set(entries)) == 8000
    path = tmp_path / "a.tfrecord.gz"
    result = scripts.run(
        CREATE,
        **text,
        vocab_file=vocab_file,
        output_file=path,
        split_sentences=True,
        do_whole_word_mask=True,
        dupe_factor=2,
    )
    assert result.returncode == 0, result.stderr
    assert ", 0.0 % unknown" in result.stdout
    assert inspect(path, vocab_file)


@pytest.mark.slow
def test_chinese_text_with_words_told_by_spaces(shared, tmp_path):
    vocab_file = shared / "data/vocab/bert-base-chinese/vocab.txt"
    source = shared / "data/pretrain/zh_wiki_sample.txt.gz"
    path = tmp_path / "a.tfrecord"
    flags = {"vocab_file": vocab_file, "output_file": path, "dupe_factor": 2}
    result = scripts.run(CREATE, **flags, input_file=source)
    assert result.returncode == 0, result.stderr
    assert "documents    59" in result.stdout
    assert inspect(path, vocab_file)
    # Cut at random into words of one to three characters: any segmentation does.
    rng = random.Random(0)
    documents = []
    for document in text_files.read_documents(str(source)):
        lines = []
        for line in document.lines:
            words, place = [], 0
            while place < len(line):
                end = place + rng.randint(1, 3)
                words.append(line[place:end])
                place = end
            lines.append(" ".join(words))
        documents.append("\n".join(lines))
    (tmp_path / "segmented.txt.gz").write_bytes(
        gzip.compress("\n\n".join(documents).encode())
    )
    flags |= {
        "input_file": tmp_path / "segmented.txt.gz",
        "do_whole_word_mask": True,
        "pre_segmented": True,
        "overwrite": True,
    }
    scripts.succeed(CREATE, **flags)
    assert inspect(path, vocab_file)
