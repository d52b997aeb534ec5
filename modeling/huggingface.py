"""Hugging Face folders of BERT, read and written.

A folder holds `config.json`, `model.safetensors` (or `pytorch_model.bin`, or shards of
either) and `vocab.txt`. Weights leave and enter under the names of the TF1 checkpoints.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil

import ml_dtypes  # noqa: F401  (teaches numpy bfloat16, which safetensors asks for)
import safetensors.numpy

from modeling import config as config_lib
from modeling import huggingface_names, torch_pickle

# Where a folder keeps its weights; the first that is there is read.
WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)

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

# What the model is called if it has this variable; the first that is there counts.
_ARCHITECTURES = (
    ("output_weights", "BertForSequenceClassification"),
    ("cls/squad/output_weights", "BertForQuestionAnswering"),
)
_WITH_LABELS = ("BertForSequenceClassification", "BertForTokenClassification")


def is_weights_file(path):
    """Whether the name is that of a file of weights, or of an index of shards."""
    return os.fspath(path).endswith(
        (".safetensors", ".bin", ".safetensors.index.json", ".bin.index.json")
    )


def read_json(path):
    """The object in a JSON file; ValueError, with the path, if there is none."""
    try:
        values = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
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
    architecture = (values.get("architectures") or ["BertModel"])[0]
    if "model_type" not in values and not architecture.startswith("Bert"):
        raise ValueError(f"{path}: the model is a {architecture}, not a BERT")
    if values["hidden_act"] not in dict(_ACTIVATIONS):
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


def read_architecture(path):
    """(class name or None, label names or None) from a `config.json`.

    Names that only number the labels (`LABEL_0`) count as none.
    """
    values = read_json(path)
    architecture = (values.get("architectures") or [None])[0]
    names = values.get("id2label") or {}
    numbers = [str(index) for index in range(len(names))]
    if set(names) != set(numbers):
        raise ValueError(f"{path}: id2label must number the labels from 0, got {names}")
    labels = [names[number] for number in numbers]
    if labels == [f"LABEL_{number}" for number in numbers]:
        labels = None
    return architecture, labels


def _read_tensors(path):
    """{Hugging Face name: array} of one file, or of the shards that an index lists."""
    path = pathlib.Path(path)
    if path.name.endswith(".index.json"):
        shards = sorted(set(read_json(path).get("weight_map", {}).values()))
        if not shards or any(os.sep in shard for shard in shards):
            raise ValueError(f"{path} must list files of its own folder in weight_map")
        parts = [_read_tensors(path.parent / shard) for shard in shards]
        return {name: array for part in parts for name, array in part.items()}
    if path.suffix == ".bin":
        return torch_pickle.read(path)
    try:
        return safetensors.numpy.load_file(path)
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"{path} is damaged or no safetensors file ({error}); fetch it again"
        ) from None


def read_weights(path):
    """Reads weights by their TF1 names.

    Args:
        path: str, one of `WEIGHT_FILES` or a file with any name that ends so.
    Returns:
        {TF1 name: np.ndarray}, floating-point numbers as float32.
    Raises:
        FileNotFoundError: the file, or a shard of it, is not there.
        ValueError: it is damaged, or is not the weights of a BERT.
    """
    return huggingface_names.to_weights(_read_tensors(path), path)


def architecture_of(weights):
    """Name of the transformers class that has the heads in `weights`."""
    for name, architecture in _ARCHITECTURES:
        if name in weights:
            return architecture
    masked_lm = "cls/predictions/output_bias" in weights
    next_sentence = "cls/seq_relationship/output_weights" in weights
    return {
        (True, True): "BertForPreTraining",
        (True, False): "BertForMaskedLM",
        (False, True): "BertForNextSentencePrediction",
        (False, False): "BertModel",
    }[masked_lm, next_sentence]


def check_labels(labels, num_labels):
    """Raises ValueError if a classifier of that size cannot have these names."""
    if labels and num_labels and len(labels) != num_labels:
        raise ValueError(
            f"the classifier has {num_labels} labels, but {len(labels)} names are "
            f"given: {', '.join(labels)}"
        )


def config_values(config, architecture, num_labels=None, labels=None):
    """What `config.json` says.

    Args:
        config: BertConfig.
        architecture: str, a class of transformers.
        num_labels: int, or None for a model without labels.
        labels: list of str, names of the labels; without them they are numbered.
    Raises:
        ValueError: there are more or fewer names than labels.
    """
    values = dataclasses.asdict(config)
    del values["extra"]
    written = {ours: theirs for theirs, ours in reversed(_ACTIVATIONS)}
    values["hidden_act"] = written[config.hidden_act]
    values |= {"architectures": [architecture], "model_type": "bert"}
    values["pad_token_id"] = 0
    if num_labels and architecture in _WITH_LABELS:
        check_labels(labels, num_labels)
        labels = labels or [f"LABEL_{index}" for index in range(num_labels)]
        values["id2label"] = {str(index): name for index, name in enumerate(labels)}
        values["label2id"] = {name: index for index, name in enumerate(labels)}
        if num_labels == 1:
            values["problem_type"] = "regression"
    return values


@contextlib.contextmanager
def staged_folder(folder):
    """A temporary folder whose files are moved into `folder` if all goes well.

    Raises:
        OSError: the files could not be written; `folder` is as it was before.
    """
    folder = pathlib.Path(folder)
    existed = folder.is_dir()
    folder.mkdir(parents=True, exist_ok=True)
    staged = folder / ".staged"
    shutil.rmtree(staged, ignore_errors=True)  # left by a run that was killed
    staged.mkdir()
    try:
        yield staged
        for path in sorted(staged.iterdir()):
            os.replace(path, folder / path.name)
    except OSError as error:
        if error.filename or not error.strerror:
            raise
        raise OSError(f"{folder} could not be written: {error.strerror}") from None
    finally:
        shutil.rmtree(staged)
        if not existed and not any(folder.iterdir()):
            folder.rmdir()


def write(folder, weights, config, tokenizer=None, labels=None, architecture=None):
    """Writes a folder that transformers loads.

    Args:
        folder: str, made if it is not there; files of the same names are replaced.
        weights: {TF1 name: np.ndarray}.
        config: BertConfig.
        tokenizer: (path of a vocabulary, do_lower_case), copied into the folder.
        labels: list of str, names of the labels.
        architecture: str; by default what the heads in `weights` suggest.
    Raises:
        OSError: the files could not be written; `folder` is as it was before.
        ValueError: a variable has no Hugging Face name, or labels do not fit.
    """
    architecture = architecture or architecture_of(weights)
    num_labels = len(weights.get("output_bias", ()))
    values = config_values(config, architecture, num_labels, labels)
    tensors = huggingface_names.to_tensors(weights)
    with staged_folder(folder) as staged:
        _write_json(staged / "config.json", values)
        if tokenizer:
            vocab_file, do_lower_case = tokenizer
            shutil.copyfile(vocab_file, staged / "vocab.txt")
            settings = {
                "do_lower_case": do_lower_case,
                "model_max_length": config.max_position_embeddings,
                "tokenizer_class": "BertTokenizer",
            }
            _write_json(staged / "tokenizer_config.json", settings)
        path = staged / "model.safetensors"
        try:
            safetensors.numpy.save_file(tensors, path, {"format": "pt"})
        except safetensors.SafetensorError as error:
            raise OSError(f"{folder} could not be written: {error}") from None
        # safetensors lets nobody else read it.
        shutil.copymode(staged / "config.json", path)


def _write_json(path, values):
    path.write_text(json.dumps(values, indent=2, sort_keys=True) + "\n", "utf-8")
