"""A model in other formats, each compared with the model in memory.

They take ids and give logits, or vectors: other runtimes have no BERT tokenizer.
"""

import dataclasses
import importlib
import pathlib

import numpy as np
import tensorflow as tf
from absl import logging

import model_files
from data import filesystem
from modeling import checkpoint, huggingface, huggingface_config
from serving import ids_model, parity

FOLDER = "formats"  # in that of a version
RESULTS_FILE = "formats.json"

# Of few bits: the largest difference, in parts of the largest logit. What 8 bits do
# depends on the weights, with logits off by 1 to 5 % of the largest, and only the
# user's data can say whether that matters. What is beyond this is broken, not coarse.
COARSE_LIMIT = 0.25

_PACKAGES = ("onnx", "onnxruntime", "tf2onnx")


@dataclasses.dataclass(frozen=True)
class Format:
    """One that has a runtime.

    Attributes:
        file: str.
        write: function of an ids_model.IdsModel and the path of the file.
        open: function of the path, giving a function of a batch, see `ids_model`.
    """

    file: str
    write: object
    open: object


RUNTIMES = {
    "litert": Format("model.tflite", ids_model.write_litert, ids_model.open_litert),
    "litert_int8": Format(
        "model_int8.tflite", ids_model.write_litert_int8, ids_model.open_litert
    ),
    "onnx": Format("model.onnx", ids_model.write_onnx, ids_model.open_onnx),
    "onnx_int8": Format(
        "model_int8.onnx", ids_model.write_onnx_int8, ids_model.open_onnx
    ),
}
# In this order they are written.
NAMES = (*RUNTIMES, "hugging_face", "weights")


def check(names):
    """Refuses formats that cannot be written.

    Args:
        names: list of str.
    Raises:
        ValueError: one is not of NAMES, or packages for it are not installed.
    """
    for name in names:
        if name not in NAMES:
            raise ValueError(
                f"--formats has {name!r}; those that there are: {', '.join(NAMES)}"
            )
    if not {"onnx", "onnx_int8"} & set(names):
        return
    try:
        for package in _PACKAGES:
            importlib.import_module(package)
    except ImportError as error:
        raise ValueError(
            f"--formats=onnx needs packages that are not here ({error}); install them "
            "with pip install -r requirements-formats.txt, or leave it out"
        ) from None


def check_bilstm(names):
    """Refuses formats that cannot hold what --bilstm_layers puts on the encoder.

    Args:
        names: of NAMES.
    Raises:
        ValueError: one is for BERT's weights alone, or its runtime cannot loop.
    """
    for name in names:
        if not name.startswith("onnx"):
            raise ValueError(
                f"--formats={name} cannot hold the LSTM of --bilstm_layers; leave it "
                "out, or take onnx"
            )


def write(server, version, names, head, tolerance):
    """Writes a model in other formats, and what was measured, into a version's folder.

    Args:
        server: saved_model.TextServer.
        version: str, the folder of a SavedModel, not in use yet.
        names: of NAMES.
        head: huggingface_config.Head, or None for what the weights suggest.
        tolerance: float, largest difference of those in float32: of a logit, or
            relative to the largest of its row where that is above 1.
    Returns:
        dict of name → dict with
        path: str, in `version`.
        bytes: int, of the file or of all in a folder.
        largest_difference: float, as of `tolerance`; of weights read back always 0.
        share_of_largest: float, the largest difference, divided by the largest logit;
            of those with a runtime, as what follows.
        agreement: float, share of the rows of logits whose largest is the same, which
            those with one column do not have; of vectors their least cosine.
        compared: str, of how many of them.
    Raises:
        ValueError: one differs from the model by more than is allowed.
        OSError: one could not be written.
    """
    results = {}
    folder = pathlib.Path(version) / FOLDER
    folder.mkdir()
    model = ids_model.IdsModel(server)
    samples = _samples(server)
    for name in sorted(names, key=NAMES.index):
        if name in RUNTIMES:
            path = folder / RUNTIMES[name].file
            RUNTIMES[name].write(model, str(path))
            measured = compare(RUNTIMES[name].open(str(path)), samples)
            _refuse(name, measured, tolerance)
        else:
            path = folder / name
            measured = _write_weights(server, path, head)
        files = [path] if path.is_file() else path.iterdir()
        size = sum(file.stat().st_size for file in files)
        path = path.relative_to(version).as_posix()
        results[name] = {"path": path, "bytes": size, **measured}
    filesystem.write_json(str(folder / RESULTS_FILE), results)
    lines = "\n".join(describe(results).values())
    logging.info("other formats, of ids, compared on random ids and texts:\n%s", lines)
    return results


def _samples(server):
    """Batches, and what a server's model gives for them."""
    return [(batch, server.numbers(batch)) for batch in server.samples()]


