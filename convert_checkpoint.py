r"""Converts BERT weights between the original's TF1 format and Hugging Face's.

    python convert_checkpoint.py --input=uncased_L-12_H-768_A-12 --output=bert-hf \
        --format=huggingface
    python convert_checkpoint.py --input=bert-hf --output=bert-tf1 --format=tf1

Heads go along: masked LM, next sentence, classifier, tagger, chooser, question
answering; a classifier's labels in labels.json, and what it is for, such as several
labels at once (`problem_type`), in head.json. Optimizer state stays behind. There and
back again gives the same bits.
"""

import dataclasses

import common_flags

from absl import flags

import model_files
from data import classification, tokenization
from modeling import checkpoint, huggingface, huggingface_config

FLAGS = flags.FLAGS

# What a weight belongs to, by the beginning of its name.
_GROUPS = (
    ("encoder", "bert/"),
    ("masked LM", "cls/predictions/"),
    ("next sentence", "cls/seq_relationship/"),
    ("question answering", "cls/squad/"),
    ("classifier", "output_"),
    ("other, names kept", ""),
)


def define_flags() -> None:
    common_flags.define_text()
    flags.DEFINE_string(
        "input",
        None,
        "Prefix of a TF1 checkpoint (bert_model.ckpt), a .safetensors or .bin file, or "
        "the folder of one of these.",
        required=True,
    )
    flags.DEFINE_string("output", None, "Folder to write.", required=True)
    formats = (
        "tf1: bert_model.ckpt.*, bert_config.json, vocab.txt, as the original reads "
        "them. huggingface: model.safetensors, config.json, vocab.txt."
    )
    flags.DEFINE_enum("format", None, ["tf1", "huggingface"], formats, required=True)
    flags.DEFINE_string(
        "bert_config_file", None, "Config, if there is none beside the input."
    )
    flags.DEFINE_string(
        "labels_file",
        None,
        "Names of a classifier's labels as a JSON list; by default those of the input "
        "(config.json or labels.json), if it has any. Where these are the same in "
        "another order, the outputs move with their names.",
    )
    flags.DEFINE_bool("overwrite", False, "Write into a folder that holds files.")


def find_lower_case(folder: str) -> bool:
    """What the files beside the weights say about lower-casing; True if nothing."""
    for name in ("tokenizer_config.json", "model.json"):
        if path := model_files.find(None, folder, name):
            value = huggingface_config.read_json(path).get("do_lower_case")
            if value is not None:
                return value
    return True


def table(weights) -> str:
    """Number of variables and of parameters, by what they belong to."""
    counts = {group: [0, 0] for group, _ in _GROUPS}
    for name, array in weights.items():
        group = next(group for group, start in _GROUPS if name.startswith(start))
        counts[group][0] += 1
        counts[group][1] += array.size
    lines = [f"{'':<20}{'variables':>10}{'parameters':>14}"]
    for group, (variables, parameters) in counts.items():
        if variables:
            lines.append(f"{group:<20}{variables:>10}{parameters:>14,}")
    return "\n".join(lines)


def notes(config, vocab_file: str | None, target: str) -> list[str]:
    """What a person should know about the output."""
    found = []
    if target == "tf1" and config.hidden_act == "gelu_exact":
        found.append(
            "the model uses the exact GELU; bert_config.json says gelu_exact, which "
            "the original's scripts refuse: they know the tanh form only"
        )
    if target == "tf1" and config.layer_norm_eps != 1e-12:
        found.append(
            f"the model's layer_norm_eps is {config.layer_norm_eps:g}; the original's "
            "scripts ignore that key and use 1e-12"
        )
    if target == "tf1" and config.pooled_position != "first":
        found.append(
            "the model pools its last token, and may read left to right; the "
            "original's scripts ignore visibility and pooled_position, so that they "
            "give other results"
        )
    if not vocab_file:
        found.append(
            "there is no vocab.txt beside the input; none was written; give "
            "--vocab_file"
        )
    return [f"note: {note}" for note in found]


def name_outputs(weights, head, labels_file: str):
    """(weights, head) with the labels of a file; outputs keep the names they had."""
    labels = classification.read_labels(labels_file, at_least=1)
    if head.labels and len(head.labels) == len(weights.get("output_bias", ())):
        moved = model_files.reorder_outputs(weights, head.labels, labels)
        weights = weights if moved is None else moved
    return weights, dataclasses.replace(head, labels=labels)


def convert(
    source: str,
    output: str,
    target: str,
    bert_config_file: str | None = None,
    vocab_file: str | None = None,
    do_lower_case: bool | None = None,
    labels_file: str | None = None,
) -> str:
    """Writes the output; what is None is looked for beside the input.

    Returns:
        What was converted, as a short text.
    Raises:
        FileNotFoundError, OSError, ValueError: the input cannot be read, its parts do
            not fit, or the output cannot be written. Then nothing was written.
    """
    weights, config = model_files.read_model(source, bert_config_file)
    head = model_files.find_head(source)
    if labels_file:
        weights, head = name_outputs(weights, head, labels_file)
    huggingface_config.check_labels(head.labels, len(weights.get("output_bias", ())))
    folder = model_files.folder_of(source)
    vocab_file = model_files.find(vocab_file, folder, "vocab.txt")
    if vocab_file:
        model_files.check(config, 1, vocab_file)
    if target == "tf1":
        model_files.write_tf1(output, weights, config, vocab_file, head)
    else:
        if do_lower_case is None:
            do_lower_case = find_lower_case(folder)
        tokenization.validate_case_matches_checkpoint(do_lower_case, source)
        tokenizer = (vocab_file, do_lower_case) if vocab_file else None
        huggingface.write(output, weights, config, tokenizer, head)
        model_files.forget_head(output)  # config.json says it
    title = f"{checkpoint.locate(source)} -> {output} ({target})"
    return "\n".join([title, table(weights), *notes(config, vocab_file, target)])


def main() -> None:
    model_files.check_output(FLAGS.output, FLAGS.overwrite, FLAGS.input)
    is_default = FLAGS["do_lower_case"].using_default_value
    report = convert(
        FLAGS.input,
        FLAGS.output,
        FLAGS.format,
        bert_config_file=FLAGS.bert_config_file,
        vocab_file=FLAGS.vocab_file,
        do_lower_case=None if is_default else FLAGS.do_lower_case,
        labels_file=FLAGS.labels_file,
    )
    print(report)


if __name__ == "__main__":
    common_flags.run(main, define_flags)
