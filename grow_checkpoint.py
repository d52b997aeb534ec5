r"""Gives a trained model new entries of its vocabulary, or more positions.

    python build_vocab.py --mode=extend --vocab_file=uncased_L-12_H-768_A-12/vocab.txt \
        --input_file='domain/*.txt' --num_words=1000 --output_file=vocab.txt
    python grow_checkpoint.py --input=uncased_L-12_H-768_A-12 --vocab_file=vocab.txt \
        --output=domain_uncased

A new entry starts as the mean of the pieces it was cut into before. All other weights
stay bit by bit, so text that has no new entry gives what it gave. Train the result
further on text of the domain.

    python grow_checkpoint.py --input=phase_1 --trained_positions=128 --output=longer

Positions behind the trained ones become copies of them, for a phase 2 of pre-training
that is too short to learn them anew; --num_positions makes room for more.
"""

import dataclasses

import common_flags

import numpy as np
from absl import flags

import model_files
from data import tokenization, vocabulary_extension
from modeling import checkpoint, huggingface_config, position_growth, vocabulary_growth
from modeling import config as config_lib

FLAGS = flags.FLAGS

_ENTRIES_TO_SHOW = 10


def define_flags() -> None:
    flags.DEFINE_string(
        "input",
        None,
        "Prefix of a TF1 checkpoint (bert_model.ckpt), a .safetensors or .bin file, or "
        "the folder of one of these.",
        required=True,
    )
    flags.DEFINE_string("vocab_file", None, "The new vocabulary, one entry a line.")
    flags.DEFINE_integer(
        "trained_positions",
        None,
        "So many positions were trained, such as the --max_seq_length of phase 1; "
        "others become copies of them. Default: all.",
        1,
    )
    flags.DEFINE_integer(
        "num_positions", None, "The new max_position_embeddings; as before if None.", 1
    )
    flags.DEFINE_string(
        "output",
        None,
        "Folder to write: bert_model.ckpt.*, bert_config.json, vocab.txt.",
        required=True,
    )
    flags.DEFINE_string(
        "old_vocab_file", None, "Vocabulary of the input, if it is not beside it."
    )
    flags.DEFINE_string(
        "bert_config_file", None, "Config, if there is none beside the input."
    )
    flags.DEFINE_bool("overwrite", False, "Write into a folder that holds files.")


def read_old_vocab(
    source: str, vocab_file: str | None, vocab_size: int
) -> dict[str, int]:
    """The vocabulary that the model has now.

    Raises:
        ValueError: there is none, or it is larger than the model.
    """
    path = model_files.find(vocab_file, model_files.folder_of(source), "vocab.txt")
    if path is None:
        raise ValueError(
            f"there is no vocab.txt beside {source}; give --old_vocab_file"
        )
    vocab = tokenization.load_vocab(path)
    if max(vocab.values()) >= vocab_size:
        raise ValueError(
            f"{path} has {1 + max(vocab.values())} entries, but the model's vocab_size "
            f"is {vocab_size}; give the --old_vocab_file that belongs to the model"
        )
    return vocab


def grow(
    source: str,
    output: str,
    vocab_file: str | None = None,
    old_vocab_file: str | None = None,
    bert_config_file: str | None = None,
    num_positions: int | None = None,
    trained_positions: int | None = None,
) -> str:
    """Writes the larger model; what is None stays, or is looked for beside the input.

    Returns:
        What was added, as a short text.
    Raises:
        FileNotFoundError, OSError, ValueError: the input cannot be read, its parts do
            not fit, or the output cannot be written. Then nothing was written.
    """
    if not (vocab_file or num_positions or trained_positions):
        raise ValueError(
            "nothing is to grow: give --vocab_file, --num_positions or "
            "--trained_positions"
        )
    if old_vocab_file and not vocab_file:
        raise ValueError("--old_vocab_file has no effect without --vocab_file")
    weights, config = model_files.read_model(source, bert_config_file)
    head = model_files.find_head(source)
    huggingface_config.check_labels(head.labels, len(weights.get("output_bias", ())))
    lines = [f"{checkpoint.locate(source)} -> {output}"]
    if vocab_file:
        old_vocab = read_old_vocab(source, old_vocab_file, config.vocab_size)
        weights, config, more = grow_entries(weights, config, old_vocab, vocab_file)
        lines += more
    if num_positions or trained_positions:
        num_before = config.max_position_embeddings
        num_positions = num_positions or num_before
        weights = position_growth.grow(weights, num_positions, trained_positions)
        config = dataclasses.replace(config, max_position_embeddings=num_positions)
        trained = trained_positions or num_before
        lines.append(f"positions   {trained:,} trained, {num_positions:,} now")
    folder = model_files.folder_of(source)
    vocab_file = model_files.find(vocab_file, folder, "vocab.txt")
    model_files.write_tf1(output, weights, config, vocab_file, head)
    return "\n".join(lines)


def grow_entries(
    weights: dict[str, np.ndarray],
    config: config_lib.BertConfig,
    old_vocab: dict[str, int],
    vocab_file: str,
) -> tuple[dict[str, np.ndarray], config_lib.BertConfig, list[str]]:
    """The larger model, and lines about what was added."""
    new_vocab = tokenization.load_vocab(vocab_file)
    pieces = vocabulary_extension.old_pieces(old_vocab, new_vocab)
    if not pieces:
        raise ValueError(f"{vocab_file} has no entry that the model lacks")
    sources = {
        new_vocab[entry]: [old_vocab[piece] for piece in cut]
        for entry, cut in pieces.items()
    }
    # Some models have more rows than their vocabulary has lines.
    vocab_size = max(config.vocab_size, 1 + max(new_vocab.values()))
    weights = vocabulary_growth.grow(weights, sources, vocab_size)
    config = dataclasses.replace(config, vocab_size=vocab_size)
    return weights, config, describe(pieces, len(old_vocab), vocab_size)


def describe(pieces: dict[str, list[str]], num_old: int, vocab_size: int) -> list[str]:
    """The numbers of entries, and what some of the new ones were before."""
    lines = [
        f"entries     {num_old:,} before, {len(pieces):,} new",
        f"vocab_size  {vocab_size:,}",
    ]
    shown = list(pieces.items())[:_ENTRIES_TO_SHOW]
    lines += [f"{entry} = mean of {' '.join(cut)}" for entry, cut in shown]
    unknown = [entry for entry, cut in pieces.items() if cut == ["[UNK]"]]
    if unknown:
        some = ", ".join(unknown[:_ENTRIES_TO_SHOW])
        lines.append(f"note: {len(unknown):,} were unknown and start as [UNK]: {some}")
    return lines


def main() -> None:
    model_files.check_output(FLAGS.output, FLAGS.overwrite, FLAGS.input)
    print(
        grow(
            FLAGS.input,
            FLAGS.output,
            FLAGS.vocab_file,
            FLAGS.old_vocab_file,
            FLAGS.bert_config_file,
            FLAGS.num_positions,
            FLAGS.trained_positions,
        )
    )


if __name__ == "__main__":
    common_flags.run(main, define_flags)