def measure(server, other):
    """How far another server's model, of less precision, is from a server's, in words.

    Raises:
        ValueError: it is too far.
    """

    def run(batch):
        tensors = {name: tf.constant(ids) for name, ids in batch.items()}
        return {name: found.numpy() for name, found in other.numbers(tensors).items()}

    measured = compare(run, _samples(server))
    if not measured["share_of_largest"] <= COARSE_LIMIT:
        raise ValueError(
            "in this precision the model is off by "
            f"{measured['share_of_largest']:.3g} of the largest logit, at most "
            f"{COARSE_LIMIT:g} is allowed; export it in float32"
        )
    return _in_words(measured)


def compare(run, samples):
    """How far another runtime is from the model in memory.

    Args:
        run: function of a dict of arrays, giving another.
        samples: list of (batch, what the model gives for it), dicts of tensors.
    Returns:
        dict with largest_difference, share_of_largest, agreement and compared, see
        `write`.
    """
    differences, errors, sizes, agreements = [], [], [], []
    for batch, outputs in samples:
        actual = run({name: ids.numpy() for name, ids in batch.items()})
        for name, tensor in outputs.items():
            found, expected = actual[name], tensor.numpy()
            # Small logits are what is left of sums of large terms, so that they carry
            # the rounding errors of large ones (Higham 2002, section 3.1).
            scale = np.maximum(1, np.max(np.abs(expected), axis=-1, keepdims=True))
            differences.append(parity.difference(found / scale, expected / scale))
            errors.append(np.max(np.abs(found - expected)))
            sizes.append(np.max(np.abs(expected)))
            agreements.append(_agreement(name, found, expected))
    measured = {
        "largest_difference": float(np.max(differences)),
        "share_of_largest": float(np.max(errors) / np.max(sizes)),
    }
    agreements = np.concatenate(agreements, axis=None)
    if agreements.size:
        of_vectors = "vectors" in outputs
        measured["agreement"] = float((np.min if of_vectors else np.mean)(agreements))
        kind = "vectors" if of_vectors else "rows of logits"
        measured["compared"] = f"{agreements.size:,} {kind}"
    return measured


def _agreement(name, found, expected):
    """Of each row: the cosine of vectors, or whether the same logit is the largest."""
    if name == "vectors":
        lengths = [np.linalg.norm(vectors, axis=-1) for vectors in (found, expected)]
        return np.sum(found * expected, axis=-1) / np.prod(lengths, axis=0)
    if expected.shape[-1] == 1:
        return np.zeros(0)
    return found.argmax(axis=-1) == expected.argmax(axis=-1)


def _refuse(name, measured, tolerance):
    """Raises ValueError if a difference is too large, or not a number."""
    key, limit, unit = "largest_difference", tolerance, "in a logit"
    if name.endswith("int8"):
        key, limit, unit = "share_of_largest", COARSE_LIMIT, "of the largest logit"
    if not measured[key] <= limit:
        raise ValueError(
            f"{name} differs from the model by {measured[key]:.3g} {unit}, at most "
            f"{limit:g} is allowed; nothing was written; leave it out of --formats"
        )


def _write_weights(server, folder, head):
    """Writes a Hugging Face folder, or one of the original's, and reads it back."""
    config = server.model.config
    weights = {
        name: variable.numpy()
        for name, variable in checkpoint.weight_names(server.model).items()
        if not name.startswith(server.UNUSED)
    }
    head = head or huggingface_config.Head()
    if folder.name == "weights":
        model_files.write_tf1(folder, weights, config, server.vocab_file, head)
    else:
        tokenizer = (server.vocab_file, server.do_lower_case)
        huggingface.write(folder, weights, config, tokenizer, head)
    found, found_config = model_files.read_model(str(folder))
    same = found.keys() == weights.keys() and all(
        np.array_equal(found[name], array) for name, array in weights.items()
    )
    if not same or found_config != config:
        raise ValueError(
            f"{folder.name} was read back as another model; nothing was written; leave "
            "it out of --formats"
        )
    return {"largest_difference": 0.0}


def describe(results):
    """The results of `write` in words: dict of name → str."""
    return {
        name: f"{result['path']}, {result['bytes']:,} bytes, {_in_words(result)}"
        for name, result in results.items()
    }


def _in_words(measured):
    """What `compare` gives."""
    text = f"largest difference {measured['largest_difference']:.2g}"
    if "share_of_largest" in measured:
        text += f", {measured['share_of_largest']:.2%} of the largest value"
    if "agreement" in measured:
        of_vectors = measured["compared"].endswith("vectors")
        what = "least cosine" if of_vectors else "the same value is largest in"
        text += f", {what} {measured['agreement']:.2%} of {measured['compared']}"
    return text
