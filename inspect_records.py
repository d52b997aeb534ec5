r"""Shows what is in record files, and whether they fit a model, vocabulary and flags.

    python inspect_records.py --input_file='records/*.tfrecord' \
        --bert_config_file=bert_config.json --vocab_file=vocab.txt \
        --max_seq_length=128 --max_predictions_per_seq=20

Made for records of pre-training: lengths, padding, masks, next sentences, repeated
records, samples as text; and checks of everything, with what to change if something
does not fit, in which case it ends with exit status 1. Of the records of other scripts
the features are shown. Manifests (NAME.manifest.json) that lie beside the files are
compared with them, and files of other builds among them are told. One pass, in memory
that does not depend on the size of the files.
"""

import hashlib
import os
from collections.abc import Mapping
from typing import Any

import tqdm
from absl import flags

import command_line
from data import (
    content_checks,
    filesystem,
    inspection,
    inspection_checks,
    inspection_statistics,
    inspection_table,
    manifests,
    tokenization,
)
from modeling import config as config_lib
from modeling import huggingface_config

FLAGS = flags.FLAGS


def define_flags() -> None:
    flags.DEFINE_string(
        "input_file",
        None,
        "TFRecord files, also .gz: comma list of globs.",
        required=True,
    )
    flags.DEFINE_string(
        "bert_config_file", None, "Sizes of the model that is to be trained."
    )
    flags.DEFINE_string("vocab_file", None, "The vocabulary the records should fit.")
    flags.DEFINE_integer(
        "max_seq_length", None, "What run_pretraining.py will be given.", 1
    )
    flags.DEFINE_integer(
        "max_predictions_per_seq", None, "What run_pretraining.py will be given.", 1
    )
    flags.DEFINE_float(
        "masked_lm_prob",
        None,
        "Share of the tokens that was to be predicted; by default as in the manifest.",
        0.0,
        1.0,
    )
    flags.DEFINE_string(
        "manifest_file",
        None,
        "Manifests that do not lie beside the files: comma list of globs.",
    )
    flags.DEFINE_integer("num_samples", 3, "Records to show as text.", 0)
    flags.DEFINE_string("output_file", None, "JSON file for all that was found.")
    flags.DEFINE_bool("overwrite", False, "Replace an output file that exists.")


def read_config(path: str) -> dict[str, Any]:
    """Sizes of a model, from bert_config.json or a Hugging Face config."""
    if huggingface_config.is_config(path):
        return huggingface_config.read_config(path).to_dict()
    return config_lib.BertConfig.from_json_file(path).to_dict()


def make_wanted(
    files: list[str], values: Mapping[str, Any]
) -> inspection_checks.Wanted:
    """What the flags, of which these are the values, and the manifests ask for."""
    given = values["manifest_file"]
    found = manifests.find(files, filesystem.expand(given) if given else ())
    prob = values["masked_lm_prob"]
    if prob is None:
        probs = {m.flags.get("masked_lm_prob") for m in found.manifest_of.values()}
        prob = probs.pop() if len(probs) == 1 else None
    vocab = checksum = None
    if vocab_file := values["vocab_file"]:
        vocab = tokenization.load_vocab(vocab_file)
        with open(vocab_file, "rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
    config_file = values["bert_config_file"]
    return inspection_checks.Wanted(
        read_config(config_file) if config_file else None,
        vocab,
        checksum,
        values["max_seq_length"],
        values["max_predictions_per_seq"],
        prob,
        found.manifest_of,
        found.strays,
    )


def inspect(
    files: list[str], wanted: inspection_checks.Wanted, num_samples: int
) -> inspection.Inspector:
    """Reads all files and shows how far it is."""
    sizes = [wanted.config["vocab_size"]] if wanted.config else []
    sizes += [1 + max(wanted.vocab.values())] if wanted.vocab else []
    prob = wanted.masked_lm_prob
    settings = inspection_statistics.Settings(
        inspection_statistics.USUAL_PROB if prob is None else prob,
        min(sizes, default=None),
        wanted.vocab,
        num_samples,
    )
    inspector = inspection.Inspector(settings)
    total = sum(os.path.getsize(path) for path in files if "://" not in path)
    with tqdm.tqdm(
        desc="reading", total=total, unit="B", unit_scale=True, delay=1
    ) as progress:
        for path in files:
            inspector.read(path, progress.update)
    return inspector


def main() -> None:
    files = filesystem.expand(FLAGS.input_file)
    if FLAGS.output_file:
        inputs = [*files, FLAGS.vocab_file, FLAGS.bert_config_file]
        command_line.prepare_output(FLAGS.output_file, inputs, FLAGS.overwrite)
    wanted = make_wanted(files, command_line.values())
    inspector = inspect(files, wanted, FLAGS.num_samples)
    report = inspector.report()
    if not report["layouts"]:
        damage = [file["damage"] for file in report["files"] if file["damage"]]
        raise ValueError(damage[0] if damage else "there is no record in the files")
    names = {i: token for token, i in (wanted.vocab or {}).items()}
    samples = inspection_table.samples(inspector.samples(), names)
    checks = [
        *inspection_checks.check(report, wanted),
        *content_checks.check(report, wanted),
    ]
    print(inspection_table.table(report, names))
    if samples:
        print(f"\nanswers in braces\n{inspection_table.samples_text(samples)}")
    print(f"\n{inspection_table.checks_text(checks)}")
    if FLAGS.output_file:
        rows = [vars(check) for check in checks]
        filesystem.write_json(
            FLAGS.output_file, {**report, "samples": samples, "checks": rows}
        )
    wrong = [check for check in checks if not check.fits]
    if wrong:
        first, *others = wrong
        more = "; what to change for others stands above, after NO" if others else ""
        raise ValueError(
            f"{len(wrong)} of {len(checks)} checks failed ("
            f"{', '.join(check.name for check in wrong)}); {first.name}: expected "
            f"{first.expected}, came {first.came}; {first.change}{more}"
        )


if __name__ == "__main__":
    command_line.run(main, define_flags)
