"""Documents become pre-training instances (Devlin et al. 2018, 3.1 and A.2).

An instance is a pair of spans, A and B, where B follows A or comes from another
document, or by choice a single span; some tokens of it are masked. The instances of a
pass over a pool depend on the pool, its number, the number of the pass and the settings
alone.

N instances, L positions of an instance.
"""

import array
import bisect
import dataclasses
import itertools
import random
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from data import corpus, masking

_BLOCK = 1024  # instances made at once: large for NumPy, small for the memory


@dataclasses.dataclass(frozen=True)
class Settings:
    """What instances look like; the names of the flags of the original.

    Raises ValueError where a number is out of its range.
    """

    cls_id: int
    sep_id: int
    scheme: masking.Scheme
    max_seq_length: int = 128
    short_seq_prob: float = 0.1
    random_seed: int = 12345
    segment_pairs: bool = True

    @property
    def least_documents(self) -> int:
        """That a pool needs: a random next sentence comes from another document."""
        return 2 if self.segment_pairs else 1

    def __post_init__(self):
        if self.max_seq_length < 5:
            raise ValueError(
                "max_seq_length must be at least 5, for three special tokens and one"
                f" token of each sentence, got {self.max_seq_length}"
            )
        masking.check_share("short_seq_prob", self.short_seq_prob)


def next_sentence_pairs(
    pool: corpus.Pool, max_seq_length: int, short_seq_prob: float, rng: random.Random
) -> np.ndarray:
    """One pass over the documents of a pool.

    Returns:
        int64 [N, 5], a row an instance: start and length of A, start and length of B
        (places in pool.token_ids) and 1 where B is random, 0 where it follows A.
    """
    # Of compact type, for a pool may have millions of sentences.
    starts = array.array("q", pool.sentence_starts.tobytes())
    documents = pool.document_starts.tolist()
    max_tokens = max_seq_length - 3  # [CLS], [SEP], [SEP]
    pairs = array.array("q")
    draw = rng.random
    for number in range(len(documents) - 1):
        first, end = documents[number : number + 2]
        # A shorter target now and then keeps fine-tuning on short text familiar.
        is_short = draw() < short_seq_prob
        target = rng.randint(2, max_tokens) if is_short else max_tokens
        while first < end:
            a = starts[first]
            # The fewest sentences that reach the target, or all that are left.
            stop = bisect.bisect_left(starts, a + target, first + 1, end)
            split = first + 1
            if stop - first > 1:
                split += int(draw() * (stop - first - 1))
            a_length = starts[split] - a
            is_random = stop - first == 1 or draw() < 0.5
            if is_random:
                first = split  # the other sentences are used again
                split, stop = _random_span(
                    starts, documents, number, target - a_length, draw
                )
            else:
                first = stop
            b_length = starts[stop] - starts[split]
            pair = _truncate(a, a_length, starts[split], b_length, max_tokens, rng)
            pairs.extend((*pair, is_random))
    return np.array(pairs, np.int64).reshape(-1, 5)


def _random_span(
    starts: Sequence[int],
    documents: list[int],
    number: int,
    target: int,
    draw: Callable[[], float],
) -> tuple[int, int]:
    """First and end of sentences from any document but `number`, at least one."""
    # Ten times as quick as `randrange`, and as even as 2**-53 allows.
    other = int(draw() * (len(documents) - 2))
    other += other >= number
    first, end = documents[other : other + 2]
    first += int(draw() * (end - first))
    return first, bisect.bisect_left(starts, starts[first] + target, first + 1, end)


