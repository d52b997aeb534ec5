"""The files that make a model, config and vocabulary, found and held together."""

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil

from data import classification, filesystem, targets, tokenization
from modeling import checkpoint, huggingface, huggingface_config, weight_shapes
from modeling import config as config_lib

# Heads whose weights alone do not tell them from a classifier's.
_ARCHITECTURE_OF_SCRIPT = {
    "run_ner": "BertForTokenClassification",
    "run_swag": "BertForMultipleChoice",
}
# What transformers calls the kinds of label of run_classifier.py.
_PROBLEM_TYPES = {
    targets.Kind.CLASS: "single_label_classification",
    targets.Kind.MULTI_LABEL: "multi_label_classification",
    targets.Kind.NUMBER: "regression",
}
# Beside a TF1 checkpoint: what its weights and labels.json do not say of the head.
_HEAD_FILE = "head.json"


def read_config(bert_config_file, init_checkpoint, output_dir=None):
    """The model's BertConfig: from its own file, or from beside its weights.

    Args:
        bert_config_file: str or None, the released JSON or a Hugging Face config.
        init_checkpoint: str or None, what training starts from.
        output_dir: str or None, folder of a run that may be finished already.
    Raises:
        FileNotFoundError: there is no such checkpoint.
        ValueError: neither says it.
    """
    if bert_config_file:
        if huggingface_config.is_config(
            bert_config_file
        ):  # in which "gelu" is another one
            return huggingface_config.read_config(bert_config_file)
        return config_lib.BertConfig.from_json_file(bert_config_file)
    for place in filter(None, (init_checkpoint, output_dir)):
        config = checkpoint.read_config(place)
        if config is not None:
            return config
    if init_checkpoint:
        checkpoint.locate(init_checkpoint)  # which says so if there is none
    raise ValueError(
        "the sizes of the model are not known: give --bert_config_file, or an "
        "--init_checkpoint with a bert_config.json or config.json beside it"
    )


def read_model(source, bert_config_file=None):
    """Weights and BertConfig of a checkpoint, which fit together.

    Args:
        source: str, see `checkpoint.locate`.
        bert_config_file: str or None, for a config that is not beside the weights.
    Returns:
        ({TF1 name: np.ndarray}, BertConfig).
    Raises:
        ValueError: there is no config, or it is another model's.
    """
    weights = checkpoint.read(source)
    if bert_config_file:
        config = read_config(bert_config_file, None)
    else:
        config = checkpoint.read_config(source)
    if config is None:
        raise ValueError(
            f"there is no bert_config.json or config.json beside {source}; give "
            "--bert_config_file"
        )
    weight_shapes.check(weights, config, source)
    return weights, config


def find_vocab(vocab_file, init_checkpoint, output_dir=None):
    """Path of the vocabulary: as given, or vocab.txt beside the weights.

    Raises:
        ValueError: it is not given and not there.
    """
    if vocab_file:
        return vocab_file
    for place in filter(None, (init_checkpoint, output_dir)):
        path = os.path.join(folder_of(place), "vocab.txt")
        if os.path.isfile(path):
            return path
    raise ValueError(
        "there is no vocabulary: give --vocab_file, or an --init_checkpoint with a "
        "vocab.txt beside it"
    )


def folder_of(path):
    """The folder of a checkpoint, which may be the path itself."""
    return path if os.path.isdir(path) else os.path.dirname(path)


def find(path, folder, name):
    """`path` if given, else the file of that name in the folder, if there is one."""
    beside = os.path.join(folder, name)
    return path or (beside if os.path.isfile(beside) else None)


def find_head(source):
    """The huggingface_config.Head of a checkpoint, by what lies beside it.

    Raises:
        ValueError: it cannot be understood; names the file.
    """
    folder = folder_of(source)
    head = huggingface_config.Head()
    config_file = find(None, folder, "config.json")
    if config_file and huggingface.is_weights_file(checkpoint.locate(source)):
        head = huggingface_config.read_head(config_file)
    elif path := find(None, folder, _HEAD_FILE):
        values = huggingface_config.read_json(path)
        head = huggingface_config.Head(
            values.get("architecture"),
            problem_type=huggingface_config.read_problem_type(values, path),
        )
    if path := find(None, folder, "model.json"):  # of a run of ours
        values = huggingface_config.read_json(path)
        head = huggingface_config.Head(
            _ARCHITECTURE_OF_SCRIPT.get(values.get("script")),
            problem_type=_PROBLEM_TYPES.get(values.get("label_type")),
        )
    if path := find(None, folder, "labels.json"):
        labels = classification.read_labels(path, at_least=1)
        head = dataclasses.replace(head, labels=labels)
    return head


