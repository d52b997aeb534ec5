"""Weights in files: read in any format BERT comes in, put into models, written as TF1.

The names of the released TF1 checkpoints are the names of all weights: a "weights
dict" is {TF1 name: np.ndarray}. A variable of ours has the path "<model>/<TF1 name>".
"""

import contextlib
import dataclasses
import glob
import os
import re

import tensorflow as tf

from modeling import checkpoint_state, huggingface, huggingface_config, weight_shapes
from modeling import config as config_lib

# What training adds to a checkpoint, besides the weights.
_SLOT = re.compile(r"(.*/(adam|lamb)_[mv]|global_step|loss_scale(/good_steps)?)$")
_PARTIAL = checkpoint_state.PARTIAL


def _in_folder(folder):
    """The one checkpoint in a folder."""
    found = [os.path.join(folder, name) for name in huggingface.WEIGHT_FILES]
    found = [path for path in found if os.path.isfile(path)][:1]
    newest = checkpoint_state.latest(folder)
    indexes = sorted(glob.glob(os.path.join(glob.escape(folder), "*.index")))
    found += [newest] if newest else [path.removesuffix(".index") for path in indexes]
    if not found:
        raise FileNotFoundError(
            f"{folder} holds no checkpoint: expected NAME.index with NAME.data-*, or "
            f"one of {', '.join(huggingface.WEIGHT_FILES)}"
        )
    if len(found) > 1:
        names = ", ".join(os.path.basename(path) for path in found)
        raise ValueError(f"{folder} holds several checkpoints ({names}); name one")
    return found[0]


