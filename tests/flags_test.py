"""The flags of every script: the original's with its defaults, and what we added."""

import importlib
import json

import pytest
from absl import flags

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
        "split_sentences",
        "text_field",
    },
    "grow_checkpoint": {
        "bert_config_file",
        "input",
        "old_vocab_file",
        "output",
        "overwrite",
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
    "run_pretraining": {"bias_correction", "precision", "seed"},
    "run_classifier": {
        "bias_correction",
        "class_weights",
        "do_export",
        "document_stride",
        "export_dir",
        "freeze_layers",
        "id_column",
        "keep_best",
        "label_column",
        "label_separator",
        "label_type",
        "length_buckets",
        "pad_to_max",
        "patience",
        "precision",
        "seed",
        "skip_mismatched_heads",
        "text_column",
        "text_pair_column",
        "tfds_name",
        "xnli_language",
    },
    "run_squad": {
        "bias_correction",
        "context",
        "do_eval",
        "do_export",
        "epochs_of",
        "eval_batch_size",
        "export_dir",
        "freeze_layers",
        "keep_best",
        "pad_to_max",
        "patience",
        "precision",
        "question",
        "seed",
        "several_answers",
        "skip_mismatched_heads",
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
