"""Chunks and pools from scans in any order: those of reading the files in order."""

import random

import numpy as np
import pytest

from data import corpus, corpus_places, text_files


def write_files(folder, rng):
    """A few files of documents, some of them repeated or empty; the paths, sorted."""
    paths = []
    for number in range(5):
        documents = [
            "\n".join(rng.choices("abc", k=rng.randint(0, 3)))
            for _ in range(rng.randint(8, 16))
        ]
        path = folder / f"{number}.txt"
        path.write_text("\n\n".join(documents))
        paths.append(str(path))
    return paths


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("deduplicate", [False, True])
def test_chunks_are_those_of_the_files(seed, deduplicate, tmp_path, monkeypatch):
    rng = random.Random(seed)
    monkeypatch.setattr(corpus, "CHUNK_BYTES", rng.randint(1, 60))
    paths = write_files(tmp_path, rng)
    plain, split = corpus.Deduplicator(), corpus.Deduplicator()
    expected = corpus.make_chunks(
        ((path, text_files.read_documents(path)) for path in paths),
        (lambda d: plain.is_new(corpus.digest(d))) if deduplicate else None,
    )
    files = [corpus_places.scan(path, "text", deduplicate) for path in paths]
    rng.shuffle(files)
    chunks = corpus_places.make_chunks(files, split if deduplicate else None)
    assert list(chunks) == list(expected)
    assert split.num_repeated == plain.num_repeated
    assert (split.num_repeated > 0) == deduplicate


def test_files_are_opened_as_asked(tmp_path):
    (tmp_path / "b.txt").write_text("one\n\ntwo\n")
    places = corpus_places.scan(
        "there://b.txt",
        "text",
        False,
        lambda path: text_files.open_local(path.replace("there:/", str(tmp_path))),
    )
    assert places.path == "there://b.txt"
    assert places.bounds.tolist() == [[0, 4], [5, 9]]
    assert places.digests == b""


def test_pools_are_those_of_the_chunks_in_order(monkeypatch):
    monkeypatch.setattr(corpus, "POOL_TOKENS", 300)
    rng = np.random.default_rng(0)
    chunks = []
    for index in range(40):
        lengths = rng.integers(1, 4, rng.integers(1, 9)).astype(np.int32)
        ids = np.arange(100 * index, 100 * index + lengths.sum(), dtype=np.int32)
        documents = np.ones(len(lengths), np.int32)
        chunks.append((index, corpus.Tokens(ids, lengths, documents)))
    in_order = [tokens for _, tokens in chunks]
    expected = corpus.plan_pools(
        [tokens.size for tokens in in_order],
        [len(tokens.document_lengths) for tokens in in_order],
    )
    rng.shuffle(chunks)
    pools = corpus_places.plan_pools(map(corpus_places.measure, chunks))
    assert pools == expected
    assert len(pools) > 3
    for index, numbers in enumerate(expected):
        inside = [c for c in chunks if corpus_places.find_pool(c, pools) == index]
        pool = corpus_places.make_pool(index, inside)
        same = corpus.make_pool(index, [in_order[number] for number in numbers])
        assert pool.index == same.index
        for name in ("token_ids", "sentence_starts", "document_starts"):
            np.testing.assert_array_equal(getattr(pool, name), getattr(same, name))


def test_too_few_documents_are_refused():
    with pytest.raises(ValueError, match="no words in the text"):
        corpus_places.plan_pools([])
    with pytest.raises(ValueError, match="holds 1; separate documents by empty lines"):
        corpus_places.plan_pools([(0, 5, 1)])
    assert corpus_places.plan_pools([(0, 5, 1)], least_documents=1) == [range(1)]
