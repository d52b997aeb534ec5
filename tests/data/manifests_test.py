"""Manifests of create_pretraining_data.py are found and read."""

import json
import os

import pytest

from data import manifests
from tests import scripts


@pytest.fixture(scope="module")
def built(golden, tmp_path_factory):
    """Folder with the files x-00000-of-00002, ... and their manifest."""
    folder = tmp_path_factory.mktemp("built")
    scripts.succeed(
        "create_pretraining_data.py",
        input_file=golden / "pretraining_corpus.txt",
        output_file=folder / "x",
        num_output_shards=2,
        vocab_file=golden / "tiny_tf1/vocab.txt",
        max_seq_length=64,
        num_workers=1,
        dupe_factor=1,
    )
    return folder


def files(folder):
    return [f"{folder}/x-0000{i}-of-00002" for i in range(2)]


def test_a_manifest_is_read(built):
    manifest = manifests.read(f"{built}/x.manifest.json")
    assert manifest.flags["masked_lm_prob"] == 0.15
    assert manifest.flags["max_seq_length"] == 64
    assert manifest.vocabulary["path"].endswith("tiny_tf1/vocab.txt")
    assert list(manifest.outputs) == list(map(os.path.basename, files(built)))
    sizes = [entry["bytes"] for entry in manifest.outputs.values()]
    assert sizes == [os.path.getsize(path) for path in files(built)]


def test_the_manifest_beside_the_files_is_found(built, tmp_path, monkeypatch):
    manifest = manifests.read(f"{built}/x.manifest.json")
    assert manifests.find(files(built)) == (dict.fromkeys(files(built), manifest), {})
    other = str(tmp_path / "x-00000-of-00002")
    found = manifests.find([*files(built)[:1], other, "ram://x"])
    assert found == ({files(built)[0]: manifest}, {})
    monkeypatch.chdir(built)
    found = manifests.find(["x-00001-of-00002"])
    assert found.manifest_of["x-00001-of-00002"].outputs == manifest.outputs


def test_a_manifest_elsewhere_is_taken_if_given(built, tmp_path):
    other = str(tmp_path / "x-00000-of-00002")
    path = f"{built}/x.manifest.json"
    assert manifests.find([other], [path]) == ({other: manifests.read(path)}, {})
    message = r"x\.manifest\.json names x-00000-of-00002, .* none of which is among"
    with pytest.raises(ValueError, match=message):
        manifests.find([str(tmp_path / "y")], [path])


def test_files_of_another_build_than_the_manifest(built):
    manifest = manifests.read(f"{built}/x.manifest.json")
    new, old = files(built), [f"{built}/x-0000{i}-of-00003" for i in range(3)]
    single, other = f"{built}/x", f"{built}/y"
    strays = dict.fromkeys([*old, single], manifest)
    # Other builds may lie there, unless their files are to be read with these.
    assert manifests.find([*old, single, other]) == ({}, strays)
    assert manifests.find([*new, *old, single, other]) == (
        dict.fromkeys(new, manifest),
        {**strays, other: manifest},
    )


@pytest.mark.parametrize("change", ["cut", "list", "{}", "outputs", "number"])
def test_what_is_no_manifest_is_refused_only_if_given(change, built, tmp_path):
    content = (built / "x.manifest.json").read_text()
    values = json.loads(content)
    path = tmp_path / "x.manifest.json"
    path.write_text(
        {
            "cut": content[:50],
            "list": "[1]",
            "{}": "{}",
            "outputs": json.dumps({**values, "outputs": ["a"]}),
            "number": json.dumps({**values, "result": {"outputs": 1}}),
        }[change]
    )
    (tmp_path / "folder.manifest.json").mkdir()
    file = str(tmp_path / "x-00000-of-00002")
    assert manifests.find([file]) == ({}, {})
    with pytest.raises(ValueError, match=r"x\.manifest\.json is no manifest of"):
        manifests.find([file], [str(path)])
    with pytest.raises(OSError, match="missing"):
        manifests.read("missing")
