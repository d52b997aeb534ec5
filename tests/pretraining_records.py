"""Small records of pre-training, in good order, for tests that spoil them."""

import numpy as np

from data import record_decoding, records

VOCAB_SIZE = 100  # that of tests/golden/tiny_tf1/vocab.txt, which starts with these
PAD, UNK, CLS, SEP, MASK = range(5)


def make(num_records=64, max_seq_length=24, max_predictions_per_seq=4, seed=0):
    """dict of arrays in the layout of `records.pretraining_spec`."""
    rng = np.random.default_rng(seed)
    length, slots = max_seq_length, max_predictions_per_seq
    spec = records.pretraining_spec(length, slots)
    data = {
        name: np.zeros((num_records, feature.length), feature.dtype)
        for name, feature in spec.items()
    }
    for row in range(num_records):
        a, b = rng.integers(3, (length - 3) // 2 + 1, 2)
        end = a + b + 3
        ids = rng.integers(5, VOCAB_SIZE, end)
        ids[[0, a + 1, end - 1]] = CLS, SEP, SEP
        data["input_mask"][row, :end] = 1
        data["segment_ids"][row, a + 2 : end] = 1
        places = np.flatnonzero(ids > MASK)
        number = min(slots, max(1, round(int(end) * 0.15)))
        chosen = np.sort(rng.choice(places, number, replace=False))
        data["masked_lm_positions"][row, :number] = chosen
        data["masked_lm_ids"][row, :number] = ids[chosen]
        data["masked_lm_weights"][row, :number] = 1
        for place in chosen:
            kind = rng.random()
            if kind < 0.9:
                ids[place] = MASK if kind < 0.8 else rng.integers(VOCAB_SIZE)
        data["input_ids"][row, :end] = ids
        data["next_sentence_labels"][row] = rng.integers(2)
    return data


def write(path, data=None):
    """Writes such records, or those of `make()`; the path as str."""
    data = make() if data is None else data
    sizes = data["input_ids"].shape[1], data["masked_lm_ids"].shape[1]
    records.write(str(path), data, records.pretraining_spec(*sizes))
    return str(path)


def decode_one(content):
    """A record's features by name, with `record_decoding`."""
    return {
        name: column.values.tolist()
        for (name, _), column in record_decoding.decode([content]).items()
    }
