"""What the updates of a training cost, and how near the devices they come."""

import contextlib

import tensorflow as tf

import roof
from modeling import cost


def find(trainer, dataset, max_seq_length):
    """The arithmetic of an update, read off the model and the batches.

    Args:
        trainer: trainer.Trainer.
        dataset: tf.data.Dataset of global batches.
        max_seq_length: int, of batches whose length differs.
    Returns:
        cost.Update.
    """
    spec = dataset.element_spec
    *rows, length = spec["input_mask"].shape.as_list()
    predictions = spec.get("masked_lm_positions")
    sequences = 1
    for size in rows:  # of several choices each is a sequence
        sequences *= size
    return cost.Update(
        trainer.model.config,
        sequences,
        length or max_seq_length,
        predictions.shape[-1] if predictions is not None else 0,
        trainer.model.compute_dtype,
        trainer.micro_batches,
        trainer.strategy.num_replicas_in_sync,
        trainer.model.bert.recompute,
    )


class Utilization:
    """The share of the devices' rate of matrix products that a training reaches.

    The rate is measured when this is made, in some tenths of a second.

    Args:
        update: cost.Update.
    """

    def __init__(self, update):
        self._update = update
        # Parts of one CPU share its rate.
        devices = len(tf.config.list_physical_devices("GPU")) and update.num_devices
        self.rate = roof.matmul_rate(update.precision) * max(1, devices)

    def __call__(self, sequences, positions, seconds):
        """Share from 0 to 1; of so many sequences with so many positions together."""
        flops = cost.training_flops(
            self._update.config,
            sequences,
            positions / sequences,
            self._update.num_predictions,
        )
        return flops / seconds / self.rate


@contextlib.contextmanager
def memory_explained(update):
    """Says within the `with` block which flags need less memory.

    Args:
        update: cost.Update.
    Raises:
        ValueError: in place of TensorFlow's page about memory.
    """
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        raise ValueError(f"the memory is not enough: {cost.advice(update)}") from error
