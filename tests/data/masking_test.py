"""Masking: budgets, 80/10/10, whole words, and what the randomness depends on."""

import dataclasses
import functools

import numpy as np
import pytest

from data import masking

CLS, SEP, MASK = 2, 3, 4
VOCAB_SIZE = 200
# Ids from 100 on stand for ## pieces.
IS_CONTINUATION = np.arange(VOCAB_SIZE) >= 100
BY_WORD = functools.partial(masking.by_word, is_continuation=IS_CONTINUATION)


def make_scheme(
    max_predictions_per_seq=20, masked_lm_prob=0.15, group=masking.by_token
):
    return masking.Scheme(
        VOCAB_SIZE, MASK, (CLS, SEP), max_predictions_per_seq, masked_lm_prob, group
    )


def make_instances(seed, num_instances=64, seq_length=64):
    """input_ids and input_mask: [CLS] A [SEP] B [SEP] of random tokens and lengths."""
    rng = np.random.default_rng(seed)
    input_ids = rng.integers(5, VOCAB_SIZE, (num_instances, seq_length), np.int32)
    lengths = rng.integers(5, seq_length + 1, num_instances)
    for row, length in enumerate(lengths):
        input_ids[row, 0] = CLS
        input_ids[row, [rng.integers(2, length - 2), length - 1]] = SEP
        input_ids[row, length:] = 0
    return input_ids, (np.arange(seq_length) < lengths[:, None]).astype(np.int32)


def mask(input_ids, input_mask, scheme, seed=1, epoch=0, first_index=0):
    keys = masking.instance_keys(seed, epoch, first_index + np.arange(len(input_ids)))
    return masking.mask(input_ids, input_mask, keys, scheme)


