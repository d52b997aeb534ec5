"""Other runtimes give the logits of transformers, for ids of any size."""

import numpy as np
import pytest

from data import features
from modeling import checkpoint, models, pooling
from serving import (
    classification,
    ids_model,
    masked_words,
    multiple_choice,
    question_answering,
    saved_model,
    sentence_vectors,
    tagging,
)
from tests import exports, small_models

pytest.importorskip("tf2onnx", reason="needs requirements-formats.txt")

RUNTIMES = {
    "litert": (ids_model.write_litert, ids_model.open_litert, "a.tflite"),
    "onnx": (ids_model.write_onnx, ids_model.open_onnx, "a.onnx"),
}


class Answers(saved_model.TextServer):
    """Of a model for question answering, without what finds spans."""

    run = question_answering.QuestionAnswering.run


def server_of(golden, folder, name):
    """A server with the weights of transformers' tiny model of that name."""
    source = golden / "hf_tiny" / name
    config = checkpoint.read_config(source)
    text = (exports.write_vocab(folder, config.vocab_size), True, 20)
    labels = {"classification": 3, "regression": 1, "token_classification": 5}
    names = [f"label {i}" for i in range(labels.get(name, 0))]
    if name == "question_answering":
        server = Answers(models.BertForQuestionAnswering(config), *text)
    elif name == "multiple_choice":
        model = models.BertForMultipleChoice(config)
        server = multiple_choice.TextChooser(model, *text)
    elif name == "token_classification":
        model = models.BertForTokenClassification(config, 5)
        server = tagging.WordTagger(model, names, *text)
    elif name in labels:
        model = models.BertForSequenceClassification(config, labels[name])
        server = classification.TextClassifier(model, names, *text)
    else:
        model = models.BertForPretraining(config)
        server = masked_words.MaskedWords(model, *text, top_k=2)
    checkpoint.load(server.model, source)
    return server


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    "name",
    [
        "classification",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in (
                "multiple_choice",
                "pretraining_gelu",
                "pretraining_gelu_new",
                "question_answering",
                "regression",
                "token_classification",
            )
        ),
    ],
)
def test_logits_of_transformers(golden, tmp_path, name, runtime):
    server = server_of(golden, tmp_path, name)
    write, open_, file = RUNTIMES[runtime]
    write(ids_model.IdsModel(server), str(tmp_path / file))
    run = open_(str(tmp_path / file))
    arrays = dict(np.load(golden / "hf_tiny" / name / "expected.npz"))
    shape = (2, 2, 20) if name == "multiple_choice" else (4, 20)
    batch = {
        key: arrays.pop(key).reshape(shape).astype(np.int32) for key in features.INPUTS
    }
    if name.startswith("pretraining"):
        arrays = {"logits": arrays["prediction_logits"]}
    # All, the last one with another, the last alone; the last without its padding.
    length = int(batch["input_mask"][-1].sum(-1).max())
    for first, size in ((0, 20), (-2, 20), (-1, 20), (-1, length)):
        actual = run({key: ids[first:, ..., :size] for key, ids in batch.items()})
        assert actual.keys() == arrays.keys()
        for key, values in arrays.items():
            expected = values[first:]
            if expected.shape[1:2] == (20,):  # of tokens
                expected = expected[:, :size]
            np.testing.assert_allclose(actual[key], expected, rtol=0, atol=2e-5)
    if runtime == "onnx":
        names_its_axes(str(tmp_path / file), batch["input_ids"].ndim)


def names_its_axes(path, rank):
    import onnx

    graph = onnx.load(path).graph
    assert [value.name for value in graph.input] == list(features.INPUTS)
    names = ["batch", "seq_length"] if rank == 2 else ["batch", "choices", "seq_length"]
    for value in graph.input:
        assert [size.dim_param for size in value.type.tensor_type.shape.dim] == names


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """A server of vectors with matrices that are large enough for 8 bits."""
    config = small_models.config(
        vocab_size=1000, hidden_size=96, intermediate_size=384, num_hidden_layers=1
    )
    model = models.BertModel(config)
    rng = np.random.default_rng(1)
    for variable in model.weights:
        variable.assign(rng.normal(size=variable.shape, scale=0.3))
    vocab = exports.write_vocab(tmp_path_factory.mktemp("vocab"), 1000)
    pool = sentence_vectors.pooled([0], "mean", is_normalized=True)
    return sentence_vectors.SentenceVectors(model, vocab, True, 16, pool)


@pytest.mark.slow
@pytest.mark.parametrize("pool", pooling.POOLINGS)
def test_vectors(vectors, tmp_path, pool):
    vectors._pool = sentence_vectors.pooled([0, -1], pool)
    batch = {
        "input_ids": np.array([[1, 2, 0, 0], [5, 6, 7, 0]], np.int32),
        "input_mask": np.array([[1, 1, 0, 0], [1, 1, 1, 0]], np.int32),
        "segment_ids": np.array([[0, 0, 0, 0], [0, 1, 1, 0]], np.int32),
    }
    outputs = vectors.model(batch)
    hidden = outputs["sequence_output"].numpy().astype(np.float64)
    rows = [hidden[0, :2], hidden[1, :3]]
    reduce = {
        "cls": lambda x: x[0],
        "mean": lambda x: x.mean(0),
        "max": lambda x: x.max(0),
    }[pool]
    expected = [np.tile(reduce(row), 2) for row in rows]
    for write, open_, file in RUNTIMES.values():
        write(ids_model.IdsModel(vectors), str(tmp_path / file))
        actual = open_(str(tmp_path / file))(batch)
        np.testing.assert_allclose(actual["vectors"], expected, rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_8_bits_take_a_quarter_of_32(vectors, tmp_path, runtime):
    _, open_, file = RUNTIMES[runtime]
    model = ids_model.IdsModel(vectors)
    write_int8 = getattr(ids_model, f"write_{runtime}_int8")
    source, path = tmp_path / file, tmp_path / file.replace(".", "_int8.")
    write_int8(model, str(path))  # alone
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    alone = path.read_bytes()
    RUNTIMES[runtime][0](model, str(source))
    write_int8(model, str(path))  # from the other
    assert abs(len(alone) - path.stat().st_size) < 200
    sizes = [p.stat().st_size for p in (source, path)]
    weights = sum(int(np.prod(v.shape)) for v in vectors.model.weights)
    assert sizes[0] > 4 * (weights - 96 * 96)  # the pooler is not in it
    assert sizes[0] / sizes[1] > 3
    batch = next(vectors.samples())
    actual = open_(str(path))({name: ids.numpy() for name, ids in batch.items()})
    expected = vectors.numbers(batch)["vectors"].numpy()
    assert 1e-5 < np.abs(actual["vectors"] - expected).max() < 0.05
