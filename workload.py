"""What the updates of a training cost, and how near the devices they come."""

import contextlib

import tensorflow as tf

import roof
import run_directory
import strategies
from modeling import cost


def find(trainer, dataset, max_seq_length):
    """The arithmetic of an update, read off the model and the batches.

    Args:
        trainer: trainer.Trainer.
        dataset: tf.data.Dataset of global batches.
        max_seq_length: int, of batches whose length differs.
    Returns:
        cost.Update; None if the model is without BERT's encoder, which is all that is
        reckoned.
    """
    if not hasattr(trainer.model, "bert"):
        return None
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


def find_utilization(strategy, update):
    """What tells how near the devices a training comes, or None.

    It measures their rate of matrix products, in some tenths of a second. On a TPU it
    cannot, and only the first of several workers has a use for it.

    Args:
        strategy: tf.distribute strategy.
        update: cost.Update.
    Returns:
        function of (sequences, positions, seconds): the share, from 0 to 1, that so
        many sequences with so many positions together took of that rate.
    """
    if strategies.is_tpu(strategy) or not run_directory.is_first():
        return None
    # Parts of one CPU share its rate; its machines, and GPUs, add up.
    on_gpus = bool(tf.config.list_physical_devices("GPU"))
    adds_up = on_gpus or strategies.is_cluster(strategy)
    devices = update.num_devices if adds_up else 1
    rate = roof.matmul_rate(update.precision) * devices

    def utilization(sequences, positions, seconds):
        flops = cost.training_flops(
            update.config, sequences, positions / sequences, update.num_predictions
        )
        return flops / seconds / rate

    return utilization


@contextlib.contextmanager
def memory_explained(update):
    """Says within the `with` block which flags need less memory.

    Args:
        update: cost.Update or None.
    Raises:
        ValueError: in place of TensorFlow's page about memory.
    """
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        advice = cost.advice(update) if update else "take a smaller --train_batch_size"
        raise ValueError(f"the memory is not enough: {advice}") from error
