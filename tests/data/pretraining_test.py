"""Pairs of spans, their layout, and what their randomness depends on."""

import itertools
import random

import numpy as np
import pytest

from data import corpus, masking, pretraining

CLS, SEP, MASK = 2, 3, 4


def make_pool(sentence_lengths):
    """A pool in which every token differs; sentence_lengths: a list a document."""
    flat = [length for document in sentence_lengths for length in document]
    tokens = corpus.Tokens(
        np.arange(5, 5 + sum(flat), dtype=np.int32),
        np.array(flat, np.int32),
        np.array([len(document) for document in sentence_lengths], np.int32),
    )
    return corpus.make_pool(0, [tokens])


def random_pool(seed, num_documents=12, max_sentences=20, max_length=15):
    rng = random.Random(seed)
    return make_pool(
        [
            [rng.randint(1, max_length) for _ in range(rng.randint(1, max_sentences))]
            for _ in range(num_documents)
        ]
    )


def make_settings(vocab_size=10**6, group=masking.by_token, **kwargs):
    scheme = masking.Scheme(vocab_size, MASK, (CLS, SEP), 20, 0.15, group)
    return pretraining.Settings(CLS, SEP, scheme, **kwargs)


def pairs_of(pool, max_seq_length=32, short_seq_prob=0.1, seed=0):
    rng = random.Random(seed)
    return pretraining.next_sentence_pairs(pool, max_seq_length, short_seq_prob, rng)


def reference_pairs(documents, max_seq_length, short_seq_prob, rng):
    """The original's algorithm on lists of sentences of tokens, step by step."""
    max_tokens = max_seq_length - 3
    for number, document in enumerate(documents):
        target = max_tokens
        if rng.random() < short_seq_prob:
            target = rng.randint(2, max_tokens)
        chunk, position = [], 0
        while position < len(document):
            chunk.append(document[position])
            position += 1
            if position < len(document) and sum(map(len, chunk)) < target:
                continue
            a_end = rng.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
            tokens_a = [token for sentence in chunk[:a_end] for token in sentence]
            tokens_b = [token for sentence in chunk[a_end:] for token in sentence]
            is_random = len(chunk) == 1 or rng.random() < 0.5
            if is_random:
                position -= len(chunk) - a_end
                other = number
                while other == number:
                    other = rng.randrange(len(documents))
                start, wanted = rng.randrange(len(documents[other])), target
                tokens_b = []
                for sentence in documents[other][start:]:
                    tokens_b.extend(sentence)
                    if len(tokens_b) >= wanted - len(tokens_a):
                        break
            while len(tokens_a) + len(tokens_b) > max_tokens:
                longer = tokens_a if len(tokens_a) > len(tokens_b) else tokens_b
                longer.pop(0 if rng.random() < 0.5 else -1)
            yield tokens_a[0], len(tokens_a), tokens_b[0], len(tokens_b), is_random
            chunk = []


@pytest.mark.parametrize(
    ("max_seq_length", "short_seq_prob", "max_length"),
    [(32, 0.1, 15), (20, 0.5, 30), (64, 0.0, 8), (5, 0.1, 6)],
)
def test_pairs_are_distributed_as_in_the_original(
    max_seq_length, short_seq_prob, max_length
):
    pool = random_pool(0, max_length=max_length)
    starts = pool.sentence_starts
    documents = [
        [pool.token_ids[starts[i] : starts[i + 1]].tolist() for i in range(first, end)]
        for first, end in zip(
            pool.document_starts[:-1], pool.document_starts[1:], strict=True
        )
    ]

    def moments(pairs):
        a_start, a_length, b_start, b_length, is_random = pairs.T.astype(np.float64)
        lengths = a_length + b_length
        columns = [a_start, a_length, b_start, b_length, is_random, lengths]
        columns += [a_length**2, b_length**2, lengths == max_seq_length - 3]
        columns += [is_random * a_length, is_random * b_length, is_random * b_start]
        columns += [b_start**2, a_start**2]
        return [len(pairs)] + [column.sum() for column in columns]

    ours, theirs = [], []
    for seed in range(300):
        pairs = pairs_of(pool, max_seq_length, short_seq_prob, seed)
        pairs[:, [0, 2]] += 5  # places to tokens, which count from 5
        ours.append(moments(pairs))
        rng = random.Random(-seed - 1)
        pairs = reference_pairs(documents, max_seq_length, short_seq_prob, rng)
        theirs.append(moments(np.array(list(pairs))))
    ours, theirs = np.array(ours), np.array(theirs)
    error = np.sqrt((ours.var(axis=0) + theirs.var(axis=0)) / len(ours))
    distance = abs(ours.mean(axis=0) - theirs.mean(axis=0)) / np.maximum(error, 1e-9)
    assert (distance < 4).all(), distance


