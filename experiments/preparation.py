"""The files that experiments read: a made-up language, and parts of data sets."""

import pathlib
from collections.abc import Sequence

from data import filesystem
from experiments import grammar, miniatures

# Flags that suites cannot do without.
NEEDED = {
    "data_dir": ("table_7", "table_5_real"),
    "init_checkpoint": ("table_7",),
}
# What suites read of --data_dir.
FILES = {
    "table_7": ("ner/wnut17/wnut17train.conll", "ner/wnut17/emerging.dev.conll"),
    "table_5_real": (
        *("glue/MRPC/train.tsv", "glue/MRPC/dev.tsv"),
        *("glue/SST-2/train.tsv", "glue/SST-2/dev.tsv"),
        *("ner/wikigold/wikigold.train.txt", "pretrain/en_novels"),
    ),
}
HELD_OUT = 2  # of the novels, the last so many by name
SST_2_ROWS = 5000


def prepare(
    folder: pathlib.Path, data: pathlib.Path | None, suites: Sequence[str]
) -> dict[str, str]:
    """Writes what is made of the data, always the same.

    Args:
        folder: where to.
        data: folder of the published data sets, or None.
        suites: that will be run.

    Returns:
        what stands for {prepared} and {data} in commands.

    Raises:
        OSError: a data set of these suites is not there.
    """
    for suite in suites:
        for name in FILES.get(suite, ()):
            if not (data / name).exists():
                raise FileNotFoundError(
                    f"{suite} needs {data / name}, which is not there; see what "
                    "--data_dir holds, or give other --suites"
                )
    grammar.write(str(folder / "grammar"), miniatures.SEED_OF_THE_LANGUAGE)
    miniatures.write_configs(folder / "configs")
    folders = {"prepared": str(folder)}
    if data:
        data = data.resolve()
        folders["data"] = str(data)
    if "table_5_real" in suites:
        take_part_of_sst_2(data / "glue/SST-2", folder / "SST-2")
        split_wikigold(data / "ner/wikigold/wikigold.train.txt", folder)
        _split_novels(data / "pretrain/en_novels", folder / "novels")
    return folders


def take_part_of_sst_2(source: pathlib.Path, target: pathlib.Path) -> None:
    """The first SST_2_ROWS training rows, and the dev set, into a folder."""
    target.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", SST_2_ROWS), ("dev", None)):
        # Only b"\n" ends a row: there are other line ends of Unicode within.
        lines = (source / f"{name}.tsv").read_bytes().split(b"\n")
        part = lines if count is None else [*lines[: 1 + count], b""]
        with filesystem.replacing(str(target / f"{name}.tsv")) as file:
            file.write(b"\n".join(part))


def split_wikigold(source: pathlib.Path, folder: pathlib.Path) -> None:
    """wikigold.train.txt and wikigold.dev.txt, the last fifth of the documents."""
    start = "-DOCSTART-"  # before every document but the first
    documents = source.read_text("utf-8").split(start)
    cut = len(documents) * 4 // 5
    train, dev = start.join(documents[:cut]), start.join(documents[cut:])
    filesystem.write_text(str(folder / "wikigold.train.txt"), train)
    filesystem.write_text(str(folder / "wikigold.dev.txt"), start + dev)


def _split_novels(source: pathlib.Path, folder: pathlib.Path) -> None:
    """Links to the novels, in two folders."""
    novels = sorted(source.glob("*.txt*"))
    if len(novels) <= HELD_OUT:
        raise FileNotFoundError(
            f"{source} must hold more than {HELD_OUT} novels (.txt or .txt.gz), got "
            f"{len(novels)}"
        )
    for name, part in (("text", novels[:-HELD_OUT]), ("held_out", novels[-HELD_OUT:])):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for novel in part:
            link = folder / name / novel.name
            link.unlink(missing_ok=True)
            link.symlink_to(novel)
