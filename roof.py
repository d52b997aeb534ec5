"""The rate of matrix products on this device, to compare a training with."""

import time

import tensorflow as tf

LARGEST = 8192  # rows: three such matrices of float32 take 0.8 GB


def matmul_rate(precision: str = "float32", seconds: float = 0.3) -> float:
    """FLOPs a second of a large square product on the default device; best of several.

    The product grows until it takes a sixteenth of the time or has `LARGEST` rows, so
    it suits slow and fast devices: 2048 rows on two cores of a CPU.

    Args:
        precision: dtype of the matrices, such as "bfloat16".
        seconds: about how long to measure; starting takes some time more.
    Returns:
        2 n³ / seconds of one product of n rows. On a CPU whose cores others use too it
        is what is left of it.
    """
    end = time.perf_counter() + seconds
    rows, taken = 512, 0.0
    while taken < seconds / 16 and rows < LARGEST:
        rows *= 2
        matrix = tf.ones([rows, rows], precision)
        # The first one prepares the device.
        taken = min(_time_product(matrix), _time_product(matrix))
    while time.perf_counter() < end:
        taken = min(taken, _time_product(matrix))
    return 2 * rows**3 / taken


def _time_product(matrix: tf.Tensor) -> float:
    start = time.perf_counter()
    # Fetching a number waits for devices that work asynchronously.
    tf.matmul(matrix, matrix)[0, 0].numpy()
    return time.perf_counter() - start
