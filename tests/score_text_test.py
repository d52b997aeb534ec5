"""score_text.py: what transformers says of every line, memory, bad input."""

import json
import math
import random
import re
import shutil

import pytest

import score_text
from modeling import checkpoint
from tests import scripts

SCRIPT = "score_text.py"


@pytest.fixture(scope="module")
def expected(golden):
    path = golden / "scoring/expected.json"
    return json.loads(path.read_text("utf-8"))["pretraining_gelu"]


@pytest.fixture
def flags(golden, tmp_path):
    return {
        "input_file": tmp_path / "lines.txt",
        "output_file": tmp_path / "out/answers.jsonl",
        "init_checkpoint": golden / "hf_tiny/pretraining_gelu",
        "vocab_file": golden / "scoring/vocab.txt",
    }


def write(flags, rows):
    """Makes the input file of cases of transformers."""
    lines = [
        " ||| ".join([r["text"], *([r["pair"]] if "pair" in r else [])]) for r in rows
    ]
    flags["input_file"].write_text("".join(f"{line}\n" for line in lines), "utf-8")


def answers(flags):
    lines = flags["output_file"].read_text("ascii").splitlines()
    found = list(map(json.loads, lines))
    assert [answer.pop("line") for answer in found] == [*range(1, len(found) + 1)]
    return found


def close(actual, expected):
    assert actual == pytest.approx(expected, abs=1e-5)


def test_words_for_masks(flags, expected):
    rows = expected["fill_mask"]
    write(flags, rows)
    scripts.succeed(SCRIPT, **flags, task="fill_mask", top_k=3, batch_size=2)
    vocab = flags["vocab_file"].read_text().split("\n")
    for row, answer in zip(rows, answers(flags), strict=True):
        for mask, found in zip(row["masks"], answer["masks"], strict=True):
            assert found["words"] == [vocab[i] for i in mask["word_ids"][:3]]
            close(found["probabilities"], mask["probabilities"][:3])


def test_perplexities_of_lines_and_of_all(flags, expected):
    rows = [*expected["score"], {"text": ""}]
    write(flags, rows)
    shown = scripts.succeed(SCRIPT, **flags, task="perplexity", within_words=True)
    *found, empty = answers(flags)
    assert (empty["tokens"], empty["pseudo_perplexity"]) == ([], None)
    for row, answer in zip(rows, found, strict=False):
        assert answer["tokens"] == row["tokens"]
        close(answer["log_probabilities"], row["within_words"])
        close(answer["pseudo_log_likelihood"], sum(row["within_words"]))
    total = sum(sum(row["within_words"]) for row in rows[:-1])
    count = sum(len(row["tokens"]) for row in rows[:-1])
    numbers = re.search(
        r"all lines: (\d+) .* (-[\d.]+), pseudo_perplexity ([\d.]+)$", shown, re.M
    )
    assert int(numbers[1]) == count
    assert float(numbers[2]) == pytest.approx(total, abs=1e-3)
    assert float(numbers[3]) == pytest.approx(math.exp(-total / count), rel=1e-5)


def test_probabilities_of_pairs(flags, expected):
    rows = expected["next_sentence"]
    write(flags, rows)
    scripts.succeed(SCRIPT, **flags, task="next_sentence")
    found = [answer["probability"] for answer in answers(flags)]
    close(found, [row["probability"] for row in rows])


@pytest.mark.slow
def test_a_run_of_pretraining_is_a_model(flags, golden, tmp_path):
    run = tmp_path / "run"
    scripts.succeed(
        "run_pretraining.py",
        **scripts.short_pretraining(golden) | {"num_train_steps": 3, "do_eval": True},
        output_dir=run,
    )
    flags |= {"init_checkpoint": run, "vocab_file": golden / "tiny_tf1/vocab.txt"}
    flags["input_file"].write_text("the cat is in the box.\n")
    scripts.succeed(SCRIPT, **flags, task="perplexity")
    # Three small steps from random weights: no token is likelier than others.
    (answer,) = answers(flags)
    assert answer["pseudo_perplexity"] == pytest.approx(100, rel=0.1)


