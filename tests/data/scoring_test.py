"""Texts as questions: ids of transformers, what is masked, what is refused."""

import json
import random

import numpy as np
import pytest

from data import classification, scoring, tokenization


@pytest.fixture(scope="module")
def tokenizer(golden):
    return tokenization.FullTokenizer(golden / "scoring/vocab.txt")


@pytest.fixture(scope="module")
def expected(golden):
    path = golden / "scoring/expected.json"
    return json.loads(path.read_text("utf-8"))["pretraining_gelu"]


def example(text, pair=None):
    return classification.InputExample("", text, pair)


def random_text(rng, *more):
    parts = [
        "the",
        " ",
        "walked",
        "x1",
        "é",
        "東",
        ".",
        "[",
        "]",
        "mask",
        " and ",
        *more,
    ]
    return "".join(rng.choice(parts) for _ in range(rng.randrange(1, 20)))


def test_masks_are_where_transformers_has_them(tokenizer, expected):
    for case in expected["fill_mask"]:
        row = scoring.of_masks(example(case["text"], case.get("pair")), 48, tokenizer)
        mask_id = tokenizer.vocab["[MASK]"]
        assert row.input_ids == case["ids"]
        places = [i for i, token in enumerate(case["ids"]) if token == mask_id]
        assert row.masked_lm_positions == places
        assert len(places) == len(case["masks"])
        assert sum(row.segment_ids) == (
            len(tokenizer.encode(case["pair"].replace("[MASK]", "a"))) + 1
            if "pair" in case
            else 0
        )


def test_every_token_is_asked_for_but_the_special_ones(tokenizer, expected):
    for case in expected["score"]:
        row = scoring.of_tokens(example(case["text"], case.get("pair")), 48, tokenizer)
        assert tokenizer.convert_ids_to_tokens(row.masked_lm_ids) == case["tokens"]
        at = [row.input_ids[place] for place in row.masked_lm_positions]
        assert at == row.masked_lm_ids
        specials = 3 if "pair" in case else 2
        assert len(row.input_ids) == len(case["tokens"]) + specials
    assert scoring.of_tokens(example(""), 48, tokenizer).masked_lm_positions == []


@pytest.mark.parametrize("seed", range(5))
def test_one_token_is_masked_at_a_time(tokenizer, seed):
    rng = random.Random(seed)
    row = scoring.of_tokens(example(random_text(rng), random_text(rng)), 99, tokenizer)
    masked = list(scoring.mask_each(row, tokenizer))
    assert [m.masked_lm_positions for m in masked] == [
        [place] for place in row.masked_lm_positions
    ]
    for m in masked:
        different = np.flatnonzero(np.array(m.input_ids) != row.input_ids)
        assert different.tolist() == m.masked_lm_positions
        assert m.input_ids[different[0]] == tokenizer.vocab["[MASK]"]
        assert m.masked_lm_ids == [row.input_ids[different[0]]]
        assert m.segment_ids == row.segment_ids


def test_within_words_the_pieces_behind_are_masked_too(tokenizer):
    row = scoring.of_tokens(example("cat in box"), 48, tokenizer)
    masked = scoring.mask_each(row, tokenizer, within_words=True)
    shown = [" ".join(tokenizer.convert_ids_to_tokens(m.input_ids)) for m in masked]
    assert shown == [
        "[CLS] [MASK] [MASK] [MASK] in b ##o ##x [SEP]",
        "[CLS] c [MASK] [MASK] in b ##o ##x [SEP]",
        "[CLS] c ##a [MASK] in b ##o ##x [SEP]",
        "[CLS] c ##a ##t [MASK] b ##o ##x [SEP]",
        "[CLS] c ##a ##t in [MASK] [MASK] [MASK] [SEP]",
        "[CLS] c ##a ##t in b [MASK] [MASK] [SEP]",
        "[CLS] c ##a ##t in b ##o [MASK] [SEP]",
    ]


def test_from_left_to_right_a_token_is_asked_for_before_it(tokenizer):
    row = scoring.of_tokens(example("the cat", "is"), 48, tokenizer)
    before = scoring.ask_before(row)
    assert before.input_ids == row.input_ids
    assert before.masked_lm_ids == row.masked_lm_ids
    assert before.masked_lm_positions == [0, 1, 2, 3, 5]


def test_a_pair_is_asked_about_at_its_start(tokenizer):
    row = scoring.of_pair(example("the cat", "is"), 48, tokenizer)
    tokens = tokenizer.convert_ids_to_tokens(row.input_ids)
    assert tokens == ["[CLS]", "the", "c", "##a", "##t", "[SEP]", "is", "[SEP]"]
    assert row.segment_ids == [0] * 6 + [1] * 2
    assert row.masked_lm_positions == [0]


def test_a_batch_is_padded_to_its_longest(tokenizer):
    rows = [
        scoring.of_masks(example(text), 48, tokenizer)
        for text in ("[MASK]", "the [MASK] of [MASK] and [MASK]")
    ]
    batch = scoring.to_batch(rows)
    assert {name: array.shape for name, array in batch.items()} == {
        "input_ids": (2, 8),
        "input_mask": (2, 8),
        "segment_ids": (2, 8),
        "masked_lm_positions": (2, 3),
        "masked_lm_ids": (2, 3),
    }
    assert {array.dtype for array in batch.values()} == {np.dtype("int32")}
    assert batch["input_mask"].sum(1).tolist() == [3, 8]
    assert batch["masked_lm_positions"].tolist() == [[1, 0, 0], [2, 4, 6]]
    for values, row in zip(batch["input_ids"], rows, strict=True):
        assert values[: len(row.input_ids)].tolist() == row.input_ids


@pytest.mark.parametrize(
    ("read", "text", "pair", "message"),
    [
        (scoring.of_masks, "[a]", None, r"there is no \[MASK\] to fill"),
        (scoring.of_masks, "", "", r"there is no \[MASK\] to fill"),
        (scoring.of_masks, "[MASK] of the", "is", "are 7 tokens .* at most 6 fit"),
        (scoring.of_tokens, "the [MASK]", None, r"\[MASK\] has no probability"),
        (scoring.of_tokens, "a b c d e", None, "are 7 tokens .* at most 6 fit"),
        (scoring.of_pair, "the", None, "a pair is needed"),
        (scoring.of_pair, "the", " ", "a pair is needed"),
        (scoring.of_pair, "", "the", "a pair is needed"),
        (scoring.of_pair, "a b", "c d", "are 7 tokens .* at most 6 fit"),
    ],
)
def test_what_cannot_be_asked_about(tokenizer, read, text, pair, message):
    with pytest.raises(ValueError, match=message):
        read(example(text, pair), 6, tokenizer)
    assert scoring.of_tokens(example("a b c d"), 6, tokenizer)  # fits exactly
