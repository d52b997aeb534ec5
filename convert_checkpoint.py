r"""Converts BERT weights between the original's TF1 format and Hugging Face's.

    python convert_checkpoint.py --input=uncased_L-12_H-768_A-12 --output=bert-hf \
        --format=huggingface
    python convert_checkpoint.py --input=bert-hf --output=bert-tf1 --format=tf1

Heads go along: masked LM, next sentence, classifier, question answering. Optimizer
state stays behind. There and back again gives the same bits.
"""

import os
import shutil

import common_flags

from absl import flags

import model_files
from data import classification, tokenization
from modeling import checkpoint, huggingface, weight_shapes

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
        "(config.json or labels.json), if it has any.",
    )
    flags.DEFINE_bool("overwrite", False, "Write into a folder that holds files.")


# Heads whose weights alone do not tell them from a classifier's.
_ARCHITECTURE_OF_SCRIPT = {
    "run_ner": "BertForTokenClassification",
    "run_swag": "BertForMultipleChoice",
}


def folder_of(path: str) -> str:
    """The folder that a checkpoint lies in."""
    return path if os.path.isdir(path) else os.path.dirname(path)


def find(path: str | None, folder: str, name: str) -> str | None:
    """`path` if given, else the file of that name in the folder, if there is one."""
    beside = os.path.join(folder, name)
    return path or (beside if os.path.isfile(beside) else None)


def find_lower_case(folder: str) -> bool:
    """What the files beside the weights say about lower-casing; True if nothing."""
    for name in ("tokenizer_config.json", "model.json"):
        if path := find(None, folder, name):
            value = huggingface.read_json(path).get("do_lower_case")
            if value is not None:
                return value
    return True


def find_head(source: str, labels_file: str | None):
    """(transformers class, names of the labels), each None where nothing says it."""
    folder = folder_of(source)
    architecture = labels = None
    config_file = find(None, folder, "config.json")
    if config_file and huggingface.is_weights_file(checkpoint.locate(source)):
        architecture, labels = huggingface.read_architecture(config_file)
    if path := find(None, folder, "model.json"):  # of a run of ours
        script = huggingface.read_json(path).get("script")
        architecture = _ARCHITECTURE_OF_SCRIPT.get(script)
    if path := find(labels_file, folder, "labels.json"):
        labels = classification.read_labels(path)
    return architecture, labels


def write_tf1(folder: str, weights, config, vocab_file: str | None, labels) -> None:
    """Writes the files of a released model, and labels.json if there are names."""
    with huggingface.staged_folder(folder) as staged:
        prefix = os.path.join(staged, "bert_model.ckpt")
        checkpoint.write_tf1(prefix, weights, update_state=False)
        (staged / "bert_config.json").write_text(config.to_json_string(), "utf-8")
        if vocab_file:
            shutil.copyfile(vocab_file, staged / "vocab.txt")
        if labels:
            classification.write_labels(staged / "labels.json", labels)


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
    if not vocab_file:
        found.append("there is no vocab.txt beside the input; none was written")
    return [f"note: {note}" for note in found]


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
    weights = checkpoint.read(source)
    if bert_config_file:
        config = model_files.read_config(bert_config_file, None)
    else:
        config = checkpoint.read_config(source)
    if config is None:
        raise ValueError(
            f"there is no bert_config.json or config.json beside {source}; give "
            "--bert_config_file"
        )
    weight_shapes.check(weights, config, source)
    architecture, labels = find_head(source, labels_file)
    num_labels = len(weights.get("output_bias", ()))
    huggingface.check_labels(labels, num_labels)
    vocab_file = find(vocab_file, folder_of(source), "vocab.txt")
    if vocab_file:
        model_files.check(config, 1, vocab_file)
    if target == "tf1":
        write_tf1(output, weights, config, vocab_file, num_labels and labels)
    else:
        if do_lower_case is None:
            do_lower_case = find_lower_case(folder_of(source))
        tokenization.validate_case_matches_checkpoint(do_lower_case, source)
        tokenizer = (vocab_file, do_lower_case) if vocab_file else None
        huggingface.write(output, weights, config, tokenizer, labels, architecture)
    title = f"{checkpoint.locate(source)} -> {output} ({target})"
    return "\n".join([title, table(weights), *notes(config, vocab_file, target)])


def main() -> None:
    if os.path.isfile(FLAGS.output):
        raise ValueError(f"--output={FLAGS.output} is a file; name a folder")
    if os.path.isdir(FLAGS.output) and os.listdir(FLAGS.output) and not FLAGS.overwrite:
        raise ValueError(f"{FLAGS.output} holds files; give --overwrite to add to it")
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
