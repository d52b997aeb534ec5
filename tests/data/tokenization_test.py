"""The tokenizer against the original's outputs, a plain one of ours and another's."""

import json
import pickle
import random
import statistics
import time

import hypothesis
import pytest
from hypothesis import strategies

from benchmarks import plain_tokenizer
from data import tokenization

SPECIALS = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
BOTH_CASES = pytest.mark.parametrize("lower", [True, False], ids=["uncased", "cased"])
TEXTS = strategies.one_of(
    strategies.text(max_size=60),
    strategies.integers().map(lambda n: plain_tokenizer.odd_text(random.Random(n))),
)


@pytest.fixture(scope="module")
def vocab_file(golden):
    return golden.parents[1] / "sample_data" / "vocab.txt"


@pytest.fixture(scope="module")
def tokenizers(vocab_file):
    """A tokenizer for each do_lower_case."""
    return {
        lower: tokenization.FullTokenizer(vocab_file, lower) for lower in (True, False)
    }


@pytest.fixture(scope="module")
def prose(golden):
    corpus = golden.parents[1] / "sample_data" / "corpus.txt"
    return corpus.read_text(encoding="utf-8").split("\n")


@pytest.fixture
def write_vocab(tmp_path):
    def write(content):
        path = tmp_path / "vocab.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def rows(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_golden_tokens_and_ids(golden, tokenizers):
    for row in rows(golden / "tokenization.jsonl"):
        tokenizer = tokenizers[row["lower"]]
        assert tokenizer.tokenize(row["text"]) == row["tokens"]
        assert tokenizer.encode(row["text"]) == row["ids"]
        assert tokenizer.convert_tokens_to_ids(row["tokens"]) == row["ids"]
        assert tokenizer.convert_ids_to_tokens(row["ids"]) == row["tokens"]


def test_golden_words(golden):
    for row in rows(golden / "basic_tokenization.jsonl"):
        tokenizer = tokenization.BasicTokenizer(do_lower_case=row["lower"])
        assert tokenizer.tokenize(row["text"]) == row["basic"]


@BOTH_CASES
def test_odd_texts_equal_the_plain_tokenizer(tokenizers, lower):
    tokenizer, rng = tokenizers[lower], random.Random(7)
    for _ in range(5000):
        text = plain_tokenizer.odd_text(rng)
        words = tokenizer.basic_tokenizer.tokenize(text)
        assert words == plain_tokenizer.words(text, lower), ascii(text)
        tokens = plain_tokenizer.tokenize(text, tokenizer.vocab, lower)
        assert tokenizer.tokenize(text) == tokens, ascii(text)


@BOTH_CASES
def test_prose_equals_hugging_face(tokenizers, vocab_file, prose, lower):
    other = hugging_face(vocab_file, lower)
    expected = other.encode_batch(prose, add_special_tokens=False)
    for line, encoding in zip(prose, expected, strict=True):
        assert tokenizers[lower].encode(line) == encoding.ids
        assert tokenizers[lower].tokenize(line) == encoding.tokens


def hugging_face(vocab_file, lower):
    tokenizers = pytest.importorskip("tokenizers")
    return tokenizers.BertWordPieceTokenizer(str(vocab_file), lowercase=lower)


@hypothesis.given(TEXTS, strategies.booleans())
@hypothesis.settings(deadline=None)
def test_ids_are_the_ids_of_the_tokens(tokenizers, text, lower):
    tokenizer = tokenizers[lower]
    tokens = tokenizer.tokenize(text)
    assert tokenizer.convert_tokens_to_ids(tokens) == tokenizer.encode(text)


@hypothesis.given(TEXTS, strategies.booleans())
@hypothesis.settings(deadline=None)
def test_caches_do_not_change_results(golden, text, lower):
    vocab_file = golden / "tiny_tf1" / "vocab.txt"
    tokenizer = tokenization.FullTokenizer(vocab_file, lower)
    first = tokenizer.encode(text)
    assert tokenizer.encode(text) == first
    assert tokenization.FullTokenizer(vocab_file, lower).encode(text) == first


