"""What is written in other formats, what is measured, and what is refused."""

import json
import os
import re
import shutil
import sys

import numpy as np
import pytest
import tensorflow as tf

import exporting
import formats
from modeling import checkpoint, models
from modeling import config as config_lib
from serving import sentence_vectors
from tests import exports, scripts, small_models


def test_formats_that_there_are_not():
    formats.check([])
    formats.check(["litert", "weights"])
    with pytest.raises(ValueError, match=r"--formats has 'tflite'; .*: litert, .*wei"):
        formats.check(["litert", "tflite"])


@pytest.mark.parametrize("package", ["onnx", "onnxruntime", "tf2onnx"])
def test_packages_that_are_not_installed(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    formats.check(["litert", "hugging_face"])
    for name in ("onnx", "onnx_int8"):
        with pytest.raises(ValueError, match=rf"{package}.*pip install -r req.*-forma"):
            formats.check([name])


def sample(values):
    return [({}, {"logits": tf.constant(values)})]


def test_what_is_measured():
    values = [[1.0, -20.0, 3.0], [0.5, 0.25, 0.0]]
    answer = np.array([[1.0, -20.02, 3.0], [0.5, 0.75, 0.0]], np.float32)
    measured = formats.compare(lambda _: {"logits": answer}, sample(values))
    assert measured == {
        "largest_difference": 0.5,
        "share_of_largest": pytest.approx(0.5 / 20),
        "agreement": 0.5,
        "compared": "2 rows of logits",
    }
    answer[1, 1] = 0.25  # 0.02 is relative to 20
    measured = formats.compare(lambda _: {"logits": answer}, sample(values))
    assert measured["largest_difference"] == pytest.approx(0.001, rel=1e-4)
    assert measured["agreement"] == 1
    answer[1, 2] = np.nan
    measured = formats.compare(lambda _: {"logits": answer}, sample(values))
    assert np.isnan(measured["largest_difference"])
    with pytest.raises(ValueError, match="shape"):
        formats.compare(lambda _: {"logits": answer[:, :1]}, sample(values))
    one_column = formats.compare(lambda _: {"logits": answer[:1, :1]}, sample([[1.0]]))
    assert "agreement" not in one_column
    vectors = [
        ({"input_ids": tf.constant([[0]])}, {"vectors": tf.constant([[3.0, 4]])})
    ]
    measured = formats.compare(lambda _: {"vectors": np.array([[8, 6.0]])}, vectors)
    assert measured["agreement"] == pytest.approx(48 / 50)
    assert measured["compared"] == "1 vectors"


@pytest.fixture
def server(tmp_path):
    config = small_models.config()
    model = models.BertModel(config)
    rng = np.random.default_rng(1)
    for variable in model.weights:
        variable.assign(rng.normal(size=variable.shape))
    vocab = exports.write_vocab(tmp_path, config.vocab_size)
    pool = sentence_vectors.pooled([-1], "mean")
    return sentence_vectors.SentenceVectors(model, vocab, True, 16, pool)


@pytest.mark.parametrize(
    "name, factor, sentence",
    [
        (
            "litert",
            1 + 3e-5,
            "litert differs from the model by 3e-05 in a logit, at mo",
        ),
        ("litert", float("nan"), "litert differs from the model by nan in a logit"),
        ("litert_int8", 1.3, "litert_int8 differs .* 0.3 of the largest logit, at mos"),
        ("onnx_int8", float("nan"), "onnx_int8 differs from the model by nan of the"),
    ],
)
def test_a_difference_is_refused(monkeypatch, tmp_path, server, name, factor, sentence):
    def write_to(number):
        folder = tmp_path / number
        folder.mkdir()
        return formats.write(server, str(folder), [name], None, exporting.TOLERANCE)

    def use(factor):
        def run(batch):
            outputs = server.numbers({key: tf.constant(v) for key, v in batch.items()})
            return {key: factor * value.numpy() for key, value in outputs.items()}

        fake = formats.Format("file", lambda _, p: open(p, "w").close(), lambda _: run)
        monkeypatch.setitem(formats.RUNTIMES, name, fake)

    use(factor)
    with pytest.raises(ValueError, match=sentence):
        write_to("1")
    use(1 if np.isnan(factor) else 1 + (factor - 1) / 10)
    assert write_to("2")[name]["path"] == "formats/file"


def run_folder(folder, golden):
    """One of run_classifier.py, of the original's trained weights; returns both."""
    original = golden / "tiny_tf1_runs/classifier_mrpc"
    config = config_lib.BertConfig.from_json_file(golden / "tiny_tf1/bert_config.json")
    run = folder / "run"
    run.mkdir()
    shutil.copy(golden / "tiny_tf1/vocab.txt", run)
    identity = {"script": "run_classifier", "config": config.to_dict()}
    identity |= {"labels": ["no", "yes"], "label_type": "class", "do_lower_case": True}
    (run / "model.json").write_text(json.dumps(identity))
    (run / "labels.json").write_text(json.dumps(identity["labels"]))
    settings = {"max_seq_length": 48, "init_checkpoint": str(original)}
    (run / "settings.json").write_text(json.dumps(settings))
    return run, original


def test_weights_of_a_run_without_the_optimizers(golden, tmp_path):
    run, original = run_folder(tmp_path, golden)
    path = exporting.export(run, tmp_path / "e", ["weights", "hugging_face"])
    expected = small_models.read_checkpoint(original / "model.ckpt-12")
    folder = tmp_path / "e/1/formats"
    assert path == str(folder.parent)
    assert any("adam_m" in name for name in checkpoint.read(original, with_slots=True))
    for name in ("weights", "hugging_face"):
        found = checkpoint.read(folder / name, with_slots=True)
        assert found.keys() == expected.keys()
        for key, array in expected.items():
            np.testing.assert_array_equal(found[key], array, strict=True)
        vocab = (golden / "tiny_tf1/vocab.txt").read_bytes()
        assert (folder / name / "vocab.txt").read_bytes() == vocab
    assert json.loads((folder / "weights/labels.json").read_text()) == ["no", "yes"]
    config = json.loads((folder / "hugging_face/config.json").read_text())
    assert config["id2label"] == {"0": "no", "1": "yes"}
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert config["problem_type"] == "single_label_classification"
    results = json.loads((folder / "formats.json").read_text())
    assert list(results) == ["hugging_face", "weights"]
    sizes = [p.stat().st_size for p in (folder / "weights").iterdir()]
    assert results["weights"]["bytes"] == sum(sizes) < 110_000  # with slots 3 times it
    card = (folder.parent / "model_card.md").read_text()
    assert re.search(
        r"\| weights \| formats/weights, \d+,\d+ bytes, largest difference 0 \|", card
    )


@pytest.mark.slow
@pytest.mark.parametrize("head", ["masked_words", "sentence_vectors"])
def test_all_formats_of_a_head(golden, tmp_path, head):
    pytest.importorskip("onnxruntime", reason="needs requirements-formats.txt")
    shown = scripts.succeed(
        "export_saved_model.py",
        init_checkpoint=golden / "tiny_tf1",
        head=head,
        max_seq_length=32,
        export_dir=tmp_path / "e",
        formats="weights,hugging_face,onnx_int8,onnx,litert_int8,litert",
    )
    folder = tmp_path / "e/1/formats"
    results = json.loads((folder / "formats.json").read_text())
    assert tuple(results) == formats.NAMES
    for name, result in results.items():
        path = tmp_path / "e/1" / result["path"]
        files = list(path.iterdir()) if path.is_dir() else [path]
        assert result["bytes"] == sum(file.stat().st_size for file in files)
        assert f"{result['path']}, {result['bytes']:,} bytes, largest diff" in shown
        limit = 0.2 if "int8" in name else 1e-5
        assert 0 <= result["largest_difference"] < limit
        if name in formats.RUNTIMES:
            assert result["agreement"] > (0.9 if "int8" in name else 0.99999)
            assert f"{result['agreement']:.2%} of {result['compared']}" in shown
    assert len(os.listdir(folder)) == 7
    # Nothing that no answer depends on, which may be random.
    names = checkpoint.read(folder / "weights").keys()
    assert not [n for n in names if "pooler" in n or "seq_relationship" in n]
    config = json.loads((folder / "hugging_face/config.json").read_text())
    architecture = "BertForMaskedLM" if head == "masked_words" else "BertModel"
    assert config["architectures"] == [architecture]


@pytest.mark.slow
def test_an_unknown_format_is_refused_before_anything_is_written(golden, tmp_path):
    sentence = scripts.refusal(
        "export_saved_model.py",
        init_checkpoint=golden / "tiny_tf1",
        head="masked_words",
        export_dir=tmp_path / "out",
        formats="onnx,coreml",
    )
    assert sentence.startswith("--formats has 'coreml'; those that there are: litert,")
    assert not (tmp_path / "out").exists()
