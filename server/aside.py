"""Work of the event loop that goes to a thread where others would wait for it."""

import asyncio

# What takes less than a millisecond.
_BYTES = 1 << 15  # of a request, to read
_VALUES = 1 << 11  # of an answer, to write


async def call(function, *arguments, num_bytes=0, num_values=0):
    """Calls a function, in a thread if it has much to do.

    Args:
        function: whatever two threads may do at once.
        arguments: of it.
        num_bytes: int, of the request that it reads or has read.
        num_values: int, of the answer that it writes.
    Returns:
        What the function returns; and what it raises.
    """
    if num_bytes > _BYTES or num_values > _VALUES:
        return await asyncio.to_thread(function, *arguments)
    return function(*arguments)


def size(arrays):
    """int, the values of a dict of np.ndarray."""
    return sum(array.size for array in arrays.values())
