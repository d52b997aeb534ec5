"""Loading a model's weights, and running it over data sets without dropout."""

import contextlib
import os

import keras
import numpy as np
import tensorflow as tf
from absl import logging
from tqdm import tqdm

import arguments
import head_match
import model_files
from data import features, tables
from modeling import attention, checkpoint, checkpoint_state

BEST = "best"  # folder of the best checkpoint within the run's
VALIDATION_FILE = "validation.jsonl"  # scores of held-out data, a line a step


@contextlib.contextmanager
def models_in(precision):
    """Models made in it compute so, whatever --precision the training had.

    Args:
        precision: str, "float32", or "bfloat16", for inference only: embeddings and
            the weights of linear layers are kept in that too.
    """
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy(precision)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(policy)


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


class Forward:
    """A model without dropout, compiled once, to run over data sets.

    Args:
        strategy: tf.distribute strategy.
        model: keras.Model.
        measure: function of (outputs, batch), giving a dict of name → [batch, ...].
    """

    def __init__(self, strategy, model, measure):
        self.strategy, self.model, self.measure = strategy, model, measure

    @attention.without_gradients()
    def _replica(self, batch):
        measured = self.measure(self.model(batch, training=False), batch)
        return {**measured, "is_real_example": batch["is_real_example"]}

    # No autograph, which would take a third of the time to trace: nothing needs it.
    @tf.function(reduce_retracing=True, autograph=False)
    def _next(self, iterator):
        results = self.strategy.run(self._replica, args=(next(iterator),))
        # In the order of the replicas, which is that of the batch, on all workers.
        return {n: self.strategy.gather(v, axis=0) for n, v in results.items()}

    def rows(self, batches, description):
        """Goes over a data set, in order, and shows progress.

        Args:
            batches: tf.data.Dataset of batches with `is_real_example`, which is 0 in
                the rows that fill up the last one.
            description: str, shown beside the progress bar.
        Yields:
            for each batch a dict of name → np.ndarray with the real rows only.
        """
        iterator = iter(self.strategy.experimental_distribute_dataset(batches))
        total = int(batches.cardinality())  # negative where it is not known
        total = total if total >= 0 else None
        with tqdm(total=total, desc=description, unit="batch") as progress:
            while True:
                try:
                    results = {n: v.numpy() for n, v in self._next(iterator).items()}
                except tf.errors.OutOfRangeError:
                    return
                progress.update()
                real = results.pop("is_real_example").astype(bool)
                yield {name: value[real] for name, value in results.items()}


def rows(strategy, model, batches, measure, description):
    """Runs a model over one data set; see `Forward`."""
    return Forward(strategy, model, measure).rows(batches, description)


class Sequences:
    """A model that stays loaded, compiled once, to run over sequences of any length.

    Args:
        forward: function of a batch, input_ids, input_mask and segment_ids [batch,
            seq_length], giving a tensor [batch, ...].
        batch_size: int, sequences at a time.
    Raises:
        ValueError: batch_size is not an int, 1 at least.
    """

    def __init__(self, forward, batch_size):
        self._forward = tf.function(
            attention.without_gradients()(forward),
            input_signature=[
                dict.fromkeys(features.INPUTS, tf.TensorSpec([None, None], tf.int32))
            ],
            autograph=False,
        )
        self._batch_size = arguments.whole("batch_size", batch_size)

    def __call__(self, rows):
        """What the model gives for each sequence, however they are batched.

        Args:
            rows: list of (ids, segments), each a list of int.
        Returns:
            list of np.ndarray; if one has a dimension of seq_length, then that is as
            long as the sequence at least.
        """
        # Sequences of like length share a batch, so that little of it is padding.
        order = sorted(range(len(rows)), key=lambda i: len(rows[i][0]))
        results = [None] * len(rows)
        for first in range(0, len(rows), self._batch_size):
            chosen = order[first : first + self._batch_size]
            longest = len(rows[chosen[-1]][0])
            arrays = features.pad([rows[i] for i in chosen], len(chosen), longest)
            outputs = self._forward(
                {n: tf.constant(arrays[n]) for n in features.INPUTS}
            )
            for i, output in zip(chosen, np.asarray(outputs), strict=True):
                results[i] = output
        return results
