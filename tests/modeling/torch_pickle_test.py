"""torch's files: what torch wrote, tensors of every kind, and files that do harm."""

import io
import pathlib
import pickle
import struct
import zipfile

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from modeling import torch_pickle


def op(value):
    """Pickle opcodes (protocol 2) that push a str, int, tuple or raw opcodes."""
    if isinstance(value, str):
        text = value.encode()
        return b"X" + struct.pack("<I", len(text)) + text
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    if isinstance(value, tuple):
        return b"(" + b"".join(map(op, value)) + b"t"
    return value


def storage(kind, key, size):
    return op(("storage", f"ctorch\n{kind}\n".encode(), key, "cpu", size)) + b"Q"


def tensor(kind, key, size, *, offset=0, shape=(2, 3), strides=(3, 1)):
    arguments = (storage(kind, key, size), offset, shape, strides, b"\x89", b"}")
    return b"ctorch._utils\n_rebuild_tensor_v2\n" + op(arguments) + b"R"


def state_dict(**tensors):
    items = b"".join(op(name) + code + b"s" for name, code in tensors.items())
    return b"\x80\x02ccollections\nOrderedDict\n)R" + items + b"."


def write_zip(path, code, byteorder=b"little", **storages):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", code)
        archive.writestr("archive/byteorder", byteorder)
        for key, array in storages.items():
            archive.writestr(f"archive/data/{key}", array.tobytes())
    return str(path)


def write_legacy(path, code, **storages):
    head = (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})
    content = b"".join(pickle.dumps(value, 2) for value in head) + code
    content += pickle.dumps(list(storages), 2)
    for array in storages.values():
        content += struct.pack("<q", array.size) + array.tobytes()
    pathlib.Path(path).write_bytes(content)
    return str(path)


WRITERS = pytest.mark.parametrize("write", [write_zip, write_legacy])


def test_file_of_torch_equals_its_safetensors(golden):
    folder = golden / "hf_tiny" / "pretraining_gelu"
    expected = safetensors.numpy.load_file(folder / "model.safetensors")
    actual = torch_pickle.read(folder / "pytorch_model.bin")
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array, strict=True)
    # The copies of tied weights are in this file only.
    assert set(actual) - set(expected) == {
        "cls.predictions.decoder.weight",
        "cls.predictions.decoder.bias",
    }


def test_file_of_old_torch_equals_its_safetensors(shared):
    folder = shared / "data" / "checkpoints" / "hf-tiny-bert"
    expected = safetensors.numpy.load_file(folder / "model.safetensors")
    actual = torch_pickle.read(folder / "pytorch_model.bin")
    assert actual.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array, strict=True)


@WRITERS
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("FloatStorage", np.float32),
        ("DoubleStorage", np.float64),
        ("HalfStorage", np.float16),
        ("BFloat16Storage", ml_dtypes.bfloat16),
        ("LongStorage", np.int64),
        ("BoolStorage", np.bool_),
    ],
)
def test_types(tmp_path, write, kind, dtype):
    values = np.arange(6).astype(dtype)
    path = write(
        tmp_path / "x.bin", state_dict(a=tensor(kind, "0", 6)), **{"0": values}
    )
    np.testing.assert_array_equal(
        torch_pickle.read(path)["a"], values.reshape(2, 3), strict=True
    )


@WRITERS
def test_transposed_shared_and_empty_tensors(tmp_path, write):
    kind = "FloatStorage", "0", 8
    code = state_dict(
        transposed=tensor(*kind, shape=(3, 2), strides=(1, 3)),
        part=tensor(*kind, offset=5, shape=(3,), strides=(1,)),
        scalar=tensor(*kind, offset=7, shape=(), strides=()),
        empty=tensor(*kind, shape=(0, 4), strides=(4, 1)),
    )
    values = np.arange(8, dtype=np.float32)
    tensors = torch_pickle.read(write(tmp_path / "x.bin", code, **{"0": values}))
    expected = {
        "transposed": values[:6].reshape(2, 3).T,
        "part": values[5:],
        "scalar": np.float32(7),
        "empty": np.zeros((0, 4), np.float32),
    }
    for name, array in expected.items():
        np.testing.assert_array_equal(tensors[name], array)
        assert tensors[name].shape == np.shape(array)


