r"""Exports a model as a SavedModel that takes raw text.

    python export_saved_model.py --model_dir=mrpc --export_dir=exports/mrpc

--model_dir is the output folder of run_classifier.py, run_squad.py, run_ner.py or
run_swag.py, which take --do_export too. Of a model that was not fine-tuned, such as one
of run_pretraining.py or a Hugging Face folder, --head says what to make:

    python export_saved_model.py --init_checkpoint=all-MiniLM-L6-v2 \\
        --head=sentence_vectors --pooling=mean --normalize --export_dir=exports/vectors
    python export_saved_model.py --init_checkpoint=pretrained --vocab_file=vocab.txt \\
        --head=masked_words --export_dir=exports/words

Writes --export_dir/1 or the next number (TensorFlow Serving loads the highest). The
exporter loads what it wrote and compares it with the model in memory, from text and
from ids, before it says done.

--formats=litert_int8,onnx,hugging_face adds these to the version, in formats/, and to
its model card how large they are and how far from the model. ONNX needs
requirements-formats.txt.
"""

import common_flags

from absl import flags

import command_line
import exporting
import formats
import inference
import language_model
import model_card
import model_files
import trained_weights
from modeling import models, pooling
from serving import masked_words, saved_model, sentence_vectors

FLAGS = flags.FLAGS


def define_flags():
    flags.DEFINE_string("model_dir", None, "Output folder of a fine-tuning script.")
    flags.DEFINE_string(
        "export_dir", None, "Folder of the versions of this model.", required=True
    )
    flags.DEFINE_enum(
        "head",
        None,
        list(HEADS),
        "With --init_checkpoint: a vector for each text, or words for each [MASK].",
    )
    common_flags.define_model()
    common_flags.define_text()
    flags.DEFINE_enum(
        "precision",
        "float32",
        ["float32", "bfloat16"],
        "What the export computes in. With bfloat16 it has half the size, and GPUs and "
        "CPUs with AVX512_BF16 or AMX answer batches faster; the model card says how "
        "far it is from float32.",
    )
    flags.DEFINE_integer("max_seq_length", 128, "Tokens of a text; more are cut.", 3)
    flags.DEFINE_string(
        "layers",
        "-1",
        "Of sentence_vectors: encoder layers, separated by commas, side by side in the "
        "vector; 0 is the first, -1 the last.",
    )
    flags.DEFINE_enum(
        "pooling",
        "mean",
        list(pooling.POOLINGS),
        "Of sentence_vectors: the vector of [CLS], or the mean or maximum over tokens.",
    )
    flags.DEFINE_bool(
        "normalize", False, "Of sentence_vectors: divide each vector by its length."
    )
    flags.DEFINE_integer(
        "top_k", 5, "Of masked_words: so many words for each [MASK].", 1
    )
    flags.DEFINE_list(
        "formats",
        [],
        "What to write beside the SavedModel, separated by commas. "
        f"{', '.join(formats.RUNTIMES)}: ids to logits, int8 with matrices in 8 bits; "
        "hugging_face: a folder for transformers; weights: the original's checkpoint, "
        "without the optimizer's state.",
    )


def export_head():
    """Writes what --head makes of --init_checkpoint."""
    model_files.check_case(FLAGS.do_lower_case, FLAGS.init_checkpoint)
    config = model_files.read_config(FLAGS.bert_config_file, FLAGS.init_checkpoint)
    vocab_file = model_files.find_vocab(FLAGS.vocab_file, FLAGS.init_checkpoint)
    model_files.check(config, FLAGS.max_seq_length, vocab_file)
    text = (vocab_file, FLAGS.do_lower_case, FLAGS.max_seq_length)
    make_server, own_flags = HEADS[FLAGS.head]

    def make(precision):
        with inference.models_in(precision):
            return make_server(config, text)

    about = {"init_checkpoint": model_card.short_path(FLAGS.init_checkpoint)}
    names = ("head", "do_lower_case", "max_seq_length", *own_flags)
    about |= {name: FLAGS[name].value for name in names}
    about = {"Model": about, "Sizes": config.to_dict()}
    server, narrow = exporting.make_servers(make, FLAGS.precision)
    exporting.write(server, FLAGS.export_dir, about, FLAGS.formats, narrow=narrow)


def vectors_server(config, text):
    """The Server of sentence vectors; text are the arguments of all servers."""
    pooling.check(config, FLAGS.pooling)
    layers = command_line.parse_layers(FLAGS.layers, config.num_hidden_layers)
    pool = sentence_vectors.pooled(layers, FLAGS.pooling, FLAGS.normalize)
    model = models.BertModel(config)
    trained_weights.load(model, FLAGS.init_checkpoint)
    return sentence_vectors.SentenceVectors(model, *text, pool)


def words_server(config, text):
    """The Server of masked words."""
    language_model.check_fills_masks(config)
    if FLAGS.top_k > config.vocab_size:
        raise ValueError(
            f"--top_k is {FLAGS.top_k}, but the vocabulary of the model has only "
            f"{config.vocab_size} entries"
        )
    model = models.BertForPretraining(config)
    report = trained_weights.load(model, FLAGS.init_checkpoint)
    fresh = [name for name in report.fresh if name.startswith("cls/predictions/")]
    if fresh:
        raise ValueError(
            f"{FLAGS.init_checkpoint} is no masked language model: {', '.join(fresh)} "
            "not in it; give the checkpoint of a pre-training"
        )
    return masked_words.MaskedWords(model, *text, FLAGS.top_k)


_OF_TEXT = ("bert_config_file", "do_lower_case", "max_seq_length", "vocab_file")
# By --head: what makes the server, and the flags that are about it alone.
HEADS = {
    "sentence_vectors": (vectors_server, ("layers", "pooling", "normalize")),
    "masked_words": (words_server, ("top_k",)),
}


def check_unused():
    """Refuses flags that have no effect on what is exported."""
    if FLAGS.model_dir:
        names, reason = _OF_TEXT, "--model_dir, which says it itself"
        names += tuple(name for _, own in HEADS.values() for name in own)
    else:
        reason = f"--head={FLAGS.head}"
        others = (own for head, (_, own) in HEADS.items() if head != FLAGS.head)
        names = tuple(name for own in others for name in own)
    for name in names:
        if FLAGS[name].present:
            raise ValueError(f"--{name} has no effect with {reason}; leave it out")


def main():
    formats.check(FLAGS.formats)
    saved_model.check_export_dir(FLAGS.export_dir)
    if bool(FLAGS.model_dir) == bool(FLAGS.init_checkpoint):
        raise ValueError(
            "give either --model_dir, the output folder of a fine-tuning script, or "
            "--init_checkpoint with --head"
        )
    if bool(FLAGS.init_checkpoint) != bool(FLAGS.head):
        raise ValueError(
            "--head is for --init_checkpoint, which needs it: "
            "--head=sentence_vectors or --head=masked_words"
        )
    check_unused()
    if FLAGS.formats and FLAGS.precision != "float32":
        raise ValueError(
            f"--formats are made of the model in float32; leave them out, or "
            f"--precision={FLAGS.precision}"
        )
    if FLAGS.model_dir:
        exporting.export(
            FLAGS.model_dir, FLAGS.export_dir, FLAGS.formats, FLAGS.precision
        )
    else:
        export_head()


if __name__ == "__main__":
    common_flags.run(main, define_flags)
