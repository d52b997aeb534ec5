"""Adds up what is in records of pre-training, batch by batch.

The shares are those of the original's statistics: masked tokens over real tokens
([CLS] and [SEP] are real, padding is not); a prediction whose random token is the right
one counts as kept.

n records, L max_seq_length, M max_predictions_per_seq.
"""

import collections
import dataclasses
import hashlib
import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from data import distinct, tallies

USUAL_PROB = 0.15  # Devlin et al. 2018, section 3.1
_TOP = 10  # tokens of a list
_PLACES = "shown", "first", "last"  # in place of an answer, at start and end of a text


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the records are looked at with.

    Attributes:
        masked_lm_prob: share of the tokens that was to be predicted.
        vocab_size: ids from here on are faults; None if it is not known.
        vocab: token → id, if it is known.
        num_samples: records to keep as samples.
    """

    masked_lm_prob: float = USUAL_PROB
    vocab_size: int | None = None
    vocab: Mapping[str, int] | None = None
    num_samples: int = 3


class Statistics:
    """Of records of pre-training.

    Args:
        settings: Settings.
        faults: takes down what should not be.
    """

    def __init__(self, settings: Settings, faults: tallies.Faults):
        self._settings, self._faults = settings, faults
        self._sums = collections.Counter()
        names = "lengths", "predictions", "labels", "text", "answers", *_PLACES
        self._tallies = {name: tallies.Tally() for name in names}
        self._records, self._texts = (distinct.DistinctCounter() for _ in range(2))
        self._samples = []  # a heap of (-hash, place, record)

    @property
    def num_records(self) -> int:
        return self._sums["records"]

    def add(
        self,
        batch: Mapping[str, np.ndarray],
        contents: Sequence[bytes],
        places: Sequence[str],
    ) -> None:
        """Takes records of the same L and M into account.

        Args:
            batch: the features, int64 and float32, [n, L], [n, M] and [n, 1].
            contents: n, the records as they are in the file.
            places: n, where they are, in words.
        """
        ids, positions = batch["input_ids"], batch["masked_lm_positions"]
        labels, weights = batch["masked_lm_ids"], batch["masked_lm_weights"]
        length = ids.shape[1]
        is_real = batch["input_mask"] == 1
        lengths = is_real.sum(axis=1)
        is_prediction = (weights != 0) & (positions >= 0) & (positions < length)
        for name, is_fault in _find_faults(batch, self._settings.vocab_size):
            self._faults.add(name, is_fault, places)

        rows, slots = np.nonzero(is_prediction)
        columns, answers = positions[rows, slots], labels[rows, slots]
        shown = ids[rows, columns]
        text = ids.copy()
        text[rows, columns] = answers
        self._add_lengths(batch, lengths, is_prediction.sum(axis=1))
        self._sums["kept"] += int((shown == answers).sum())
        for name, values in (
            ("labels", batch["next_sentence_labels"]),
            ("text", text[is_real]),
            ("answers", answers),
            ("shown", shown),
            ("first", text[:, 0][lengths > 0]),
            ("last", text[np.arange(len(ids)), lengths - 1][lengths > 0]),
        ):
            self._tallies[name].add(values)
        hashes = _hashes(contents)
        self._records.add(hashes)
        self._texts.add(_hashes(np.where(is_real, text, -1).astype(np.int32)))
        self._sample(batch, hashes, places)

    def _add_lengths(
        self,
        batch: Mapping[str, np.ndarray],
        lengths: np.ndarray,
        predictions: np.ndarray,
    ) -> None:
        """Takes int64 [n] tokens and predictions of records into account."""
        length, slots = (
            batch[name].shape[1] for name in ("input_ids", "masked_lm_ids")
        )
        self._tallies["lengths"].add(lengths)
        self._tallies["predictions"].add(predictions)
        wanted = np.rint(lengths * self._settings.masked_lm_prob)
        wanted = np.maximum(1, wanted).astype(np.int64)
        budgets = np.minimum(wanted, slots)
        is_b = (batch["input_mask"] == 1) & (batch["segment_ids"] == 1)
        num_b = is_b.sum(axis=1)
        sums = {
            "full": lengths == length,
            "ratios": predictions / np.maximum(1, lengths),
            "wanted": wanted,
            "on_budget": predictions == budgets,
            "cut_budgets": wanted > budgets,
            "segment_a": np.maximum(lengths - num_b - 2, 0),
            "segment_b": np.maximum(num_b - 1, 0),
        }
        self._sums.update({name: values.sum().item() for name, values in sums.items()})
        self._sums.update(records=len(lengths), positions=len(lengths) * length)

    def _sample(
        self,
        batch: Mapping[str, np.ndarray],
        hashes: np.ndarray,
        places: Sequence[str],
    ) -> None:
        """Keeps the records with the smallest hashes: a random choice that depends on
        nothing but the records."""
        count = self._settings.num_samples
        _, rows = np.unique(hashes, return_index=True)  # in the order of the hashes
        for row in rows[:count].tolist():
            entry = (-int(hashes[row]), places[row])
            if any(entry[0] == other[0] for other in self._samples):
                continue  # a copy
            sample = {name: values[row].tolist() for name, values in batch.items()}
            heapq.heappush(self._samples, (*entry, sample))
            if len(self._samples) > count:
                heapq.heappop(self._samples)

    def samples(self) -> list[tuple[str, dict[str, list]]]:
        """(place, record) of some records, chosen at random."""
        return [entry[1:] for entry in sorted(self._samples, reverse=True)]

    def report(self) -> dict[str, Any]:
        """The statistics as JSON values; shares are of 1."""
        sums, counted = self._sums, self._tallies
        records, lengths = sums["records"], counted["lengths"].counts
        tokens = int(lengths @ np.arange(len(lengths)))
        predictions = counted["answers"].total
        numbers = counted["labels"]
        return {
            "records": records,
            "lengths": {
                **tallies.describe(lengths),
                "full_share": sums["full"] / records,
                "segment_a_mean": sums["segment_a"] / records,
                "segment_b_mean": sums["segment_b"] / records,
                "counts": {int(i): int(lengths[i]) for i in np.flatnonzero(lengths)},
            },
            "padding_share": 1 - tokens / sums["positions"],
            "predictions": {
                **tallies.describe(counted["predictions"].counts),
                "total": predictions,
                "share": predictions / max(1, tokens),
                "mean_share": sums["ratios"] / records,
                "wanted_share": sums["wanted"] / max(1, tokens),
                "on_budget_share": sums["on_budget"] / records,
                "cut_budget_share": sums["cut_budgets"] / records,
            },
            "masking": self._masking(max(1, predictions)),
            "next_sentence": {
                "random_share": numbers[1] / records,
                "true": numbers[0],
                "random": numbers[1],
            },
            "tokens": self._tokens(),
            "repeated_share": self._records.repeated_share,
            "distinct_texts": self._texts.num_distinct,
            "repeats_are_exact": self._records.is_exact and self._texts.is_exact,
        }

    def _masking(self, predictions: int) -> dict[str, Any]:
        """What is shown in place of the answers."""
        shown = self._tallies["shown"]
        vocab = self._settings.vocab
        top = tallies.most_common(shown.counts, 1)
        mask_id = top[0][0] if top else None
        if vocab:
            mask_id = vocab["[MASK]"]
        mask = shown[mask_id] if mask_id is not None else 0
        kept = self._sums["kept"]
        return {
            "mask_share": mask / predictions,
            "kept_share": kept / predictions,
            "random_share": max(0, predictions - mask - kept) / predictions,
            "most_shown": top[0] if top else None,
        }

    def _tokens(self) -> dict[str, Any]:
        """Which tokens are in the text, and which of them are predicted."""
        vocab = self._settings.vocab
        size = max(len(self._tallies[n].counts) for n in ("text", "answers"))
        text, answers = (self._tallies[n].padded(size) for n in ("text", "answers"))
        ends = {i for n in ("first", "last") for i, _ in self._top(n)[:1]}
        if vocab:
            ends = {vocab["[CLS]"], vocab["[SEP]"]}
        text = text.copy()
        text[[i for i in ends if i < size]] = 0
        values = {
            "total": int(text.sum()),
            "distinct": int((text > 0).sum()),
            "most_predicted": tallies.most_common(answers, _TOP),
            "never_predicted": int(((text > 0) & (answers == 0)).sum()),
            "most_frequent_never_predicted": tallies.most_common(
                text * (answers == 0), _TOP
            ),
            "at_start": self._top("first"),
            "at_end": self._top("last"),
        }
        if vocab:
            unknown = self._tallies["text"][vocab["[UNK]"]]
            values["unknown_share"] = unknown / max(1, values["total"])
            for name, place, token in (
                ("cls_share", "first", "[CLS]"),
                ("sep_share", "last", "[SEP]"),
            ):
                right = self._tallies[place][vocab[token]]
                values[name] = right / self._sums["records"]
        return values

    def _top(self, name: str) -> list[tuple[int, int]]:
        return tallies.most_common(self._tallies[name].counts, _TOP)


def _hashes(items: Sequence) -> np.ndarray:
    """uint64 [n] of byte strings or rows."""
    parts = [hashlib.blake2b(item, digest_size=8).digest() for item in items]
    return np.frombuffer(b"".join(parts), "<u8")


def _find_faults(
    batch: Mapping[str, np.ndarray], vocab_size: int | None
) -> Iterator[tuple[str, np.ndarray]]:
    """Yields names of faults, and which records have them, bool [n]."""
    ids, segments, mask = (
        batch[name] for name in ("input_ids", "segment_ids", "input_mask")
    )
    positions, answers, weights = (
        batch[f"masked_lm_{name}"] for name in ("positions", "ids", "weights")
    )
    length = ids.shape[1]
    lengths = (mask == 1).sum(axis=1)
    is_real = np.arange(length) < lengths[:, None]
    yield "input_mask", (mask != is_real).any(axis=1) | (lengths == 0)
    num_a = (is_real & (segments == 0)).sum(axis=1)
    right = is_real & (np.arange(length) >= num_a[:, None])
    yield "segment_ids", (segments != right).any(axis=1)
    limit = vocab_size or np.iinfo(np.int64).max
    is_bad = [((i < 0) | (i >= limit)).any(axis=1) for i in (ids, answers)]
    yield "ids", is_bad[0] | is_bad[1]

    is_prediction = weights != 0
    yield "weights", (is_prediction & (weights != 1)).any(axis=1)
    yield "no_prediction", ~is_prediction.any(axis=1)
    is_outside = (positions < 0) | (positions >= length)  # also where there is none
    is_outside |= is_prediction & (positions >= lengths[:, None])
    yield "outside", is_outside.any(axis=1)
    # [CLS] A [SEP] B [SEP]
    specials = np.stack([np.zeros_like(num_a), num_a - 1, lengths - 1], axis=1)
    is_special = (positions[:, :, None] == specials[:, None, :]).any(axis=2)
    yield "on_special", (is_prediction & is_special).any(axis=1)
    chosen = np.sort(np.where(is_prediction, positions, -1), axis=1)
    is_twice = (chosen[:, 1:] == chosen[:, :-1]) & (chosen[:, 1:] >= 0)
    yield "twice", is_twice.any(axis=1)
    labels = batch["next_sentence_labels"]
    yield "labels", ((labels != 0) & (labels != 1)).any(axis=1)
