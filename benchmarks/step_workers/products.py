"""Large matrix products with TensorFlow: the rate that training steps are held to."""

from benchmarks.step_workers import protocol

PRODUCTS = 5  # in a step, to be longer than a moment


def prepare(setting):
    """A step is `PRODUCTS` products of square matrices."""
    import tensorflow as tf

    shape = [setting.product_rows, setting.product_rows]
    matrix = tf.cast(tf.random.stateless_normal(shape, [0, 0]), setting.precision)

    def step():
        for _ in range(PRODUCTS):
            number = float(tf.matmul(matrix, matrix)[0, 0])
        return number

    return step


if __name__ == "__main__":
    protocol.serve(prepare, ["tensorflow"])