def reorder_outputs(weights, labels, wanted):
    """Moves the outputs of a classifier to where another order has their labels.

    Args:
        weights: {TF1 name: np.ndarray}.
        labels: names of the outputs, in their order.
        wanted: names in the order asked for. Upper and lower case are one, unless the
            names are the same without that.
    Returns:
        {TF1 name: np.ndarray}, or None if the names are not the same.
    """
    if sorted(labels) != sorted(wanted):
        labels, wanted = ([name.casefold() for name in x] for x in (labels, wanted))
    if sorted(labels) != sorted(wanted) or len(set(labels)) < len(labels):
        return None
    rows = [labels.index(name) for name in wanted]
    names = ("output_weights", "output_bias")
    return weights | {name: weights[name][rows] for name in names}


def check_output(folder, overwrite, source):
    """Refuses to write a model into something else, or among other files.

    Args:
        folder: str, the --output.
        overwrite: bool, whether it may hold files.
        source: str, the --input.
    Raises:
        ValueError: --output is no folder, or that of the input, or holds files and
            there is no --overwrite.
    """
    filesystem.check_folder("--output", folder)
    if os.path.realpath(folder) == os.path.realpath(folder_of(source)):
        raise ValueError(f"{folder} is the folder of --input; choose another --output")
    if os.path.isdir(folder) and os.listdir(folder) and not overwrite:
        raise ValueError(f"{folder} holds files; give --overwrite to add to it")


def write_tf1(folder, weights, config, vocab_file, head):
    """Writes the files of a released model, and what there is to say of its head.

    Args:
        folder: str.
        weights: {TF1 name: np.ndarray}.
        config: BertConfig.
        vocab_file: str or None.
        head: huggingface_config.Head. Its labels become labels.json, and what neither
            they nor the weights say becomes head.json.
    """
    has_outputs = "output_bias" in weights
    with huggingface.staged_folder(folder) as staged:
        prefix = os.path.join(staged, "bert_model.ckpt")
        checkpoint.write_tf1(prefix, weights, update_state=False)
        (staged / "bert_config.json").write_text(config.to_json_string(), "utf-8")
        if vocab_file:
            shutil.copyfile(vocab_file, staged / "vocab.txt")
        if head.labels and has_outputs:
            classification.write_labels(staged / "labels.json", head.labels)
        rest = {"problem_type": head.problem_type, "architecture": head.architecture}
        if head.architecture == huggingface.architecture_of(weights):
            del rest["architecture"]
        rest = {key: value for key, value in rest.items() if value}
        if rest and has_outputs:
            text = json.dumps(rest, indent=2, sort_keys=True) + "\n"
            (staged / _HEAD_FILE).write_text(text, "utf-8")
        written = {path.name for path in staged.iterdir()}
    forget_head(folder, written)


def forget_head(folder, kept=()):
    """Removes what an earlier model in the folder said of its head, but for `kept`."""
    for name in {"labels.json", _HEAD_FILE} - set(kept):
        (pathlib.Path(folder) / name).unlink(missing_ok=True)


def fingerprint(path):
    """SHA-256 of a file's bytes, in hexadecimal; tells vocabularies apart."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_case(do_lower_case, init_checkpoint):
    """Refuses a --do_lower_case that is not that of the weights, as far as they say.

    They say it by the name of their folder, by a tokenizer_config.json (Hugging Face)
    or by the model.json of a run of ours beside them.

    Raises:
        ValueError: says which flag to change.
    """
    tokenization.validate_case_matches_checkpoint(do_lower_case, init_checkpoint)
    for name in ("tokenizer_config.json", "model.json"):
        path = os.path.join(folder_of(init_checkpoint or ""), name)
        if not (init_checkpoint and os.path.isfile(path)):
            continue
        there = huggingface_config.read_json(path).get("do_lower_case", do_lower_case)
        if there != do_lower_case:
            raise ValueError(
                f"{path} says do_lower_case is {there}; give "
                f"--{'' if there else 'no'}do_lower_case"
            )


def check(config, max_seq_length, vocab_file=None):
    """Refuses a vocabulary or sequences that the model has no embeddings for.

    Raises:
        ValueError: names both numbers and the flag to change.
    """
    if max_seq_length > config.max_position_embeddings:
        raise ValueError(
            f"--max_seq_length is {max_seq_length}, but the model has only "
            f"{config.max_position_embeddings} positions (max_position_embeddings)"
        )
    if vocab_file is None:
        return
    entries = 1 + max(tokenization.load_vocab(vocab_file).values())
    if entries > config.vocab_size:
        raise ValueError(
            f"{vocab_file} has {entries} entries, but the model's vocab_size is "
            f"{config.vocab_size}; give the --vocab_file that belongs to the model"
        )
