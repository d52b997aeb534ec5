"""Flags that several scripts take.

Import this before TensorFlow: it keeps TensorFlow's start-up notices off the screen.
"""

import contextlib
import os
import sys

from absl import flags

import command_line


@contextlib.contextmanager
def _startup_notices_hidden():
    """Sends file descriptor 2 nowhere: the notices are written by C++ code."""
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ:  # somebody wants to see them
        yield
        return
    # Errors that matter are exceptions. What TensorFlow logs as such is noise, such as
    # that oneDNN does not swap axes of integers.
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


with _startup_notices_hidden():
    import tensorflow as tf

    tf.config.list_physical_devices()  # looks for devices and reports what is absent
    tf.get_logger().setLevel("WARNING")  # not a line for every group of gradients

    import strategies

# A script that uses TensorFlow imports this module alone.
values, check_actions, define_text = (
    command_line.values,
    command_line.check_actions,
    command_line.define_text,
)


def run(main, define_flags, takes_rest=False):
    """As `command_line.run`, for scripts of which several workers may run together."""

    def explained(*rest):
        with strategies.lost_workers_explained():
            main(*rest)

    command_line.run(explained, define_flags, takes_rest)


def define_model():
    """Which model: config, vocabulary, weights to start from."""
    flags.DEFINE_string(
        "bert_config_file",
        None,
        "JSON file with the sizes of the model (bert_config.json). Needed unless "
        "--init_checkpoint is a folder that holds one.",
    )
    flags.DEFINE_string(
        "init_checkpoint",
        None,
        "Weights to start from: prefix of a checkpoint (bert_model.ckpt), a Hugging "
        "Face folder, or the output folder of an earlier run, which stands for its "
        "latest checkpoint (the best that --keep_best has kept is RUN/best).",
    )


def define_training(learning_rate=5e-5):
    """How to train; the defaults are the original's."""
    flags.DEFINE_string(
        "output_dir",
        None,
        "Folder for checkpoints, records and results. Training resumes from the "
        "latest checkpoint in it.",
        required=True,
    )
    flags.DEFINE_bool("do_train", False, "Train.")
    flags.DEFINE_bool("do_eval", False, "Evaluate.")
    flags.DEFINE_integer("train_batch_size", 32, "Examples an update.", lower_bound=1)
    flags.DEFINE_integer("eval_batch_size", 8, "Examples a batch in evaluation.", 1)
    flags.DEFINE_float(
        "learning_rate", learning_rate, "Peak rate of Adam with weight decay.", 0.0
    )
    flags.DEFINE_bool(
        "bias_correction",
        False,
        "Correct Adam's moments for their start at 0. The original does not; it "
        "steadies fine-tuning on small data sets (Mosbach et al. 2021).",
    )
    flags.DEFINE_integer(
        "save_checkpoints_steps", 1000, "Updates between two checkpoints.", 1
    )
    flags.DEFINE_integer(
        "keep_checkpoint_max", 5, "Keep the last so many checkpoints; 0: all.", 0
    )
    flags.DEFINE_enum(
        "precision",
        "float32",
        ["float32", "bfloat16", "float16"],
        "What to compute in; weights and sums stay in float32. bfloat16 is faster "
        "where the hardware has it (AVX512_BF16 or AMX, GPUs since Ampere, TPUs), "
        "float16 on older GPUs; results differ a little.",
    )
    flags.DEFINE_integer(
        "gradient_accumulation_steps",
        1,
        "Take the batch in so many parts, one after the other: the same updates in "
        "less memory.",
        1,
    )
    flags.DEFINE_bool(
        "jit_compile",
        False,
        "Compile the gradients with XLA. For GPUs; on CPUs it is slower, and TPUs "
        "do it anyway.",
    )
    flags.DEFINE_bool(
        "recompute",
        False,
        "Compute the insides of the encoder layers again in the backward pass instead "
        "of keeping them: less memory, about a third more time.",
    )
    flags.DEFINE_enum(
        "optimizer",
        "adamw",
        ["adamw", "lamb"],
        "Adam with weight decay as in the original, or LAMB for batches of thousands "
        "(You et al. 2020).",
    )
    flags.DEFINE_enum(
        "non_finite",
        "stop",
        ["stop", "skip"],
        "What to do about an update whose loss or gradients are not finite: end as it "
        "was before it, or leave it out.",
    )
    flags.DEFINE_integer(
        "seed",
        12345,
        "Seed of fresh weights, data order and dropout. On a CPU, equal seeds give "
        "bitwise equal weights.",
        0,
        2**32 - 1,
    )


