r"""Writes the vectors that BERT gives to text (Devlin et al. 2018, section 5.3).

    python extract_features.py --input_file=lines.txt --output_file=features.jsonl \
        --vocab_file=bert/vocab.txt --bert_config_file=bert/bert_config.json \
        --init_checkpoint=bert/bert_model.ckpt --layers=-1,-2,-3,-4

Every line is an example, TEXT or TEXT_A ||| TEXT_B, and gives one line of JSON with a
vector for each token and layer, as the original's. Or one vector a line and layer:

    python extract_features.py --input_file=lines.txt --output_file=vectors.npy \
        --init_checkpoint=all-MiniLM-L6-v2 --layers=-1 --pooling=mean

An .npy file holds float32 [lines, layers * hidden_size], the layers of a line side by
side in the order of --layers; a .jsonl file holds them by layer. Memory does not grow
with the number of lines.
"""

import os

import common_flags

from absl import flags, logging

import command_line
import inference
import model_files
import strategies
import trained_weights
from data import extraction, tokenization
from modeling import models, pooling

FLAGS = flags.FLAGS


def define_flags():
    common_flags.define_model()
    flags.mark_flag_as_required("init_checkpoint")
    common_flags.define_text()
    common_flags.define_devices()
    flags.DEFINE_string(
        "input_file", None, "Text in UTF-8, one example a line.", required=True
    )
    flags.DEFINE_string("output_file", None, "File to write.", required=True)
    flags.DEFINE_string(
        "layers",
        "-1,-2,-3,-4",
        "Encoder layers, separated by commas: 0 is the first, -1 the last.",
    )
    flags.DEFINE_enum(
        "pooling",
        None,
        list(pooling.POOLINGS),
        "One vector a line: that of [CLS], or the mean or maximum over its tokens. "
        "--output_file ends in .npy or .jsonl.",
    )
    flags.DEFINE_integer(
        "max_seq_length", 128, "Tokens a line; longer ones are cut.", 3
    )
    flags.DEFINE_integer("batch_size", 32, "Lines a batch.", 1)
    flags.DEFINE_bool("overwrite", False, "Replace --output_file if it exists.")
    flags.DEFINE_bool(
        "use_one_hot_embeddings",
        False,
        "Taken for the original's command lines; has no effect.",
    )


def check_output(path, pooled):
    """Refuses an output file whose name does not say what --pooling makes of it."""
    ending = os.path.splitext(path)[1]
    if pooled and ending not in (".npy", ".jsonl"):
        raise ValueError(
            f"--output_file={path} must end in .npy or .jsonl with --pooling, which "
            "says what to write"
        )
    if ending == ".npy" and not pooled:
        raise ValueError(
            f"--output_file={path}: an array needs --pooling, as lines differ in their "
            "numbers of tokens; without it JSON lines are written"
        )


def main():
    check_output(FLAGS.output_file, FLAGS.pooling is not None)
    if FLAGS.distribution_strategy == "multi_worker":
        raise ValueError(
            "--distribution_strategy=multi_worker is for training; give each machine a "
            "part of --input_file instead"
        )
    strategy = strategies.from_values(common_flags.values())
    command_line.prepare_output(FLAGS.output_file, [FLAGS.input_file], FLAGS.overwrite)
    model_files.check_case(FLAGS.do_lower_case, FLAGS.init_checkpoint)
    config = model_files.read_config(FLAGS.bert_config_file, FLAGS.init_checkpoint)
    vocab_file = model_files.find_vocab(FLAGS.vocab_file, FLAGS.init_checkpoint)
    model_files.check(config, FLAGS.max_seq_length, vocab_file)
    pooling.check(config, FLAGS.pooling)
    layers = command_line.parse_layers(FLAGS.layers, config.num_hidden_layers)
    tokenizer = tokenization.FullTokenizer(vocab_file, FLAGS.do_lower_case)
    num_lines = extraction.count_lines(FLAGS.input_file)
    with strategy.scope():
        model = models.BertModel(config)
    trained_weights.load(model, FLAGS.init_checkpoint)
    # TPUs want one shape.
    multiple = FLAGS.max_seq_length if strategies.is_tpu(strategy) else 8
    batches = extraction.to_dataset(
        lambda: make_batches(tokenizer, len(layers) * config.hidden_size, multiple),
        FLAGS.batch_size,
        num_lines,
    )

    def measure(outputs, batch):
        vectors = pooling.select(outputs, batch, layers, FLAGS.pooling)
        names = ("input_ids", "input_mask", "line_numbers")
        return {"vectors": vectors, **{name: batch[name] for name in names}}

    rows = inference.rows(strategy, model, batches, measure, "extracting")
    rows = extraction.in_order(rows)
    if FLAGS.output_file.endswith(".npy"):
        vectors = (row["vectors"] for row in rows)
        shape = (num_lines, len(layers) * config.hidden_size)
        extraction.write_npy(FLAGS.output_file, vectors, shape)
    else:
        objects = (to_json(row, layers, tokenizer) for row in rows)
        extraction.write_json_lines(FLAGS.output_file, objects)
    logging.info("wrote %d lines' vectors to %s", num_lines, FLAGS.output_file)


def make_batches(tokenizer, values_per_token, multiple):
    """Yields the batches of the input file, of lines of like length."""
    examples = extraction.read_examples(FLAGS.input_file)
    lines = extraction.featurize(examples, FLAGS.max_seq_length, tokenizer)
    values_per_token = 0 if FLAGS.pooling else values_per_token
    for batch in extraction.sorted_batches(lines, FLAGS.batch_size, values_per_token):
        yield extraction.to_batch(
            batch, FLAGS.batch_size, FLAGS.max_seq_length, multiple
        )


def to_json(row, layers, tokenizer):
    """The object that is written for a line."""
    number = int(row["line_numbers"])
    if FLAGS.pooling:
        return extraction.sentence_features(number, layers, row["vectors"])
    size = row["input_mask"].sum()
    tokens = tokenizer.convert_ids_to_tokens(row["input_ids"][:size].tolist())
    return extraction.token_features(number, tokens, layers, row["vectors"][:size])


if __name__ == "__main__":
    common_flags.run(main, define_flags)
