"""TensorFlow Datasets: prepared folders are read, others named in one sentence."""

import sys

import numpy as np
import pytest

from data import glue, targets, tfds

tensorflow_datasets = pytest.importorskip("tensorflow_datasets")

# The package's own code warns.
pytestmark = pytest.mark.filterwarnings("default")

ROWS = [  # in another order than idx
    {"sentence1": "Ä b.", "sentence2": "C d.", "label": 1, "idx": 7},
    {"sentence1": "E f.", "sentence2": "G h.", "label": 0, "idx": 2},
    {"sentence1": "I j.", "sentence2": "K l.", "label": -1, "idx": 5},
]


def prepare(folder, name, config, features, splits):
    """Prepares a data set of that name in a folder, as their own code does."""

    class Prepared(
        tensorflow_datasets.core.GeneratorBasedBuilder, skip_registration=True
    ):
        code_path = None  # nothing beside this file to look for
        VERSION = tensorflow_datasets.core.Version("2.0.0")
        BUILDER_CONFIGS = [
            tensorflow_datasets.core.BuilderConfig(name=config, version="2.0.0")
        ]

        def _info(self):
            return tensorflow_datasets.core.DatasetInfo(
                builder=self,
                features=tensorflow_datasets.features.FeaturesDict(features),
            )

        def _split_generators(self, _):
            return {split: enumerate(rows) for split, rows in splits.items()}

        def _generate_examples(self):
            raise NotImplementedError

    Prepared.name = name
    builder = Prepared(data_dir=str(folder), config=config)
    builder.download_and_prepare()
    return folder


@pytest.fixture(scope="module")
def text():
    return tensorflow_datasets.features.Text()


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory, text):
    """A folder where glue/mrpc is prepared from `ROWS`."""
    features = {
        "sentence1": text,
        "sentence2": text,
        "label": tensorflow_datasets.features.ClassLabel(
            names=["not_equivalent", "equivalent"]
        ),
        "idx": np.int32,
    }
    splits = {"train": ROWS[:2], "validation": ROWS[1:2], "test": ROWS}
    return prepare(tmp_path_factory.mktemp("tfds"), "glue", "mrpc", features, splits)


def test_a_prepared_task_of_glue(mrpc):
    task = tfds.find_task("glue/mrpc", mrpc)
    ours = glue.find_task("mrpc")
    assert (task.labels, task.metrics, task.kind) == (
        ours.labels,
        ours.metrics,
        ours.kind,
    )
    assert {kind: task.splits(kind) for kind in ("train", "dev", "test")} == {
        "train": ["train"],
        "dev": ["dev"],
        "test": ["test"],
    }
    examples = task.examples(mrpc, "train")
    assert [(e.guid, e.text_a, e.text_b, e.label) for e in examples] == [
        ("train-2", "E f.", "G h.", "0"),
        ("train-7", "Ä b.", "C d.", "1"),
    ]
    assert [e.label for e in task.examples(mrpc, "test")] == ["0", None, "1"]
    assert [e.text_a for e in task.examples(mrpc, "dev")] == ["E f."]


@pytest.mark.parametrize("name", [name for name in glue.TASKS if name != "xnli"])
def test_every_task_of_glue_has_its_columns_and_labels(name, tmp_path):
    """Their code says the features; their fake data fills them."""
    ours = glue.find_task(name)
    theirs = "glue/" + name.replace("-", "")
    with tensorflow_datasets.testing.mock_data(num_examples=12):
        task = tfds.find_task(theirs, tmp_path)
        assert (task.labels, task.metrics) == (ours.labels, ours.metrics)
        assert task.splits("dev") == ours.splits("dev")
        assert task.splits("test") == ours.splits("test")
        (split, *_) = [*task.splits("train"), *task.splits("test")]
        examples = task.examples(tmp_path, split)
    assert len(examples) == 12
    assert all(e.text_a for e in examples)
    pair = name not in ("cola", "sst-2")
    assert all(bool(e.text_b) == pair for e in examples)
    if name == "sts-b":
        assert {type(e.label) for e in examples} == {float}
    else:
        assert {e.label for e in examples} <= set(ours.labels)