@WRITERS
@pytest.mark.parametrize(
    "layout",
    [
        {"shape": (2, 4), "strides": (4, 1)},
        {"offset": 1},
        {"offset": -1},
        {"strides": (-3, 1)},
        {"shape": (2, -3)},
        {"strides": (1 << 30, 1)},
        {"shape": (2, 3, 4)},
    ],
)
def test_tensor_outside_its_storage_is_refused(tmp_path, write, layout):
    code = state_dict(a=tensor("FloatStorage", "0", 6, **layout))
    path = write(tmp_path / "x.bin", code, **{"0": np.zeros(6, np.float32)})
    with pytest.raises(ValueError, match="x.bin is damaged"):
        torch_pickle.read(path)


class Harmful:
    """Runs a command when unpickled by an ordinary unpickler."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (pathlib.Path.touch, (self.marker,))


@WRITERS
@pytest.mark.parametrize("protocol", [2, 4])
def test_code_is_not_run(tmp_path, write, protocol):
    marker = tmp_path / "marker"
    code = pickle.dumps({"a": Harmful(marker)}, protocol)
    pickle.loads(code)
    assert marker.exists()
    marker.unlink()
    with pytest.raises(ValueError, match="only tensors are read from such files"):
        torch_pickle.read(write(tmp_path / "x.bin", code))
    assert not marker.exists()


@WRITERS
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("builtins", "eval"),
        ("os", "system"),
        ("torch", "load"),
        ("torch._utils", "_rebuild_parameter"),
        ("collections", "deque"),
    ],
)
def test_foreign_names_are_refused_by_name(tmp_path, write, module, name):
    code = f"\x80\x02c{module}\n{name}\n(X\x01\x00\x00\x001tR.".encode("latin-1")
    with pytest.raises(
        ValueError, match=rf"x.bin holds {module}\.{name}; only tensors"
    ):
        torch_pickle.read(write(tmp_path / "x.bin", code))


@WRITERS
@pytest.mark.parametrize(
    ("value", "culprit"),
    [
        ({"a": 3}, "'a', which is no tensor"),
        ([1], "an object of type list instead of a dict"),
    ],
)
def test_other_content_is_refused_by_name(tmp_path, write, value, culprit):
    path = write(tmp_path / "x.bin", pickle.dumps(value, 2))
    with pytest.raises(ValueError, match=f"x.bin holds {culprit}"):
        torch_pickle.read(path)


def test_big_endian_numbers_are_refused(tmp_path):
    code = state_dict(a=tensor("FloatStorage", "0", 6))
    path = write_zip(tmp_path / "x.bin", code, b"big")
    with pytest.raises(ValueError, match="byte order b'big'"):
        torch_pickle.read(path)


def truncations(content, count=40):
    cuts = sorted({len(content) * k // count for k in range(count)})
    return [content[:cut] for cut in cuts]


def test_truncated_files_are_refused(tmp_path, golden):
    code = state_dict(a=tensor("FloatStorage", "0", 6))
    legacy = write_legacy(tmp_path / "l", code, **{"0": np.zeros(6, np.float32)})
    archive = golden / "hf_tiny" / "pretraining_gelu" / "pytorch_model.bin"
    for source in (pathlib.Path(legacy), archive):
        for content in truncations(source.read_bytes()):
            (tmp_path / "x.bin").write_bytes(content)
            with pytest.raises(ValueError, match="x.bin is damaged"):
                torch_pickle.read(tmp_path / "x.bin")


def test_random_damage_gives_a_value_error_or_tensors(tmp_path):
    rng = np.random.default_rng(0)
    code = state_dict(a=tensor("FloatStorage", "0", 6))
    values = {"0": np.zeros(6, np.float32)}
    for write in (write_zip, write_legacy):
        content = pathlib.Path(write(tmp_path / "x.bin", code, **values)).read_bytes()
        for _ in range(300):
            damaged = bytearray(content)
            damaged[rng.integers(len(damaged))] = rng.integers(256)
            (tmp_path / "x.bin").write_bytes(damaged)
            try:
                tensors = torch_pickle.read(tmp_path / "x.bin")
            except ValueError as error:
                assert "x.bin" in str(error)
            else:
                assert all(isinstance(t, np.ndarray) for t in tensors.values())


def test_empty_and_other_files_are_refused(tmp_path):
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("readme.txt", "no tensors here")
    for content in (b"", b"hello", other.getvalue(), pickle.dumps({})):
        (tmp_path / "x.bin").write_bytes(content)
        with pytest.raises(ValueError, match="x.bin is damaged or not written by"):
            torch_pickle.read(tmp_path / "x.bin")
