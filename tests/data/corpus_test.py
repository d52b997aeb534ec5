"""Cutting a corpus into chunks, reading them, and gathering them in pools."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data import corpus, text_files


def encode(text):
    """One id a word, its length; a word of dots gives nothing."""
    return [len(word) for word in text.split() if word.strip(".")]


def write(tmp_path, *contents):
    paths = []
    for number, content in enumerate(contents):
        path = tmp_path / f"{number}.txt"
        path.write_bytes(content)
        paths.append(str(path))
    return paths


def chunks_of(paths, keep=None):
    scans = ((path, text_files.read_documents(path)) for path in paths)
    return list(corpus.make_chunks(scans, keep))


def documents_of(chunks, **options):
    """Documents as lists of sentences of ids."""
    documents = []
    for chunk in chunks:
        tokens = corpus.tokenize(chunk, encode, **options)
        assert {v.dtype for v in vars(tokens).values()} == {np.dtype(np.int32)}
        ends = np.cumsum(tokens.sentence_lengths)
        sentences = np.split(tokens.token_ids, ends)
        assert not sentences.pop().size
        sentences = [sentence.tolist() for sentence in sentences]
        for length in tokens.document_lengths:
            documents.append(sentences[:length])
            sentences = sentences[length:]
        assert not sentences
    return documents


def test_sentences_and_documents_without_tokens_are_gone(tmp_path):
    paths = write(tmp_path, b"a\n...\nbb cc\n\n...\n\nccc")
    assert documents_of(chunks_of(paths)) == [[[1], [2, 2]], [[3]]]


def test_lines_are_split_where_asked(tmp_path):
    paths = write(tmp_path, b"a|bb\nccc\n\ndddd")
    documents = documents_of(chunks_of(paths), split=lambda line: line.split("|"))
    assert documents == [[[1], [2], [3]], [[4]]]


def test_json_lines_are_documents(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"body": "a\\nbb"}\n\n{"body": "ccc"}\n')
    [chunk] = corpus.make_chunks(
        [(str(path), text_files.read_documents(str(path), "body"))]
    )
    assert documents_of([chunk], text_field="body") == [[[1], [2]], [[3]]]


@settings(deadline=None, max_examples=50)
@given(
    files=st.lists(
        st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=4), max_size=8),
        min_size=1,
        max_size=4,
    ),
    size=st.integers(1, 150),
    dropped=st.sets(st.integers(0, 12)),
)
def test_chunks_hold_all_documents_in_order(files, size, dropped, tmp_path_factory):
    """Whatever their size, and whichever documents are left out."""
    texts = [
        "\n\n \n".join("\n".join("x" * n for n in doc) for doc in file)
        for file in files
    ]
    folder = tmp_path_factory.mktemp("files")
    paths = write(folder, *(text.encode() for text in texts))
    everything = [[[n] for n in doc] for file in files for doc in file]
    numbers = iter(range(len(everything)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "CHUNK_BYTES", size)
        chunks = chunks_of(paths, lambda _: next(numbers) not in dropped)
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    expected = [doc for i, doc in enumerate(everything) if i not in dropped]
    assert documents_of(chunks) == expected
    # One document less would not have been enough.
    for chunk in chunks[:-1]:
        sizes = [
            sum(n + 1 for n in (len_ for [len_] in doc)) - 1
            for doc in documents_of([chunk])
        ]
        assert sum(sizes[:-1]) < size + 3 * len(sizes)


def test_repeated_documents_are_left_out(tmp_path):
    paths = write(tmp_path, b"a\nbb\n\nccc\n\n a\nbb \n\na bb\n", b"ccc\n\nd")
    deduplicator = corpus.Deduplicator()
    chunks = chunks_of(paths, lambda d: deduplicator.is_new(corpus.digest(d)))
    assert documents_of(chunks) == [[[1], [2]], [[3]], [[1, 2]], [[1]]]
    assert deduplicator.num_repeated == 2


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), min_size=1, max_size=40),
    st.integers(1, 50),
    st.integers(1, 2),
)
def test_pools_hold_all_chunks_in_order(chunks, pool_tokens, least):
    chunks = [(tokens * (documents > 0), documents) for tokens, documents in chunks]
    tokens, documents = zip(*chunks, strict=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "POOL_TOKENS", pool_tokens)
        if sum(documents) < least:
            message = "no words" if not sum(documents) else "holds 1; .* empty"
            with pytest.raises(ValueError, match=message):
                corpus.plan_pools(tokens, documents, least)
            return
        pools = corpus.plan_pools(tokens, documents, least)
    assert [i for pool in pools for i in pool] == list(range(len(chunks)))
    assert all(sum(documents[i] for i in pool) >= least for pool in pools)


def test_pools_are_about_equal():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "POOL_TOKENS", 1000)
        for total in (10, 99, 101, 150, 249, 250, 251, 1000):
            pools = corpus.plan_pools([10] * total, [1] * total)
            assert len(pools) == -(-total // 100)
            sizes = [len(pool) for pool in pools]
            assert max(sizes) - min(sizes) <= 1


def test_a_pool_joins_its_chunks():
    def tokens(*documents):
        sentences = [s for d in documents for s in d]
        return corpus.Tokens(
            np.array([i for s in sentences for i in s], np.int32),
            np.array([len(s) for s in sentences], np.int32),
            np.array([len(d) for d in documents], np.int32),
        )

    pool = corpus.make_pool(
        3, [tokens([[7, 8], [9]]), tokens(), tokens([[1]], [[2, 3]])]
    )
    assert pool.index == 3
    assert pool.token_ids.tolist() == [7, 8, 9, 1, 2, 3]
    assert pool.sentence_starts.tolist() == [0, 2, 3, 4, 6]
    assert pool.document_starts.tolist() == [0, 2, 3, 4]
