"""`pytorch_model.bin` read without torch, and without trusting the file.

A pickle is a program. This one may build ordered dictionaries, tensors and nothing
else, so a file that asks for more is refused instead of run. Both layouts of
`torch.save` are understood: a zip archive (since torch 1.6) and, before it, five
pickles followed by the raw numbers.
"""

import collections
import pickle
import zipfile
import zlib

import ml_dtypes
import numpy as np

_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C

_STORAGES = {
    "FloatStorage": np.float32,
    "DoubleStorage": np.float64,
    "HalfStorage": np.float16,
    "BFloat16Storage": ml_dtypes.bfloat16,
    "LongStorage": np.int64,
    "IntStorage": np.int32,
    "ShortStorage": np.int16,
    "CharStorage": np.int8,
    "ByteStorage": np.uint8,
    "BoolStorage": np.bool_,
}

# What broken input makes the readers below raise.
_DAMAGE = (
    *(ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError),
    *(EOFError, MemoryError, RecursionError, UnicodeDecodeError, OSError),
    *(pickle.UnpicklingError, zipfile.BadZipFile, zlib.error, NotImplementedError),
)

# A tensor whose numbers are not read yet; the storage is (dtype, key, size).
_Tensor = collections.namedtuple("_Tensor", "storage offset shape strides")


class _Refused(Exception):
    """The file asks for something that is no part of a table of tensors."""


def _rebuild_tensor(storage, offset, shape, strides, *_):
    return _Tensor(storage, offset, shape, strides)


class _Unpickler(pickle.Unpickler):
    """Builds dictionaries of `_Tensor`, nothing else."""

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if module == "torch" and name in _STORAGES:
            return np.dtype(_STORAGES[name])
        raise _Refused(f"{module}.{name}")

    def persistent_load(self, pid):
        kind, dtype, key, _, size, *view = pid
        if kind != "storage" or any(view):
            raise _Refused(f"a persistent object of kind {kind!r}")
        return dtype, key, size


def _materialise(tensor, storages):
    """The numbers of a tensor, as an array of its own."""
    (dtype, key, size), offset, shape, strides = tensor
    flat = np.frombuffer(storages[key], dtype)
    last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    # Without this check a made-up stride could read memory outside the file.
    inside = last < size == len(flat) and min(offset, *strides, 0) >= 0
    if min(shape, default=1) and not inside:
        raise ValueError("a tensor lies outside its storage")
    strides = [s * dtype.itemsize for s in strides]
    view = np.lib.stride_tricks.as_strided(flat[offset:], shape, strides)
    return np.array(view)


def _tensors_in(state):
    """The {name: `_Tensor`} in what was unpickled."""
    if not isinstance(state, dict):
        raise _Refused(f"an object of type {type(state).__name__} instead of a dict")
    other = [name for name, value in state.items() if not isinstance(value, _Tensor)]
    if other:
        raise _Refused(f"{other[0]!r}, which is no tensor")
    return state


def _read_zip(file):
    with zipfile.ZipFile(file) as archive:
        pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        root = pickles[0].removesuffix("data.pkl")
        if f"{root}byteorder" in archive.namelist():
            order = archive.read(f"{root}byteorder")
            if order != b"little":
                raise _Refused(f"numbers in byte order {order!r}")
        with archive.open(pickles[0]) as data:
            tensors = _tensors_in(_Unpickler(data).load())
        keys = {tensor.storage[1] for tensor in tensors.values()}
        storages = {key: archive.read(f"{root}data/{key}") for key in keys}
    return {name: _materialise(t, storages) for name, t in tensors.items()}


def _read_legacy(file):
    magic, _, system = (_Unpickler(file).load() for _ in range(3))
    if magic != _LEGACY_MAGIC:
        raise ValueError("it does not begin as torch's files do")
    if not system["little_endian"]:
        raise _Refused("numbers in byte order 'big'")
    tensors = _tensors_in(_Unpickler(file).load())
    dtypes = {tensor.storage[1]: tensor.storage[0] for tensor in tensors.values()}
    storages = {}
    for key in _Unpickler(file).load():
        size = int.from_bytes(file.read(8), "little")
        storages[key] = file.read(size * dtypes[key].itemsize)
    return {name: _materialise(t, storages) for name, t in tensors.items()}


def read(path):
    """Reads the tensors of a `torch.save`d state dictionary.

    Args:
        path: str.
    Returns:
        {name: np.ndarray}, types as stored (bfloat16 as `ml_dtypes.bfloat16`).
    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged, no torch file, or holds anything but tensors.
    """
    with open(path, "rb") as file:
        is_zip = file.read(4) == b"PK\x03\x04"
        file.seek(0)
        try:
            return _read_zip(file) if is_zip else _read_legacy(file)
        except _Refused as error:
            raise ValueError(
                f"{path} holds {error}; only tensors are read from such files: save "
                "the model's state_dict(), or better a .safetensors file"
            ) from None
        except _DAMAGE as error:
            raise ValueError(
                f"{path} is damaged or not written by torch.save ({error}); fetch it "
                "again or save it as .safetensors"
            ) from None
