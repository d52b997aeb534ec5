"""Features as protocol buffers give them, for any record."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from data import record_decoding
from tests import pretraining_records

INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 300)
FLOATS = st.floats(width=32, allow_nan=False)
LISTS = st.one_of(
    st.tuples(st.just("int64"), st.lists(INTEGERS)),
    st.tuples(st.just("float32"), st.lists(FLOATS)),
    st.tuples(st.just("bytes"), st.lists(st.binary(max_size=300))),
)
FEATURES = st.dictionaries(st.text(max_size=200), LISTS, max_size=5)


def serialize(features):
    example = tf.train.Example()
    for name, (kind, values) in features.items():
        entry = example.features.feature[name]
        list_name = {"int64": "int64_list", "float32": "float_list"}.get(
            kind, "bytes_list"
        )
        getattr(entry, list_name).value.extend(values)
    return example.SerializeToString(deterministic=True)


def check(rows):
    """Compares what is decoded with what was written."""
    columns = record_decoding.decode([serialize(row) for row in rows])
    expected = {}
    for number, row in enumerate(rows):
        for name, (kind, values) in row.items():
            entry = expected.setdefault((name, kind), ([0] * len(rows), []))
            entry[0][number] = len(values)
            entry[1].extend(map(len, values) if kind == "bytes" else values)
    for key, column in columns.items():
        counts, values = expected.pop(key)
        assert column.counts.tolist() == counts
        np.testing.assert_array_equal(column.values, values)
        dtype = np.float32 if key[1] == "float32" else np.int64
        assert column.values.dtype == dtype
    assert not any(values for _, values in expected.values())


@given(st.lists(FEATURES, min_size=1, max_size=5))
@settings(deadline=None)
def test_records_of_any_kind(rows):
    check(rows)


@given(
    st.integers(1, 200).flatmap(
        lambda size: st.lists(
            st.fixed_dictionaries(
                {
                    "input_ids": st.tuples(
                        st.just("int64"),
                        st.lists(INTEGERS, min_size=1, max_size=size),
                    ),
                    "w": st.tuples(
                        st.just("float32"), st.lists(FLOATS, min_size=1, max_size=40)
                    ),
                }
            ),
            min_size=1,
            max_size=6,
        )
    )
)
@settings(deadline=None)
def test_records_that_are_built_alike(rows):
    contents = [serialize(row) for row in rows]
    assert record_decoding._parse_alike(contents)
    check(rows)


def test_records_of_pretraining_are_read_the_fast_way(tmp_path):
    path = pretraining_records.write(tmp_path / "a", pretraining_records.make(40))
    contents = list(tf.data.TFRecordDataset(path).as_numpy_iterator())
    fast = record_decoding._parse_alike(contents)
    slow = record_decoding._parse_each(contents)
    assert {key: lists for key, (_, lists) in fast.items()} == {
        key: lists for key, (_, lists) in slow.items()
    }
    data = pretraining_records.make(40)
    columns = record_decoding.decode(contents)
    for name, rows in data.items():
        kind = "float32" if name == "masked_lm_weights" else "int64"
        found = columns[name, kind].rows(np.arange(40), rows.shape[1])
        np.testing.assert_array_equal(found, rows)


def test_values_that_are_not_packed():
    """As the format allows, though nobody writes it."""

    def delimited(tag, content):
        return bytes([tag, len(content)]) + content

    def example(name, kind, values):
        feature = delimited(kind, values)
        pair = delimited(0x0A, name) + delimited(0x12, feature)
        return delimited(0x0A, delimited(0x0A, pair))

    integers = example(b"a", 0x1A, b"\x08\x05\x08\xac\x02" + delimited(0x0A, b"\x07"))
    floats = example(b"b", 0x12, b"\x0d\x00\x00\x80\x3f\x0d\x00\x00\x00\x40")
    for content, name in ((integers, "a"), (floats, "b")):
        feature = tf.train.Example.FromString(content).features.feature[name]
        expected = list(feature.int64_list.value) + list(feature.float_list.value)
        assert pretraining_records.decode_one(content) == {name: expected}
        assert len(expected) > 1


@pytest.mark.parametrize("content", [b"", b"\x00\x01\xff\xfe", b"no example at all"])
def test_other_records_have_no_features(content):
    good = serialize({"a": ("int64", [1])})
    columns = record_decoding.decode([content, good])
    assert columns["a", "int64"].counts.tolist() == [0, 1]
    assert record_decoding.decode([content]) == {}


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=4))
@settings(deadline=None)
def test_no_bytes_make_it_fail(contents):
    record_decoding.decode(contents)


@given(FEATURES, st.data())
@settings(deadline=None)
def test_no_spoilt_record_makes_it_fail(features, data):
    content = bytearray(serialize(features))
    if content:
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    record_decoding.decode([bytes(content), serialize(features)])
    record_decoding.decode([bytes(content[: len(content) // 2])])
