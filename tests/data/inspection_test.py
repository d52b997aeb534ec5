"""Layouts are recognised and measured, whatever stands in a file."""

import gzip
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from data import inspection, inspection_statistics, records
from tests import pretraining_records


def inspect(*paths, **settings):
    inspector = inspection.Inspector(inspection_statistics.Settings(**settings))
    for path in paths:
        inspector.read(str(path))
    return inspector.report()


def write(path, spec, num_records=5):
    """Records whose values are 1, 2, ... in every feature."""
    data = {
        name: np.arange(1, num_records * f.size + 1).reshape(num_records, *f.shape)
        for name, f in spec.items()
    }
    records.write(str(path), data, spec)
    return path


@pytest.mark.parametrize(
    ("spec", "kind", "writer"),
    [
        (records.squad_spec(8, True), "questions and answers", "run_squad.py"),
        (records.squad_spec(8, False), "questions", "run_squad.py"),
        (records.classifier_spec(8), inspection.CHOICES, "run_classifier.py or"),
        (records.multi_label_spec(8, 3), inspection.CHOICES, "run_classifier.py or"),
        (records.multiple_choice_spec(4, 8), inspection.CHOICES, "run_swag.py"),
        (records.regression_spec(8), "texts and numbers", "run_classifier.py"),
        (
            records.window_spec(records.classifier_spec(8)),
            "windows of texts, and classes",
            "--document_stride",
        ),
        (records.pretraining_spec(8, 3), "pre-training", "create_pretraining_data.py"),
    ],
)
def test_our_layouts_are_recognised(spec, kind, writer, tmp_path):
    report = inspect(write(tmp_path / "a", spec))
    assert list(report["layouts"]) == [kind]
    assert writer in inspection.WRITERS[kind]
    layout = report["layouts"][kind]
    assert layout["records"] == 5
    assert layout["features"] == [
        {
            "name": name,
            "kind": feature.dtype,
            "records": 5,
            "count": (feature.size, feature.size),
            "range": (1, 5 * feature.size),
        }
        for name, feature in sorted(spec.items())
    ]
    assert report["files"][0]["kinds"] == {kind: 5}


@pytest.mark.parametrize(
    ("name", "kind", "records", "label_range"),
    [
        ("classifier_mrpc/train.tf_record", inspection.CHOICES, 24, (0, 1)),
        ("squad_v1/eval.tf_record", "questions", 418, None),
        ("squad_v2/train.tf_record", "questions and answers", 554, None),
        ("pretraining/a.tfrecord", "pre-training", 22, None),
    ],
)
def test_files_of_the_original_are_recognised(name, kind, records, label_range, golden):
    report = inspect(golden / "tiny_tf1_runs" / name)
    assert report["layouts"][kind]["records"] == records
    assert len(report["layouts"]) == 1
    features = {f["name"]: f for f in report["layouts"][kind]["features"]}
    if label_range:
        assert features["label_ids"]["range"] == label_range


def test_files_of_the_first_versions_of_the_original(tmp_path):
    spec = records.classifier_spec(4)
    del spec["is_real_example"]
    report = inspect(write(tmp_path / "a", spec))
    assert list(report["layouts"]) == [inspection.CHOICES]


def test_other_records_are_measured(tmp_path):
    with tf.io.TFRecordWriter(str(tmp_path / "a")) as writer:
        for text in (b"one", b"three"):
            example = tf.train.Example()
            example.features.feature["text"].bytes_list.value.extend([text, b""])
            writer.write(example.SerializeToString())
        example = tf.train.Example()
        example.features.feature["rates"].float_list.value.extend([-2.5, 1, 0.25])
        writer.write(example.SerializeToString())
        writer.write(b"no example")
    report = inspect(tmp_path / "a")
    layout = report["layouts"][inspection.UNKNOWN]
    assert layout["records"] == 4
    assert layout["features"] == [
        {
            "name": "rates",
            "kind": "float32",
            "records": 1,
            "count": (3, 3),
            "range": (-2.5, 1.0),
        },
        {
            "name": "text",
            "kind": "bytes",
            "records": 2,
            "count": (2, 2),
            "range": (0, 5),
        },
    ]
    first = f"{tmp_path}/a, record 1"
    assert report["faults"] == {"layout": {"records": 4, "first": first}}
    assert report["pretraining"] is None


