"""Whether record files fit a model, flags and their manifests, in words.

The checks look at what `data/inspection.py` reports. Without a config, vocabulary, flag
or manifest, what would need it is left out. `data/content_checks.py` looks at what is
in the records.
"""

import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from data import features, inspection, manifests

BUILD_AGAIN = "build the records again"
_SHOWN = 4  # names of files


@dataclasses.dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: of what.
        fits: whether it is as it should be.
        expected: what should be.
        came: what is.
        change: what to change if it does not fit.
    """

    name: str
    fits: bool
    expected: str
    came: str
    change: str


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What the records are to be used with; None where it is not known.

    Attributes:
        config: sizes of the model, as in bert_config.json.
        vocab: token → id.
        vocab_sha256: checksum of its file.
        max_seq_length, max_predictions_per_seq, masked_lm_prob: flags.
        manifest_of: record file → its manifest.
        strays: record file → a manifest of another build, see `manifests.Found`.
    """

    config: Mapping[str, Any] | None = None
    vocab: Mapping[str, int] | None = None
    vocab_sha256: str | None = None
    max_seq_length: int | None = None
    max_predictions_per_seq: int | None = None
    masked_lm_prob: float | None = None
    manifest_of: Mapping[str, manifests.Manifest] = dataclasses.field(
        default_factory=dict
    )
    strays: Mapping[str, manifests.Manifest] = dataclasses.field(default_factory=dict)

    def built_with(self, flag: str, default: Any) -> Any:
        """The value of a flag of the build, `default` if the manifests differ in it."""
        found = [m.flags.get(flag, default) for m in self.manifest_of.values()]
        return found[0] if found and all(x == found[0] for x in found) else default


def check(report: Mapping[str, Any], wanted: Wanted) -> list[Check]:
    """Checks of files, layout, sizes and manifests.

    Args:
        report: see `inspection.Inspector.report`.
        wanted: what it should fit.
    """
    return [
        *_files(report),
        *_layout(report, wanted),
        *_sizes(report, wanted),
        *_model(report, wanted),
        *_manifests(report, wanted),
        *_strays(wanted),
    ]


def _files(report: Mapping[str, Any]) -> Iterator[Check]:
    damage = [
        file["damage"].partition(";")[0] for file in report["files"] if file["damage"]
    ]
    yield Check(
        "files",
        not damage,
        "whole TFRecord files",
        "; ".join(damage) or f"{len(report['files'])} whole",
        "copy or build these again",
    )
    zipped = [file["path"] for file in report["files"] if file["path"].endswith(".gz")]
    yield Check(
        "compression",
        len(zipped) in (0, len(report["files"])),
        "all files compressed (.gz) or none, to be read together",
        f"{len(zipped)} of {len(report['files'])} compressed",
        "pack or unpack some, or train on them apart",
    )


def _layout(report: Mapping[str, Any], wanted: Wanted) -> Iterator[Check]:
    kinds = ", ".join(
        f"{layout['records']:,} of {kind}" for kind, layout in report["layouts"].items()
    )
    is_pretraining = wanted.max_predictions_per_seq or wanted.manifest_of
    expected = "records of pre-training" if is_pretraining else "records of one kind"
    fault = report["faults"].get("layout")
    fits = len(report["layouts"]) == 1 and not fault
    if is_pretraining:
        fits = fits and inspection.PRETRAINING in report["layouts"]
    yield Check(
        "layout",
        fits,
        expected,
        kinds + (f"; unknown first in {fault['first']}" if fault else ""),
        "name files of one kind; create_pretraining_data.py writes those of "
        "pre-training",
    )


def _range(
    report: Mapping[str, Any], names: Sequence[str], key: str
) -> tuple[float, float] | None:
    """The least and greatest of some features' entries, over all records; None if
    there are none."""
    found = [
        feature[key]
        for layout in report["layouts"].values()
        for feature in layout["features"]
        if feature["name"] in names and feature[key]
    ]
    return (min(a for a, _ in found), max(b for _, b in found)) if found else None


