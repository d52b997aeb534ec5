"""The predictor of masked words, likelihoods and pairs, against transformers."""

import dataclasses
import json
import math
import random
import shutil

import numpy as np
import pytest

import language_model
from data import tokenization
from modeling import checkpoint
from modeling import models as models_lib
from tests import small_models
from tests.small_models import close

NAMES = ("pretraining_gelu", "pretraining_gelu_new", "pretraining_relu")


@pytest.fixture(scope="module")
def vocab_file(golden):
    return golden / "scoring/vocab.txt"


@pytest.fixture(scope="module")
def cases(golden):
    """What transformers says, by the name of the model."""
    return json.loads((golden / "scoring/expected.json").read_text("utf-8"))


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def predictor(golden, vocab_file, name):
    path = golden / "hf_tiny" / name
    return language_model.load(path, vocab_file, batch_size=5)


@pytest.fixture(scope="module")
def left_to_right(golden, vocab_file, name, tmp_path_factory):
    """The same weights where a position sees those before it alone."""
    path = golden / "hf_tiny" / name
    config = dataclasses.replace(
        checkpoint.read_config(path), visibility="left_to_right", pooled_position="last"
    )
    file = tmp_path_factory.mktemp("config") / "bert_config.json"
    file.write_text(config.to_json_string(), "utf-8")
    return language_model.load(path, vocab_file, file, batch_size=4)


def columns(rows):
    return [row["text"] for row in rows], [row.get("pair") for row in rows]


def test_words_for_masks_are_those_of_transformers(predictor, cases, name):
    rows = cases[name]["fill_mask"]
    answers = predictor.fill_mask(*columns(rows))
    for row, answer in zip(rows, answers, strict=True):
        for mask, found in zip(row["masks"], answer, strict=True):
            ids = [predictor.tokenizer.vocab[word] for word in found["words"]]
            assert ids == mask["word_ids"]
            close(found["probabilities"], mask["probabilities"])


def check_scores(answers, rows, key, kind):
    for row, answer in zip(rows, answers, strict=True):
        assert answer["tokens"] == row["tokens"]
        close(answer["log_probabilities"], row[key])
        total = sum(row[key])
        assert answer[f"{kind}log_likelihood"] == pytest.approx(total, abs=1e-5)
        perplexity = math.exp(-total / len(row["tokens"]))
        assert answer[f"{kind}perplexity"] == pytest.approx(perplexity, rel=1e-5)


def test_pseudo_log_likelihoods_are_those_of_transformers(predictor, cases, name):
    rows = cases[name]["score"]
    answers = predictor.score(*columns(rows))
    check_scores(answers, rows, "log_probabilities", "pseudo_")
    answers = predictor.score(*columns(rows), within_words=True)
    check_scores(answers, rows, "within_words", "pseudo_")


def test_likelihoods_from_left_to_right_are_those_of_transformers(
    left_to_right, cases, name
):
    rows = cases[name]["score"]
    check_scores(left_to_right.score(*columns(rows)), rows, "left_to_right", "")


def test_probabilities_of_pairs_are_those_of_transformers(predictor, cases, name):
    rows = cases[name]["next_sentence"]
    expected = [row["probability"] for row in rows]
    close(predictor.next_sentence(*columns(rows)), expected)


def test_perplexity():
    """That of a fair die is its number of sides, whatever the number of throws."""
    assert language_model.perplexity(7 * math.log(1 / 6), 7) == pytest.approx(6)
    assert language_model.perplexity(0.0, 0) is None
    assert math.isfinite(language_model.perplexity(-1e9, 1))


@pytest.fixture(scope="module")
def random_predictor(vocab_file):
    """A predictor with room for more entries than the vocabulary has."""
    tokenizer = tokenization.FullTokenizer(vocab_file)
    size = len(tokenizer.vocab) + 3
    config = small_models.config(vocab_size=size, max_position_embeddings=40)
    model = models_lib.BertForPretraining(config)
    small_models.randomize(model, 1)
    return language_model.Predictor(model, tokenizer, 40, batch_size=3)


def random_texts(rng, number):
    words = ["the", "cat", "walked", "of", "x1", "東", "."]
    return [" ".join(rng.choices(words, k=rng.randrange(1, 7))) for _ in range(number)]


@pytest.mark.parametrize("seed", range(3))
def test_an_answer_does_not_depend_on_the_batch(random_predictor, seed):
    rng = random.Random(seed)
    texts, pairs = random_texts(rng, 9), random_texts(rng, 9)
    pairs[::3] = [None] * 3
    together = random_predictor.score(texts, pairs)
    asked = [f"[MASK] {text} [MASK]" for text in texts]
    words = random_predictor.fill_mask(asked, pairs, top_k=2)
    for i, answer in enumerate(together):
        (alone,) = random_predictor.score([texts[i]], [pairs[i]])
        assert alone["tokens"] == answer["tokens"]
        close(alone["log_probabilities"], answer["log_probabilities"])
        (alone,) = random_predictor.fill_mask([asked[i]], [pairs[i]], top_k=2)
        for one, other in zip(alone, words[i], strict=True):
            assert one["words"] == other["words"]
            close(one["probabilities"], other["probabilities"])
    texts, pairs = random_texts(rng, 9), random_texts(rng, 9)
    together = random_predictor.next_sentence(texts, pairs)
    for i, probability in enumerate(together):
        close(random_predictor.next_sentence([texts[i]], [pairs[i]]), [probability])


def test_all_words_of_the_vocabulary_have_the_sum_1(random_predictor):
    size = random_predictor.config.vocab_size
    (answer,) = random_predictor.fill_mask(["the [MASK] of [MASK]"], top_k=size)
    for mask in answer:
        assert sum(mask["probabilities"]) == pytest.approx(1, abs=1e-5)
        assert mask["probabilities"] == sorted(mask["probabilities"], reverse=True)
        assert mask["words"].count("[UNK]") == 1 + 3  # entries without a word
        assert set(random_predictor.tokenizer.vocab) == set(mask["words"])