@hypothesis.given(strategies.lists(TEXTS), strategies.sampled_from(" \n\t\u2028"))
@hypothesis.settings(deadline=None)
def test_parts_between_spaces_give_what_the_whole_gives(tokenizers, texts, space):
    tokenizer = tokenizers[True]
    parts = [i for text in texts for i in tokenizer.encode(text)]
    assert tokenizer.encode(space.join(texts)) == parts


def test_caches_are_bounded(vocab_file, tokenizers, prose, monkeypatch):
    monkeypatch.setattr(tokenization, "_MAX_CACHE_ENTRIES", 100)
    tokenizer = tokenization.FullTokenizer(vocab_file)
    for line in [*prose[:300], "x" * 50, "中" * 50]:
        assert tokenizer.encode(line) == tokenizers[True].encode(line)
        for cache in (tokenizer._chunk_ids, tokenizer._word_ids):
            assert len(cache) <= 100
            assert max(map(len, cache)) <= tokenization._MAX_CACHED_LENGTH


def test_survives_pickling_to_a_worker(tokenizers):
    tokenizers[True].encode("warm up")
    copy = pickle.loads(pickle.dumps(tokenizers[True]))
    assert copy.encode("unaffable, warm") == tokenizers[True].encode("unaffable, warm")


@BOTH_CASES
def test_word_limit_counts_code_points_after_normalisation(tokenizers, lower):
    tokenize = tokenizers[lower].tokenize
    assert len(tokenize("a" * 200)) > 1
    assert tokenize("a" * 201) == ["[UNK]"]
    # é is one code point, e with an accent two, of which lower-casing drops one.
    assert (tokenize("e\u0301" * 101) == ["[UNK]"]) != lower
    assert (len(tokenize("é" * 200)) > 1) == lower


def test_bytes_are_read_as_utf8_and_the_rest_is_left_out(tokenizers):
    assert tokenizers[True].tokenize(b"caf\xc3\xa9 \xff\xe4\xb8na\xedve") == [
        "cafe",
        "nave",
    ]
    assert tokenization.printable_text(b"a\xffb") == "ab"
    with pytest.raises(ValueError, match="str or bytes, got int"):
        tokenization.convert_to_unicode(3)


def test_special_tokens_in_a_text_get_no_protection(tokenizers):
    assert tokenizers[True].tokenize("[MASK]") == ["[", "mask", "]"]


def test_unknown_tokens_and_ids_raise_key_error(tokenizers):
    with pytest.raises(KeyError, match="nosuchtoken"):
        tokenizers[True].convert_tokens_to_ids(["the", "nosuchtoken"])
    with pytest.raises(KeyError, match="30522"):
        tokenizers[True].convert_ids_to_tokens([30522])


def test_wordpiece_is_greedy_and_gives_up_on_the_whole_word():
    vocab = {"un": 0, "##aff": 1, "##able": 2, "##a": 3, "unaf": 4}
    tokenizer = tokenization.WordpieceTokenizer(vocab, max_input_chars_per_word=9)
    assert tokenizer.tokenize("una unaffable  unxable") == ["un", "##a"] + ["[UNK]"] * 2
    assert tokenizer.tokenize("unaffablea") == ["[UNK]"]
    tokenizer = tokenization.WordpieceTokenizer({"un", "##able"}, unk_token="?")
    assert tokenizer.tokenize("unable able") == ["un", "##able", "?"]
    for vocab in ({}, {"": 0, "##": 1}):
        assert tokenization.WordpieceTokenizer(vocab).tokenize("a bc") == ["[UNK]"] * 2


def test_vocab_lines_end_at_newline_only_and_are_stripped(write_vocab):
    content = SPECIALS + "a\r\n##\u2028b\n\u2028\n \n\nc\x0b\n d \nlast"
    vocab = tokenization.load_vocab(write_vocab(content))
    ids = {"a": 5, "##\u2028b": 6, "": 9, "c": 10, "d": 11, "last": 12}
    assert {token: vocab[token] for token in ids} == ids
    assert len(vocab) == 5 + len(ids)


def test_vocab_with_windows_line_ends_gives_the_same_ids(vocab_file, write_vocab):
    content = vocab_file.read_bytes().replace(b"\n", b"\r\n")
    expected = tokenization.load_vocab(vocab_file)
    assert tokenization.load_vocab(write_vocab(content)) == expected