def document_of(pool, place):
    """Number of the document that a token stands in."""
    sentence = np.searchsorted(pool.sentence_starts, place, side="right") - 1
    return np.searchsorted(pool.document_starts, sentence, side="right") - 1


@pytest.mark.parametrize("num_documents", [2, 3, 12])
def test_random_next_sentences_come_from_another_document(num_documents):
    for seed in range(50):
        pool = random_pool(seed, num_documents)
        pairs = pairs_of(pool, seed=seed)
        a_start, a_length, b_start, b_length, is_random = pairs.T
        for start, length in ((a_start, a_length), (b_start, b_length)):
            assert (length > 0).all()
            first, last = (document_of(pool, x) for x in (start, start + length - 1))
            np.testing.assert_array_equal(first, last)
        is_same = document_of(pool, a_start) == document_of(pool, b_start)
        np.testing.assert_array_equal(is_same, is_random == 0)
        assert (b_start >= a_start + a_length)[is_random == 0].all()
        assert (a_length + b_length <= 29).all()


def test_all_other_documents_are_drawn_equally_often():
    pool = make_pool([[1]] * 5)
    counts = np.zeros((5, 5))
    for seed in range(4000):
        a_start, _, b_start, _, is_random = pairs_of(pool, seed=seed).T
        assert is_random.all()  # there is only one sentence
        np.add.at(counts, (a_start, b_start), 1)
    assert not np.diag(counts).any()
    drawn = counts[~np.eye(5, dtype=bool)]
    assert (abs(drawn - 1000) < 4 * np.sqrt(4000 * 0.25 * 0.75)).all()


def test_unused_sentences_are_used_again():
    # Sentences of one token: a chunk reaches its target exactly, nothing is cut.
    pool = make_pool([[1] * 40, [1] * 25, [1] * 3])
    for seed in range(200):
        place = 0
        for a_start, a_length, b_start, b_length, is_random in pairs_of(
            pool, 12, 0.3, seed
        ).tolist():
            assert a_start == place
            place += a_length
            if not is_random:
                assert b_start == place
                place += b_length
        assert place == 68


@pytest.mark.parametrize("seed", range(20))
def test_truncation_takes_from_the_longer_span(seed):
    rng = random.Random(seed)
    for _ in range(200):
        a_length, b_length, room = (rng.randint(1, 40) for _ in range(3))
        room = max(room, 2)
        a, b = list(range(a_length)), list(range(100, 100 + b_length))
        while len(a) + len(b) > room:
            (a if len(a) > len(b) else b).pop()
        a_start, new_a, b_start, new_b = pretraining._truncate(
            0, a_length, 100, b_length, room, rng
        )
        assert (new_a, new_b) == (len(a), len(b))
        assert 0 <= a_start <= a_length - new_a
        assert 0 <= b_start - 100 <= b_length - new_b


