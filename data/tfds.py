"""Classification data from TensorFlow Datasets, by name, without a network.

The package tensorflow-datasets is needed for this only, and imported here only.
"""

import dataclasses
import pathlib
import re
from typing import Any

import numpy as np

from data import classification, glue, tables, targets

# The texts of the tasks of GLUE; the others have sentence1 and sentence2.
_GLUE_TEXTS = {
    "cola": ("sentence", None),
    "sst2": ("sentence", None),
    "qnli": ("question", "sentence"),
    "qqp": ("question1", "question2"),
    "mnli": ("premise", "hypothesis"),
    "ax": ("premise", "hypothesis"),
}
# name/config:version, the last two perhaps left out.
_NAME = re.compile(r"([a-zA-Z]\w*)(?:/([\w+.-]+))?(?::(?:\d+|\*)(?:\.(?:\d+|\*)){2})?")


@dataclasses.dataclass(frozen=True)
class TfdsTask:
    """A data set as a task, like `glue.Task`; see `find_task`.

    Attributes:
        name: such as "glue/mrpc".
        text_a, text_b, label: features of the data set; `text_b` may be None.
        kind: of the labels.
        labels: in the order of the classes of the model.
        numbered: the same labels, in the order of the numbers of the data set.
        metrics: names of functions in metrics/classification.py.
        split_names: our names of the splits, and theirs.
    """

    name: str
    text_a: str
    text_b: str | None
    label: str
    kind: targets.Kind
    labels: tuple[str, ...]
    numbered: tuple[str, ...]
    metrics: tuple[str, ...]
    split_names: dict[str, str]

    def splits(self, kind: str) -> list[str]:
        """Names of the splits of a kind: "train", "dev" or "test"; MNLI has pairs."""
        return [name for name in self.split_names if name.startswith(kind)]

    def examples(
        self, data_dir: str | pathlib.Path | None, split: str
    ) -> list[classification.InputExample]:
        """Reads one split, in the order of the original files if the data set says it.

        Args:
            data_dir: where data sets are prepared; None: ~/tensorflow_datasets.
            split: one of `splits`.

        Raises:
            ValueError: the data set is not prepared there, or has no such split.
        """
        builder = _make_builder(self.name, data_dir)
        theirs = self.split_names[split]
        known = list(builder.info.splits)
        if known and theirs not in known:
            there = ", ".join(known)
            raise ValueError(f"{self.name} has no {theirs} set, only {there}")
        try:
            rows = list(builder.as_dataset(split=theirs).as_numpy_iterator())
        except AssertionError:
            where = "" if data_dir is None else f", data_dir={str(data_dir)!r}"
            raise ValueError(
                f"{self.name} is not prepared in {builder.data_dir}; run this where "
                'there is a network: python -c "import tensorflow_datasets as tfds; '
                f'tfds.load({self.name!r}{where})"'
            ) from None
        numbers = [int(row.get("idx", i)) for i, row in enumerate(rows)]
        numbered = sorted(zip(numbers, rows, strict=True), key=lambda pair: pair[0])
        return [self._example(f"{split}-{number}", row) for number, row in numbered]

    def _example(self, guid: str, row: dict[str, Any]) -> classification.InputExample:
        def text(name: str | None) -> str | None:
            return None if name is None else row[name].decode("utf-8")

        label = row[self.label]
        if self.kind == targets.Kind.NUMBER:
            label = float(label)
        elif self.kind == targets.Kind.MULTI_LABEL:
            label = tuple(self.numbered[i] for i in label)
        else:  # -1 in test sets whose labels are kept back
            label = None if label < 0 else self.numbered[label]
        return classification.InputExample(
            guid, text(self.text_a), text(self.text_b), label
        )