def _span(bounds: tuple[float, float]) -> str:
    low, high = bounds
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _sizes(report: Mapping[str, Any], wanted: Wanted) -> Iterator[Check]:
    for flag, names, unit in (
        ("max_seq_length", features.INPUTS, "positions"),
        (
            "max_predictions_per_seq",
            tuple(f"masked_lm_{n}" for n in ("positions", "ids", "weights")),
            "predictions",
        ),
    ):
        counts = _range(report, names, "count")
        if not counts:
            continue
        value = getattr(wanted, flag)
        if counts[0] < counts[1]:
            expected = f"records with the same number of {unit}"
            change = f"{BUILD_AGAIN} with one --{flag}"
        elif value:
            expected = f"{value} {unit} (--{flag})"
            change = f"pass --{flag}={counts[0]}, or {BUILD_AGAIN} with {value}"
            if inspection.CHOICES in report["layouts"] and counts[0] % value == 0:
                change += f" (unless they hold {counts[0] // value} choices each)"
        else:
            expected = f"records with the same number of {unit}"
            change = ""
        fits = counts[0] == counts[1] and value in (None, counts[0])
        yield Check(flag, fits, expected, _span(counts), change)


def _model(report: Mapping[str, Any], wanted: Wanted) -> Iterator[Check]:
    sizes = []
    config, faults = wanted.config or {}, report["faults"]
    where = f", first in {faults['ids']['first']}" if "ids" in faults else ""
    ids = _range(report, ("input_ids", "masked_lm_ids"), "range")
    if wanted.vocab and ids:
        entries = 1 + max(wanted.vocab.values())
        sizes.append((entries, f"ids of the {entries:,} entries of --vocab_file"))
    if config and ids:
        size = config["vocab_size"]
        sizes.append((size, f"ids below the model's vocab_size, {size:,}"))
    for size, expected in sizes:
        fits = ids[0] >= 0 and ids[1] < size
        yield Check(
            "token ids",
            fits,
            expected,
            _span(ids) + ("" if fits else where),
            "use the model and vocabulary that the records were built with, or "
            f"{BUILD_AGAIN} with these",
        )
    if not config:
        return
    if wanted.vocab:
        yield Check(
            "vocab_size",
            entries <= config["vocab_size"],
            f"a vocabulary of at most {config['vocab_size']:,} entries, the model's "
            "vocab_size",
            f"{entries:,}",
            "give the vocabulary of this model, or another --bert_config_file",
        )
    positions = _range(report, features.INPUTS, "count")
    if inspection.CHOICES in report["layouts"]:
        positions = None  # all choices together may have more than the model
    for key, what, bounds in (
        ("max_position_embeddings", "positions", positions),
        ("type_vocab_size", "segments", _range(report, ("segment_ids",), "range")),
    ):
        if bounds:
            number = bounds[1] + (key == "type_vocab_size")
            yield Check(
                key,
                number <= config[key],
                f"at most {config[key]:,} {what}, the model's {key}",
                f"{number:,}",
                f"use a model with more, or {BUILD_AGAIN} with fewer",
            )


def _manifests(report: Mapping[str, Any], wanted: Wanted) -> Iterator[Check]:
    files = {file["path"]: file for file in report["files"]}
    for manifest in {m.path: m for m in wanted.manifest_of.values()}.values():
        named = [path for path, m in wanted.manifest_of.items() if m is manifest]
        differ = []
        for path in named:
            there, entry = files[path], manifest.entry(path)
            differ += [
                f"{path} has {key} {there[key]}, not {entry[key]}"
                for key in ("bytes", "records", "sha256")
                if there[key] != entry[key]
            ][:1]
        yield Check(
            "manifest",
            not differ,
            f"{len(named)} of the {len(manifest.outputs)} files of {manifest.path}, "
            "as they were built",
            "; ".join(differ) or "the same sizes and checksums",
            "copy again what differs, or " + BUILD_AGAIN,
        )
        checksum = manifest.vocabulary["sha256"]
        if wanted.vocab_sha256:
            yield Check(
                "vocabulary",
                wanted.vocab_sha256 == checksum,
                f"the one the records were built with, {manifest.vocabulary['path']}",
                "the same"
                if wanted.vocab_sha256 == checksum
                else f"sha256 {wanted.vocab_sha256[:12]}, not {checksum[:12]}",
                f"give that --vocab_file, or {BUILD_AGAIN} with this one",
            )


def _strays(wanted: Wanted) -> Iterator[Check]:
    used = [*wanted.manifest_of.values(), *wanted.strays.values()]
    for path in sorted({manifest.path for manifest in used}):
        names = [
            os.path.basename(file)
            for file, manifest in wanted.strays.items()
            if manifest.path == path
        ]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield Check(
            "builds",
            not names,
            f"no files of another build than {path}",
            f"{len(names)}: {', '.join(names[:_SHOWN])}{more}" if names else "none",
            "remove these, or keep them in another folder and leave them out here",
        )