def test_labels_of_mnli_are_matched_by_name(tmp_path):
    """Theirs are in another order than the original's."""
    with tensorflow_datasets.testing.mock_data(num_examples=1):
        task = tfds.find_task("glue/mnli", tmp_path)
    assert task.labels == ("contradiction", "entailment", "neutral")
    assert task.numbered == ("entailment", "neutral", "contradiction")
    assert task.split_names["test"] == "test_matched"
    assert task.split_names["dev_mismatched"] == "validation_mismatched"


def test_another_data_set_by_its_features(tmp_path, text):
    label = tensorflow_datasets.features.ClassLabel(names=["neg", "pos"])
    features = {
        "review": text,
        "label": label,
        "tags": tensorflow_datasets.features.Sequence(label),
        "score": np.float32,
        "number": np.int64,
    }
    row = {"review": "Fine.", "label": 1, "tags": [1, 0], "score": 0.5, "number": 3}
    prepare(tmp_path, "films", "plain", features, {"train": [row], "test": [row]})

    def find(label):
        return tfds.find_task("films/plain", tmp_path, "review", label=label)

    task = find("label")
    assert (task.kind, task.labels) == (targets.Kind.CLASS, ("neg", "pos"))
    (example,) = task.examples(tmp_path, "train")
    assert (example.text_a, example.text_b, example.label) == ("Fine.", None, "pos")
    task = find("tags")
    assert (task.kind, task.labels) == (targets.Kind.MULTI_LABEL, ("neg", "pos"))
    assert task.examples(tmp_path, "train")[0].label == ("pos", "neg")
    task = find("score")
    assert (task.kind, task.labels) == (targets.Kind.NUMBER, ())
    assert task.examples(tmp_path, "train")[0].label == 0.5
    with pytest.raises(ValueError, match="films/plain must be classes or floats"):
        find("number")
    with pytest.raises(ValueError, match="no feature 'labl'; .* mean 'label'"):
        find("labl")
    with pytest.raises(ValueError, match="score of films/plain is no text"):
        tfds.find_task("films/plain", tmp_path, "review", "score")
    with pytest.raises(ValueError, match="has no validation set, only t"):
        find("label").examples(tmp_path, "dev")


def test_a_data_set_that_is_not_prepared(tmp_path):
    task = tfds.find_task("glue/rte", tmp_path)
    message = r"glue/rte is not prepared in .*glue/rte/.*; run this .* tfds\.load\('"
    with pytest.raises(ValueError, match=message) as caught:
        task.examples(tmp_path, "train")
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_that_do_not_exist(tmp_path):
    with pytest.raises(ValueError, match="no data set 'gleu'.*did you mean 'glue'"):
        tfds.find_task("gleu/mrpc", tmp_path)
    with pytest.raises(ValueError, match="glue has no part 'mrcp'; .* mean 'mrpc'"):
        tfds.find_task("glue/mrcp", tmp_path)
    with pytest.raises(
        ValueError, match=r"^glue/mrpc:9\.9\.9: Dataset glue .*: 2\.0\.0"
    ) as caught:
        tfds.find_task("glue/mrpc:9.9.9", tmp_path)
    assert "\n" not in str(caught.value)
    assert tfds.find_task("glue/mrpc:2.*.*", tmp_path).labels == ("0", "1")


@pytest.mark.parametrize(
    "name",
    ["", "glue/mrpc/", "glue/mrpc:x", "glue/mrpc/data_dir=/x", "huggingface:glue"],
)
def test_what_is_no_name(name, tmp_path):
    with pytest.raises(ValueError, match=f"expected a data set .*, got '{name}'"):
        tfds.find_task(name, tmp_path)


def test_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(ValueError, match="install the package tensorflow-datasets"):
        tfds.find_task("glue/mrpc", tmp_path)
