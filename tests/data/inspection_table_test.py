"""What is shown: numbers where they belong, and samples that can be read back."""

import re

import pytest

from data import (
    inspection,
    inspection_checks,
    inspection_statistics,
    inspection_table,
    records,
    tokenization,
)
from tests import pretraining_records
from tests.data import inspection_test


@pytest.fixture
def names(golden):
    vocab = tokenization.load_vocab(golden / "tiny_tf1/vocab.txt")
    return {i: token for token, i in vocab.items()}


@pytest.fixture
def inspector(tmp_path, names, monkeypatch):
    monkeypatch.chdir(tmp_path)  # so that the names of files are short
    vocab = {token: i for i, token in names.items()}
    settings = inspection_statistics.Settings(vocab=vocab, num_samples=8)
    inspector = inspection.Inspector(settings)
    data = pretraining_records.make(200)
    inspector.read(pretraining_records.write("a.tfrecord", data))
    return inspector


def lines_of(table):
    """title → text of its first line."""
    return {
        line[:16].strip(): line[17:] for line in table.splitlines() if line[0] > " "
    }


def test_the_table_says_what_was_found(inspector, names):
    report = inspector.report()
    table = inspection_table.table(report, names)
    assert max(map(len, table.splitlines())) <= 100
    lines, found = lines_of(table), report["pretraining"]
    assert lines["files"].startswith("1, 200 records, ")
    assert "a.tfrecord: 200" in table
    assert lines["records"].startswith("200 of pre-training, as create_pretraining")
    assert re.search(r"input_ids +24 int64, values 0 to 99\n", table)
    assert lines["tokens"].startswith(f"{found['lengths']['mean']:.1f} a record, sd ")
    assert f"p50 {found['lengths']['p50']}," in lines["percentiles"]
    assert lines["padding"] == f"{100 * found['padding_share']:.1f} % of all positions"
    assert f"{100 * found['predictions']['share']:.1f} %" in lines["predictions"]
    assert f"[MASK] {100 * found['masking']['mask_share']:.1f} %" in lines["shown as"]
    assert lines["repeated"].startswith("0.0 % of the records; 200 different texts")
    assert lines["vocabulary"].endswith("different tokens of 100 entries")
    most, count = found["tokens"]["most_predicted"][0]
    assert lines["most predicted"].startswith(f"{names[most]} {count:,}, ")
    assert f"{most} {count:,}" in inspection_table.table(report, {})


def test_the_histogram_counts_every_record(inspector, names):
    table = inspection_table.table(inspector.report(), names)
    rows = re.findall(r"^ +(\d+) to (\d+) +([\d.]+) % ?(#*)$", table, re.M)
    assert len(rows) > 5
    assert [int(row[0]) for row in rows[1:]] == [int(row[1]) + 1 for row in rows[:-1]]
    assert sum(float(row[2]) for row in rows) == pytest.approx(100, abs=0.5)
    assert max(len(row[3]) for row in rows) == 40


def test_estimates_are_called_so(inspector):
    report = inspector.report()
    report["pretraining"]["repeats_are_exact"] = False
    text = lines_of(inspection_table.table(report, {}))["repeated"]
    assert text.count("about ") == 2


def test_other_layouts_and_many_files(tmp_path):
    inspector = inspection.Inspector(inspection_statistics.Settings())
    for number in range(30):
        path = tmp_path / f"{number}"
        inspector.read(str(inspection_test.write(path, records.squad_spec(8, True))))
    table = inspection_table.table(inspector.report(), {})
    assert "150 of questions and answers, as run_squad.py writes them" in table
    assert "and 18 more" in table
    assert "padding" not in table


def test_samples_are_the_records_in_words(inspector, names):
    samples = inspection_table.samples(inspector.samples(), names)
    data = pretraining_records.make(200)
    assert len(samples) == 8
    for sample in samples:
        row = int(sample["place"].rpartition(" ")[2]) - 1
        ids = data["input_ids"][row][data["input_mask"][row] == 1].tolist()
        tokens = [names[i] for i in ids]
        answers = sample["answers"]
        is_real = data["masked_lm_weights"][row] == 1
        positions = data["masked_lm_positions"][row][is_real].tolist()
        assert [answer["position"] for answer in answers] == positions
        assert [answer["shown"] for answer in answers] == [tokens[p] for p in positions]
        labels = data["masked_lm_ids"][row][is_real].tolist()
        assert [answer["answer"] for answer in answers] == [names[i] for i in labels]
        for answer in answers:
            tokens[answer["position"]] += f"{{{answer['answer']}}}"
        assert sample["text"] == " ".join(tokens).replace(" ##", "")
        is_random = bool(data["next_sentence_labels"][row, 0])
        assert sample["is_random_next"] == is_random
    shown = inspection_table.samples_text(samples)
    assert shown.count("next sentence:") == 8
    assert " ".join(samples[0]["text"].split()) in " ".join(shown.split())


def test_samples_without_a_vocabulary_or_with_bad_positions(inspector):
    ((place, record), *_) = inspector.samples()
    record["masked_lm_positions"][0] = 1000
    (sample,) = inspection_table.samples([(place, record)], {})
    assert len(sample["answers"]) == sum(record["masked_lm_weights"]) - 1
    assert sample["text"].startswith("<2> <")


def test_checks_are_shown():
    checks = [
        inspection_checks.Check("a", True, "one", "one", "nothing"),
        inspection_checks.Check("long name", False, "two", "three", "pass --two"),
    ]
    assert inspection_table.checks_text(checks).splitlines() == [
        "ok  a          one: one",
        "NO  long name  expected two; came three; pass --two",
    ]
