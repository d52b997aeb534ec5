"""run_ner.py: a task anybody can learn, long sentences, other models, resuming."""

import json
import random
import shutil

import numpy as np
import pytest
import safetensors.numpy

from data import conll, tokenization
from modeling import checkpoint, huggingface, huggingface_config, models
from tests import conlleval, resuming, scripts

RUN = "run_ner.py"
NAMES = {"PER": "abc", "LOC": "def"}  # first letters of the names of each type


def sentences_of(count, seed, max_length=8):
    """Sentences as [(word, tag in BIO)]: names of letters, and digits between.

    What starts an entity is in its first word, so that it can be learnt from it.
    """
    rng = random.Random(seed)
    sentences = []
    for _ in range(count):
        rows, length = [], rng.randint(1, max_length)
        while len(rows) < length:
            kind = rng.choice([None, *NAMES])
            if kind is None:
                rows.append((rng.choice("0123456789"), "O"))
                continue
            rows.append(
                (rng.choice(NAMES[kind]) + "x" * rng.randint(0, 3), f"B-{kind}")
            )
            rows += [(rng.choice(NAMES[kind]) + "y", f"I-{kind}")] * rng.randint(0, 1)
        sentences.append(rows)
    return sentences


def to_iob1(rows):
    """The same rows with B- only between neighbours of one type."""
    tags = ["O", *(tag for _, tag in rows)]
    return [
        (word, tag if tag[2:] == before[2:] else tag.replace("B-", "I-"))
        for (word, tag), before in zip(rows, tags, strict=False)
    ]


def write_sentences(path, sentences, columns=2, every=None):
    """Writes columns of words and tags; a -DOCSTART- before `every` so many."""
    lines = []
    for number, rows in enumerate(sentences):
        if every and number % every == 0:
            lines += ["-DOCSTART- O", ""]
        lines += [*("\t".join(row[:columns]) for row in rows), ""]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def flags(golden, tmp_path):
    """Flags of a run_ner.py that works."""
    return {
        "train_file": write_sentences(
            tmp_path / "train.txt", sentences_of(200, "train", max_length=20), every=5
        ),
        "dev_file": write_sentences(
            tmp_path / "dev.txt", sentences_of(30, "dev"), every=5
        ),
        "bert_config_file": golden / "tiny_tf1/bert_config.json",
        "vocab_file": golden / "tiny_tf1/vocab.txt",
        "max_seq_length": 24,
        "output_dir": tmp_path / "out",
    }


LEARN = {
    "do_train": True,
    "train_batch_size": 16,
    "learning_rate": 3e-3,
    "num_train_epochs": 24,
}


def conlleval_scores(path):
    """{name: score} that conlleval gives a file of predictions."""
    counts = conlleval.score(path.read_text(encoding="utf-8").splitlines())
    kinds = {
        "": [c.total() for c in (counts[n] for n in ("correct", "found", "wanted"))]
    }
    for kind in filter(None, counts["wanted"] | counts["found"]):
        kinds[f"_{kind}"] = [counts[n][kind] for n in ("correct", "found", "wanted")]
    results = {}
    for end, numbers in kinds.items():
        for name, ratio in zip(
            ("precision", "recall", "f1"), conlleval.ratios(*numbers), strict=True
        ):
            results[name + end] = ratio
        results[f"support{end}"] = numbers[2]
    return results


