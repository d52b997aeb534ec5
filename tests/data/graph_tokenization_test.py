"""The tokenizer in the graph against the one in Python, text by text."""

import json
import random

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import plain_tokenizer
from data import graph_tokenization, tokenization

SPECIALS = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
CLS, SEP = 101, 102
BOTH_CASES = pytest.mark.parametrize("lower", [True, False], ids=["uncased", "cased"])
TEXT = [tf.TensorSpec([None], tf.string)]


@pytest.fixture(scope="module")
def vocab_file(golden):
    return golden.parents[1] / "sample_data" / "vocab.txt"


@pytest.fixture(scope="module")
def graph_tokenizers(vocab_file):
    """A GraphTokenizer for each do_lower_case."""
    return {
        lower: graph_tokenization.GraphTokenizer(vocab_file, lower)
        for lower in (True, False)
    }


def in_graph(function):
    """`function` of texts, run as a graph, with lists for tensors."""
    traced = tf.function(function, input_signature=TEXT)
    return lambda texts: traced(tf.constant(texts, tf.string)).to_list()


def assert_same_ids(graph_tokenizer, tokenizer, texts):
    got = in_graph(graph_tokenizer)([text.encode() for text in texts])
    for text, ids in zip(texts, got, strict=True):
        assert ids == tokenizer.encode(text), ascii(text)


def assert_same_words(graph_tokenizer, texts):
    tokenizer = tokenization.BasicTokenizer(graph_tokenizer.do_lower_case)
    got = in_graph(graph_tokenizer.words)([text.encode() for text in texts])
    for text, words in zip(texts, got, strict=True):
        expected = [word.encode() for word in tokenizer.tokenize(text)]
        assert words == expected, ascii(text)


def odd_texts(num_texts, seed):
    rng = random.Random(seed)
    return [plain_tokenizer.odd_text(rng) for _ in range(num_texts)]


