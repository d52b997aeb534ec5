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

from modeling import huggingface_config, huggingface_names, torch_pickle

# Where a folder keeps its weights; the first that is there is read.
WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)

# What the model is called if it has this variable; the first that is there counts.
_ARCHITECTURES = (
    ("output_weights", "BertForSequenceClassification"),
    ("cls/squad/output_weights", "BertForQuestionAnswering"),
)


def is_weights_file(path):
    """Whether the name is that of a file of weights, or of an index of shards."""
    return os.fspath(path).endswith(
        (".safetensors", ".bin", ".safetensors.index.json", ".bin.index.json")
    )


def _read_tensors(path):
    """{Hugging Face name: array} of one file, or of the shards that an index lists."""
    path = pathlib.Path(path)
    if path.name.endswith(".index.json"):
        shards = sorted(
            set(huggingface_config.read_json(path).get("weight_map", {}).values())
        )
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


def write(folder, weights, config, tokenizer=None, head=None):
    """Writes a folder that transformers loads.

    Args:
        folder: str, made if it is not there; files of the same names are replaced.
        weights: {TF1 name: np.ndarray}.
        config: BertConfig.
        tokenizer: (path of a vocabulary, do_lower_case), copied into the folder.
        head: huggingface_config.Head; by default its architecture is what `weights`
            suggest.
    Raises:
        OSError: the files could not be written; `folder` is as it was before.
        ValueError: a variable has no Hugging Face name, or labels do not fit.
    """
    head = head or huggingface_config.Head()
    architecture = head.architecture or architecture_of(weights)
    head = dataclasses.replace(head, architecture=architecture)
    values = huggingface_config.config_values(
        config, head, len(weights.get("output_bias", ()))
    )
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
