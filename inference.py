"""Loading a model's weights, and running it over data sets without dropout."""

import os

import tensorflow as tf
from absl import logging
from tqdm import tqdm

from modeling import checkpoint

BEST = "best"  # folder of the best checkpoint within the run's


def load(model, path, skip_mismatched_heads=False):
    """Loads weights and shows what was loaded and what stays fresh.

    Returns:
        checkpoint.Report.
    """
    report = checkpoint.load(model, path, skip_mismatched_heads)
    logging.info("weights from %s\n%s", path, report.table())
    return report


def load_trained(model, output_dir, init_checkpoint=None):
    """Loads what to evaluate: the best checkpoint of a run, else its latest, else...

    Args:
        model: keras.Model.
        output_dir: str, folder of the run.
        init_checkpoint: str or None, taken if there is no checkpoint in the folder.
    Returns:
        int, updates behind these weights.
    Raises:
        ValueError: there is none of them.
    """
    best = os.path.join(output_dir, BEST)
    path = checkpoint.latest(best) or checkpoint.latest(output_dir) or init_checkpoint
    if not path:
        raise ValueError(
            f"there is no checkpoint in {output_dir} and no --init_checkpoint; train "
            "first (--do_train) or give one"
        )
    report = load(model, path)
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

    def _replica(self, batch):
        measured = self.measure(self.model(batch, training=False), batch)
        return {**measured, "is_real_example": batch["is_real_example"]}

    @tf.function(reduce_retracing=True)
    def _next(self, iterator):
        results = self.strategy.run(self._replica, args=(next(iterator),))
        local = self.strategy.experimental_local_results
        return {n: tf.concat(local(v), axis=0) for n, v in results.items()}

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