@pytest.mark.parametrize(
    ("task", "lines", "words"),
    [
        ("fill_mask", "a [MASK]\na [mask]\n", ["lines.txt, line 2", "no [MASK]"]),
        ("perplexity", "a\n\n" + "a " * 47, ["line 3", "49 tokens", "at most 48"]),
        ("next_sentence", "a ||| b\na\n", ["line 2", "TEXT_A ||| TEXT_B"]),
        ("perplexity", b"a\ncaf\xe9\n", ["lines.txt, line 2", "UTF-8"]),
    ],
)
def test_lines_that_cannot_be_asked_about(flags, task, lines, words):
    content = lines if isinstance(lines, bytes) else lines.encode()
    flags["input_file"].write_bytes(content)
    refusal = scripts.refusal(SCRIPT, **flags, task=task)
    assert [word for word in words if word not in refusal] == []
    assert list(flags["output_file"].parent.iterdir()) == []


def test_a_head_that_is_not_there_is_refused(flags, golden, tmp_path):
    weights = checkpoint.read(golden / "tiny_tf1")
    kept = {n: w for n, w in weights.items() if not n.startswith("cls/predictions/")}
    checkpoint.write_tf1(str(tmp_path / "model.ckpt"), kept, update_state=False)
    flags |= {
        "init_checkpoint": tmp_path / "model.ckpt",
        "bert_config_file": golden / "tiny_tf1/bert_config.json",
        "vocab_file": golden / "tiny_tf1/vocab.txt",
    }
    flags["input_file"].write_text("a [MASK]\n")
    refusal = scripts.refusal(SCRIPT, **flags, task="fill_mask")
    assert "no trained masked LM head" in refusal


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"top_k": 102}, ["top_k must be an int from 1 to 101", "got 102"]),
        ({"do_lower_case": False}, ["--do_lower_case"]),
        ({"within_words": True}, ["--within_words is for --task=perplexity"]),
        (
            {"task": "perplexity", "top_k": 3},
            ["--top_k is for --task=fill_mask; leave it out of --task=perplexity"],
        ),
    ],
)
def test_flags_that_cannot_be_meant(flags, tmp_path, changes, words):
    flags["input_file"].write_text("a [MASK]\n")
    if "do_lower_case" in changes:  # what lies beside the weights says otherwise
        model = tmp_path / "model"
        shutil.copytree(flags["init_checkpoint"], model)
        (model / "tokenizer_config.json").write_text('{"do_lower_case": true}')
        flags["init_checkpoint"] = model
    refusal = scripts.refusal(SCRIPT, **{**flags, "task": "fill_mask", **changes})
    assert [word for word in words if word not in refusal] == []


def test_an_existing_output_stays_unless_told(flags, tmp_path):
    flags["output_file"] = tmp_path / "answers.jsonl"
    flags["output_file"].write_text("precious")
    flags["input_file"].write_text("a [MASK]\n")
    refusal = scripts.refusal(SCRIPT, **flags, task="fill_mask")
    assert "--overwrite" in refusal
    assert flags["output_file"].read_text() == "precious"


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_lines(flags):
    rng = random.Random(0)
    words = ["the", "in", "of", "is", "cat", "x1", "."]
    peaks = []
    for number in (2_000, 20_000):
        lines = [
            " ".join(rng.choices(words, k=rng.randrange(1, 9))) for _ in range(number)
        ]
        flags["input_file"].write_text("\n".join(f"{line} [MASK]" for line in lines))
        changes = {"task": "fill_mask", "top_k": 100, "overwrite": True}
        peaks.append(scripts.peak_memory(SCRIPT, **flags, **changes))
        assert len(answers(flags)) == number
        assert number > 5 * score_text.WINDOW
    assert peaks[1] < peaks[0] + 30, peaks
