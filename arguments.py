"""What a caller gives to a predictor, checked before anything is computed of it.

Python would take a dict for its keys and 0 for a text that is not there, and answer.
"""

import math
import numbers
import os
from collections.abc import Mapping, Set

# Python goes through them, but their elements are no texts, or in no order.
_NO_LISTS = (str, bytes, Mapping, Set)


def items(name, value, of):
    """The elements of a list, or of what can be gone through as one.

    Args:
        name: str, named in errors.
        value: list, tuple, array, iterator ...
        of: str, what the elements should be, named in errors.
    Returns:
        list.
    Raises:
        ValueError: it is a text, a dict, a set or one thing.
    """
    try:
        found = None if isinstance(value, _NO_LISTS) else iter(value)
    except TypeError:
        found = None
    if found is None:
        raise ValueError(f"{name} must be a list of {of}, got {_kind(value)}")
    return list(found)


def texts(name, value, optional=False):
    """The texts in a list, or in what can be gone through as one.

    Args:
        name: str, named in errors.
        value: list of str, tuple, array, iterator ...
        optional: bool, None may stand where there is no text.
    Returns:
        list of str.
    Raises:
        ValueError: it is no list, or an element is no text; names its place.
    """
    found = items(name, value, "str")
    for place, text in enumerate(found):
        if not (isinstance(text, str) or (optional and text is None)):
            expected = "str or None" if optional else "str"
            raise ValueError(f"{name}[{place}] must be a {expected}, got {_kind(text)}")
    return found


def pairs(first, second=None):
    """Texts with the second ones beside them, None where there is none.

    Args:
        first: list of str.
        second: list of str or None, of the same length; or None.
    Returns:
        list of (str, str or None).
    Raises:
        ValueError: they are not such lists.
    """
    first = texts("texts", first)
    second = [None] * len(first) if second is None else texts("pairs", second, True)
    if len(first) != len(second):
        raise ValueError(
            f"every text of a pair needs the other, got {len(first)} and "
            f"{len(second)} texts"
        )
    return list(zip(first, second, strict=True))


def whole(name, value, least=1):
    """An integer.

    Args:
        name: str, named in errors.
        value: int, of Python or NumPy.
        least: int, the smallest that will do.
    Returns:
        int.
    Raises:
        ValueError: it is none, or too small.
    """
    if not is_whole(value) or value < least:
        raise ValueError(f"{name} must be an int, {least} at least, got {value!r}")
    return int(value)


def is_whole(value):
    """Whether it is an integer; True and False are none."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def number(name, value):
    """A float that can be compared with others: no NaN.

    Raises:
        ValueError: it is none.
    """
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or math.isnan(value):
        raise ValueError(f"{name} must be a number, got {value!r}")
    return float(value)


def path(name, value):
    """A path, as str.

    Raises:
        ValueError: it is none, or empty.
    """
    found = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(found, str) or not found:
        raise ValueError(f"{name} must be a path, got {value!r}")
    return found


def _kind(value):
    return type(value).__name__
