"""Which positions a masked language model predicts, and what it sees there.

Devlin et al. 2018, section 3.1: 15 % of the tokens are predicted; of these 80 % become
[MASK], 10 % a random token and 10 % stay (other mixes: appendix C.2). A scheme only
sorts the candidates into groups that are chosen whole (`by_token`, `by_word`,
`by_marked_word`); choosing, replacing and padding are shared.

Every random number is a hash of (seed, epoch, index of the instance, purpose, place).
An instance is therefore masked in the same way alone or among others, in any order and
in any process: masking once beforehand and masking while reading are one function.

N instances, L positions of an instance, M most predictions in an instance.
"""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

# SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number
# generators"): a counter goes in, 64 well-mixed bits come out, so numbers can be drawn
# for a whole array at once and in any order.
_STEP = 0x9E3779B97F4A7C15
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))

# Set in a token id: the token belongs to the word of the one before it. Where the
# vocabulary does not say so (`by_word`), the text may (`by_marked_word`).
CONTINUES = 1 << 30

# What the numbers are for: each purpose has a stream of its own.
_PRIORITY, _REPLACEMENT, _RANDOM_TOKEN, ORDER = range(4)


@dataclasses.dataclass(frozen=True)
class Scheme:
    """How to mask.

    Attributes:
        vocab_size: random tokens are drawn from [0, vocab_size).
        mask_id: id of [MASK].
        special_ids: ids that are never predicted ([CLS], [SEP]).
        max_predictions_per_seq: M.
        masked_lm_prob: share of the tokens to predict.
        group: (input_ids [N, L], is_candidate bool [N, L]) -> int [N, L], see
            `by_token`.
        mix: percentages of the predicted tokens that become [MASK], stay, and become
            random ones, in the order of the paper's table 8.

    Raises ValueError where a number is out of its range.
    """

    vocab_size: int
    mask_id: int
    special_ids: tuple[int, ...]
    max_predictions_per_seq: int
    masked_lm_prob: float
    group: Callable[[np.ndarray, np.ndarray], np.ndarray]
    mix: tuple[float, float, float] = (80, 10, 10)

    def __post_init__(self):
        check_share("masked_lm_prob", self.masked_lm_prob)
        mix = self.mix
        if len(mix) != 3 or min(mix) < 0 or not abs(sum(mix) - 100) <= 1e-6:
            raise ValueError(
                "masking_mix must be three percentages that add up to 100, got "
                f"{', '.join(f'{share:g}' for share in mix) or 'none'}"
            )
        if self.max_predictions_per_seq < 1:
            raise ValueError(
                "max_predictions_per_seq must be at least 1, got"
                f" {self.max_predictions_per_seq}"
            )


def check_share(name: str, value: float) -> None:
    """Refuses what is no probability."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value}")


def instance_keys(seed: int, epoch: int, indices: np.ndarray) -> np.ndarray:
    """Returns uint64 [N]: what all random numbers of these instances come from."""
    key = np.zeros(1, np.uint64)
    for number in (seed, epoch):
        key = _fold(key, np.array([number % 2**64], np.uint64))
    return _fold(key, indices.astype(np.uint64))


def random_bits(keys: np.ndarray, purpose: int, count: int) -> np.ndarray:
    """Returns uint64 [N, count], uniform; a function of key, purpose and column."""
    keys = _fold(keys, np.array([purpose], np.uint64))
    return _fold(keys[:, None], np.arange(count, dtype=np.uint64))


def by_token(input_ids: np.ndarray, is_candidate: np.ndarray) -> np.ndarray:
    """Every candidate is a group of its own.

    Args:
        input_ids: int [N, L].
        is_candidate: bool [N, L].

    Returns:
        int [N, L]: the number of the position's group, counted in each row from 0; -1
        where there is no candidate.
    """
    del input_ids
    return np.where(is_candidate, np.cumsum(is_candidate, axis=1) - 1, -1)


def by_word(
    input_ids: np.ndarray, is_candidate: np.ndarray, is_continuation: np.ndarray
) -> np.ndarray:
    """A `##` piece belongs to the group of the candidate before it.

    As in the original, that candidate may stand in the other segment, where truncation
    cut the first piece of a word off.

    Args:
        input_ids: int [N, L].
        is_candidate: bool [N, L].
        is_continuation: bool [vocab_size], from `find_continuations`.

    Returns:
        Groups as `by_token` returns them.
    """
    return _number(is_candidate, ~is_continuation[input_ids])


def by_marked_word(input_ids: np.ndarray, is_candidate: np.ndarray) -> np.ndarray:
    """A token with the mark `CONTINUES` belongs to the group of the candidate before.

    Args and returns as `by_token`.
    """
    return _number(is_candidate, input_ids & CONTINUES == 0)


def _number(is_candidate: np.ndarray, starts_word: np.ndarray) -> np.ndarray:
    """Numbers of the groups, bool and bool [N, L] to int [N, L]."""
    # The first candidate starts a group, whatever it is.
    is_first = np.cumsum(is_candidate, axis=1) == 1
    starts = is_candidate & (starts_word | is_first)
    return np.where(is_candidate, np.cumsum(starts, axis=1) - 1, -1)


def find_continuations(vocab: Mapping[str, int]) -> np.ndarray:
    """Returns bool [highest id + 1], true for the ids of `##` pieces."""
    is_continuation = np.zeros(1 + max(vocab.values()), bool)
    is_continuation[[i for token, i in vocab.items() if token.startswith("##")]] = True
    return is_continuation


def num_to_predict(lengths: np.ndarray, scheme: Scheme) -> np.ndarray:
    """Returns int64 [N], the budgets; `lengths` [N] count [CLS] and [SEP] too."""
    # `rint` rounds halves to even, as Python's `round` does.
    wanted = np.rint(lengths * scheme.masked_lm_prob).astype(np.int64)
    return np.minimum(scheme.max_predictions_per_seq, np.maximum(1, wanted))


def choose(groups: np.ndarray, budgets: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Chooses random groups; one that would overrun the budget is passed over.

    Args:
        groups: int [N, L], as from `by_token`.
        budgets: int [N], most positions to choose, at least 1.
        keys: uint64 [N].

    Returns:
        bool [N, L], the chosen positions.
    """
    is_candidate = groups >= 0
    num_rows, length = groups.shape
    counts = groups.max(axis=1, initial=-1) + 1
    exists = np.arange(length) < counts[:, None]  # by group, not by position
    priorities = random_bits(keys, _PRIORITY, length)
    priorities = np.where(exists, priorities, np.iinfo(np.uint64).max)
    if counts.sum() == np.count_nonzero(is_candidate):  # none has two positions
        last = np.minimum(budgets, length)[:, None] - 1
        limits = np.take_along_axis(np.sort(priorities, axis=1), last, axis=1)
        is_chosen = is_candidate.copy()
        is_chosen[is_candidate] = (priorities <= limits)[exists]
        return is_chosen

    first = length * np.arange(num_rows)[:, None]  # so that no two rows share a group
    flat = (groups + first)[is_candidate]
    sizes = np.bincount(flat, minlength=groups.size).reshape(groups.shape)
    order = np.argsort(priorities, axis=1)
    is_taken = np.zeros(groups.shape, bool)
    left, rows = budgets.copy(), np.arange(num_rows)
    for rank in range(counts.max()):
        group = order[:, rank]
        size = sizes[rows, group]
        fits = (size > 0) & (size <= left)
        is_taken[rows, group] = fits
        left -= size * fits
        if not left.any():
            break
    is_chosen = is_candidate.copy()
    is_chosen[is_candidate] = is_taken.ravel()[flat]
    return is_chosen


