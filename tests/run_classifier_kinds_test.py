"""run_classifier.py with numbers, several labels, weights, windows, other data."""

import csv
import json
import random

import numpy as np
import pytest
import sklearn.metrics

import text_classification
from data import record_reading, records
from tests import scripts

RUN = "run_classifier.py"
FILLER = ["the", "a", "so", "it", "is", "not"]
WORDS = ["good", "bad", "fair", "cat", "dog", "cow", *FILLER]


@pytest.fixture
def flags(golden, tmp_path):
    """Flags of a small model that learns single words fast."""
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (tmp_path / "vocab.txt").write_text("\n".join([*specials, *WORDS]) + "\n")
    (tmp_path / "data").mkdir()
    return {
        "bert_config_file": golden / "tiny_tf1/bert_config.json",
        "vocab_file": tmp_path / "vocab.txt",
        "data_dir": tmp_path / "data",
        "output_dir": tmp_path / "out",
        "max_seq_length": 16,
        "train_batch_size": 8,
        "learning_rate": 2e-3,
        "warmup_proportion": 0.3,
        "bias_correction": True,
        "num_train_epochs": 90,
        "do_train": True,
        "do_eval": True,
    }


def text(rng, *words):
    """These words among others, in any order."""
    words = [*words, *rng.choices(FILLER, k=4)]
    rng.shuffle(words)
    return " ".join(words)