def test_records_of_several_kinds_are_kept_apart(tmp_path):
    squad = write(tmp_path / "squad", records.squad_spec(8, True), 3)
    pretraining = pretraining_records.write(tmp_path / "pretraining")
    mixed = tmp_path / "mixed"
    mixed.write_bytes(squad.read_bytes() + pathlib.Path(pretraining).read_bytes())
    report = inspect(squad, mixed)
    counts = {kind: layout["records"] for kind, layout in report["layouts"].items()}
    assert counts == {"questions and answers": 6, "pre-training": 64}
    assert report["files"][1]["kinds"] == {
        "questions and answers": 3,
        "pre-training": 64,
    }
    assert report["pretraining"]["records"] == 64
    features = report["layouts"]["pre-training"]["features"]
    ranges = {feature["name"]: feature["range"] for feature in features}
    data = pretraining_records.make()
    for name, values in data.items():
        assert ranges[name] == (values.min(), values.max())
    assert report["pretraining"] == inspect(pretraining)["pretraining"]


def test_records_of_several_lengths_are_all_counted(tmp_path):
    short = pretraining_records.make(40)
    long = pretraining_records.make(30, 40, 6)
    paths = [
        pretraining_records.write(tmp_path / name, data)
        for name, data in (("short", short), ("long", long))
    ]
    both = tmp_path / "both"
    both.write_bytes(b"".join(pathlib.Path(path).read_bytes() for path in paths))
    report = inspect(both)
    found = report["pretraining"]
    assert found["records"] == 70
    tokens = short["input_mask"].sum() + long["input_mask"].sum()
    assert found["lengths"]["mean"] == pytest.approx(tokens / 70)
    assert found["padding_share"] == pytest.approx(1 - tokens / (40 * 24 + 30 * 40))
    counts = {
        f["name"]: f["count"] for f in report["layouts"]["pre-training"]["features"]
    }
    assert counts["input_ids"] == (24, 40)
    assert counts["masked_lm_weights"] == (4, 6)


def test_a_record_whose_features_do_not_fit_together_is_a_fault(tmp_path):
    data = pretraining_records.make(40)
    spec = records.pretraining_spec(24, 4)
    spec["input_mask"] = records.Feature(20)
    data["input_mask"] = data["input_mask"][:, :20]
    records.write(str(tmp_path / "b"), data, spec)
    good = pretraining_records.write(tmp_path / "a")
    report = inspect(good, tmp_path / "b")
    first = f"{tmp_path}/b, record 1"
    assert report["faults"]["features"] == {"records": 40, "first": first}
    assert report["pretraining"] == inspect(good)["pretraining"]
    assert inspect(tmp_path / "b")["pretraining"] is None


def test_a_fault_of_ours_is_not_taken_for_damage(tmp_path, monkeypatch):
    path = pretraining_records.write(tmp_path / "a")

    def fail(_):
        raise ValueError("a fault of ours")

    monkeypatch.setattr("data.record_decoding.decode", fail)
    with pytest.raises(ValueError, match="a fault of ours"):
        inspect(path)


def test_what_is_before_damage_is_counted(tmp_path):
    path = pathlib.Path(pretraining_records.write(tmp_path / "a"))
    whole = inspect(path)
    assert whole["files"][0]["damage"] is None
    content = path.read_bytes()
    path.write_bytes(content[:-5])
    other = pretraining_records.write(tmp_path / "b")
    report = inspect(path, other)
    assert "damaged or cut off after 63 records" in report["files"][0]["damage"]
    assert [file["records"] for file in report["files"]] == [63, 64]
    assert report["pretraining"]["records"] == 127
    zipped = tmp_path / "a.gz"
    zipped.write_bytes(gzip.compress(content))
    assert inspect(zipped)["pretraining"] == whole["pretraining"]
