"""Variants differ in what they are about, and in nothing else."""

import pytest

from experiments import ways

USUAL = ways.WAYS["MLM + NSP"]
# Variant → the attributes in which it is not the usual one.
DIFFERENT = {
    "No NSP": {"flags"},
    "No NSP, single spans": {"flags", "records", "record_flags"},
    "LTR": {"flags", "config_end"},
    "LTR + BiLSTM": {"flags", "config_end"},
    "80/10/10": set(),
    **{mix: {"records", "record_flags"} for mix in ways.MIXES[1:]},
}


@pytest.mark.parametrize("variant", DIFFERENT)
def test_one_thing_is_another(variant):
    way = ways.WAYS[variant]
    names = ("records", "record_flags", "flags", "config_end")
    found = {name for name in names if getattr(way, name) != getattr(USUAL, name)}
    assert found == DIFFERENT[variant]


def test_folders_are_those_of_one_way():
    assert set(ways.WAYS) == {"MLM + NSP", *DIFFERENT}
    by_folder = {}
    for way in ways.WAYS.values():
        assert by_folder.setdefault(way.name, way) == way
    shares = [list(map(float, mix.split("/"))) for mix in ways.MIXES]
    assert all(sum(mix) == 100 for mix in shares)