def test_truncation_takes_at_the_front_or_the_back_by_chance():
    rng = random.Random(0)
    cuts = [pretraining._truncate(0, 30, 50, 20, 24, rng) for _ in range(10_000)]
    # A loses 18 and B loses 8 tokens; how many at the front is binomial.
    for column, loss in ((0, 18), (2, 8)):
        front = np.array([cut[column] for cut in cuts]) - (0, 0, 50)[column]
        assert abs(front.mean() - loss / 2) < 4 * np.sqrt(loss / 4 / 10_000)
        spread = np.sqrt(2 * (loss / 4) ** 2 / 10_000)
        assert abs(front.var() - loss / 4) < 4 * spread


def test_short_targets_make_short_instances():
    pool = random_pool(1, num_documents=200)
    lengths = {
        prob: pairs_of(pool, 64, prob)[:, [1, 3]].sum(axis=1).mean()
        for prob in (0.0, 0.5, 1.0)
    }
    assert lengths[0.0] > lengths[0.5] > lengths[1.0]


def instances_of(pool, settings):
    pairs, keys = pretraining.sample_pairs(pool, 0, settings)
    batches = list(pretraining.make_instances(pool, pairs, keys, settings))
    return {
        name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]
    }


def test_layout():
    pool = make_pool([[3, 2], [4]])  # 5 to 9 and 10 to 13
    pairs = np.array([[0, 3, 3, 2, 0], [5, 4, 1, 1, 1], [5, 4, 0, 1, 1]])
    laid_out = pretraining.lay_out(
        pool.token_ids, pairs, make_settings(max_seq_length=9)
    )
    expected = {
        "input_ids": [
            [CLS, 5, 6, 7, SEP, 8, 9, SEP, 0],
            [CLS, 10, 11, 12, 13, SEP, 6, SEP, 0],
            [CLS, 10, 11, 12, 13, SEP, 5, SEP, 0],
        ],
        "input_mask": [[1] * 8 + [0]] * 3,
        "segment_ids": [
            [0, 0, 0, 0, 0, 1, 1, 1, 0],
            [0, 0, 0, 0, 0, 0, 1, 1, 0],
            [0, 0, 0, 0, 0, 0, 1, 1, 0],
        ],
        "next_sentence_labels": [[0], [1], [1]],
    }
    assert {name: values.tolist() for name, values in laid_out.items()} == expected
    assert {values.dtype for values in laid_out.values()} == {np.dtype(np.int32)}


def test_layout_of_single_spans():
    pool = make_pool([[3, 2], [4]])
    pairs = np.array([[0, 5, 5, 0, 0], [5, 4, 9, 0, 0]])
    laid_out = pretraining.lay_out(
        pool.token_ids, pairs, make_settings(max_seq_length=8, segment_pairs=False)
    )
    expected = {
        "input_ids": [
            [CLS, 5, 6, 7, 8, 9, SEP, 0],
            [CLS, 10, 11, 12, 13, SEP, 0, 0],
        ],
        "input_mask": [[1] * 7 + [0], [1] * 6 + [0] * 2],
        "segment_ids": [[0] * 8] * 2,
        "next_sentence_labels": [[0], [0]],
    }
    assert {name: values.tolist() for name, values in laid_out.items()} == expected


@pytest.mark.parametrize("seed", range(10))
def test_single_spans_are_all_of_every_document_in_order(seed):
    """But for what is over the length, and that is at most a sentence a span."""
    pool = random_pool(seed)
    spans = pretraining.single_spans(pool, 22, 0.0, random.Random(seed))
    assert (spans[:, 1] <= 20).all() and (spans[:, 3:] == 0).all()
    ends = set(pool.sentence_starts[pool.document_starts].tolist())
    starts = set(pool.sentence_starts.tolist())
    for (start, length, *_), (following, *_) in itertools.pairwise(spans.tolist()):
        whole = length < 20
        # One that is short is cut nowhere, and only a document's end cuts it short.
        assert not whole or (start in starts and start + length in ends)
        assert start + length <= following
    instances = instances_of(
        pool, make_settings(max_seq_length=22, segment_pairs=False)
    )
    assert not instances["segment_ids"].any()
    assert ((instances["input_ids"] == SEP).sum(axis=1) == 1).all()