def test_tags_are_learnt_scored_and_predicted(flags, tmp_path):
    out = tmp_path / "out"
    shown = scripts.succeed(
        RUN, **flags, **LEARN, do_eval=True, score_training_set=True
    )
    assert "train.txt: 200 sentences" in shown and "BIO tags in column 1" in shown
    results = scripts.read_results(out / "eval_results.txt")
    assert results == json.loads((out / "eval_results.json").read_text())
    assert results["eval_f1"] > 0.8
    assert results["eval_loss"] < 0.3
    assert (out / f"model.ckpt-{results['global_step']:.0f}.index").exists()
    expected = conlleval_scores(out / "eval_predictions.conll")
    assert len(expected) == 12
    for name, score in expected.items():
        assert results[f"eval_{name}"] == pytest.approx(score), name
    labels = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    assert json.loads((out / "labels.json").read_text()) == labels

    on_training = scripts.read_results(out / "train_results.txt")
    assert on_training["train_f1"] > 0.8
    rows = sentences_of(200, "train", max_length=20)
    tags = [tag for sentence in rows for _, tag in sentence]
    share = max(map(tags.count, tags)) / len(tags)
    assert on_training["train_majority"] == pytest.approx(share, abs=1e-6)
    assert on_training["train_accuracy"] > on_training["train_majority"]

    # Another process, without the training data; long sentences and no tags.
    flags["train_file"].unlink()
    long = sentences_of(4, "test", max_length=90)
    assert max(map(len, long)) > 24
    long[1][0] = ("\u200b", "O")
    test_file = write_sentences(tmp_path / "test.txt", long, columns=1)
    scripts.succeed(RUN, **flags, do_predict=True, test_file=test_file)
    assert not (out / "test_results.txt").exists()
    file = conll.read(out / "test_predictions.conll", allow_mixed=True)
    assert [s.words for s in file.sentences] == [tuple(w for w, _ in s) for s in long]
    pairs = [
        (tag, right)
        for sentence, rows in zip(file.sentences, long, strict=True)
        for tag, (_, right) in zip(sentence.tags, rows, strict=True)
    ]
    assert sum(a == b for a, b in pairs) > 0.8 * len(pairs)

    # The same with tags, in IOB1, and with what surrounds a sentence.
    write_sentences(test_file, [to_iob1(rows) for rows in long], every=2)
    flags |= {"test_file": test_file, "document_context": True}
    shown = scripts.succeed(RUN, **flags, do_predict=True)
    assert "IOB1 tags in column 1" in shown
    results = scripts.read_results(out / "test_results.txt")
    expected = conlleval_scores(out / "test_predictions.conll")
    assert {n: results[f"test_{n}"] for n in expected} == pytest.approx(expected)
    assert results["test_f1"] > 0.5


def test_the_best_checkpoint_is_kept(flags, tmp_path):
    scripts.succeed(
        RUN,
        **flags,
        **{**LEARN, "num_train_epochs": 3},
        do_eval=True,
        keep_best=True,
        save_checkpoints_steps=10,
    )
    lines = (tmp_path / "out/validation.jsonl").read_text().splitlines()
    best = max((json.loads(line) for line in lines), key=lambda line: line["f1"])
    results = scripts.read_results(tmp_path / "out/eval_results.txt")
    assert results["eval_f1"] == best["f1"]
    assert results["global_step"] == best["step"]


def test_types_only_in_the_test_set_count_as_missed(flags, tmp_path):
    rows = [("ax", "B-PER"), ("ay", "B-ORG"), ("by", "I-ORG"), ("1", "O")]
    flags["test_file"] = write_sentences(tmp_path / "test.txt", [rows, rows])
    flags |= {"do_train": True, "train_batch_size": 16, "num_train_epochs": 0.1}
    shown = scripts.succeed(RUN, **flags, do_predict=True)
    assert "test.txt: the model's labels lack B-ORG, I-ORG, so these ent" in shown
    results = scripts.read_results(tmp_path / "out/test_results.txt")
    assert (results["test_support_ORG"], results["test_recall_ORG"]) == (2, 0)
    assert "test_loss" not in results
    expected = conlleval_scores(tmp_path / "out/test_predictions.conll")
    assert {n: results[f"test_{n}"] for n in expected} == pytest.approx(expected)


@pytest.fixture
def tagger(golden):
    """Folder of a tiny model that transformers wrote."""
    return golden / "hf_tiny/token_classification"


def logits_of(folder):
    """What our model computes of a folder's inputs, and what transformers did."""
    config = checkpoint.read_config(folder)
    model = models.BertForTokenClassification(config, 5)
    report = checkpoint.load(model, str(folder))
    # The only weights it has not, and which are not used.
    assert {name.rpartition("/")[0] for name in report.fresh} == {"bert/pooler/dense"}
    expected = np.load(folder / "expected.npz")
    names = ("input_ids", "input_mask", "segment_ids")
    batch = {name: expected[name].astype(np.int32) for name in names}
    return model(batch)["logits"].numpy(), expected["logits"]


