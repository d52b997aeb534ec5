"""The rate of products: which size is taken, the best of several, a real one."""

import pytest

import roof


@pytest.mark.parametrize(
    "rate, rows",
    [(1e8, 1024), (185e9, 2048), (1e12, 4096), (1e20, roof.LARGEST)],
)
def test_the_product_suits_the_device(monkeypatch, rate, rows):
    clock, tried = [0.0], []

    def time_product(matrix):
        (size, _) = matrix.shape
        slower = 1.0 + len(tried) % 2  # as while others use the device
        seconds = slower * 2 * size**3 / rate
        tried.append(size)
        clock[0] += max(seconds, 0.01)
        return seconds

    monkeypatch.setattr(roof, "_time_product", time_product)
    monkeypatch.setattr(roof.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(roof.tf, "ones", lambda shape, _: Matrix(shape))
    assert roof.matmul_rate("float32", 0.3) == pytest.approx(rate)
    assert tried[-1] == rows


class Matrix:
    """Of a shape, without numbers."""

    def __init__(self, shape):
        self.shape = shape


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_real_product(precision):
    assert 1e8 < roof.matmul_rate(precision, 0.02) < 1e16
