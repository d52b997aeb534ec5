"""What a head was trained for, held against what a run takes it for."""

from absl import logging

import model_files


def warn_of_other_kind(path, there, here):
    """Says it if a head was trained for something else than it is taken for.

    Args:
        path: str, of the weights.
        there, here: huggingface_config.Head of the weights, and of the run.
    """
    kinds = []
    for head in (there, here):
        # Only classifiers of texts have a type of problem.
        of_texts = "BertForSequenceClassification" if head.problem_type else None
        kinds.append((head.architecture or of_texts, head.problem_type))
    for was, taken_for in zip(*kinds, strict=True):
        if was and taken_for and was != taken_for:
            logging.warning(
                "the head of %s is of %s, and is taken for %s", path, was, taken_for
            )
            return


def in_order_of(weights, path, there, here):
    """The weights with the outputs in the order of the labels of a run.

    Args:
        weights: {TF1 name: np.ndarray}.
        path: str, named in a warning.
        there, here: huggingface_config.Head of the weights, and of the run.
    Returns:
        {TF1 name: np.ndarray}; as they were, with a warning, if the names differ.
    """
    there, here = there.labels, here.labels
    if not (there and here and len(there) == len(here) == len(weights["output_bias"])):
        return weights
    moved = model_files.reorder_outputs(weights, there, here)
    if moved is None:
        logging.warning(
            "%s calls its outputs %s, which are taken for %s, in this order",
            path,
            ", ".join(there),
            ", ".join(here),
        )
    return weights if moved is None else moved
