"""Questions to model inputs: the original's features, and slow ways to the same."""

import collections
import random
import time

import numpy as np
import pytest

from data import squad, squad_windows, tokenization
from tests import squad_files

SETTING = ("max_seq_length", "doc_stride", "max_query_length")


@pytest.fixture(scope="module")
def vocab(golden):
    return golden.parent.parent / "sample_data/vocab.txt"


@pytest.fixture(scope="module")
def tokenizer(vocab):
    return tokenization.FullTokenizer(vocab)


def windows_of(examples, tokenizer, *sizes):
    return list(
        squad_windows.make_windows(
            examples, tokenizer, squad_windows.WindowSizes(*sizes)
        )
    )


def asked(context, question="who is it?", **more):
    paragraph = squad.Paragraph.from_text(context)
    return squad.SquadExample("q", question, paragraph, **more)


def test_windows_are_the_originals_features(golden, vocab):
    settings = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in squad_files.golden_rows(golden / "squad_features.jsonl.gz"):
        names = ("version_2", "is_training", "do_lower_case", *SETTING)
        setting = tuple(row.pop(name) for name in names)
        settings[setting][row["qas_id"]].append(row)
    checked = 0
    for setting, questions in settings.items():
        version_2, is_training, do_lower_case, *sizes = setting
        tokenizer = tokenization.FullTokenizer(vocab, do_lower_case)
        path = squad_files.golden_input(golden, version_2)
        examples = squad.read_squad_examples(path, is_training, version_2).examples
        ours = collections.defaultdict(list)
        for window in windows_of(examples, tokenizer, *sizes):
            ours[examples[window.example_index].qas_id].append(window)
        for qas_id, rows in questions.items():
            assert len(ours[qas_id]) == len(rows)
            for window, row in zip(ours[qas_id], rows, strict=True):
                check_window(window, row, tokenizer, is_training)
                checked += 1
    assert checked == 1630


def check_window(window, row, tokenizer, is_training):
    """Compares a window with a golden row."""
    for name in ("unique_id", "example_index", "doc_span_index", "doc_offset"):
        assert getattr(window, name) == row[name]
    assert window.input_ids == row["input_ids"]
    assert tokenizer.convert_ids_to_tokens(window.input_ids) == row["tokens"]
    words = window.context.word_of_token[window.start : window.end]
    assert words.tolist() == row["token_to_orig"]
    assert window.is_max_context.tolist() == row["is_max_context"]
    assert window.is_impossible == row["is_impossible"]
    if is_training:
        positions = (window.start_position, window.end_position)
        assert positions == (row["start_position"], row["end_position"])


@pytest.mark.parametrize("seed", range(30))
def test_best_windows_are_those_of_a_scan_over_all(seed):
    rng = random.Random(seed)
    num_tokens, room = rng.randrange(1, 60), rng.randrange(1, 20)
    stride = rng.randrange(1, 25)
    starts, ends = squad_windows.place_windows(num_tokens, room, stride)
    assert (starts[0], ends[-1]) == (0, num_tokens)
    for start, end, following in zip(starts, ends, [*starts[1:], None], strict=True):
        assert 0 < end - start <= room
        if following is not None:
            assert following == start + min(stride, room)
            assert end - start == room
    expected = []
    for token in range(num_tokens):
        scores = [
            min(token - start, end - 1 - token) + 0.01 * (end - start)
            if start <= token < end
            else -1
            for start, end in zip(starts, ends, strict=True)
        ]
        expected.append(scores.index(max(scores)))
    assert squad_windows.best_windows(starts, ends).tolist() == expected


def test_three_windows_by_hand():
    # Windows of 4, stride 2, 8 tokens: 0-3, 2-5, 4-7. Token 2 has 1 token on its right
    # in the first window and none on its left in the second; of equals the first wins.
    starts, ends = squad_windows.place_windows(8, 4, 2)
    assert (starts, ends) == ([0, 2, 4], [4, 6, 8])
    best = squad_windows.best_windows(starts, ends)
    assert best.tolist() == [0, 0, 0, 1, 1, 2, 2, 2]


def test_every_token_is_in_its_best_window_and_in_no_other(tokenizer):
    context = " ".join(f"word{i}, and" for i in range(80))
    windows = windows_of([asked(context)], tokenizer, 40, 7, 10)
    assert len(windows) > 10
    counts = np.zeros(len(windows[0].context.ids), int)
    for window in windows:
        counts[window.start : window.end] += window.is_max_context
    assert set(counts) == {1}


def test_layout_of_the_arrays(tokenizer):
    windows = windows_of([asked("It is Ada. " * 9)], tokenizer, 20, 4, 2)
    arrays = squad_windows.to_arrays(windows, 20)
    # The question is cut to 2 tokens.
    cls, sep = tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]"])
    question = tokenizer.encode("who is")
    ids = tokenizer.encode("it is ada. " * 9)
    for row, window in enumerate(windows):
        part = ids[4 * row : 4 * row + 15]
        expected = [cls, *question, sep, *part, sep]
        padding = [0] * (20 - len(expected))
        assert arrays["input_ids"][row].tolist() == expected + padding
        assert arrays["input_mask"][row].tolist() == [1] * len(expected) + padding
        segments = [0] * 4 + [1] * (len(part) + 1) + padding
        assert arrays["segment_ids"][row].tolist() == segments
        assert window.doc_offset == 4
    assert arrays["unique_ids"].tolist() == [1_000_000_000 + i for i in range(7)]
    batches = squad_windows.batched_arrays(windows, 20, batch_size=3)
    joined = [batch["input_ids"] for batch in batches]
    assert [len(batch) for batch in joined] == [3, 3, 1]
    np.testing.assert_array_equal(np.concatenate(joined), arrays["input_ids"])


