"""Words for masks: ids as of another library, scores as of transformers."""

import random

import numpy as np
import pytest
import tensorflow as tf
import tokenizers

from data import tokenization
from modeling import checkpoint, models
from serving import masked_words
from tests import exports, small_models

TEXTS = [
    "[MASK]",
    "",
    "no mask, [mask] [ MASK ] [MASK",
    "the [MASK] of [MASK].",
    "un[MASK]able [MASK][MASK]s",
    "É[MASK]ß, 東[MASK]京 [[MASK]]",
    "[MASK] " * 30,
    "word " * 30 + "[MASK]",
]


@pytest.fixture(scope="module")
def vocab_file(golden):
    return str(golden / "tiny_tf1/vocab.txt")


@pytest.fixture(scope="module")
def model(vocab_file):
    # More entries than the vocabulary has, as in some released models.
    entries = len(tokenization.load_vocab(vocab_file))
    config = small_models.config(vocab_size=entries + 3, max_position_embeddings=24)
    model = models.BertForPretraining(config)
    small_models.randomize(model, 4)
    return model


@pytest.fixture(scope="module")
def server(model, vocab_file):
    return masked_words.MaskedWords(model, vocab_file, True, 24, 4)


def encode(vocab_file, text):
    """(ids, where the masks are), cut after 24 tokens, by the tokenizers library."""
    tokenizer = tokenizers.BertWordPieceTokenizer(vocab_file, lowercase=True)
    tokenizer.enable_truncation(24)
    encoding = tokenizer.encode(text)
    places = [i for i, token in enumerate(encoding.tokens) if token == "[MASK]"]
    return encoding.ids, places


def random_text(rng):
    parts = [
        "[MASK]",
        "the",
        "Word",
        "é",
        "ß",
        " ",
        "##s",
        "[",
        "]",
        "東",
        "un",
        "MASK",
    ]
    return "".join(rng.choice(parts) for _ in range(rng.randrange(40)))


@pytest.mark.parametrize("seed", range(3))
def test_the_best_words_of_the_ids_of_another_library(server, model, vocab_file, seed):
    rng = random.Random(seed)
    texts = TEXTS + [random_text(rng) for _ in range(30)]
    rng.shuffle(texts)
    outputs = server.serving_default(tf.constant(texts))
    outputs = {name: values.numpy() for name, values in outputs.items()}
    inv_vocab = tokenization.FullTokenizer(vocab_file).inv_vocab
    most = 0
    for row, text in enumerate(texts):
        ids, places = encode(vocab_file, text)
        batch = {
            "input_ids": tf.constant([ids]),
            "input_mask": tf.ones([1, len(ids)], tf.int32),
            "segment_ids": tf.zeros([1, len(ids)], tf.int32),
        }
        logits = model(batch)["masked_lm_logits"][0].numpy().astype("f8")[places]
        best = np.argsort(-logits, axis=1)[:, :4]
        scores = np.take_along_axis(logits, best, 1)
        total = np.exp(logits).sum(1, keepdims=True)
        own = {name: values[row, : len(places)] for name, values in outputs.items()}
        np.testing.assert_array_equal(own["word_ids"], best)
        words = [[inv_vocab.get(i, "[UNK]").encode() for i in x] for x in best.tolist()]
        assert own["words"].tolist() == words
        np.testing.assert_allclose(own["logits"], scores, atol=1e-5)
        np.testing.assert_allclose(
            own["probabilities"], np.exp(scores) / total, atol=1e-5
        )
        rest = {name: values[row, len(places) :] for name, values in outputs.items()}
        assert set(rest.pop("words").flat) <= {b""}
        assert not any(values.any() for values in rest.values())
        most = max(most, len(places))
    assert {values.shape for values in outputs.values()} == {(len(texts), most, 4)}


@pytest.mark.parametrize("name", ["gelu", "gelu_new", "relu"])
def test_words_have_the_scores_of_transformers(golden, tmp_path, name):
    source = golden / f"hf_tiny/pretraining_{name}"
    config, expected = checkpoint.read_config(source), np.load(source / "expected.npz")
    model = models.BertForPretraining(config)
    checkpoint.load(model, source)
    # Whatever id is frequent in the golden batch stands for [MASK].
    ids = expected["input_ids"]
    is_real = expected["input_mask"] > 0
    mask_id = int(np.bincount(ids[is_real]).argmax())
    tokens = [f"word{i}" for i in range(config.vocab_size)]
    others = iter(i for i in range(config.vocab_size) if i != mask_id)
    for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]"):
        tokens[next(others)] = token
    tokens[mask_id] = "[MASK]"
    (tmp_path / "vocab.txt").write_text("\n".join(tokens) + "\n")
    length = ids.shape[1]
    vocab_file = str(tmp_path / "vocab.txt")
    server = masked_words.MaskedWords(model, vocab_file, True, length, 3)
    names = ("input_ids", "input_mask", "segment_ids")
    outputs = server.ids(*(tf.constant(expected[n], tf.int32) for n in names))
    found = 0
    for row in range(len(ids)):
        places = np.flatnonzero((ids[row] == mask_id) & is_real[row])
        logits = expected["prediction_logits"][row, places]
        best = np.argsort(-logits, axis=1)[:, :3]
        answer = outputs["logits"][row, : len(places)]
        np.testing.assert_allclose(
            answer, np.take_along_axis(logits, best, 1), atol=2e-5
        )
        words = outputs["words"][row, : len(places)].numpy().tolist()
        assert words == [[tokens[i].encode() for i in ids] for ids in best]
        found += len(places)
    assert found > 1


def test_no_text_no_word(server):
    for texts in ([], ["no mask"], ["", ""]):
        outputs = server.serving_default(tf.constant(texts, tf.string))
        assert {tuple(v.shape) for v in outputs.values()} == {(len(texts), 0, 4)}


def test_the_comparison_sees_another_model_and_tokenizer(server, model, vocab_file):
    assert max(server.differences(exports.signatures(server))) <= 1e-5
    other = models.BertForPretraining(model.config)
    small_models.randomize(other, 5)
    for arguments in (
        (other, vocab_file, True, 24, 4),
        (model, vocab_file, False, 24, 4),
    ):
        signatures = exports.signatures(masked_words.MaskedWords(*arguments))
        assert any(d > 1e-3 for d in server.differences(signatures))


def test_the_comparison_sees_wrong_words(server):
    signatures = exports.signatures(server)

    def other(**inputs):
        outputs = dict(signatures["serving_default"](**inputs))
        words = outputs["words"]
        return {**outputs, "words": tf.where(words == "", words, "other")}

    signatures = {**signatures, "serving_default": signatures["serving_default"]}
    found = server.differences({**signatures, "serving_default": other})
    assert np.isnan(list(found)).any()


@pytest.mark.slow
def test_the_comparison_sees_every_signature(server):
    assert exports.uncompared(server) == []