def test_lines_that_only_strip_to_the_same_token_keep_the_last_id(write_vocab):
    path = write_vocab(SPECIALS + "a\na \nb\n")
    tokenizer = tokenization.FullTokenizer(path)
    assert tokenizer.vocab["a"] == 6
    assert tokenizer.encode("a b") == [6, 7]
    assert 5 not in tokenizer.inv_vocab


def test_released_vocabularies_load(shared, golden):
    assert len(tokenization.load_vocab(golden / "tiny_tf1" / "vocab.txt")) == 100
    sizes = {"uncased": 30522, "cased": 28996, "chinese": 21128}
    for name, size in sizes.items():
        path = shared / "data" / "vocab" / f"bert-base-{name}" / "vocab.txt"
        vocab = tokenization.load_vocab(path)
        assert max(vocab.values()) + 1 == len(vocab) == size
        assert [vocab[t] for t in tokenization.SPECIAL_TOKENS] == [0, *range(100, 104)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf" + SPECIALS.encode(), "line 1: starts with a byte order mark"),
        (SPECIALS.encode("utf-16"), "line 1: byte 0xff at offset 0 is not valid UTF-8"),
        (
            SPECIALS.encode() + b"na\xefve\n",
            "line 6: byte 0xef at offset 33 is not valid UTF-8",
        ),
        (SPECIALS + "a\nb\na\n", "line 8: token 'a' is on line 6 already"),
        ("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n", r"lacks \[MASK\] in its 5 lines"),
        ("a\nb\n", r"lacks \[PAD\] and \[UNK\] and \[CLS\] and \[SEP\] and \[MASK\]"),
    ],
)
def test_unusable_vocab_is_refused(write_vocab, content, message):
    path = write_vocab(content)
    with pytest.raises(ValueError, match=message) as error:
        tokenization.load_vocab(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_vocab_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.txt does not exist"):
        tokenization.FullTokenizer(tmp_path / "nowhere.txt")


@pytest.mark.parametrize(
    ("is_uncased", "checkpoint"),
    [
        (True, "models/uncased_L-12_H-768_A-12/bert_model.ckpt"),
        (True, "/m/wwm_uncased_L-24_H-1024_A-16/bert_model.ckpt"),
        (True, "/m/multilingual_L-12_H-768_A-12/bert_model.ckpt"),
        (True, "/m/chinese_L-12_H-768_A-12/bert_model.ckpt"),
        (True, r"C:\m\uncased_L-2_H-128_A-2\bert_model.ckpt"),
        (True, "/m/cased/bert-base-uncased"),
        (False, "/m/cased_L-24_H-1024_A-16/bert_model.ckpt"),
        (False, "/m/multi_cased_L-12_H-768_A-12/model.ckpt-20"),
        (False, "/m/BERT-Base-Cased/"),
    ],
)
def test_case_that_contradicts_the_checkpoint_is_refused(is_uncased, checkpoint):
    tokenization.validate_case_matches_checkpoint(is_uncased, checkpoint)
    with pytest.raises(ValueError, match=f"pass --do_lower_case={is_uncased}") as error:
        tokenization.validate_case_matches_checkpoint(not is_uncased, checkpoint)
    assert checkpoint in str(error.value)


@pytest.mark.parametrize(
    "checkpoint",
    [
        None,
        "",
        "bert_model.ckpt",
        "/m/encased_L-12/bert_model.ckpt",
        "/cased/run/model.ckpt",
        "/m/cased_and_uncased/model.ckpt",
        "/m/bert-base-chinese",
    ],
)
def test_case_passes_when_the_name_does_not_tell(checkpoint):
    for do_lower_case in (True, False):
        tokenization.validate_case_matches_checkpoint(do_lower_case, checkpoint)


@pytest.mark.slow
def test_at_least_three_times_as_fast_as_hugging_face(vocab_file, prose, monkeypatch):
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    other = hugging_face(vocab_file, True)._tokenizer
    ours = tokenization.FullTokenizer(vocab_file)
    ratios = []
    for _ in range(5):
        start = time.process_time()
        other.encode_batch_fast(prose, add_special_tokens=False)
        middle = time.process_time()
        for line in prose:
            ours.encode(line)
        ratios.append((middle - start) / (time.process_time() - middle))
    assert statistics.median(ratios) >= 3