def test_model_of_transformers_read_and_written_back(tagger, tmp_path):
    actual, expected = logits_of(tagger)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=2e-5)
    huggingface.write(
        tmp_path,
        checkpoint.read(tagger),
        checkpoint.read_config(tagger),
        head=huggingface_config.read_head(tagger / "config.json"),
    )
    shutil.copy(tagger / "expected.npz", tmp_path)
    np.testing.assert_array_equal(logits_of(tmp_path)[0], actual)
    tensors = safetensors.numpy.load_file(tagger / "model.safetensors")
    written = safetensors.numpy.load_file(tmp_path / "model.safetensors")
    assert written.keys() == tensors.keys()
    for name, array in tensors.items():
        np.testing.assert_array_equal(written[name], array, err_msg=name)
    theirs, ours = (
        json.loads((folder / "config.json").read_text())
        for folder in (tagger, tmp_path)
    )
    for key in ("architectures", "id2label", "label2id", "hidden_act"):
        assert ours[key] == theirs[key]


def test_model_of_transformers_tags_with_its_own_labels(tagger, flags, tmp_path):
    del flags["bert_config_file"], flags["train_file"], flags["dev_file"]
    test_file = write_sentences(tmp_path / "test.txt", [[("ab", "O"), ("c", "B-LOC")]])
    scripts.succeed(
        RUN, **flags, init_checkpoint=tagger, test_file=test_file, do_predict=True
    )
    tokenizer = tokenization.FullTokenizer(flags["vocab_file"])
    ids = [[tokenizer.vocab[t] for t in ("[CLS]", "a", "##b", "c", "[SEP]")]]
    ids = np.array(ids, np.int32)
    model = models.BertForTokenClassification(checkpoint.read_config(tagger), 5)
    checkpoint.load(model, str(tagger))
    batch = {"input_ids": ids, "input_mask": 1 + 0 * ids, "segment_ids": 0 * ids}
    best = model(batch)["logits"].numpy().argmax(-1)[0]
    labels = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    lines = (tmp_path / "out/test_predictions.conll").read_text().splitlines()
    assert lines == [
        f"ab\tO\tO\t{labels[best[1]]}",
        *(f"c\tB-LOC\tB-LOC\t{labels[best[3]]}", ""),
    ]


@pytest.mark.slow
def test_killed_three_times_it_ends_with_the_same_bits(flags, golden, tmp_path):
    flags |= LEARN | {
        "init_checkpoint": golden / "tiny_tf1/bert_model.ckpt",
        "train_batch_size": 4,
        "num_train_epochs": 1,
        "save_checkpoints_steps": 7,
    }
    del flags["output_dir"]
    resuming.check(RUN, flags, tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("dev_file", "1\tO\n2\n", ["line 2", "expected 2 columns", "got 1"]),
        ("dev_file", "\n1\tO\n2\tB-ORG\n", ["line 3", "B-ORG", "training", "B-LOC"]),
        ("test_file", "\n-DOCSTART- O\n", ["has no words"]),
        ("train_file", None, ["--train_file"]),
        ("test_file", "1\tO\n", ["-DOCSTART-", "--document_context"]),
    ],
    ids=["columns", "unknown type", "empty test set", "no file", "no documents"],
)
def test_bad_input_is_refused_in_one_sentence(flags, tmp_path, name, content, words):
    flags |= {"do_train": True, "do_eval": True, "do_predict": True}
    flags["test_file"] = flags["dev_file"]
    path = tmp_path / "bad.txt"
    if content is None:
        del flags[name]
    else:
        path.write_text(content)
        flags[name] = path
        words = [*words, path]
    flags["document_context"] = "--document_context" in words
    sentence = scripts.refusal(RUN, **flags)
    assert [word for word in words if str(word) not in sentence] == [], sentence
    assert not (tmp_path / "out").exists()
