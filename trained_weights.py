"""Which weights of a run to take, and loading them into a model."""

import os

import numpy as np
from absl import logging

import head_match
import model_files
from data import tables
from modeling import checkpoint, checkpoint_state

BEST = "best"  # folder of the best checkpoint within the run's
VALIDATION_FILE = "validation.jsonl"  # scores of held-out data, a line a step


def load(model, path, skip_mismatched_heads=False, output_dir=None):
    """Loads weights and shows what was loaded and what stays fresh.

    Args:
        model: keras.Model.
        path: str, see `checkpoint.read`.
        skip_mismatched_heads: bool, leave a head of another shape fresh.
        output_dir: str, folder of the run. If its labels are those of the weights in
            another order, the outputs move with their names.
    Returns:
        checkpoint.Report.
    Raises:
        ValueError: a weight is NaN or infinite, or what `checkpoint.read` and `assign`
            raise.
    """
    weights = checkpoint.read(path)
    _check_finite(weights, path)
    heads = None
    if output_dir and "output_bias" in weights:
        heads = model_files.find_head(path), model_files.find_head(output_dir)
        weights = head_match.in_order_of(weights, path, *heads)
    report = checkpoint.assign(model, weights, path, skip_mismatched_heads)
    logging.info("weights from %s\n%s", path, report.table())
    if heads and "output_bias" in report.loaded:
        head_match.warn_of_other_kind(path, *heads)
    return report


def _check_finite(weights, path):
    """Refuses weights that answer NaN, or the same, whatever they are asked."""
    for name, array in weights.items():
        if array.dtype.kind not in "OSU" and not _is_finite(array):
            raise ValueError(
                f"{name} in {checkpoint.locate(path)} holds values that are NaN or "
                "infinite; take another checkpoint, or remove the files of this one if "
                "there is an earlier one beside it"
            )


def _is_finite(array):
    # A sum needs no memory and shows what is not, but may overflow where all are.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(array.sum()) or np.isfinite(array).all())


def find_trained(output_dir, init_checkpoint=None):
    """What to evaluate: the best checkpoint of a run, else its latest, else...

    Training that goes on without --keep_best, or that is interrupted between two
    comparisons, makes the best checkpoint a thing of the past: then it is the latest.

    Args:
        output_dir: str, folder of the run.
        init_checkpoint: str or None, taken if there is no checkpoint in the folder.
    Returns:
        str, path of weights.
    Raises:
        ValueError: there is none of them.
    """
    best = checkpoint_state.latest(os.path.join(output_dir, BEST))
    latest = checkpoint_state.latest(output_dir)
    if best and latest:
        step = checkpoint.global_step(latest)
        compared = max(
            (line["step"] for line in read_validation(output_dir)), default=0
        )
        if compared < step:
            logging.warning(
                "%s is the best up to step %d only, so it is passed over for that of "
                "step %d; --do_train --keep_best compares them",
                best,
                compared,
                step,
            )
            best = None
    path = best or latest or init_checkpoint
    if not path:
        raise ValueError(
            f"there is no checkpoint in {output_dir} and no --init_checkpoint; train "
            "first (--do_train) or give one"
        )
    return path


def read_validation(output_dir):
    """What --keep_best has compared in the folder of a run.

    Returns:
        list of dict, see validation.py; empty without --keep_best.
    Raises:
        ValueError: the file is damaged.
    """
    path = os.path.join(output_dir, VALIDATION_FILE)
    if not os.path.exists(path) or not os.path.getsize(path):
        return []
    lines = []
    try:
        for number, line in tables.read_jsonl(path):
            if not isinstance(line.get("step"), int):
                raise ValueError(f"line {number} names no step")
            lines.append(line)
    except ValueError as error:
        raise ValueError(f"{path} is damaged, remove it: {error}") from None
    return lines


def load_trained(model, output_dir, init_checkpoint=None, complete=False):
    """Loads what to evaluate.

    Args:
        model: keras.Model.
        output_dir: str, folder of the run.
        init_checkpoint: str or None, taken if there is no checkpoint in the folder.
        complete: bool, refuse weights that lack the head.
    Returns:
        int, updates behind these weights.
    Raises:
        ValueError: there is no checkpoint, see `find_trained`; or it is not complete.
    """
    path = find_trained(output_dir, init_checkpoint)
    report = load(model, path, output_dir=output_dir)
    if report.fresh and complete:
        raise ValueError(
            f"{output_dir} is of a run that was not trained: {', '.join(report.fresh)} "
            f"not in {path}; train first (--do_train)"
        )
    if report.fresh:
        logging.warning(
            "%s: not in %s, so what follows is that of an untrained head",
            ", ".join(report.fresh),
            path,
        )
    return checkpoint.global_step(path)