def define_epochs(num_train_epochs):
    """How long to train, on batches of which length."""
    flags.DEFINE_float(
        "num_train_epochs", num_train_epochs, "Passes over the training set.", 0.0, 1e6
    )
    flags.DEFINE_float(
        "warmup_proportion", 0.1, "Share of the updates used for warm-up.", 0.0, 1.0
    )
    flags.DEFINE_bool(
        "pad_to_max",
        False,
        "Pad every batch to --max_seq_length instead of to its longest example: "
        "slower, but of one shape, as TPUs want it.",
    )


def define_keep_best():
    """For scripts that can score a dev set while they train."""
    flags.DEFINE_bool(
        "keep_best",
        False,
        "Evaluate the dev set at every checkpoint, keep the best in OUTPUT_DIR/best "
        "and use it for evaluation and prediction.",
    )
    flags.DEFINE_integer(
        "patience",
        0,
        "With --keep_best: stop after so many checkpoints without a better one; "
        "0: never.",
        0,
    )


def define_fine_tuning():
    """How long to fine-tune and what of the model."""
    define_epochs(num_train_epochs=3.0)
    define_keep_best()
    flags.DEFINE_bool(
        "skip_mismatched_heads",
        False,
        "Leave a head fresh that --init_checkpoint has for other labels, instead of "
        "refusing it.",
    )
    flags.DEFINE_float(
        "layer_decay",
        1.0,
        "The learning rate of a layer is that of the layer above times this; the head "
        "has --learning_rate.",
        0.0,
        1.0,
    )
    flags.DEFINE_integer(
        "freeze_layers",
        -1,
        "Leave the embeddings and so many encoder layers as they are; -1: train all.",
        -1,
    )
    flags.DEFINE_integer(
        "bilstm_layers",
        0,
        "Layers of a fresh bidirectional LSTM between encoder and head, as wide as "
        'the encoder ("+ BiLSTM" of v1 of the paper, section 5.1); 0: none.',
        0,
    )
    flags.DEFINE_bool(
        "do_export",
        False,
        "In the end write a SavedModel that takes raw text, as export_saved_model.py.",
    )
    flags.DEFINE_string(
        "export_dir",
        None,
        "With --do_export: folder of the versions of this model; default: "
        "OUTPUT_DIR/export.",
    )


def define_training_scores():
    """For scripts that can tell how well the training set was learnt."""
    flags.DEFINE_bool(
        "score_training_set",
        False,
        "After the training also score the set it was on: train_results. A model that "
        "does no better there than always giving the most frequent label has failed.",
    )


def define_length_buckets():
    """For scripts whose training data is in memory."""
    flags.DEFINE_bool(
        "length_buckets",
        False,
        "Train on batches of examples of like length: the same epochs with less "
        "padding, in less time.",
    )


def define_devices():
    """Where to run; with the original's flags for TPUs."""
    flags.DEFINE_enum(
        "distribution_strategy",
        None,
        ["one_device", "mirrored", "multi_worker", "tpu"],
        "Devices that share out each batch: one; all GPUs of this machine; the "
        "machines that TF_CONFIG names, each running this command; a TPU. Default: "
        "one_device, or tpu with --use_tpu.",
    )
    flags.DEFINE_integer(
        "num_devices",
        None,
        "With mirrored: so many GPUs, or parts of the CPU where there is no GPU.",
        1,
        1024,
    )
    flags.DEFINE_bool("use_tpu", False, "Run on a TPU.")
    flags.DEFINE_string("tpu_name", None, "Name or grpc:// address of the TPU.")
    flags.DEFINE_string("tpu_zone", None, "Its zone; found by itself if not given.")
    flags.DEFINE_string("gcp_project", None, "Its project; likewise.")
    for name, default in (
        ("master", None),
        ("num_tpu_cores", 8),
        ("iterations_per_loop", 1000),
    ):
        define = flags.DEFINE_string if default is None else flags.DEFINE_integer
        define(name, default, "Taken for the original's command lines; has no effect.")
