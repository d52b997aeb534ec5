"""Names of BERT's weights: Hugging Face's and the TF1 checkpoints', in one table."""

import re

import numpy as np

# The parts of a module: its name there (the old one after the bar), the end of its name
# here, and whether the matrix is transposed on the way (torch keeps [out, in]).
_TABLE = (("weight", "", False),)
_DENSE = (("weight", "/kernel", True), ("bias", "/bias", False))
_NORM = (("weight|gamma", "/gamma", False), ("bias|beta", "/beta", False))
_HEAD = (("weight", "/output_weights", False), ("bias", "/output_bias", False))
_BIAS = (("bias", "/output_bias", False),)

# Module there, parts, scope here (None: the same words with slashes). When writing, the
# first row that fits counts.
_MODULES = (
    ("bert.embeddings.{table}_embeddings", _TABLE, None),
    ("bert.embeddings.LayerNorm", _NORM, None),
    ("bert.encoder.layer.{i}.attention.self.{role}", _DENSE, None),
    ("bert.encoder.layer.{i}.attention.output.dense", _DENSE, None),
    ("bert.encoder.layer.{i}.attention.output.LayerNorm", _NORM, None),
    ("bert.encoder.layer.{i}.intermediate.dense", _DENSE, None),
    ("bert.encoder.layer.{i}.output.dense", _DENSE, None),
    ("bert.encoder.layer.{i}.output.LayerNorm", _NORM, None),
    ("bert.pooler.dense", _DENSE, None),
    ("cls.predictions.transform.dense", _DENSE, None),
    ("cls.predictions.transform.LayerNorm", _NORM, None),
    ("cls.predictions", _BIAS, None),
    ("cls.seq_relationship", _HEAD, None),
    ("qa_outputs", _HEAD, "cls/squad"),
    ("classifier", _HEAD, ""),
    # Copies of tied weights, which some files hold besides or instead.
    ("cls.predictions.decoder", _TABLE, "bert/embeddings/word_embeddings"),
    ("cls.predictions.decoder", _BIAS, "cls/predictions"),
)
_FIELDS = {"table": "word|position|token_type", "i": r"\d+", "role": "query|key|value"}

# Not weights: constants that some versions save.
_BUFFERS = re.compile(r"embeddings\.(position_ids|token_type_ids)$")
# A model without a head is saved without the first word of its names.
_WITHOUT_PREFIX = re.compile(r"(embeddings|encoder|pooler)\.")


def _pattern(template):
    """Regular expression for a template with {fields}."""
    pieces = re.split(r"\{(\w+)\}", template)
    for k, piece in enumerate(pieces):
        field = f"(?P<{piece}>{_FIELDS.get(piece)})"
        pieces[k] = field if k % 2 else re.escape(piece)
    return "".join(pieces)


def _rules():
    """Rows (pattern there, template there, pattern here, template here, transposed)."""
    for module, parts, scope in _MODULES:
        same = module.replace("layer.", "layer_").replace(".", "/")
        for names, end, transposed in parts:
            ours = ((same if scope is None else scope) + end).removeprefix("/")
            theirs = f"{_pattern(module)}\\.({names})"
            name = f"{module}.{names.split('|')[0]}"
            yield re.compile(theirs), name, re.compile(_pattern(ours)), ours, transposed


_RULES = tuple(_rules())


def _to_tf1(name):
    """(TF1 name, transposed), or None if it is no tensor of BERT."""
    for pattern, _, _, template, transposed in _RULES:
        if match := pattern.fullmatch(name):
            return template.format(**match.groupdict()), transposed
    return None


def _from_tf1(name):
    """(Hugging Face name, transposed), or None if it is no variable of BERT."""
    for _, template, pattern, _, transposed in _RULES:
        if match := pattern.fullmatch(name):
            return template.format(**match.groupdict()), transposed
    return None


def to_weights(tensors, source):
    """Renames Hugging Face tensors to TF1 names, in TF1 layout.

    Tensors outside the encoder that no head of ours knows keep their names.

    Args:
        tensors: {Hugging Face name: np.ndarray}.
        source: str, named in errors.
    Returns:
        {TF1 name: np.ndarray}, floating-point numbers as float32.
    Raises:
        ValueError: there is no BERT encoder, the encoder has tensors that BERT does not
            have, or two copies of tied weights differ.
    """
    weights, origins = {}, {}
    for name, array in tensors.items():
        if _BUFFERS.search(name):
            continue
        full_name = f"bert.{name}" if _WITHOUT_PREFIX.match(name) else name
        ours, transposed = _to_tf1(full_name) or (full_name, False)
        if ours.startswith("bert."):
            raise ValueError(f"{source} has a tensor {name}, which BERT does not have")
        value = np.ascontiguousarray(array.T if transposed else array)
        if value.dtype.kind not in "iub":
            value = value.astype(np.float32)
        if ours in weights and not np.array_equal(value, weights[ours]):
            raise ValueError(
                f"{source}: {name} and {origins[ours]} must be equal in BERT, where "
                "they are tied, but they differ"
            )
        weights[ours], origins[ours] = value, name
    if not any(name.startswith("bert/") for name in weights):
        shown = ", ".join(list(tensors)[:3]) or "nothing at all"
        raise ValueError(f"{source} holds no BERT encoder; it has {shown}, ...")
    return weights


def to_tensors(weights):
    """Renames TF1 variables to Hugging Face names, in torch's layout.

    An encoder without any head gets names without `bert.`, as transformers saves it.
    Variables outside the encoder that no row knows keep their names.

    Args:
        weights: {TF1 name: np.ndarray}.
    Returns:
        {Hugging Face name: np.ndarray}, sorted by name.
    Raises:
        ValueError: the encoder has a variable that BERT does not have.
    """
    tensors = {}
    for name, array in weights.items():
        theirs, transposed = _from_tf1(name) or (name, False)
        if theirs.startswith("bert/"):
            raise ValueError(
                f"there is no Hugging Face name for the variable {name}, which BERT "
                "does not have"
            )
        tensors[theirs] = np.ascontiguousarray(array.T if transposed else array)
    if all(name.startswith("bert.") for name in tensors):
        tensors = {name.removeprefix("bert."): t for name, t in tensors.items()}
    return dict(sorted(tensors.items()))
