"""The shapes that a config gives to the weights, by their TF1 names."""

import re

_LABELS = "the number of labels"

# Name, keys of the config that make its shape. The first row that fits counts.
_SHAPES = (
    (r"bert/embeddings/word_embeddings", ("vocab_size", "hidden_size")),
    (r"bert/embeddings/token_type_embeddings", ("type_vocab_size", "hidden_size")),
    (
        r"bert/embeddings/position_embeddings",
        ("max_position_embeddings", "hidden_size"),
    ),
    (r".*/intermediate/dense/kernel", ("hidden_size", "intermediate_size")),
    (r".*/intermediate/dense/bias", ("intermediate_size",)),
    (r".*/layer_\d+/output/dense/kernel", ("intermediate_size", "hidden_size")),
    (r".*/kernel", ("hidden_size", "hidden_size")),
    (r".*/(bias|gamma|beta)", ("hidden_size",)),
    (r"cls/predictions/output_bias", ("vocab_size",)),
    (r"output_weights", (_LABELS, "hidden_size")),
    (r"output_bias", (_LABELS,)),
    (r".*/output_weights", (None, "hidden_size")),
)


def keys(name):
    """Names of the sizes that make the shape of a variable, or () if unknown."""
    return next((row for pattern, row in _SHAPES if re.fullmatch(pattern, name)), ())


def mismatch(name, source, there, here):
    """The sentence that says which shapes differ and what would make them equal.

    Args:
        name: str, TF1 name.
        source: str, the checkpoint.
        there: sequence of ints, the shape in the checkpoint.
        here: sequence of ints, the shape that is expected.
    """
    advice = "they belong to different models"
    if len(there) == len(here) == len(keys(name)):
        axes = [k for k in range(len(here)) if here[k] != there[k]]
        if all(named := [keys(name)[axis] for axis in axes]):
            sizes = {key: there[k] for key, k in zip(named, axes, strict=True)}
            changes = " and ".join(f"{key} to {size}" for key, size in sizes.items())
            advice = f"set {changes}, or take the checkpoint that fits"
    return (
        f"{name} has the shape {list(there)} in {source}, but {list(here)} in the "
        f"model; {advice}"
    )


def check(weights, config, source):
    """Checks that the weights are those of a model of this config.

    Args:
        weights: {TF1 name: np.ndarray}.
        config: BertConfig.
        source: str, the checkpoint, named in errors.
    Raises:
        ValueError: names the variable and the key of the config.
    """
    for name, array in weights.items():
        # The number of labels is not in the config.
        here = [getattr(config, key or "", None) for key in keys(name)]
        if len(here) == array.ndim:
            here = [
                size or there for size, there in zip(here, array.shape, strict=True)
            ]
        if here and here != list(array.shape):
            raise ValueError(mismatch(name, source, array.shape, here))
    numbers = [re.match(r"bert/encoder/layer_(\d+)/", name) for name in weights]
    layers = {int(number[1]) for number in numbers if number}
    if layers != set(range(config.num_hidden_layers)):
        raise ValueError(
            f"{source} has {len(layers)} encoder layers, but num_hidden_layers is "
            f"{config.num_hidden_layers} in the config; change it"
        )
