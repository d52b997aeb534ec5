"""The flags of every script: the original's with its defaults, and what we added."""

import importlib
import json

import pytest
from absl import flags

# Of every script that trains.
TRAINING = {
    "bias_correction",
    "distribution_strategy",
    "gradient_accumulation_steps",
    "jit_compile",
    "keep_checkpoint_max",
    "non_finite",
    "num_devices",
    "optimizer",
    "precision",
    "recompute",
    "seed",
}
# Of every script that fine-tunes.
FINE_TUNING = TRAINING | {
    "bilstm_layers",
    "do_export",
    "export_dir",
    "freeze_layers",
    "keep_best",
    "layer_decay",
    "pad_to_max",
    "patience",
    "skip_mismatched_heads",
}
# Ours. A new flag is a line here: a visible decision.
ADDED = {
    "build_vocab": {
        "character_coverage",
        "do_lower_case",
        "fill_unused",
        "input_file",
        "max_words",
        "min_frequency",
        "mode",
        "num_examples",
        "num_unused",
        "num_words",
        "output_file",
        "overwrite",
        "text_field",
        "vocab_file",
        "vocab_size",
    },
    "create_pretraining_data": {
        "deduplicate",
        "num_output_shards",
        "num_workers",
        "overwrite",
        "pre_segmented",
        "segment_pairs",
        "masking_mix",
        "split_sentences",
        "text_field",
    },
    "export_saved_model": {
        "bert_config_file",
        "do_lower_case",
        "export_dir",
        "formats",
        "precision",
        "head",
        "init_checkpoint",
        "layers",
        "max_seq_length",
        "model_dir",
        "normalize",
        "pooling",
        "top_k",
        "vocab_file",
    },
    "grow_checkpoint": {
        "bert_config_file",
        "input",
        "num_positions",
        "old_vocab_file",
        "output",
        "overwrite",
        "trained_positions",
        "vocab_file",
    },
    "inspect_records": {
        "bert_config_file",
        "input_file",
        "manifest_file",
        "masked_lm_prob",
        "max_predictions_per_seq",
        "max_seq_length",
        "num_samples",
        "output_file",
        "overwrite",
        "vocab_file",
    },
    "run_pretraining": TRAINING | {"eval_input_file", "next_sentence_loss"},
    "run_classifier": FINE_TUNING
    | {
        "class_weights",
        "document_stride",
        "id_column",
        "label_column",
        "label_separator",
        "label_type",
        "length_buckets",
        "score_training_set",
        "text_column",
        "text_pair_column",
        "tfds_name",
        "xnli_language",
    },
    "score_text": {
        "batch_size",
        "bert_config_file",
        "do_lower_case",
        "init_checkpoint",
        "input_file",
        "max_seq_length",
        "output_file",
        "overwrite",
        "task",
        "top_k",
        "vocab_file",
        "within_words",
    },
    "serve": {
        "batch_timeout_ms",
        "client_timeout_s",
        "grace_s",
        "grpc_port",
        "host",
        "keep_packed_weights",
        "max_batch_size",
        "max_body_bytes",
        "max_connections",
        "max_items",
        "max_queue",
        "max_text_bytes",
        "model",
        "num_threads",
        "tensorflow_intra_op_parallelism",
        "poll_s",
        "rest_port",
        "timeout_s",
    },
    "run_squad": FINE_TUNING
    | {
        "context",
        "do_eval",
        "epochs_of",
        "eval_batch_size",
        "question",
        "several_answers",
        "threshold",
    },
}


def defined(script):
    """dict of name → default of the flags that a script defines."""
    module = importlib.import_module(script)
    before = set(flags.FLAGS)
    module.define_flags()
    added = set(flags.FLAGS) - before
    defaults = {name: flags.FLAGS[name].default for name in added}
    for name in added:
        delattr(flags.FLAGS, name)
    return defaults


@pytest.mark.parametrize("script", sorted(ADDED))
def test_flags_are_the_originals_and_ours(golden, script):
    original = json.loads((golden / "flags.json").read_text()).get(script, {})
    ours = defined(script)
    assert {name: ours.get(name) for name in original} == original
    assert ours.keys() - original.keys() == ADDED[script]
