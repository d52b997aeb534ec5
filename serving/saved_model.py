"""Writing SavedModels: whole and checked, in numbered versions.

What is loaded needs TensorFlow and, for the text signatures, `import tensorflow_text`;
none of this code.
"""

import contextlib
import fcntl
import os
import re
import shutil
import time
import uuid

import tensorflow as tf
from absl import logging
from tensorflow.python.saved_model import fingerprinting_utils  # has no public name

from data import features, filesystem, graph_tokenization, tokenization
from modeling import layers
from serving import parity

# Signatures that take ids, and what they call them: ours, and `ids` as others know it.
NAMES_OF_IDS = {
    "ids": features.INPUTS,
    "model_garden": ("input_word_ids", "input_mask", "input_type_ids"),
    "hugging_face": ("input_ids", "attention_mask", "token_type_ids"),
}
CLASSIFY, REGRESS = "tensorflow/serving/classify", "tensorflow/serving/regress"

_UNFINISHED = re.compile(r"\.[0-9a-f]{32}\.tmp")
_LOCK = ".lock"  # held by who writes the folder it is in; lost if that is killed
_SECONDS_TO_LOCK = 60  # between the making of a folder and that; more than enough


class Server(tf.Module):
    """What `save` writes.

    Attributes:
        SIGNATURES: names of those of its tf.functions that become signatures.
        METHODS: dict of signature → method name of TensorFlow Serving, of those that
            are not for its Predict.
        label_names: tuple of str, names of the model's outputs, if they have names.
    """

    SIGNATURES = ()
    METHODS = {}
    label_names = ()

    def differences(self, signatures):
        """Yields floats, how far signatures are from the model and our Python code.

        Args:
            signatures: dict of name → function, all of a SavedModel of this server.
        """
        raise NotImplementedError


