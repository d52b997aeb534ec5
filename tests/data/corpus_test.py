"""Reading documents, and gathering them in pools."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data import corpus


def encode(text):
    """One id a word, its length; a word of dots gives nothing."""
    return [len(word) for word in text.split() if word.strip(".")]


def read(tmp_path, *contents):
    files = []
    for number, content in enumerate(contents):
        path = tmp_path / f"{number}.txt"
        path.write_bytes(content)
        files.append(str(path))
    documents = list(corpus.read_documents(files, encode))
    for document in documents:
        assert sum(document.sentence_lengths) == len(document.token_ids)
    return [
        (list(document.token_ids), list(document.sentence_lengths))
        for document in documents
    ]


def test_blank_lines_separate_documents(tmp_path):
    text = "\n \na bb\nccc\n\n\u3000\n\ndddd\n".encode()
    assert read(tmp_path, text) == [([1, 2, 3], [2, 1]), ([4], [1])]


def test_a_file_ends_its_document(tmp_path):
    assert read(tmp_path, b"a\nbb", b"ccc\n") == [([1, 2], [1, 1]), ([3], [1])]


def test_a_line_without_tokens_does_not_end_a_document(tmp_path):
    assert read(tmp_path, b"a\n...\nbb\n\n...\n\nccc") == [
        ([1, 2], [1, 1]),
        ([3], [1]),
    ]


def test_line_ends_and_byte_order_mark_are_no_text(tmp_path):
    text = "\ufeffa bb\r\n\r\nccc\r\n".encode()
    assert read(tmp_path, text, "\ufeff\na".encode()) == [
        ([1, 2], [2]),
        ([3], [1]),
        ([1], [1]),
    ]


def test_only_line_feeds_end_lines(tmp_path):
    text = "a\u2028bb\x0bccc\x85dddd\n".encode()
    [(_, sentence_lengths)] = read(tmp_path, text)
    assert len(sentence_lengths) == 1


def test_bytes_of_the_text_are_all_counted(tmp_path):
    text = "ä\n\nbb cc\nd\n\n".encode()
    (tmp_path / "a.txt").write_bytes(text)
    documents = corpus.read_documents([str(tmp_path / "a.txt")], encode)
    assert sum(document.num_bytes for document in documents) == len(text)


def test_invalid_utf_8_is_located(tmp_path):
    with pytest.raises(ValueError, match=r"0\.txt, line 3, byte 4: .*0xe4.*iconv"):
        read(tmp_path, b"a\n\nGem\xe4lde\n")


def test_documents_are_read_one_at_a_time(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a\n\nbb\n\nccc\n\ndddd\n")
    seen = []
    documents = corpus.read_documents([str(path)], lambda s: seen.append(s) or [1])
    next(documents)
    assert seen == ["a"]


def make_documents(sizes):
    """Documents of one sentence each; their tokens are their numbers."""
    return [corpus.Document([i] * size, [size], size) for i, size in enumerate(sizes)]


@settings(deadline=None, max_examples=300)
@given(st.lists(st.integers(1, 30), min_size=2, max_size=40), st.integers(1, 50))
def test_pools_hold_all_documents_in_order(sizes, pool_tokens):
    pools = list(corpus.make_pools(make_documents(sizes), pool_tokens))
    tokens = np.concatenate([pool.token_ids for pool in pools])
    np.testing.assert_array_equal(tokens, np.repeat(np.arange(len(sizes)), sizes))
    assert [pool.index for pool in pools] == list(range(len(pools)))
    assert sum(pool.num_bytes for pool in pools) == sum(sizes)
    for pool in pools:
        assert len(pool.document_starts) >= 3  # two documents
        assert pool.document_starts[-1] == len(pool.sentence_starts) - 1
        assert pool.sentence_starts[-1] == len(pool.token_ids)
    for pool in pools[:-1]:
        assert len(pool.token_ids) >= pool_tokens
        # One document less would not have been enough.
        without_last = pool.sentence_starts[pool.document_starts[-2]]
        assert without_last < pool_tokens or len(pool.document_starts) == 3
    if len(pools) > 1:
        assert len(pools[-1].token_ids) >= pool_tokens // 2


def test_a_small_rest_joins_the_pool_before_it():
    def pool_sizes(sizes):
        pools = corpus.make_pools(make_documents(sizes), pool_tokens=10)
        return [len(pool.token_ids) for pool in pools]

    assert pool_sizes([5, 5, 5, 5, 2, 2]) == [10, 14]
    assert pool_sizes([5, 5, 5, 5, 2, 3]) == [10, 10, 5]
    assert pool_sizes([5, 5, 5, 5, 9]) == [10, 19]


def test_pools_are_made_while_documents_are_read():
    consumed = []
    documents = (consumed.append(d) or d for d in make_documents([5] * 100))
    next(corpus.make_pools(documents, pool_tokens=10))
    assert len(consumed) == 4  # a pool and the one that is held back


@pytest.mark.parametrize("sizes", [[], [7], [10**6]])
def test_fewer_than_two_documents_are_refused(sizes):
    with pytest.raises(ValueError, match=f"holds {len(sizes)}; .* empty lines"):
        list(corpus.make_pools(make_documents(sizes), pool_tokens=10))