def mask(
    input_ids: np.ndarray, input_mask: np.ndarray, keys: np.ndarray, scheme: Scheme
) -> dict[str, np.ndarray]:
    """Masks N instances.

    Args:
        input_ids: int32 [N, L], unmasked; they may carry the mark `CONTINUES`.
        input_mask: int [N, L], 1 for a token and 0 for padding.
        keys: uint64 [N], from `instance_keys`.
        scheme: what to choose and how much.

    Returns:
        `input_ids` int32 [N, L], masked; `masked_lm_positions` int32 [N, M] in
        ascending order, `masked_lm_ids` int32 [N, M], the tokens that stood there, and
        `masked_lm_weights` float32 [N, M], 1 for a prediction; padded with zeros.
    """
    marked_ids, input_ids = input_ids, input_ids & ~np.int32(CONTINUES)
    is_candidate = input_mask == 1
    for special_id in scheme.special_ids:
        is_candidate &= input_ids != special_id
    groups = scheme.group(marked_ids, is_candidate)
    budgets = num_to_predict(input_mask.sum(axis=1), scheme)
    is_chosen = choose(groups, budgets, keys)

    slots = (len(input_ids), scheme.max_predictions_per_seq)
    is_filled = np.arange(slots[1]) < is_chosen.sum(axis=1)[:, None]  # [N, M]
    positions, labels = np.zeros(slots, np.int32), np.zeros(slots, np.int32)
    # Both sides run through the rows from left to right.
    chosen = np.flatnonzero(is_chosen)
    positions[is_filled] = chosen % input_ids.shape[1]
    labels[is_filled] = input_ids.take(chosen)
    input_ids.put(chosen, _replacements(labels, keys, scheme)[is_filled])
    return {
        "input_ids": input_ids,
        "masked_lm_positions": positions,
        "masked_lm_ids": labels,
        "masked_lm_weights": is_filled.astype(np.float32),
    }


def _replacements(labels: np.ndarray, keys: np.ndarray, scheme: Scheme) -> np.ndarray:
    """What to show in place of `labels` [N, M]; drawn for each piece, also in words."""
    draw = _uniform(keys, _REPLACEMENT, labels.shape[1])
    # Any entry of the vocabulary, also a special token or a `##` piece.
    token = _uniform(keys, _RANDOM_TOKEN, labels.shape[1]) * scheme.vocab_size
    token = token.astype(np.int32)
    masked, same, _ = scheme.mix
    stays_or_not = np.where(draw < (masked + same) / 100, labels, token)
    return np.where(draw < masked / 100, scheme.mask_id, stays_or_not)


def _uniform(keys: np.ndarray, purpose: int, count: int) -> np.ndarray:
    """float64 [N, count] in [0, 1)."""
    return (random_bits(keys, purpose, count) >> np.uint64(11)) * 2.0**-53


def _fold(key: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Mixes a number into a key: uint64 arrays that broadcast; overflow is meant."""
    mixed = key + (number + np.uint64(1)) * np.uint64(_STEP)
    for shift, factor in _ROUNDS:
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