class TextServer(Server):
    """A model with its tokenizer in the graph, and the one that is compared with it.

    All signatures call `forward`, so that the graph holds the model once. One that all
    these servers have is `ids`: it takes input_ids, input_mask and segment_ids, int32
    of RANK axes, and gives what `answer` does.

    Args:
        model: keras.Model.
        vocab_file: str, becomes an asset.
        do_lower_case: bool.
        max_seq_length: int.
    Attributes:
        UNUSED: beginnings of the names of weights that no answer depends on.
    """

    RANK = 2  # axes of the ids
    UNUSED = ()

    def __init__(self, model, vocab_file, do_lower_case, max_seq_length):
        super().__init__()
        self.model, self.max_seq_length = model, max_seq_length
        self.vocab_file, self.do_lower_case = vocab_file, do_lower_case
        self.vocab = tf.saved_model.Asset(vocab_file)
        self.tokenizer = graph_tokenization.GraphTokenizer(vocab_file, do_lower_case)
        self._python_tokenizer = tokenization.FullTokenizer(vocab_file, do_lower_case)
        ids = ids_signature(self.RANK)
        # No autograph: it has nothing to do in these, and takes its time.
        self.forward = tf.function(
            layers.without_gradients()(self.run),
            input_signature=[dict(zip(features.INPUTS, ids, strict=True))],
            autograph=False,
        )
        self.ids = tf.function(self._answer, input_signature=ids, autograph=False)

    def run(self, batch):
        """What the model gives for a batch, a dict with float tensors."""
        return {"logits": self.model(batch, training=False)["logits"]}

    def answer(self, batch):
        """What the signatures give for a batch: a dict of tensors."""
        return self.forward(batch)

    def _answer(self, input_ids, input_mask, segment_ids):
        ids = (input_ids, input_mask, segment_ids)
        return self.answer(dict(zip(features.INPUTS, ids, strict=True)))

    def numbers(self, batch):
        """What other formats give for a batch: float32 tensors by name."""
        return self.run(batch)

    def samples(self):
        """Yields batches, of random ids and of texts, to compare other formats on."""
        length, tokenizer = self.max_seq_length, self._python_tokenizer
        choices = (2,) if self.RANK == 3 else ()
        sizes = ((1, 1), (1, length), (5, length // 2 + 1))
        yield from parity.random_batches(self.model.config, length, choices, sizes)
        rows = [
            features.join_segments(tokenizer.encode(text), [], length, tokenizer)
            for text in parity.TEXTS
        ]
        batch = features.pad(rows, len(rows), length)
        shape = [-1, *choices, length]
        yield {name: tf.reshape(ids, shape) for name, ids in batch.items()}

    def _differences_of_ids(self, signatures, choices=()):
        """Yields how far `ids` and its aliases are from the model in memory."""
        for name, inputs in NAMES_OF_IDS.items():
            for batch in parity.random_batches(
                self.model.config, self.max_seq_length, choices
            ):
                named = dict(zip(inputs, batch.values(), strict=True))
                yield from parity.differences(
                    signatures[name](**named), self.run(batch)
                )


def texts_signature(*names):
    """Strings of these names, one text a row."""
    return [tf.TensorSpec([None], tf.string, name) for name in names]


def ids_signature(rank):
    """input_ids, input_mask and segment_ids, int32, of any shape with `rank` axes."""
    return [tf.TensorSpec([None] * rank, tf.int32, name) for name in features.INPUTS]


def signatures(server):
    """dict of name → tf.function, the signatures of a Server with aliases of `ids`."""
    functions = {name: getattr(server, name) for name in server.SIGNATURES}
    if "ids" not in functions:
        return functions
    for name, names in NAMES_OF_IDS.items():
        if name not in functions:
            functions[name] = _renamed(server.ids, names)
    return functions


def _renamed(function, names):
    """A tf.function with other names for its arguments."""

    def renamed(*inputs):
        return function(*inputs)

    specs = [
        tf.TensorSpec(spec.shape, spec.dtype, name)
        for spec, name in zip(function.input_signature, names, strict=True)
    ]
    return tf.function(renamed, input_signature=specs, autograph=False)


def check_export_dir(export_dir):
    """Raises ValueError if a folder cannot hold the versions of a model."""
    filesystem.check_folder("--export_dir", export_dir)
    if os.path.exists(os.path.join(export_dir, "saved_model.pb")):
        raise ValueError(
            f"--export_dir={export_dir} is a SavedModel itself, a version of a model; "
            "give the folder of its versions"
        )
    place = os.path.abspath(export_dir)
    while not os.path.exists(place):  # It will be made there.
        place = os.path.dirname(place)
    if not os.path.isdir(place) or not os.access(place, os.W_OK | os.X_OK):
        raise ValueError(
            f"--export_dir={export_dir} cannot be written: {place} is no folder that "
            "you may write to"
        )


def next_version(export_dir):
    """The path for the next version of a model, --export_dir/1 if it is the first.

    TensorFlow Serving loads the highest number in a folder.

    Args:
        export_dir: str, a folder.
    Returns:
        str.
    """
    versions = [int(name) for name in os.listdir(export_dir) if name.isdecimal()]
    return os.path.join(export_dir, str(max(versions, default=0) + 1))


def save(server, export_dir, finish):
    """Writes the next version of a model, whole and checked or not at all.

    Several processes may write to one folder.

    Args:
        server: Server.
        export_dir: str, folder of the versions; is made if it is not there.
        finish: function of the path of the unfinished SavedModel; raises if it is bad,
            and may add files.
    Returns:
        str, the path that was written.
    Raises:
        ValueError: see `check_export_dir`; and what `finish` raises.
    """
    check_export_dir(export_dir)
    os.makedirs(export_dir, exist_ok=True)
    _remove_old(export_dir)
    unfinished = os.path.join(export_dir, f".{uuid.uuid4().hex}.tmp")
    os.mkdir(unfinished)
    try:
        with open(os.path.join(unfinished, _LOCK), "w") as lock:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            with _only_warnings():
                tf.saved_model.save(server, unfinished, signatures=signatures(server))
                _set_methods(unfinished, server.METHODS)
            finish(unfinished)
            os.remove(lock.name)
            return _place(unfinished, export_dir)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _set_methods(path, methods):
    """Writes the method names of signatures: TensorFlow 2 says Predict of all."""
    if not methods:
        return
    updater = tf.compat.v1.saved_model.signature_def_utils.MethodNameUpdater(path)
    for signature, method in methods.items():
        updater.replace_method_name(signature, method, tags=["serve"])
    updater.save()
    # fingerprint.pb has a checksum of the file that has just changed.
    fingerprinting_utils.write_fingerprint(path)


def _place(unfinished, export_dir):
    """Gives a folder the next number; returns its new path."""
    while True:
        path = next_version(export_dir)
        try:
            os.rename(unfinished, path)
        except OSError:
            # Another process may have taken the number in between.
            if not os.path.exists(path):
                raise
        else:
            return path


def _remove_old(export_dir):
    """Removes what runs that were killed have left."""
    for name in filter(_UNFINISHED.fullmatch, os.listdir(export_dir)):
        path = os.path.join(export_dir, name)
        # Another process may be writing it, or removing it too; it may not be ours.
        with contextlib.suppress(OSError):
            if time.time() - os.path.getmtime(path) > _SECONDS_TO_LOCK:
                with open(os.path.join(path, _LOCK), "a") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _only_warnings():
    """Keeps TensorFlow's lines about renamed inputs off the screen."""
    before = logging.get_verbosity()
    logging.set_verbosity(logging.WARNING)
    tf.get_logger().setLevel("WARNING")
    try:
        yield
    finally:
        logging.set_verbosity(before)
