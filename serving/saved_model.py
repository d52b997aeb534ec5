"""Writing SavedModels: whole and checked, in numbered versions.

What is loaded needs TensorFlow and, for the text signatures, `import tensorflow_text`;
none of this code.
"""

import contextlib
import os
import shutil

import tensorflow as tf
from absl import logging

from data import filesystem, graph_tokenization, tokenization


class TextServer(tf.Module):
    """A model with its tokenizer in the graph, and the one that is compared with it.

    Args:
        model: keras.Model.
        vocab_file: str, becomes an asset.
        do_lower_case: bool.
        max_seq_length: int.
    """

    def __init__(self, model, vocab_file, do_lower_case, max_seq_length):
        super().__init__()
        self.model, self.max_seq_length = model, max_seq_length
        self.vocab = tf.saved_model.Asset(vocab_file)
        self.tokenizer = graph_tokenization.GraphTokenizer(vocab_file, do_lower_case)
        self._python_tokenizer = tokenization.FullTokenizer(vocab_file, do_lower_case)


def ids_signature(rank):
    """input_ids, input_mask and segment_ids, int32, of any shape with `rank` axes."""
    return [
        tf.TensorSpec([None] * rank, tf.int32, name)
        for name in ("input_ids", "input_mask", "segment_ids")
    ]


def next_version(export_dir):
    """The path for the next version of a model, --export_dir/1 if it is the first.

    TensorFlow Serving loads the highest number in a folder.

    Args:
        export_dir: str, is made if it is not there.
    Returns:
        str.
    Raises:
        ValueError: it is a file.
    """
    filesystem.check_folder("--export_dir", export_dir)
    os.makedirs(export_dir, exist_ok=True)
    versions = [int(name) for name in os.listdir(export_dir) if name.isdecimal()]
    return os.path.join(export_dir, str(max(versions, default=0) + 1))


def save(server, path, check):
    """Writes a SavedModel, whole and checked or not at all.

    Args:
        server: tf.Module; SIGNATURES are the names of those of its tf.functions that
            become signatures.
        path: str, must not exist.
        check: function of the path of the unfinished SavedModel; raises if it is bad.
    """
    unfinished = f"{path}.tmp"
    shutil.rmtree(unfinished, ignore_errors=True)  # left by a run that was killed
    try:
        signatures = {name: getattr(server, name) for name in server.SIGNATURES}
        with _only_warnings():
            tf.saved_model.save(server, unfinished, signatures=signatures)
        check(unfinished)
        os.rename(unfinished, path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


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