def test_short_targets_make_short_single_spans():
    pool = make_pool([[1] * 10_000])
    spans = pretraining.single_spans(pool, 22, 1.0, random.Random(0))
    assert len(set(spans[:-1, 1].tolist())) == 1  # a target a document
    targets = [
        pretraining.single_spans(make_pool([[1] * 20]), 22, 1.0, random.Random(i))[0, 1]
        for i in range(400)
    ]
    assert set(targets) == set(range(2, 21))


def test_instances_do_not_depend_on_the_blocks_they_are_made_in(monkeypatch):
    pool, settings = random_pool(0), make_settings(max_seq_length=32)
    together = instances_of(pool, settings)
    monkeypatch.setattr(pretraining, "_BLOCK", 7)
    for name, values in instances_of(pool, settings).items():
        np.testing.assert_array_equal(values, together[name], err_msg=name)


def test_the_same_seed_gives_the_same_instances():
    pool, settings = random_pool(0), make_settings(max_seq_length=32)
    for name, values in instances_of(pool, settings).items():
        again = instances_of(pool, settings)[name]
        np.testing.assert_array_equal(values, again, err_msg=name)


@pytest.mark.parametrize(("seed", "index"), [(1, 0), (12345, 1)])
def test_other_seeds_and_pools_give_other_instances(seed, index):
    settings = make_settings(max_seq_length=32)
    first = instances_of(random_pool(0), settings)["input_ids"]
    pool = corpus.Pool(**(vars(random_pool(0)) | {"index": index}))
    settings = make_settings(max_seq_length=32, random_seed=seed)
    second = instances_of(pool, settings)["input_ids"]
    shared = {row.tobytes() for row in first} & {row.tobytes() for row in second}
    assert len(shared) < 0.01 * len(first)


def test_passes_have_pairs_and_masks_of_their_own():
    pool = make_pool([[30, 30]] * 100)
    settings = make_settings(max_seq_length=64, short_seq_prob=0.0)
    passes = [pretraining.sample_pairs(pool, epoch, settings) for epoch in range(10)]
    all_keys = np.concatenate([keys for _, keys in passes])
    assert len(set(all_keys.tolist())) == len(all_keys)
    assert len({pairs.tobytes() for pairs, _ in passes}) == 10
    pairs, keys = passes[0]
    [instances] = pretraining.make_instances(pool, pairs[:1], keys[:1], settings)
    [others] = pretraining.make_instances(pool, pairs[:1], keys[1:2], settings)
    assert (
        instances["masked_lm_positions"].tolist()
        != others["masked_lm_positions"].tolist()
    )


def test_a_pass_is_shuffled():
    pool = make_pool([[30, 30]] * 1000)
    settings = make_settings(max_seq_length=64, short_seq_prob=0.0)
    pairs, _ = pretraining.sample_pairs(pool, 3, settings)
    document = document_of(pool, pairs[:, 0])
    # In order of the documents, neighbours would go together.
    for order in (document, np.arange(len(document))):
        correlation = np.corrcoef(order[:-1], document[1:])[0, 1]
        assert abs(correlation) < 4 / np.sqrt(len(document))


@pytest.mark.parametrize(
    ("kwargs", "culprit"),
    [
        ({"max_seq_length": 4}, "max_seq_length must be at least 5.*got 4"),
        ({"short_seq_prob": 1.5}, "short_seq_prob must be between 0 and 1, got 1.5"),
    ],
)
def test_settings_out_of_range_are_refused(kwargs, culprit):
    with pytest.raises(ValueError, match=culprit):
        make_settings(**kwargs)


def test_the_shortest_sequences_hold_a_token_of_each_sentence():
    settings = make_settings(max_seq_length=5, short_seq_prob=0.0)
    pool = make_pool([[3, 2], [4]])
    pairs, _ = pretraining.sample_pairs(pool, 0, settings)
    assert len(pairs) and (pairs[:, [1, 3]] == 1).all()
