"""SavedModels are loaded and warmed up, or refused in one sentence."""

import shutil

import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from server import errors, signatures, versions


def predict_log(text, signature=""):
    log = prediction_log_pb2.PredictionLog()
    request = log.predict_log.request
    request.model_spec.name, request.model_spec.signature_name = "any", signature
    request.inputs["text"].CopyFrom(tf.make_tensor_proto([text]))
    return log


def example_logs():
    example = tf.train.Example()
    example.features.feature["text"].bytes_list.value.append(b"a")
    log = prediction_log_pb2.PredictionLog()
    log.classify_log.request.model_spec.signature_name = "label"
    log.classify_log.request.input.example_list.examples.append(example)
    yield log
    log = prediction_log_pb2.PredictionLog()
    log.regress_log.request.model_spec.signature_name = "score"
    log.regress_log.request.input.example_list.examples.append(example)
    yield log
    log = prediction_log_pb2.PredictionLog()
    request = log.multi_inference_log.request
    for name in ("label", "score"):
        request.tasks.add().model_spec.signature_name = name
    request.input.example_list.examples.append(example)
    yield log


def copy_with_warm_up(toy, path, logs):
    shutil.copytree(toy / "1", path)
    (path / "assets.extra").mkdir()
    file = path / "assets.extra/tf_serving_warmup_requests"
    with tf.io.TFRecordWriter(str(file)) as writer:
        for log in logs:
            writer.write(log.SerializeToString())
    return file


def load(path):
    return versions.Version("toy", 1, str(path))


def test_the_warm_up_file_is_replayed(toy, tmp_path, monkeypatch):
    ran = []
    run = signatures.Signature.run
    monkeypatch.setattr(
        signatures.Signature, "run", lambda s, i: ran.append(s.name) or run(s, i)
    )
    copy_with_warm_up(toy, tmp_path / "v", [predict_log("a"), *example_logs()])
    assert load(tmp_path / "v").num_warm_up_requests == 4
    assert ran == ["serving_default", "label", "score", "label", "score"]
    assert load(toy / "1").num_warm_up_requests == 0


def test_warm_up_files_that_cannot_be_replayed(toy, tmp_path):
    copy_with_warm_up(toy, tmp_path / "a", [predict_log("a"), predict_log("b", "no")])
    with pytest.raises(ValueError, match='request 2 of the warm-up fails.*"no"'):
        load(tmp_path / "a")
    file = copy_with_warm_up(toy, tmp_path / "b", [predict_log("a")])
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(ValueError, match="is damaged; export the model again"):
        load(tmp_path / "b")


def test_what_is_no_saved_model(toy, tmp_path):
    with pytest.raises(ValueError, match="cannot be loaded as a SavedModel"):
        load(tmp_path)
    shutil.copytree(toy / "1", tmp_path / "cut")
    data = (toy / "1/saved_model.pb").read_bytes()
    (tmp_path / "cut/saved_model.pb").write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match="cannot be loaded as a SavedModel"):
        load(tmp_path / "cut")
    (tmp_path / "cut/saved_model.pb").write_bytes(b"")
    with pytest.raises(ValueError, match="holds 0 graphs .*; copy or export it again"):
        load(tmp_path / "cut")
    tf.saved_model.save(tf.Module(), str(tmp_path / "empty"))
    with pytest.raises(ValueError, match="has no signatures"):
        load(tmp_path / "empty")


def test_signatures_by_name_and_method(toy):
    version = load(toy / "1")
    assert version.signature("").name == "serving_default"
    assert version.signature("label", signatures.CLASSIFY).name == "label"
    assert version.signature("label").name == "label"  # any may predict
    with pytest.raises(errors.RequestError, match='no signature "no"; it has'):
        version.signature("no")
    with pytest.raises(errors.RequestError, match="for tensorflow/serving/classify"):
        version.signature("label", signatures.REGRESS)


def test_users_are_counted(toy):
    version = load(toy / "1")
    with version.in_use(), version.in_use():
        assert version.num_users == 2
    with pytest.raises(KeyError), version.in_use():
        raise KeyError
    assert version.num_users == 0
