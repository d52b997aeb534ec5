"""Chunks to token ids and pools to records, as values."""

import collections

import numpy as np
import pytest

from data import (
    corpus,
    masking,
    pretraining,
    pretraining_records,
    record_reading,
    text_files,
)

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "play", "##ing", "cats", "."]


@pytest.fixture
def read(tmp_path):
    """Function of a text and options of `Text`: what the reader makes of it."""

    def read(content, **options):
        (tmp_path / "vocab.txt").write_text("\n".join(VOCAB))
        path = tmp_path / "a.txt"
        path.write_text(content)
        [chunk] = corpus.make_chunks(
            [(str(path), text_files.read_documents(str(path)))]
        )
        text = pretraining_records.Text(str(tmp_path / "vocab.txt"), True, **options)
        return pretraining_records.Reader(text).read(chunk)

    return read


def test_token_ids_and_what_they_are(read):
    tokens, counts = read("Cats playing.\ncats dogs\n\nplaying cats\n")
    assert tokens.token_ids.tolist() == [7, 5, 6, 8, 7, 1, 5, 6, 7]
    assert tokens.sentence_lengths.tolist() == [4, 2, 3]
    assert tokens.document_lengths.tolist() == [2, 1]
    assert counts == {"documents": 2, "sentences": 3, "tokens": 9, "unknown": 1}


def test_options_of_the_text(read):
    _, counts = read("Cats playing. Cats cats.\n", split_sentences=True)
    assert counts["sentences"] == 2
    tokens, _ = read("cats. playing\n", pre_segmented=True)
    more = masking.CONTINUES
    assert tokens.token_ids.tolist() == [7, 8 | more, 5, 6 | more]
    # Any white space separates words, and marks do not hide what is unknown.
    tokens, counts = read("cats\tcats\u3000.dog\n", pre_segmented=True)
    assert tokens.token_ids.tolist() == [7, 7, 8, 1 | more]
    assert counts["unknown"] == 1


def test_records_and_what_is_in_them(tmp_path):
    ids = np.arange(600, dtype=np.int32) % 90 + 5
    pool = corpus.Pool(3, ids, np.arange(0, 601, 6), np.array([0, 40, 100]))
    settings = pretraining.Settings(
        cls_id=2,
        sep_id=3,
        scheme=masking.Scheme(100, 4, (2, 3), 4, 0.15, masking.by_token),
        max_seq_length=24,
    )
    content, batches, totals = b"", [], collections.Counter()
    for batch, encoded, ends in pretraining_records.make(pool, 1, settings):
        assert len(ends) == len(batch["input_ids"])
        assert ends[-1] == len(encoded)
        content += encoded.tobytes()
        batches.append(batch)
        totals.update(pretraining_records.count(batch))
    (tmp_path / "a").write_bytes(content)
    spec = pretraining_records.layout(settings)
    read = record_reading.read_all([str(tmp_path / "a")], spec)
    for name, values in read.items():
        np.testing.assert_array_equal(
            values, np.concatenate([b[name] for b in batches])
        )
    pairs, _ = pretraining.sample_pairs(pool, 1, settings)
    assert totals == {
        "instances": len(pairs),
        "positions": pairs[:, [1, 3]].sum() + 3 * len(pairs),
        "masked": (read["masked_lm_ids"] > 0).sum(),
        "random_next": pairs[:, 4].sum(),
    }