@pytest.mark.parametrize("masked_lm_prob", [0.0, 0.15, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("max_predictions_per_seq", [1, 5, 80])
def test_number_of_predictions_is_the_originals(
    masked_lm_prob, max_predictions_per_seq
):
    scheme = make_scheme(max_predictions_per_seq, masked_lm_prob)
    for seed in range(10):
        input_ids, input_mask = make_instances(seed)
        weights = mask(input_ids, input_mask, scheme, seed)["masked_lm_weights"]
        for length, row in zip(input_mask.sum(axis=1).tolist(), weights, strict=True):
            budget = max(1, int(round(length * masked_lm_prob)))
            expected = min(max_predictions_per_seq, budget, length - 3)
            assert row.tolist() == [1.0] * expected + [0.0] * (len(row) - expected)


@pytest.mark.parametrize("group", [masking.by_token, BY_WORD])
def test_putting_the_labels_back_restores_the_text(group):
    for seed in range(20):
        input_ids, input_mask = make_instances(seed)
        before = input_ids.copy()
        masked = mask(input_ids, input_mask, make_scheme(group=group), seed)
        np.testing.assert_array_equal(input_ids, before)
        restored = masked["input_ids"].copy()
        for row, weights in enumerate(masked["masked_lm_weights"]):
            positions = masked["masked_lm_positions"][row][weights == 1]
            labels = masked["masked_lm_ids"][row][weights == 1]
            assert (np.diff(positions) > 0).all()
            assert not np.isin(input_ids[row, positions], [CLS, SEP]).any()
            assert input_mask[row, positions].all()
            restored[row, positions] = labels
            assert not masked["masked_lm_positions"][row][weights == 0].any()
            assert not masked["masked_lm_ids"][row][weights == 0].any()
        np.testing.assert_array_equal(restored, input_ids)


@pytest.mark.parametrize("group", [masking.by_token, BY_WORD])
def test_8_of_10_become_mask_1_stays_and_1_is_drawn_from_the_vocabulary(group):
    input_ids, input_mask = make_instances(0, num_instances=20_000)
    masked = mask(input_ids, input_mask, make_scheme(group=group))
    is_prediction = masked["masked_lm_weights"] == 1
    labels = masked["masked_lm_ids"][is_prediction]
    shown = np.take_along_axis(masked["input_ids"], masked["masked_lm_positions"], 1)
    shown = shown[is_prediction]
    total = len(labels)
    # A random token can be [MASK] or the label itself.
    for share, expected in (
        ((shown == MASK).mean(), 0.8 + 0.1 / VOCAB_SIZE),
        ((shown == labels).mean(), 0.1 + 0.1 / VOCAB_SIZE),
    ):
        error = np.sqrt(expected * (1 - expected) / total)
        assert abs(share - expected) < 4 * error
    drawn = shown[(shown != MASK) & (shown != labels)]
    counts = np.bincount(drawn, minlength=VOCAB_SIZE)
    assert counts[MASK] == 0
    # Special tokens and padding are drawn as often as words (chi-square, 4 sigma).
    expected = 0.1 * total / VOCAB_SIZE
    expected *= 1 - np.bincount(labels, minlength=VOCAB_SIZE) / total
    others = np.arange(VOCAB_SIZE) != MASK
    chi_square = ((counts - expected)[others] ** 2 / expected[others]).sum()
    assert abs(chi_square - (VOCAB_SIZE - 1)) < 4 * np.sqrt(2 * VOCAB_SIZE)


@pytest.mark.parametrize(
    "mix",
    [(100, 0, 0), (80, 0, 20), (80, 20, 0), (0, 20, 80), (0, 0, 100), (50, 12.5, 37.5)],
)
def test_other_mixes(mix):
    """Shares over more than 10^5 predictions, within 3 sigma."""
    input_ids, input_mask = make_instances(1, num_instances=25_000)
    scheme = dataclasses.replace(make_scheme(), mix=mix)
    masked = mask(input_ids, input_mask, scheme)
    is_prediction = masked["masked_lm_weights"] == 1
    labels = masked["masked_lm_ids"][is_prediction]
    shown = np.take_along_axis(masked["input_ids"], masked["masked_lm_positions"], 1)
    shown = shown[is_prediction]
    assert len(labels) > 10**5
    random = mix[2] / 100
    for share, expected in (
        ((shown == MASK).mean(), mix[0] / 100 + random / VOCAB_SIZE),
        ((shown == labels).mean(), mix[1] / 100 + random / VOCAB_SIZE),
        (
            ((shown != MASK) & (shown != labels)).mean(),
            random * (1 - 2 / VOCAB_SIZE),
        ),
    ):
        error = np.sqrt(expected * (1 - expected) / len(labels))
        assert abs(share - expected) <= 3 * error


def test_the_mix_changes_what_is_shown_and_nothing_else():
    input_ids, input_mask = make_instances(2)
    usual = mask(input_ids, input_mask, make_scheme())
    other = mask(
        input_ids, input_mask, dataclasses.replace(make_scheme(), mix=(0, 0, 100))
    )
    assert (usual.pop("input_ids") != other.pop("input_ids")).any()
    for name, values in usual.items():
        np.testing.assert_array_equal(values, other[name])


def test_pieces_of_a_word_are_replaced_independently():
    input_ids = np.full((4000, 12), 150, np.int32)
    input_ids[:, 0], input_ids[:, 1], input_ids[:, -1] = CLS, 50, SEP
    masked = mask(input_ids, np.ones_like(input_ids), make_scheme(10, 1.0, BY_WORD))
    is_mask = masked["input_ids"][:, 1:-1] == MASK
    assert abs(is_mask.all(axis=1).mean() - 0.8**10) < 4 * np.sqrt(0.1 * 0.9 / 4000)


def test_every_position_is_chosen_equally_often():
    input_ids = np.full((20_000, 23), 50, np.int32)
    input_ids[:, 0], input_ids[:, 10], input_ids[:, -1] = CLS, SEP, SEP
    masked = mask(input_ids, np.ones_like(input_ids), make_scheme(4, 1.0))
    counts = np.bincount(masked["masked_lm_positions"].ravel(), minlength=23)
    assert not counts[[0, 10, 22]].any()
    expected = 20_000 * 4 / 20
    error = np.sqrt(20_000 * (4 / 20) * (16 / 20))
    assert (abs(np.delete(counts, [0, 10, 22]) - expected) < 4 * error).all()


def greedy(groups, budget, priorities):
    """The original's loop over shuffled groups, for one instance."""
    members = {}
    for position, group in enumerate(groups.tolist()):
        if group >= 0:
            members.setdefault(group, []).append(position)
    chosen = []
    for group in sorted(members, key=lambda g: priorities[g]):
        if len(chosen) >= budget:
            break
        if len(chosen) + len(members[group]) > budget:
            continue
        chosen.extend(members[group])
    return chosen


@pytest.mark.parametrize("group", [masking.by_token, BY_WORD])
def test_groups_are_chosen_in_the_order_of_their_priorities(group, monkeypatch):
    for seed in range(20):
        input_ids, input_mask = make_instances(seed)
        is_candidate = (input_mask == 1) & ~np.isin(input_ids, (CLS, SEP))
        groups = group(input_ids, is_candidate)
        rng = np.random.default_rng(seed)
        priorities = rng.integers(0, 2**63, groups.shape, np.uint64)
        budgets = rng.integers(1, 20, len(groups))
        monkeypatch.setattr(masking, "random_bits", lambda *_, p=priorities: p.copy())
        chosen = masking.choose(
            groups, budgets, np.arange(len(groups), dtype=np.uint64)
        )
        for row in range(len(groups)):
            expected = greedy(groups[row], budgets[row], priorities[row])
            assert sorted(expected) == np.nonzero(chosen[row])[0].tolist()


def test_words_are_chosen_whole_or_not_at_all():
    for seed in range(20):
        input_ids, input_mask = make_instances(seed)
        masked = mask(input_ids, input_mask, make_scheme(group=BY_WORD), seed)
        is_chosen = np.zeros(input_ids.shape, bool)
        for row, weights in enumerate(masked["masked_lm_weights"]):
            is_chosen[row, masked["masked_lm_positions"][row][weights == 1]] = True
        # A ## piece right after a candidate shares its fate.
        follows = IS_CONTINUATION[input_ids[:, 1:]] & (input_ids[:, :-1] > MASK)
        np.testing.assert_array_equal(
            is_chosen[:, 1:][follows], is_chosen[:, :-1][follows]
        )
        budgets = masking.num_to_predict(input_mask.sum(axis=1), make_scheme())
        assert (is_chosen.sum(axis=1) <= budgets).all()


def test_groups_of_words():
    # That is: [CLS] ##a b ##c ##d [SEP] ##e f [SEP], and padding.
    input_ids = np.array([[CLS, 100, 50, 101, 102, SEP, 103, 51, SEP, 0]], np.int32)
    is_candidate = np.isin(input_ids, [CLS, SEP, 0], invert=True)
    groups = BY_WORD(input_ids, is_candidate)
    # The first candidate starts a word; ##e belongs to the word before [SEP].
    assert groups.tolist() == [[-1, 0, 1, 1, 1, -1, 1, 2, -1, -1]]
    groups = masking.by_token(input_ids, is_candidate)
    assert groups.tolist() == [[-1, 0, 1, 2, 3, -1, 4, 5, -1, -1]]


def test_a_word_longer_than_the_budget_is_never_chosen():
    input_ids = np.array([[CLS, 50, 100, 101, 102, SEP, SEP]] * 50, np.int32)
    masked = mask(input_ids, np.ones_like(input_ids), make_scheme(3, 1.0, BY_WORD))
    np.testing.assert_array_equal(masked["input_ids"], input_ids)
    assert not masked["masked_lm_weights"].any()


def test_continuations_are_found_in_the_vocabulary():
    vocab = {"[PAD]": 0, "a": 1, "##b": 3, "#": 4, "##": 5}
    found = masking.find_continuations(vocab)
    assert found.tolist() == [False, False, False, True, False, True]


@pytest.mark.parametrize("group", [masking.by_token, BY_WORD])
def test_an_instance_is_masked_alike_alone_and_among_others(group):
    input_ids, input_mask = make_instances(0)
    scheme = make_scheme(group=group)
    together = mask(input_ids, input_mask, scheme, first_index=100)
    for row in range(len(input_ids)):
        one = slice(row, row + 1)
        alone = mask(input_ids[one], input_mask[one], scheme, first_index=100 + row)
        for name, values in alone.items():
            np.testing.assert_array_equal(values, together[name][one], err_msg=name)


def test_masks_differ_between_seeds_epochs_and_instances():
    input_ids = np.tile(np.arange(5, 69, dtype=np.int32), (50, 1))
    input_mask = np.ones_like(input_ids)
    results = [
        mask(input_ids, input_mask, make_scheme(), seed, epoch)["masked_lm_positions"]
        for seed, epoch in ((0, 0), (0, 1), (1, 0), (-1, 0), (2**40, 0))
    ]
    assert len({row.tobytes() for rows in results for row in rows}) == 250


def split_mix(state):
    """The next output of SplitMix64, in Python integers."""
    mixed = (state + 0x9E3779B97F4A7C15) % 2**64
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
    return mixed ^ (mixed >> 31)


def test_random_bits_are_split_mix():
    assert split_mix(0) == 0xE220A8397B1DCDAF  # as published for seed 0

    def fold(key, number):
        return split_mix((key + number * 0x9E3779B97F4A7C15) % 2**64)

    indices = np.array([0, 7, 3 << 32])
    keys = masking.instance_keys(-5, 6, indices)
    bits = masking.random_bits(keys, 2, 4)
    for index, key, row in zip(indices.tolist(), keys, bits, strict=True):
        expected = fold(fold(fold(0, 2**64 - 5), 6), index)
        assert int(key) == expected
        stream = fold(expected, 2)
        assert row.tolist() == [fold(stream, column) for column in range(4)]


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        ({"masked_lm_prob": -0.1}, "masked_lm_prob must be between 0 and 1, got -0.1"),
        ({"max_predictions_per_seq": 0}, "must be at least 1, got 0"),
        *(
            ({"mix": mix}, "masking_mix must be three .* add up to 100")
            for mix in ((80, 10), (80, 10, 20), (110, -10, 0), (float("nan"), 50, 50))
        ),
    ],
)
def test_schemes_out_of_range_are_refused(change, culprit):
    with pytest.raises(ValueError, match=culprit):
        dataclasses.replace(make_scheme(), **change)