def locate(path):
    """The TF1 prefix or Hugging Face weights file that a path means.

    Args:
        path: str; one of these, a file of a TF1 checkpoint, or a folder that holds one
            checkpoint, a `checkpoint` state file, or only numbered ones, of which the
            newest is meant; see `checkpoint_state.latest`.
    Raises:
        FileNotFoundError: there is nothing, or only a part of a checkpoint.
        ValueError: the folder holds several, or the file is of no known format.
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        path = _in_folder(path)
    if huggingface.is_weights_file(path) and os.path.isfile(path):
        return path
    prefix = re.sub(r"\.(index|meta|data-\d+-of-\d+)$", "", path)
    has_data = bool(glob.glob(f"{glob.escape(prefix)}.data-*-of-*"))
    has_index = os.path.isfile(f"{prefix}.index")
    if has_data and has_index:
        if re.search(r"[*?]|\[.*\]", prefix):
            raise ValueError(
                f"TensorFlow takes {prefix} for a pattern; rename it without * ? [ ]"
            )
        return prefix
    if has_data or has_index:
        missing = "data-00000-of-00001" if has_index else "index"
        raise FileNotFoundError(f"{prefix}.{missing} is missing beside its other part")
    if os.path.isfile(path):
        raise ValueError(
            f"{path} is no checkpoint that can be read; expected a TF1 prefix such as "
            "bert_model.ckpt, a .safetensors or a .bin file, or their folder"
        )
    raise FileNotFoundError(f"there is no checkpoint {path} (nor {path}.index)")


def read(path, with_slots=False):
    """Reads a checkpoint of any kind.

    Args:
        path: str, see `locate`.
        with_slots: bool, also the optimizer's moments and global_step.
    Returns:
        {TF1 name: np.ndarray}.
    Raises: what `locate` raises, and ValueError if the files are damaged.
    """
    path = locate(path)
    if huggingface.is_weights_file(path):
        return huggingface.read_weights(path)
    try:
        reader = tf.train.load_checkpoint(path)
        names = sorted(reader.get_variable_to_shape_map())
        names = [name for name in names if with_slots or not _SLOT.match(name)]
        weights = {name: reader.get_tensor(name) for name in names}
    except (tf.errors.OpError, IndexError) as error:
        raise ValueError(
            f"{path} is damaged ({error}); fetch it again, or remove its files if "
            "there is an older one beside it"
        ) from None
    if "_CHECKPOINTABLE_OBJECT_GRAPH" in weights:
        raise ValueError(
            f"{path} is an object-based TF2 checkpoint; only checkpoints with the "
            "original's names (bert/embeddings/word_embeddings, ...) can be read"
        )
    return weights


def global_step(path):
    """int, the updates behind a checkpoint; 0 where it does not say."""
    path = locate(path)
    if huggingface.is_weights_file(path):
        return 0
    reader = tf.train.load_checkpoint(path)
    has_it = reader.has_tensor("global_step")
    return int(reader.get_tensor("global_step")) if has_it else 0


def read_config(path):
    """The BertConfig in a JSON file, or in the one beside a checkpoint.

    Args:
        path: str, a JSON file, or see `locate`: then `bert_config.json` or, first of
            all beside Hugging Face weights, `config.json`. Hugging Face's files, in
            which "gelu" means the exact form, are known by their keys.
    Returns:
        BertConfig, or None if there is no such file beside the checkpoint.
    Raises:
        FileNotFoundError: there is no such JSON file.
        ValueError: the file says something that BERT does not have.
    """
    path = os.fspath(path)
    names = ["bert_config.json", "config.json"]
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    with contextlib.suppress(OSError, ValueError):
        if huggingface.is_weights_file(locate(path)):
            names.reverse()
    paths = [os.path.join(folder, name) for name in names]
    paths = [p for p in paths if os.path.isfile(p)]
    if path.endswith(".json") and not huggingface.is_weights_file(path):
        paths = [path]
    if paths and huggingface_config.is_config(paths[0]):
        return huggingface_config.read_config(paths[0])
    return config_lib.BertConfig.from_json_file(paths[0]) if paths else None


def write_tf1(prefix, weights, max_to_keep=None, update_state=True):
    """Writes a TF1 checkpoint, which the original's scripts can load.

    The files get their names when they are complete, and `checkpoint` names them last.

    Args:
        prefix: str, such as `folder/model.ckpt-100`; the folder is made.
        weights: {TF1 name: np.ndarray}; may hold slots and global_step.
        max_to_keep: int; older checkpoints that `checkpoint` lists are removed.
        update_state: bool, whether to write the `checkpoint` file.
    Raises:
        OSError: they could not be written; older checkpoints are as before.
    """
    folder, name = os.path.split(os.path.abspath(prefix))
    os.makedirs(folder, exist_ok=True)
    partial = os.path.join(folder, f"{_PARTIAL}{name}")
    _remove(os.path.join(folder, _PARTIAL))  # left by a run that was killed
    try:
        with tf.device("CPU"):
            arrays = [tf.constant(array) for array in weights.values()]
        tf.raw_ops.SaveV2(
            prefix=partial,
            tensor_names=list(weights),
            shape_and_slices=[""] * len(weights),
            tensors=arrays,
        )
        # Without an index there is no checkpoint: it goes first and comes last.
        _remove(f"{prefix}.index")
        for end in ("data-00000-of-00001", "index"):
            os.replace(f"{partial}.{end}", f"{prefix}.{end}")
    except tf.errors.OpError as error:
        reason = error.message.rpartition(";")[2].partition(" [Op")[0].strip()
        raise OSError(f"{prefix} could not be written: {reason}") from None
    finally:
        _remove(partial)
    if update_state:
        names = checkpoint_state.update(folder, name)
        if max_to_keep and len(names) > max_to_keep:
            # Listed until they are gone: a kill leaves none that is never removed.
            for old in names[:-max_to_keep]:
                _remove(os.path.join(folder, f"{old}."))
            checkpoint_state.update(folder, name)


def _remove(start):
    """Removes the files whose path begins so; of a checkpoint the index goes last."""
    for path in sorted(glob.glob(f"{glob.escape(start)}*")):
        os.remove(path)


def weight_names(model):
    """{TF1 name: keras.Variable} of all weights of a model.

    The name is the variable's path without the model's name, and without the scope of
    the classifier: the original has its weights at the root.
    """
    paths = {v.path.removeprefix(f"{model.name}/"): v for v in model.weights}
    return {path.removeprefix("classifier/"): v for path, v in paths.items()}


@dataclasses.dataclass(frozen=True)
class Report:
    """What became of the variables: lists of TF1 names.

    Args:
        loaded: variables that took their value from the checkpoint.
        fresh: variables of the model that the checkpoint does not have.
        unused: variables of the checkpoint that the model does not have.
        mismatched: heads left fresh because they have another shape.
    """

    loaded: list
    fresh: list
    unused: list
    mismatched: list

    def table(self):
        """The report as a short text, a line for each list."""
        rows = [
            ("loaded", self.loaded, 0),
            ("freshly initialised", self.fresh, 6),
            ("unused in checkpoint", self.unused, 6),
            ("shape mismatch", self.mismatched, 6),
        ]
        lines = []
        for label, names, limit in rows:
            shown = names[:limit] + ["..."] * (limit and len(names) > limit)
            lines.append(f"{label:<20} {len(names):>5}  {', '.join(shown)}".rstrip())
        return "\n".join(lines)


def assign(model, weights, source, skip_mismatched_heads=False):
    """Puts weights into a model, by exact name.

    Args:
        model: keras.Model.
        weights: {TF1 name: np.ndarray}.
        source: str, named in errors.
        skip_mismatched_heads: bool, leave a head of another shape fresh.
    Returns:
        Report.
    Raises:
        ValueError: nothing of the encoder matched (of a model without one: nothing at
            all), a part of it is missing or too much, or a shape differs; then nothing
            is done.
    """
    variables = weight_names(model)
    matched = [name for name in variables if name in weights]
    # Heads alone are no match, unless the model has nothing else.
    encoder = [name for name in variables if name.startswith("bert/")]
    if not set(encoder or variables) & set(matched):
        there, here = (", ".join(list(names)[:3]) for names in (weights, variables))
        raise ValueError(
            f"{source} has no variable of this model: it has {there}, ... and the "
            f"model has {here}, ..."
        )
    wrong = [n for n in matched if tuple(variables[n].shape) != weights[n].shape]
    heads = [n for n in wrong if skip_mismatched_heads and not n.startswith("bert/")]
    for name in wrong:
        if name not in heads:
            shapes = weights[name].shape, variables[name].shape
            message = weight_shapes.mismatch(name, source, *shapes)
            if not name.startswith("bert/"):
                message += ", or train a new head with --skip_mismatched_heads"
            raise ValueError(message)
    _check_layers(variables, weights, source)
    loaded = [name for name in matched if name not in wrong]
    for name in loaded:
        variables[name].assign(weights[name])
    fresh = [name for name in variables if name not in weights]
    unused = [name for name in weights if name not in variables]
    return Report(loaded, fresh, unused, heads)


def _check_layers(variables, weights, source):
    """Refuses an encoder that is whole on one side only; poolers may be missing."""
    for there, here in ((weights, variables), (variables, weights)):
        for name in there.keys() - here.keys():
            if name.startswith("bert/") and not name.startswith("bert/pooler/"):
                raise ValueError(
                    f"{name} is only in {source if there is weights else 'the model'}, "
                    f"not in {source if here is weights else 'the model'}; set "
                    "num_hidden_layers and the other sizes to those of the checkpoint"
                )


def load(model, path, skip_mismatched_heads=False):
    """Reads a checkpoint of any kind (see `read`) into a model (see `assign`)."""
    return assign(model, read(path), path, skip_mismatched_heads)