def write_csv(path, header, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def read_table(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def write_sts_b(folder):
    """Made-up data in the layout of GLUE; returns the pairs of the test set."""
    rng = random.Random(0)
    scores = {"good": 5.0, "fair": 2.5, "bad": 0.0}
    head = ["index", "genre", "filename", "year", "old_index", "source1", "source2"]
    head += ["sentence1", "sentence2"]
    pairs = []
    for split, size in (("train", 96), ("dev", 24), ("test", 12)):
        lines = [head + ([] if split == "test" else ["score"])]
        for i in range(size):
            word = rng.choice(list(scores))
            pair = [text(rng, word), text(rng)]
            end = [] if split == "test" else [f"{scores[word]:.3f}"]
            lines.append([str(i), *["none"] * 6, *pair, *end])
            if split == "test":
                pairs.append((*pair, scores[word]))
        table = "".join("\t".join(line) + "\n" for line in lines)
        (folder / f"{split}.tsv").write_text(table, encoding="utf-8")
    return pairs


def test_numbers_are_learnt_and_predicted(flags):
    pairs = write_sts_b(flags["data_dir"])
    scripts.succeed(RUN, **flags, task_name="STS-B", do_predict=True)
    out = flags["output_dir"]
    results = scripts.read_results(out / "eval_results.txt")
    assert set(results) == {
        *("eval_pearson", "eval_spearmanr", "eval_loss", "loss", "global_step")
    }
    rows = read_table(out / "eval_predictions.tsv")
    gold, value = ([float(row[name]) for row in rows] for name in ("gold", "value"))
    error = np.mean(np.subtract(gold, value) ** 2)
    assert results["eval_loss"] == pytest.approx(error, abs=1e-5)
    assert results["eval_pearson"] == pytest.approx(np.corrcoef(gold, value)[0, 1])
    assert results["eval_pearson"] > 0.95

    rows = read_table(out / "predictions.tsv")
    assert [row["id"] for row in rows] == [f"test-{i + 1}" for i in range(12)]
    values = [float(row["value"]) for row in rows]
    np.testing.assert_allclose(values, [score for *_, score in pairs], atol=0.8)
    np.testing.assert_array_equal(np.loadtxt(out / "test_results.tsv"), values)
    assert not (out / "labels.json").exists()
    assert json.loads((out / "model.json").read_text())["label_type"] == "number"
    arrays = record_reading.read_all(
        [str(out / "train.tf_record")], records.regression_spec(16)
    )
    assert set(arrays["label_ids"]) == {0.0, 2.5, 5.0}

    predictor = text_classification.load(out)
    firsts, seconds = [a for a, *_ in pairs], [b for _, b, _ in pairs]
    answers = predictor.predict(firsts, seconds)
    np.testing.assert_allclose([a["value"] for a in answers], values, atol=1e-5)


def test_several_labels_are_learnt_and_predicted(flags):
    rng = random.Random(0)
    for split, size in (("train", 128), ("dev", 40)):
        rows = []
        for _ in range(size):
            animals = [name for name in ("cat", "dog", "cow") if rng.random() < 0.4]
            rows.append((text(rng, *animals), " | ".join(animals)))
        write_csv(flags["data_dir"] / f"{split}.csv", ("text", "label"), rows)
    texts = ["the cat is so good", "it is not so", "a dog the cow"]
    write_csv(flags["data_dir"] / "test.csv", ("text",), [(x,) for x in texts])
    own = {"task_name": "own", "label_type": "multi_label", "label_separator": "|"}
    scripts.succeed(RUN, **flags, **own, do_predict=True)
    out = flags["output_dir"]
    assert json.loads((out / "labels.json").read_text()) == ["cat", "cow", "dog"]

    def sets(name):
        rows = read_table(out / "eval_predictions.tsv")
        return [
            [x in row[name].split("|") for x in ("cat", "cow", "dog")] for row in rows
        ]

    gold, found = sets("gold"), sets("label")
    results = scripts.read_results(out / "eval_results.txt")
    for average in ("micro", "macro"):
        expected = sklearn.metrics.f1_score(gold, found, average=average)
        assert results[f"eval_f1_{average}"] == pytest.approx(expected)
    expected = sklearn.metrics.accuracy_score(gold, found)
    assert results["eval_accuracy"] == pytest.approx(expected)
    assert results["eval_f1_micro"] > 0.95

    rows = read_table(out / "predictions.tsv")
    assert [row["label"] for row in rows] == ["cat", "", "cow|dog"]
    probabilities = np.loadtxt(out / "test_results.tsv")
    assert ((probabilities >= 0.5) == [[1, 0, 0], [0, 0, 0], [0, 1, 1]]).all()
    answers = text_classification.load(out).predict(texts)
    assert [answer["label"] for answer in answers] == [["cat"], [], ["cow", "dog"]]
    rows = [list(answer["probabilities"].values()) for answer in answers]
    np.testing.assert_allclose(rows, probabilities, atol=1e-5)


def test_documents_longer_than_the_model_takes(flags):
    """6 words fit, and what decides comes after them."""
    rng = random.Random(0)
    texts = {}
    for split, size in (("train", 96), ("dev", 30)):
        rows = []
        for _ in range(size):
            label = rng.choice(["cat", "dog"])
            words = rng.choices(FILLER, k=6)
            words += rng.choices([label, *FILLER[:2]], k=rng.randrange(6, 24))
            rows.append((" ".join(words), label))
        write_csv(flags["data_dir"] / f"{split}.csv", ("text", "label"), rows)
        texts[split] = [row[0] for row in rows]
    flags |= {"max_seq_length": 8, "document_stride": 4, "num_train_epochs": 20}
    scripts.succeed(RUN, **flags, task_name="own")
    out = flags["output_dir"]
    results = scripts.read_results(out / "eval_results.txt")
    assert results["eval_accuracy"] > 0.9
    spec = records.window_spec(records.classifier_spec(8))
    windows = record_reading.read_all([str(out / "eval.tf_record")], spec)
    expected = [1 + -(-max(len(x.split()) - 6, 0) // 4) for x in texts["dev"]]
    counts = np.bincount(windows["document_ids"])
    assert counts.tolist() == expected and max(expected) > 5

    rows = read_table(out / "eval_predictions.tsv")
    assert len(rows) == 30
    accuracy = np.mean([row["label"] == row["gold"] for row in rows])
    assert results["eval_accuracy"] == pytest.approx(accuracy)
    answers = text_classification.load(out).predict(texts["dev"])
    assert [answer["label"] for answer in answers] == [row["label"] for row in rows]
    np.testing.assert_allclose(
        [answer["score"] for answer in answers],
        [float(row["score"]) for row in rows],
        atol=1e-5,
    )


@pytest.mark.slow
def test_class_weights_turn_what_is_rare_into_what_is_said(flags):
    """The texts tell nothing, so only the weights decide."""
    rows = [("it is so", "no")] * 36 + [("it is so", "yes")] * 12
    write_csv(flags["data_dir"] / "train.csv", ("text", "label"), rows)
    write_csv(flags["data_dir"] / "dev.csv", ("text", "label"), rows)
    for weights, expected in ((None, "no"), ("1,12", "yes")):
        changes = {"class_weights": weights, "output_dir": f"{flags['output_dir']}"}
        changes["output_dir"] += expected
        changes = {name: value for name, value in changes.items() if value}
        scripts.succeed(RUN, **{**flags, **changes, "task_name": "own"})
        rows = read_table(f"{changes['output_dir']}/eval_predictions.tsv")
        assert {row["label"] for row in rows} == {expected}


@pytest.mark.slow
def test_the_diagnostic_set_in_the_folder_of_mnli(golden, flags):
    flags |= {"vocab_file": golden / "tiny_tf1/vocab.txt", "num_train_epochs": 2}
    samples = golden / "glue_samples/MNLI"
    scripts.succeed(RUN, **{**flags, "data_dir": samples, "task_name": "mnli"})
    out = flags["output_dir"]
    names = {path.name for path in out.glob("eval_*")}
    assert names >= {"eval_results.json", "eval_results_mismatched.json"}
    text = "index\tsentence1\tsentence2\n0\tthe cat\ta cat\n1\tthe dog\ta cat\n"
    (flags["data_dir"] / "AX.tsv").write_text(text)
    changes = {"task_name": "ax", "do_train": False, "do_eval": False}
    scripts.succeed(RUN, **{**flags, **changes}, do_predict=True)
    rows = read_table(out / "predictions_ax.tsv")
    assert [row["id"] for row in rows] == ["test_ax-1", "test_ax-2"]
    assert {row["label"] for row in rows} <= {"contradiction", "entailment", "neutral"}
    assert not (out / "predictions.tsv").exists()
    sentence = scripts.refusal(RUN, **{**flags, **changes, "do_eval": True})
    assert sentence == "ax has no dev set"


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the package's own code warns
def test_data_of_tensorflow_datasets(golden, flags, tmp_path):
    datasets = pytest.importorskip("tensorflow_datasets")
    from tests.data import tfds_test

    features = {
        "sentence1": datasets.features.Text(),
        "sentence2": datasets.features.Text(),
        "label": datasets.features.ClassLabel(names=["not_equivalent", "equivalent"]),
        "idx": np.int32,
    }
    splits = {"train": tfds_test.ROWS[:2] * 8, "validation": tfds_test.ROWS[:2]}
    splits["test"] = tfds_test.ROWS
    tfds_test.prepare(tmp_path / "data", "glue", "mrpc", features, splits)
    flags |= {"vocab_file": golden / "tiny_tf1/vocab.txt", "num_train_epochs": 1}
    scripts.succeed(RUN, **flags, tfds_name="glue/mrpc", do_predict=True)
    out = flags["output_dir"]
    assert set(scripts.read_results(out / "eval_results.txt")) >= {"eval_f1"}
    ids = [row["id"] for row in read_table(out / "predictions.tsv")]
    assert ids == ["test-2", "test-5", "test-7"]
    changes = {"tfds_name": "glue/rte", "output_dir": tmp_path / "other"}
    sentence = scripts.refusal(RUN, **{**flags, **changes})
    assert "glue/rte is not prepared in" in sentence
    assert f"tfds.load('glue/rte', data_dir='{tmp_path / 'data'}')" in sentence


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ["one of --task_name and --tfds_name"]),
        ({"task_name": "own", "tfds_name": "glue/rte"}, ["one of --task_name"]),
        ({"task_name": "mrpc", "data_dir": ""}, ["--task_name needs --data_dir"]),
        ({"task_name": "mrpc", "label_type": "number"}, ["--label_type is for"]),
        (
            {"task_name": "own", "document_stride": 4, "text_pair_column": "b"},
            ["--document_stride", "--text_pair_column"],
        ),
        (
            {"task_name": "own", "document_stride": 15},
            ["--document_stride is 15", "14 tokens", "--max_seq_length"],
        ),
        (
            {"task_name": "own", "class_weights": "balanced", "label_type": "number"},
            ["--class_weights", "number"],
        ),
    ],
)
def test_flags_that_contradict_one_another(flags, changes, words):
    sentence = scripts.refusal(RUN, **{**flags, **changes})
    assert all(word in sentence for word in words), sentence
    assert not flags["output_dir"].exists()
