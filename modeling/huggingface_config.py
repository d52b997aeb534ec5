"""`config.json` of Hugging Face: a model's sizes, and what its head is for."""

import dataclasses
import json
import pathlib

from modeling import config as config_lib

# Hugging Face's activation, ours. The first row with our name is the one written.
_ACTIVATIONS = (
    ("gelu", "gelu_exact"),
    ("gelu_python", "gelu_exact"),
    ("gelu_new", "gelu"),
    ("gelu_pytorch_tanh", "gelu"),
    ("gelu_python_tanh", "gelu"),
    ("gelu_accurate", "gelu"),
    ("gelu_fast", "gelu"),
    ("relu", "relu"),
    ("tanh", "tanh"),
    ("linear", "linear"),
)

# What Hugging Face takes where config.json says nothing and our default is another.
_DEFAULTS = {"vocab_size": 30522, "type_vocab_size": 2, "hidden_act": "gelu"}

# Keys that change the arithmetic, and the value under which the model is BERT.
_MEANS_BERT = {
    "model_type": "bert",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "is_encoder_decoder": False,
    "add_cross_attention": False,
    "pruned_heads": {},
    "quantization_config": None,
}

# Classes whose outputs have names.
_WITH_LABELS = ("BertForSequenceClassification", "BertForTokenClassification")

_PROBLEM_TYPES = (
    "regression",
    "single_label_classification",
    "multi_label_classification",
)


@dataclasses.dataclass(frozen=True)
class Head:
    """What a `config.json` says of a head; None where it says nothing.

    Attributes:
        architecture: str, a class of transformers.
        labels: tuple of str, the names of the outputs.
        problem_type: str, one of `_PROBLEM_TYPES`.
    """

    architecture: str | None = None
    labels: tuple[str, ...] | None = None
    problem_type: str | None = None


def read_json(path):
    """The object in a JSON file; ValueError, with the path, if there is none."""
    try:
        values = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a JSON file: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path} must hold a JSON object, got {values!r:.40}")
    return values


def is_config(path):
    """Whether a JSON file is Hugging Face's, and not a `bert_config.json`."""
    return bool({"model_type", "architectures"} & read_json(path).keys())


def read_config(path):
    """Reads a `config.json` as a BertConfig.

    Args:
        path: str, the file.
    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no JSON object, or says something that BERT does not have.
    """
    values = _DEFAULTS | read_json(path)
    expected = _MEANS_BERT | {"embedding_size": values.get("hidden_size", 768)}
    for key, value in expected.items():
        if values.get(key, value) not in (value, None):
            raise ValueError(
                f"{path}: {key} is {values[key]!r}, which BERT does not have; only "
                f"{value!r} can be read"
            )
    architectures = values.get("architectures") or ["BertModel"]
    if not isinstance(architectures, list) or not isinstance(architectures[0], str):
        raise ValueError(
            f"{path}: architectures must be a list of names, got {architectures!r}"
        )
    architecture = architectures[0]
    if "model_type" not in values and not architecture.startswith("Bert"):
        raise ValueError(f"{path}: the model is a {architecture}, not a BERT")
    if values["hidden_act"] not in list(dict(_ACTIVATIONS)):  # or it is a list
        raise ValueError(
            f"{path}: hidden_act {values['hidden_act']!r} is not supported; it must be "
            f"one of {', '.join(dict(_ACTIVATIONS))}"
        )
    values["hidden_act"] = dict(_ACTIVATIONS)[values["hidden_act"]]
    fields = [field.name for field in dataclasses.fields(config_lib.BertConfig)]
    known = {key: values[key] for key in fields if key in values and key != "extra"}
    try:
        return config_lib.BertConfig(**known)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_problem_type(values, path):
    """The problem_type among the values of a file, or None; ValueError if unknown."""
    problem_type = values.get("problem_type")
    if problem_type not in (None, *_PROBLEM_TYPES):
        raise ValueError(
            f"{path}: problem_type must be one of {', '.join(_PROBLEM_TYPES)}, got "
            f"{problem_type!r}"
        )
    return problem_type


def read_head(path):
    """The Head of a `config.json`; names that only number labels (LABEL_0) are none.

    Raises:
        ValueError: it is no JSON object, or says something that cannot be.
    """
    values = read_json(path)
    problem_type = read_problem_type(values, path)
    architecture = (values.get("architectures") or [None])[0]
    names = values.get("id2label") or {}
    numbers = [str(index) for index in range(len(names))]
    if set(names) != set(numbers):
        raise ValueError(f"{path}: id2label must number the labels from 0, got {names}")
    labels = tuple(names[number] for number in numbers)
    if labels == tuple(f"LABEL_{number}" for number in numbers):
        labels = None
    return Head(architecture, labels, problem_type)


def check_labels(labels, num_labels):
    """Raises ValueError if a classifier of that size cannot have these names."""
    if labels and num_labels and len(labels) != num_labels:
        raise ValueError(
            f"the classifier has {num_labels} labels, but {len(labels)} names are "
            f"given: {', '.join(labels)}"
        )


def config_values(config, head, num_labels=0):
    """What `config.json` says.

    Args:
        config: BertConfig.
        head: Head with an architecture; labels without names are numbered.
        num_labels: int, 0 for a model without labels.
    Raises:
        ValueError: there are more or fewer names than labels, or the model is one that
            Hugging Face's BERT cannot be.
    """
    if config.pooled_position != "first":
        raise ValueError(
            "the model pools its last token, which Hugging Face's BERT cannot do; only "
            "models that pool the first can be written as such"
        )
    values = dataclasses.asdict(config)
    for name in ("extra", "visibility", "pooled_position"):
        del values[name]
    written = {ours: theirs for theirs, ours in reversed(_ACTIVATIONS)}
    values["hidden_act"] = written[config.hidden_act]
    values |= {"architectures": [head.architecture], "model_type": "bert"}
    values["pad_token_id"] = 0
    if num_labels and head.architecture in _WITH_LABELS:
        check_labels(head.labels, num_labels)
        labels = head.labels or [f"LABEL_{index}" for index in range(num_labels)]
        values["id2label"] = {str(index): name for index, name in enumerate(labels)}
        values["label2id"] = {name: index for index, name in enumerate(labels)}
        if problem_type := head.problem_type or (num_labels == 1 and "regression"):
            values["problem_type"] = problem_type
    return values
