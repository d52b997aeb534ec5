"""What TensorFlow Serving is to warm up with is what the signatures take."""

import pytest
import tensorflow as tf

from serving import saved_model, warm_up

prediction_log_pb2 = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")


class Echo(saved_model.Server):
    """Gives what it takes."""

    SIGNATURES = ("serving_default", "words", "regress", "classify", "ids")
    METHODS = {"classify": saved_model.CLASSIFY, "regress": saved_model.REGRESS}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def serving_default(self, text):
        return {"text": text}

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, "context"),
            tf.TensorSpec([None, None], tf.string, "words"),
        ]
    )
    def words(self, context, words):
        return {"context": context, "words": words}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def classify(self, inputs):
        return {"classes": inputs}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def regress(self, inputs):
        return {"outputs": inputs}

    @tf.function(input_signature=saved_model.ids_signature(3))
    def ids(self, input_ids, input_mask, segment_ids):
        return {"ids": input_ids, "mask": input_mask, "segments": segment_ids}


@pytest.fixture(scope="module")
def replay(tmp_path_factory):
    """function (log) → (signature, outputs); and all logs in the file."""
    server, folder = Echo(), tmp_path_factory.mktemp("warm_up")

    def finish(path):
        signatures = tf.saved_model.load(path).signatures
        warm_up.write(path, "echo", signatures, server.METHODS)

    path = saved_model.save(server, str(folder), finish)
    signatures = tf.saved_model.load(path).signatures
    answers = {}
    for record in tf.data.TFRecordDataset(f"{path}/{warm_up.PATH}"):
        log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
        kind = log.WhichOneof("log_type")
        request = getattr(log, kind).request
        assert request.model_spec.name == "echo"
        name = request.model_spec.signature_name
        if kind == "predict_log":
            inputs = {k: tf.make_ndarray(v) for k, v in request.inputs.items()}
        else:
            examples = request.input.example_list.examples
            inputs = {"inputs": [e.SerializeToString() for e in examples]}
        inputs = {key: tf.constant(value) for key, value in inputs.items()}
        answers[name] = kind, signatures[name](**inputs)
    return answers


def test_there_is_a_request_for_each_signature(replay):
    assert {name: kind for name, (kind, _) in replay.items()} == {
        "serving_default": "predict_log",
        "words": "predict_log",
        "ids": "predict_log",
        "model_garden": "predict_log",
        "hugging_face": "predict_log",
        "classify": "classify_log",
        "regress": "regress_log",
    }


def test_the_requests_have_texts_and_ids_of_any_model(replay):
    text = replay["serving_default"][1]["text"].numpy().tolist()
    assert text == [warm_up._TEXT.encode()]
    words = replay["words"][1]
    assert words["context"].shape == [1] and words["words"].shape == [1, 2]
    for name in ("ids", "model_garden", "hugging_face"):
        outputs = replay[name][1]
        values = {key: set(v.numpy().flat) for key, v in outputs.items()}
        assert values == {"ids": {0}, "mask": {1}, "segments": {0}}
        assert outputs["ids"].shape == [1, 2, 3]
    for name, output in {"classify": "classes", "regress": "outputs"}.items():
        (example,) = replay[name][1][output].numpy()
        features = tf.train.Example.FromString(example).features.feature
        assert features["text"].bytes_list.value == text
