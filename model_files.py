"""The files that make a model, config and vocabulary, found and held together."""

import os

from data import tokenization
from modeling import checkpoint, huggingface
from modeling import config as config_lib


def read_config(bert_config_file, init_checkpoint):
    """The model's BertConfig: from its own file, or from beside the checkpoint.

    Raises:
        ValueError: neither says it.
    """
    if bert_config_file:
        if huggingface.is_config(bert_config_file):  # in which "gelu" is another one
            return huggingface.read_config(bert_config_file)
        return config_lib.BertConfig.from_json_file(bert_config_file)
    config = checkpoint.read_config(init_checkpoint) if init_checkpoint else None
    if config is None:
        raise ValueError(
            "the sizes of the model are not known: give --bert_config_file, or an "
            "--init_checkpoint with a bert_config.json or config.json beside it"
        )
    return config


def find_vocab(vocab_file, init_checkpoint):
    """Path of the vocabulary: as given, or vocab.txt beside the checkpoint.

    Raises:
        ValueError: it is not given and not there.
    """
    if vocab_file:
        return vocab_file
    folder = init_checkpoint or ""
    if not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    path = os.path.join(folder, "vocab.txt")
    if not (init_checkpoint and os.path.isfile(path)):
        raise ValueError(
            "there is no vocabulary: give --vocab_file, or an --init_checkpoint with "
            "a vocab.txt beside it"
        )
    return path


def check(config, max_seq_length, vocab_file=None):
    """Refuses a vocabulary or sequences that the model has no embeddings for.

    Raises:
        ValueError: names both numbers and the flag to change.
    """
    if max_seq_length > config.max_position_embeddings:
        raise ValueError(
            f"--max_seq_length is {max_seq_length}, but the model has only "
            f"{config.max_position_embeddings} positions (max_position_embeddings)"
        )
    if vocab_file is None:
        return
    entries = 1 + max(tokenization.load_vocab(vocab_file).values())
    if entries > config.vocab_size:
        raise ValueError(
            f"{vocab_file} has {entries} entries, but the model's vocab_size is "
            f"{config.vocab_size}; give the --vocab_file that belongs to the model"
        )