def find_task(
    name: str,
    data_dir: str | pathlib.Path | None,
    text_a: str = "text",
    text_b: str | None = None,
    label: str = "label",
) -> TfdsTask:
    """The data set of that name: of GLUE like `glue.TASKS`, or any with texts.

    Args:
        name: such as "glue/mrpc" or "imdb_reviews".
        data_dir: where data sets are prepared; None: ~/tensorflow_datasets.
        text_a, text_b, label: features of the data set; not looked at for GLUE.

    Raises:
        ValueError: the package is not installed; there is no such data set, part or
            version; it has no such features, or labels that are neither classes nor
            numbers.
    """
    builder = _make_builder(name, data_dir)
    features = builder.info.features
    if builder.name == "glue":
        return _glue_task(name, builder.builder_config.name, features["label"])
    for column in filter(None, (text_a, text_b, label)):
        if column not in features:
            raise ValueError(
                f"{name} has no feature {tables.not_among(column, features)}"
            )
    for column in filter(None, (text_a, text_b)):
        if str(features[column].np_dtype) != "object":
            raise ValueError(f"{column} of {name} is no text, but {features[column]!r}")
    kind, names = _labels(name, label, features[label])
    splits = {"train": "train", "dev": "validation", "test": "test"}
    metrics = classification.OwnTask(kind=kind).metrics
    return TfdsTask(name, text_a, text_b, label, kind, names, names, metrics, splits)


def _glue_task(name: str, config: str, label: Any) -> TfdsTask:
    base, *part = config.split("_")  # also mnli_matched
    task = glue.find_task(base)
    text_a, text_b = _GLUE_TEXTS.get(base, ("sentence1", "sentence2"))
    # The names are our labels, or stand for "0" and "1".
    numbered = tuple(getattr(label, "names", ()))
    if sorted(numbered) != sorted(task.labels):
        numbered = tuple(map(str, range(len(numbered))))
    if part:
        splits = {"dev": "validation", "test": "test"}
    else:
        splits = {ours: ours.replace("dev", "validation") for ours in task.layouts}
    if config == "mnli":
        splits["test"] = "test_matched"
    if config == "ax":
        splits = {"test_ax": "test"}
    return TfdsTask(
        name,
        text_a,
        text_b,
        "label",
        task.kind,
        task.labels,
        numbered,
        task.metrics,
        splits,
    )


def _labels(
    name: str, column: str, feature: Any
) -> tuple[targets.Kind, tuple[str, ...]]:
    """Kind and names of the labels that a feature holds."""
    import tensorflow_datasets as tfds

    if isinstance(feature, tfds.features.ClassLabel):
        return targets.Kind.CLASS, tuple(feature.names)
    inner = getattr(feature, "feature", None)
    if isinstance(inner, tfds.features.ClassLabel):
        return targets.Kind.MULTI_LABEL, tuple(inner.names)
    if feature.shape == () and feature.np_dtype in (np.float32, np.float64):
        return targets.Kind.NUMBER, ()
    raise ValueError(
        f"the labels of {name} must be classes or floats, but {column} is {feature!r}"
    )


def _make_builder(name: str, data_dir: str | pathlib.Path | None) -> Any:
    try:
        import tensorflow_datasets as tfds
    except ImportError:
        raise ValueError(
            "to read data by --tfds_name install the package tensorflow-datasets"
        ) from None
    match = _NAME.fullmatch(name)
    if not match:  # the package reads more, such as data sets that are in a network
        raise ValueError(
            f"expected a data set such as imdb_reviews, glue/mrpc or glue/mrpc:2.0.0, "
            f"got {name!r:.80}"
        )
    dataset, config = match.groups()
    try:
        return tfds.builder(name, data_dir=data_dir, try_gcs=False)
    except tfds.core.registered.DatasetNotFoundError:
        known = tables.not_among(dataset, tfds.list_builders())
        raise ValueError(f"TensorFlow Datasets has no data set {known}") from None
    except ValueError:
        configs = tfds.builder_cls(dataset).builder_configs
        if config is None or config in configs:
            raise
        known = tables.not_among(config, configs)
        raise ValueError(f"the data set {dataset} has no part {known}") from None
    except AssertionError as error:
        what = str(error).rpartition('": ')[2]  # after 'Failed to construct "…", "…": '
        raise ValueError(f"{name}: {what}") from None
