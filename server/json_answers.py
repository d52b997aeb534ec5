"""Arrays to the JSON of answers of TensorFlow Serving's REST API.

In slices, so that other threads have their turn while a large one is written.
"""

import base64
import json

import numpy as np

from server import errors

_SLICE = 1 << 12  # values at once: about a millisecond
_POWERS = np.array([float(f"1e{n}") for n in range(23)])  # float64 holds these exactly

_dumps = json.JSONEncoder(ensure_ascii=False).encode


def from_outputs(outputs, is_row):
    """The object that answers a predict request, in the format of the request.

    Args:
        outputs: dict of name → np.ndarray.
        is_row: bool, whether the request had "instances".
    Returns:
        dict. An output that is the only one stands without its name.
    Raises:
        errors.RequestError: rows are wanted and the outputs have no common number.
    """
    plain = {name: _plain(name, array) for name, array in outputs.items()}
    if not is_row:
        return {"outputs": plain if len(plain) > 1 else next(iter(plain.values()))}
    counts = {array.shape[:1] for array in outputs.values()}
    if len(counts) > 1 or () in counts:
        raise errors.invalid(
            'the outputs do not have one row for each item; send "inputs", not '
            '"instances"'
        )
    if len(plain) == 1:
        return {"predictions": next(iter(plain.values()))}
    rows = zip(*plain.values(), strict=True)
    return {"predictions": [dict(zip(plain, row, strict=True)) for row in rows]}


def _plain(name, array):
    """A value or nested lists of JSON; bytes as TensorFlow Serving writes them."""
    if array.dtype != object:
        return numbers(array)
    values = np.empty(array.size, object)
    values[:] = [_text(b, name.endswith("_bytes")) for b in array.ravel()]
    return values.reshape(array.shape).tolist()


def _text(value, is_binary):
    if not is_binary:
        try:
            return value.decode()
        except UnicodeDecodeError:
            pass  # JSON cannot hold it either.
    return {"b64": base64.b64encode(value).decode()}


def numbers(array):
    """A number or nested lists; floats with no more digits than their type holds.

    0.1 in float32 is 0.10000000149011612 to Python, which helps nobody.

    Args:
        array: np.ndarray of numbers.
    """
    if array.size <= _SLICE:
        return _few_numbers(array)
    in_each = array.size // len(array)
    if in_each > _SLICE:
        return [numbers(part) for part in array]
    return [item for part in _slices(array, in_each) for item in _few_numbers(part)]


def _slices(values, in_each):
    """Yields parts of a list or array, whose items hold `in_each` values."""
    step = _SLICE // max(1, in_each)
    for start in range(0, len(values), step):
        yield values[start : start + step]


def _few_numbers(array):
    if array.dtype.kind == "V":  # half precision that NumPy does not know
        array = array.astype(np.float32)
    if array.dtype in (np.float16, np.float32):
        array = _shortest(array)
    return array.tolist()


def _shortest(array):
    """float64 of the fewest digits that tell a float16 or float32 from all others."""
    with np.errstate(invalid="ignore"):  # One kind of NaN becomes another.
        exact = array.astype(np.float64)
    size = np.abs(exact)
    # Of float32, which any 6 digits survive, and 9 give back. These need a power of 10
    # in `_POWERS` only, so that the quotient below is what the digits are read as.
    is_quick = (size >= 1e-13) & (size < 1e6) & (array.dtype == np.float32)
    is_slow = ~is_quick & (size != 0)
    values = kept = exact[is_quick]
    places = 5 - np.floor(np.log10(size[is_quick])).astype(int)  # for 6 digits
    for more in (3, 2, 1, 0):
        scale = _POWERS[places + more]
        shorter = np.rint(values * scale) / scale
        kept = np.where(shorter.astype(np.float32) == values, shorter, kept)
    exact[is_quick] = kept
    exact[is_slow] = array[is_slow].astype(str).astype(np.float64)
    return exact


def encode(document):
    """bytes of an object of JSON, as UTF-8."""
    return _written(document).encode()


def _written(value):
    """A value as json.dumps writes it."""
    if _count(value) <= _SLICE:
        return _dumps(value)
    if isinstance(value, dict):
        items = [f"{_dumps(name)}: {_written(item)}" for name, item in value.items()]
        return f"{{{', '.join(items)}}}"
    in_each = _count(value[0])
    if in_each > _SLICE:
        parts = map(_written, value)
    else:
        parts = (_dumps(part)[1:-1] for part in _slices(value, in_each))
    return f"[{', '.join(parts)}]"


def _count(value):
    """How many values there are in one, if all items of a list are as its first."""
    if isinstance(value, dict):
        return sum(map(_count, value.values()))
    if isinstance(value, list) and value:
        return len(value) * _count(value[0])
    return 1