def test_a_token_has_the_probability_that_its_mask_gives_it(random_predictor):
    (answer,) = random_predictor.score(["the of walked"])
    size = random_predictor.config.vocab_size
    ((mask,),) = random_predictor.fill_mask(["the [MASK] walked"], top_k=size)
    found = dict(zip(mask["words"], mask["probabilities"], strict=True))
    assert answer["tokens"][1] == "of"
    assert math.exp(answer["log_probabilities"][1]) == pytest.approx(found["of"])


def test_a_prefix_has_the_same_scores_from_left_to_right(left_to_right):
    texts = ["the cat", "the cat walked", "the cat walked in."]
    scores = [s["log_probabilities"] for s in left_to_right.score(texts)]
    for shorter, longer in zip(scores, scores[1:], strict=False):
        close(longer[: len(shorter)], shorter)


def test_answers_are_counted(random_predictor):
    counted = []
    random_predictor.on_answers = counted.append
    random_predictor.fill_mask(["[MASK] [MASK]", "[MASK]"])
    assert sum(counted) == 3
    random_predictor.score(["the of", "a", ""])
    assert sum(counted) == 3 + 3
    random_predictor.next_sentence(["the"], ["of"])
    assert sum(counted) == 3 + 3 + 1


def test_no_texts_no_answers(random_predictor):
    assert random_predictor.fill_mask([]) == []
    assert random_predictor.score([], []) == []
    assert random_predictor.next_sentence([], []) == []
    assert random_predictor.score([""]) == [
        {
            "tokens": [],
            "log_probabilities": [],
            "pseudo_log_likelihood": 0.0,
            "pseudo_perplexity": None,
        }
    ]


def test_what_cannot_be_asked(random_predictor, left_to_right):
    size = random_predictor.config.vocab_size
    fill, score = random_predictor.fill_mask, random_predictor.score
    for call, message in [
        (lambda: score(["a"], []), "needs the other, got 1 and 0 texts"),
        (
            lambda: fill(["[MASK]", "a"]),
            r"text 1, counted from 0: there is no \[MASK\]",
        ),
        (lambda: score(["a " * 40]), "text 0, .*: there are 42 tokens .* most 40 fit"),
        (
            lambda: fill(["[MASK]"], top_k=size + 1),
            f"from 1 to {size}, .* got {size + 1}",
        ),
        (lambda: fill(["[MASK]"], top_k=0), f"from 1 to {size}, .* got 0"),
        (lambda: random_predictor.next_sentence(["a"], [None]), "a pair is needed"),
        (lambda: left_to_right.fill_mask(["[MASK]"]), "sees nothing behind it"),
        (lambda: left_to_right.score(["a"], within_words=True), "without within_words"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize(
    ("scope", "lost"),
    [
        ("cls/seq_relationship/", {"next_sentence"}),
        ("bert/pooler/", {"next_sentence"}),
        ("cls/predictions/", {"fill_mask", "score"}),
    ],
)
def test_random_heads_are_not_asked(golden, tmp_path, scope, lost):
    source = golden / "tiny_tf1"
    weights = checkpoint.read(source)
    kept = {n: w for n, w in weights.items() if not n.startswith(scope)}
    assert len(kept) < len(weights)
    checkpoint.write_tf1(str(tmp_path / "model.ckpt"), kept, update_state=False)
    for name in ("bert_config.json", "vocab.txt"):
        shutil.copy(source / name, tmp_path)
    predictor = language_model.load(tmp_path)
    for name, texts in (
        ("fill_mask", [["[MASK]"]]),
        ("score", [["a"]]),
        ("next_sentence", [["a"], ["b"]]),
    ):
        if name in lost:
            with pytest.raises(ValueError, match=rf"no trained .* head \({scope}"):
                getattr(predictor, name)(*texts)
        else:
            assert len(getattr(predictor, name)(*texts)) == 1


def test_a_head_that_was_left_out_of_the_loss_is_not_asked(golden, tmp_path):
    for path in (golden / "tiny_tf1").iterdir():
        shutil.copy(path, tmp_path)
    run = {"script": "run_pretraining", "next_sentence_loss": False}
    (tmp_path / "model.json").write_text(json.dumps(run))
    predictor = language_model.load(tmp_path)
    assert predictor.score(["the cat"])
    with pytest.raises(ValueError, match="no trained next sentence head"):
        predictor.next_sentence(["a"], ["b"])
    del run["next_sentence_loss"]
    (tmp_path / "model.json").write_text(json.dumps(run))
    assert language_model.load(tmp_path).next_sentence(["a"], ["b"])


def test_models_that_cannot_be_loaded(golden, vocab_file, tmp_path):
    source = golden / "hf_tiny/pretraining_gelu"
    with pytest.raises(ValueError, match="there is no vocabulary"):
        language_model.load(source)
    with pytest.raises(ValueError, match="49, but the model has only 48 positions"):
        language_model.load(source, vocab_file, max_seq_length=49)
    with pytest.raises(ValueError, match="101 entries, but the model's vocab_size is"):
        language_model.load(golden / "tiny_tf1", vocab_file)
    with pytest.raises(FileNotFoundError, match="holds no checkpoint"):
        language_model.load(tmp_path, vocab_file)
    checkpoint.write_tf1(str(tmp_path / "model.ckpt"), {"a": np.zeros(1)})
    with pytest.raises(ValueError, match="sizes of the model are not known"):
        language_model.load(tmp_path, vocab_file)