@BOTH_CASES
def test_golden_ids(golden, graph_tokenizers, lower):
    lines = (golden / "tokenization.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["lower"] == lower]
    got = in_graph(graph_tokenizers[lower])([row["text"] for row in rows])
    assert len(rows) == 334
    for row, ids in zip(rows, got, strict=True):
        assert ids == row["ids"], ascii(row["text"])


@BOTH_CASES
def test_golden_words(golden, graph_tokenizers, lower):
    path = golden / "basic_tokenization.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["lower"] == lower]
    got = in_graph(graph_tokenizers[lower].words)([row["text"] for row in rows])
    for row, words in zip(rows, got, strict=True):
        assert [word.decode() for word in words] == row["basic"]


@BOTH_CASES
def test_odd_texts(vocab_file, graph_tokenizers, lower):
    texts = odd_texts(3000, seed=1)
    assert_same_words(graph_tokenizers[lower], texts)
    tokenizer = tokenization.FullTokenizer(vocab_file, lower)
    assert_same_ids(graph_tokenizers[lower], tokenizer, texts)


@pytest.mark.slow
@BOTH_CASES
def test_a_hundred_thousand_odd_texts(vocab_file, graph_tokenizers, tmp_path, lower):
    texts = odd_texts(100_000, seed=2)
    assert_same_words(graph_tokenizers[lower], texts)
    tokenizer = tokenization.FullTokenizer(vocab_file, lower)
    assert_same_ids(graph_tokenizers[lower], tokenizer, texts)
    # The same with pieces for most characters, since [UNK] hides what was in a word.
    basic = tokenization.BasicTokenizer(lower)
    chars = {char for text in texts for word in basic.tokenize(text) for char in word}
    chars -= set(random.Random(3).sample(sorted(chars), len(chars) // 50))
    path = tmp_path / "vocab.txt"
    pieces = [piece for char in sorted(chars) for piece in (char, f"##{char}")]
    path.write_text(SPECIALS + "\n".join(pieces), encoding="utf-8")
    tokenizer = tokenization.FullTokenizer(path, lower)
    graph_tokenizer = graph_tokenization.GraphTokenizer(path, lower)
    assert_same_ids(graph_tokenizer, tokenizer, texts)


def in_contexts(char):
    """`char` alone, in a word, and at all places that a sigma may look at."""
    return f"{char} a{char}b A{char}Σ {char}Σ AΣ{char}A AΣ{char} Σ{char}Σ e\u0301{char}"


@BOTH_CASES
def test_code_points(graph_tokenizers, lower):
    chars = random.Random(4).sample(plain_tokenizer.ALL_CHARS[:0x3400], 4000)
    chars += random.Random(5).sample(plain_tokenizer.ALL_CHARS, 4000)
    assert_same_words(graph_tokenizers[lower], list(map(in_contexts, chars)))


@pytest.mark.slow
@BOTH_CASES
def test_every_code_point(graph_tokenizers, lower):
    chars = plain_tokenizer.ALL_CHARS
    assert len(chars) == 0x110000 - 0x800
    for start in range(0, len(chars), 100_000):
        texts = list(map(in_contexts, chars[start : start + 100_000]))
        assert_same_words(graph_tokenizers[lower], texts)


@pytest.mark.parametrize(
    "alphabet",
    [
        # Sigmas, and what is cased, passed over, dropped or an end beside one.
        "ΣΣΣΑαa. -'\u0301\u0345\u00ad\0\u200b\x85\u2028中’·",
        # Marks of several classes that stay, some that go, and bases.
        "\u302e\u1b44\ua953\U0001d165\U0001d16d\u0f73\u0301\u0315\U0001d15ea ",
    ],
    ids=["sigma", "marks"],
)
def test_what_depends_on_neighbours(graph_tokenizers, alphabet):
    rng = random.Random(6)
    texts = ["".join(rng.choices(alphabet, k=rng.randint(0, 9))) for _ in range(20_000)]
    assert_same_words(graph_tokenizers[True], texts)


def test_texts_of_a_batch_do_not_touch(graph_tokenizers):
    texts = ["ΑΣ", "Α", "", "Σ", "ΑΣ", "\u302e", "\u1b44", "a\u302e", "\u1b44"]
    assert_same_words(graph_tokenizers[True], texts)


@BOTH_CASES
def test_words_around_the_limit(vocab_file, graph_tokenizers, lower):
    texts = [
        char * length
        for char in ("a", "é", "e\u0301", "가", "😀", "\u302e", "ﬁ")
        for length in range(195, 206)
    ]
    tokenizer = tokenization.FullTokenizer(vocab_file, lower)
    assert_same_ids(graph_tokenizers[lower], tokenizer, texts)


def test_bytes_that_are_not_utf8_are_left_out(vocab_file, graph_tokenizers):
    rng = random.Random(8)
    leads = [0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xE0, 0xED, 0xF0, 0xF4]
    parts = [bytes([byte]) for byte in [*leads, *range(0xF5, 0x100)]]
    parts += [bytes([byte]) for byte in range(0x20, 0x7F)]
    parts += ["é中😀".encode()[:end] for end in range(10)]
    texts = [b"".join(rng.choices(parts, k=rng.randint(0, 9))) for _ in range(20_000)]
    tokenizer = tokenization.FullTokenizer(vocab_file)
    got = in_graph(graph_tokenizers[True])(texts)
    for text, ids in zip(texts, got, strict=True):
        assert ids == tokenizer.encode(text), text


def test_blank_and_colliding_lines_keep_the_ids(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text(SPECIALS + "a\n\n##b\na \n##\n \n##c\n", encoding="utf-8")
    tokenizer = tokenization.FullTokenizer(path)
    assert tokenizer.encode("abc a") == [8, 7, 11, 8]
    graph_tokenizer = graph_tokenization.GraphTokenizer(path)
    assert_same_ids(graph_tokenizer, tokenizer, ["abc a", "ab#", "d", ""])


@pytest.mark.parametrize("name", ["cased", "chinese"])
def test_other_vocabularies(shared, name):
    path = shared / "data" / "vocab" / f"bert-base-{name}" / "vocab.txt"
    lower = name != "cased"
    tokenizer = tokenization.FullTokenizer(path, lower)
    graph_tokenizer = graph_tokenization.GraphTokenizer(path, lower)
    texts = ["使用语言模型来预测下一个词的probability。", "The Cased model's café"]
    assert_same_ids(graph_tokenizer, tokenizer, texts + odd_texts(1000, seed=9))


def packed_one_by_one(ids_a, ids_b, max_seq_length):
    """A row as the original makes it: tokens popped until they fit."""
    ids_a, ids_b = list(ids_a), list(ids_b)
    if ids_b:
        while len(ids_a) + len(ids_b) > max_seq_length - 3:
            (ids_a if len(ids_a) > len(ids_b) else ids_b).pop()
    row = [CLS, *ids_a[: max_seq_length - 2], SEP]
    segments = [0] * len(row)
    if ids_b:
        row += [*ids_b, SEP]
        segments += [1] * (len(ids_b) + 1)
    return row, segments


def random_ids(rng, num_texts):
    rows = [[rng.randrange(1000, 2000)] * rng.randint(0, 12) for _ in range(num_texts)]
    return rows, tf.ragged.constant(rows, tf.int32, ragged_rank=1)


@pytest.mark.parametrize("is_pair", [True, False])
def test_pack_equals_popping_one_by_one(graph_tokenizers, is_pair):
    rng = random.Random(10)
    pack = tf.function(graph_tokenizers[True].pack)
    for max_seq_length in range(3, 30):
        rows_a, ids_a = random_ids(rng, 40)
        rows_b, ids_b = random_ids(rng, 40) if is_pair else ([[]] * 40, None)
        batch = pack(ids_a, ids_b, tf.constant(max_seq_length))
        expected = [
            packed_one_by_one(a, b, max_seq_length)
            for a, b in zip(rows_a, rows_b, strict=True)
        ]
        longest = max(len(row) for row, _ in expected)
        assert longest <= max_seq_length
        for i, (row, segments) in enumerate(expected):
            padding = [0] * (longest - len(row))
            np.testing.assert_array_equal(batch["input_ids"][i], row + padding)
            np.testing.assert_array_equal(batch["segment_ids"][i], segments + padding)
            mask = [1] * len(row) + padding
            np.testing.assert_array_equal(batch["input_mask"][i], mask)
        assert {tensor.dtype for tensor in batch.values()} == {tf.int32}


def test_pack_refuses_a_length_without_room(graph_tokenizers):
    with pytest.raises(ValueError, match="at least 3, .*got 2"):
        graph_tokenizers[True].pack(tf.ragged.constant([[1]], tf.int32), None, 2)


class Packer(tf.Module):
    """What an exported model does with its texts."""

    def __init__(self, tokenizer):
        super().__init__()
        self.tokenizer = tokenizer

    @tf.function(input_signature=[*TEXT, *TEXT])
    def pair(self, text, text_pair):
        ids = self.tokenizer(text), self.tokenizer(text_pair)
        return self.tokenizer.pack(*ids, 16)

    @tf.function(input_signature=TEXT)
    def single(self, text):
        return self.tokenizer.pack(self.tokenizer(text), None, 16)


def test_saved_model_gives_the_same(vocab_file, graph_tokenizers, tmp_path):
    packer = Packer(graph_tokenizers[True])
    signatures = {"pair": packer.pair, "single": packer.single}
    tf.saved_model.save(packer, str(tmp_path / "saved"), signatures=signatures)
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    texts = ["Ὀδυσσεύς ΣΑΣ", "", "unaffable, I say " * 5]
    pairs = ["naïve", "한국어 中文", ""]
    tokenizer = tokenization.FullTokenizer(vocab_file)
    batch = loaded.signatures["pair"](
        text=tf.constant(texts), text_pair=tf.constant(pairs)
    )
    for i, (text, pair) in enumerate(zip(texts, pairs, strict=True)):
        ids = tokenizer.encode(text), tokenizer.encode(pair)
        row, segments = packed_one_by_one(*ids, 16)
        np.testing.assert_array_equal(batch["input_ids"][i][: len(row)], row)
        np.testing.assert_array_equal(batch["segment_ids"][i][: len(row)], segments)
        assert tf.reduce_sum(batch["input_mask"][i]) == len(row)
    assert loaded.single(tf.constant(["a", "a b"]))["input_ids"].shape == [2, 4]
    assert loaded.single(tf.constant([], tf.string))["input_ids"].shape[0] == 0


def test_only_wordpiece_comes_from_outside_tensorflow(graph_tokenizers):
    packer = Packer(graph_tokenizers[True])
    graph = packer.pair.get_concrete_function().graph.as_graph_def()
    own = {function.signature.name for function in graph.library.function}
    nodes = [node for function in graph.library.function for node in function.node_def]
    ops = {node.op for node in [*graph.node, *nodes]} - own
    foreign = {op for op in ops if not hasattr(tf.raw_ops, op)}
    assert foreign == {"FastWordpieceTokenizeWithOffsets"}
    assert "StringLower" not in ops  # It has ICU's Unicode version, not Python's.