def _truncate(
    a: int, a_length: int, b: int, b_length: int, max_tokens: int, rng: random.Random
) -> tuple[int, int, int, int]:
    """Cuts two spans, given by start and length, to max_tokens together.

    Token by token, the longer one loses (B on a tie) at its front or its back, with
    equal chance; done here at once: the shorter one stays, or each keeps half.
    """
    if a_length + b_length <= max_tokens:
        return a, a_length, b, b_length
    kept = min(a_length, max((max_tokens + 1) // 2, max_tokens - b_length))
    # The number of ones among n random bits: how many of n tokens go at the front.
    a += rng.getrandbits(a_length - kept).bit_count()
    b += rng.getrandbits(b_length - (max_tokens - kept)).bit_count()
    return a, kept, b, max_tokens - kept


def single_spans(
    pool: corpus.Pool, max_seq_length: int, short_seq_prob: float, rng: random.Random
) -> np.ndarray:
    """One pass over the documents of a pool, without pairs.

    Sentences of one document are joined up to the target length; a document's last
    span may be shorter. (What "No NSP" leaves open, see Liu et al. 2019, section 4.2.)

    Returns:
        As `next_sentence_pairs`, where B is empty and follows A.
    """
    starts = array.array("q", pool.sentence_starts.tobytes())
    documents = pool.document_starts.tolist()
    max_tokens = max_seq_length - 2  # [CLS], [SEP]
    spans = array.array("q")
    for first, end in itertools.pairwise(documents):
        is_short = rng.random() < short_seq_prob
        target = rng.randint(2, max_tokens) if is_short else max_tokens
        stop = first
        while stop < end:
            a = starts[stop]
            stop = bisect.bisect_left(starts, a + target, stop + 1, end)
            length = starts[stop] - a
            if length > max_tokens:
                a += rng.getrandbits(length - max_tokens).bit_count()
                length = max_tokens
            spans.extend((a, length, a + length, 0, 0))
    return np.array(spans, np.int64).reshape(-1, 5)


def sample_pairs(
    pool: corpus.Pool, epoch: int, settings: Settings
) -> tuple[np.ndarray, np.ndarray]:
    """One pass over a pool, shuffled.

    Args:
        pool: the pool.
        epoch: the number of the pass.
        settings: what instances look like.

    Returns:
        pairs int64 [N, 5], as `next_sentence_pairs` returns them, and keys uint64 [N],
        from which they are masked.
    """
    rng = random.Random(f"{settings.random_seed} {pool.index} {epoch}")
    sample = next_sentence_pairs if settings.segment_pairs else single_spans
    pairs = sample(pool, settings.max_seq_length, settings.short_seq_prob, rng)
    # Room for 2**32 instances of one pass over one pool.
    indices = (pool.index << 32) + np.arange(len(pairs))
    keys = masking.instance_keys(settings.random_seed, epoch, indices)
    order = np.argsort(masking.random_bits(keys, masking.ORDER, 1)[:, 0])
    return pairs[order], keys[order]


def make_instances(
    pool: corpus.Pool, pairs: np.ndarray, keys: np.ndarray, settings: Settings
) -> Iterator[dict[str, np.ndarray]]:
    """Lays pairs out as `[CLS] A [SEP] B [SEP]`, or `[CLS] A [SEP]`, and masks them.

    Args:
        pool: the pool the pairs are from.
        pairs: int64 [N, 5], from `sample_pairs`.
        keys: uint64 [N], from `sample_pairs`.
        settings: the same as for `sample_pairs`.

    Yields:
        The instances in order, some at a time: a dict of the features of
        `records.pretraining_spec`.
    """
    for start in range(0, len(pairs), _BLOCK):
        block = slice(start, start + _BLOCK)
        batch = lay_out(pool.token_ids, pairs[block], settings)
        yield batch | masking.mask(
            batch["input_ids"], batch["input_mask"], keys[block], settings.scheme
        )


def lay_out(
    token_ids: np.ndarray, pairs: np.ndarray, settings: Settings
) -> dict[str, np.ndarray]:
    """Returns unmasked `input_ids`, `input_mask`, `segment_ids` int32 [N, L] and
    `next_sentence_labels` int32 [N, 1]."""
    columns = pairs.T[:, :, None].astype(np.int32)  # narrow is quick; each [N, 1]
    a_start, a_length, b_start, b_length, is_random = columns
    place = np.arange(settings.max_seq_length, dtype=np.int32)
    first_sep = a_length + 1
    last_sep = first_sep + b_length + settings.segment_pairs
    is_b = place > first_sep
    source = place + (a_start - 1) + is_b * (b_start - first_sep - a_start)
    input_ids = token_ids.take(source, mode="clip")
    input_ids[:, 0] = settings.cls_id
    np.put_along_axis(input_ids, np.hstack([first_sep, last_sep]), settings.sep_id, 1)
    input_mask = place <= last_sep
    return {
        "input_ids": input_ids * input_mask,
        "input_mask": input_mask.astype(np.int32),
        "segment_ids": (is_b & input_mask).astype(np.int32),
        "next_sentence_labels": is_random.copy(),
    }
