"""What is made of data sets before experiments."""

import json

import pytest

from experiments import grammar, miniatures, preparation
from modeling import config as config_lib


@pytest.fixture
def data(tmp_path):
    """A folder of data sets, small and made up."""
    folder = tmp_path / "data"
    for name in ("glue/MRPC", "glue/SST-2", "ner/wikigold", "pretrain/en_novels"):
        (folder / name).mkdir(parents=True)
    for name in ("train", "dev"):
        (folder / f"glue/MRPC/{name}.tsv").touch()
    rows = "".join(f"row\u2028{i}\t{i % 2}\n" for i in range(5010))
    for name in ("train", "dev"):
        path = folder / f"glue/SST-2/{name}.tsv"
        path.write_text(f"sentence\tlabel\n{rows}", "utf-8")
    documents = ["a O\n\n", *(f" -X- O\n\nw{i} O\n\n" for i in range(9))]
    text = "-DOCSTART-".join(documents)
    (folder / "ner/wikigold/wikigold.train.txt").write_text(text)
    for i in range(4):
        (folder / f"pretrain/en_novels/{i}.txt").write_text(f"Novel {i}.\n")
    return folder


def test_the_parts_of_the_data(data, tmp_path):
    for _ in range(2):  # again over what is there
        folders = preparation.prepare(tmp_path / "out", data, ["table_5_real"])
    out = tmp_path / "out"
    assert folders == {"prepared": str(out), "data": str(data)}
    train = (out / "SST-2/train.tsv").read_text("utf-8").split("\n")
    assert len(train) == 1 + 5000 + 1 and train[-2] == "row\u20284999\t1"
    assert (out / "SST-2/dev.tsv").read_bytes() == (
        data / "glue/SST-2/dev.tsv"
    ).read_bytes()
    whole = (data / "ner/wikigold/wikigold.train.txt").read_text()
    parts = [(out / f"wikigold.{name}.txt").read_text() for name in ("train", "dev")]
    assert "".join(parts) == whole and parts[1].count("-DOCSTART-") == 2
    names = {
        p.name: sorted(x.name for x in p.iterdir()) for p in (out / "novels").iterdir()
    }
    assert names == {"text": ["0.txt", "1.txt"], "held_out": ["2.txt", "3.txt"]}


def test_what_is_not_there_shows_at_once_and_only_where_it_is_read(data, tmp_path):
    (data / "glue/SST-2/dev.tsv").unlink()
    with pytest.raises(FileNotFoundError, match="table_5_real needs .*dev.tsv"):
        preparation.prepare(tmp_path / "out", data, ["table_5", "table_5_real"])
    with pytest.raises(FileNotFoundError, match="table_7 needs .*wnut17train.conll"):
        preparation.prepare(tmp_path / "out", data, ["table_7"])
    assert not (tmp_path / "out").exists()
    preparation.prepare(tmp_path / "out", data, ["table_5"])


def test_too_few_novels_are_refused(data, tmp_path):
    for i in (0, 1):
        (data / f"pretrain/en_novels/{i}.txt").unlink()
    with pytest.raises(
        FileNotFoundError, match="must hold more than 2 novels .* got 2"
    ):
        preparation.prepare(tmp_path / "out", data, ["table_5_real"])


def test_configs_are_of_the_language_and_read_both_ways(tmp_path):
    preparation.prepare(tmp_path, None, [])
    found = sorted(path.name for path in (tmp_path / "configs").iterdir())
    assert len(found) == 2 * (len(miniatures.SIZES) + 1)
    for name in found:
        config = config_lib.BertConfig.from_json_file(str(tmp_path / "configs" / name))
        assert (config.visibility == "left_to_right") == name.endswith("_ltr.json")
    config = json.loads((tmp_path / "configs/grammar_L2_H64.json").read_text())
    assert config["vocab_size"] == len(grammar.vocabulary())