def test_positions_only_where_all_of_the_answer_is_in_the_window(tokenizer):
    context = "a b c d e f g h i j"
    example = asked(context, orig_answer_text="d e f", start_position=3, end_position=5)
    # 3 tokens go to [CLS] and [SEP], 4 to the question, 5 are left, stride 1.
    windows = windows_of([example], tokenizer, 12, 1, 4)
    found = [(w.start, w.start_position, w.end_position) for w in windows]
    assert found == [
        (0, 0, 0),
        (1, 8, 10),
        (2, 7, 9),
        (3, 6, 8),
        (4, 0, 0),
        (5, 0, 0),
    ]


@pytest.mark.parametrize(
    "context, text, expected",
    [
        ("born (1821-1887), then", "1887", ["1887"]),
        ("born (1821-1887), then", "1821-18", ["(", "1821", "-", "1887", ")", ","]),
        ("the theaters", "s", ["theaters"]),  # no token of its own: the whole word
        ("12 by 2-by-2", "2-by-2", ["2", "-", "by", "-", "2"]),
        ("12 by 2-by-2", "by", ["by"]),
        ("\u200b one", "\u200b one", ["one"]),
    ],
)
def test_words_are_narrowed_to_the_answer(tokenizer, context, text, expected):
    start = context.rindex(text)
    paragraph = squad.Paragraph.from_text(context)
    example = asked(
        context,
        orig_answer_text=text,
        start_position=paragraph.word_at(start),
        end_position=paragraph.word_at(start + len(text) - 1),
    )
    (window,) = windows_of([example], tokenizer, 64, 16, 24)
    ids = window.input_ids[window.start_position : window.end_position + 1]
    assert tokenizer.convert_ids_to_tokens(ids) == expected


def test_the_first_of_repeated_parts_by_a_slow_search():
    rng = np.random.default_rng(0)
    for _ in range(300):
        values = rng.integers(0, 2, rng.integers(0, 12)).astype(np.int32) * 256
        part = rng.integers(0, 2, rng.integers(0, 4)).astype(np.int32) * 256
        places = [
            i
            for i in range(len(values) - len(part) + 1)
            if len(part) and values[i : i + len(part)].tolist() == part.tolist()
        ]
        assert squad_windows._find(values, part) == (places[0] if places else -1)


def test_answers_that_have_no_tokens(tokenizer):
    example = asked(
        "one \u200b two", orig_answer_text="\u200b", start_position=1, end_position=1
    )
    (window,) = windows_of([example], tokenizer, 64, 16, 24)
    assert (window.start_position, window.end_position) == (0, 0)


@pytest.mark.parametrize("context", ["", " \n", "\u200b \u00ad"])
def test_texts_without_tokens_have_no_window(tokenizer, context):
    examples = [asked(context), asked("one")]
    (window,) = windows_of(examples, tokenizer, 64, 16, 24)
    assert window.example_index == 1
    assert window.unique_id == squad_windows.FIRST_UNIQUE_ID


def test_sizes_that_leave_no_room():
    with pytest.raises(ValueError, match="--max_seq_length is 67.*67"):
        squad_windows.WindowSizes(67, 128, 64)
    squad_windows.WindowSizes(68, 128, 64)
    with pytest.raises(ValueError, match="--doc_stride must be 1 or more, got 0"):
        squad_windows.WindowSizes(384, 0, 64)


def test_a_word_of_100000_characters(tokenizer):
    started = time.perf_counter()
    for word in ("x" * 100_000, "ab-" * 33_333):
        example = asked(
            f"it is {word} then",
            orig_answer_text=word[:50_000],
            start_position=2,
            end_position=2,
        )
        windows = windows_of([example], tokenizer, 384, 128, 64)
        assert len(windows[0].context.first_tokens) == 5
    assert len(windows) > 500
    assert time.perf_counter() - started < 20


def test_round_trip_of_generated_answers(tokenizer):
    """Positions of every answer that is in a window give back its words."""
    rng = random.Random(1)
    names = ["Ada", "O'Neil", "Thornquist", "(Bo)", "Müller", "12,5%", "naïve-lot"]
    seen = 0
    for _ in range(50):
        words = [rng.choice(names) for _ in range(60)]
        start = rng.randrange(50)
        end = start + rng.randrange(5)
        text = " ".join(words[start : end + 1])
        example = asked(
            " ".join(words),
            orig_answer_text=text,
            start_position=start,
            end_position=end,
        )
        for window in windows_of([example], tokenizer, 48, 12, 8):
            if window.end_position:
                ids = window.input_ids[window.start_position : window.end_position + 1]
                assert ids == tokenizer.encode(text)
                seen += 1
    assert seen > 50
