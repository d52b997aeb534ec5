"""Texts and pairs on their way to a model; saved: tests/export_saved_model_test.py."""

import types

import numpy as np
import pytest
import tensorflow as tf

from data import tokenization
from serving import saved_model, text_pairs
from tests import exports


class Reader(text_pairs.TextPairServer):
    """Gives what a model would be given, in numbers that it cannot but keep."""

    METHODS = {"examples": saved_model.CLASSIFY}
    SIGNATURES = (*text_pairs.TextPairServer.SIGNATURES, "examples")

    def run(self, batch):
        numbers = sum(
            tf.cast(ids, tf.float32) * factor
            for ids, factor in zip(batch.values(), (1 / 128, 1.0, 2.0), strict=True)
        )
        missing = [[0, 0], [0, self.max_seq_length - tf.shape(numbers)[1]]]
        return {"numbers": tf.pad(numbers, missing)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def examples(self, inputs):
        return self._of_examples(inputs)

    def _differences_of_examples(self, actual, results):
        yield float(np.max(np.abs(actual["numbers"] - results["numbers"])))


# What the comparison needs of a model.
CONFIG = types.SimpleNamespace(vocab_size=100, type_vocab_size=2)
MODEL = types.SimpleNamespace(config=CONFIG)


@pytest.fixture(scope="module")
def vocab_file(golden):
    return str(golden / "tiny_tf1/vocab.txt")


@pytest.fixture(scope="module")
def server(vocab_file):
    return Reader(MODEL, vocab_file, True, 12)


def expected(tokenizer, first, second=()):
    """The numbers of a text or a pair that is not cut."""
    cls, sep = tokenizer.vocab["[CLS]"], tokenizer.vocab["[SEP]"]
    ids = [cls, *first, sep]
    numbers = [i / 128 + 1 for i in ids]
    if second:
        numbers += [i / 128 + 3 for i in (*second, sep)]
    return numbers + [0] * (12 - len(numbers))


def test_texts_pairs_and_ids_reach_the_model(server, vocab_file):
    tokenizer = tokenization.FullTokenizer(vocab_file)
    first, second = "the word", "of"
    ids_a, ids_b = tokenizer.encode(first), tokenizer.encode(second)
    assert ids_a and ids_b and len(ids_a) + len(ids_b) <= 9
    alone, both = expected(tokenizer, ids_a), expected(tokenizer, ids_a, ids_b)
    outputs = server.serving_default(tf.constant([first]))
    assert outputs["numbers"].numpy().tolist() == [alone]
    outputs = server.pair(tf.constant([first] * 2), tf.constant([second, ""]))
    assert outputs["numbers"].numpy().tolist() == [both, alone]
    ones = tf.ones([1, 3], tf.int32)
    outputs = server.ids(7 * ones, ones, 0 * ones)
    assert outputs["numbers"].numpy().tolist() == [[7 / 128 + 1] * 3 + [0] * 9]


def test_the_comparison_sees_another_tokenizer_and_length(server, vocab_file):
    assert max(server.differences(exports.signatures(server))) == 0
    cased = Reader(MODEL, vocab_file, False, 12)
    assert max(server.differences(exports.signatures(cased))) > 0
    shorter = exports.signatures(Reader(MODEL, vocab_file, True, 11))
    with pytest.raises(ValueError, match=r"shape \[1, 11\] where .* \[1, 12\]"):
        list(server.differences(shorter))


def test_the_comparison_sees_every_signature(server):
    assert exports.uncompared(server) == []
