"""Exports a fine-tuned classifier as a SavedModel that takes raw text.

    python export_saved_model.py --model_dir=mrpc --export_dir=exports/mrpc

--model_dir is the output folder of run_classifier.py. Writes --export_dir/1 or the next
number (TensorFlow Serving loads the highest). The exporter loads what it wrote and
compares it with the model in memory, from text and from ids, before it says done.
"""

import common_flags

import numpy as np
import tensorflow as tf
from absl import flags, logging

import text_classification
from data import classification, features, targets, tokenization
from serving import classification as classification_servers
from serving import saved_model

FLAGS = flags.FLAGS

TOLERANCE = 1e-5  # difference of a logit, or relative to it where it is above 1

# Texts the export is checked with: plain, accents, CJK, symbols, nothing, very long.
PROBES = (
    "How do I locate my card?",
    "Crème brûlée, naïve Ångström; ÉCOLE",
    "東京は日本の首都です",
    "a\u00a0b\u2028c\u200bd 😀 100% [MASK] İstanbul ΣΊΣΥΦΟΣ",
    "",
    "word " * 600,
)


# What serves a model, by the kind of its labels.
SERVERS = {
    targets.Kind.CLASS: classification_servers.TextClassifier,
    targets.Kind.MULTI_LABEL: classification_servers.TextTagger,
    targets.Kind.NUMBER: classification_servers.TextRegressor,
}


def define_flags():
    flags.DEFINE_string(
        "model_dir", None, "Output folder of run_classifier.py.", required=True
    )
    flags.DEFINE_string(
        "export_dir", None, "Folder of the versions of this model.", required=True
    )


def largest_difference(model, path, run):
    """Compares the SavedModel at `path` with the model in memory on `PROBES`.

    Returns:
        float, the largest difference of a logit, from text, pairs and ids, relative to
        the logit where that is above 1.
    """
    loaded = tf.saved_model.load(path)
    tokenizer = tokenization.FullTokenizer(run.vocab_file, run.do_lower_case)
    pairs = [(text, other) for text in PROBES for other in (None, *PROBES)]
    worst = 0.0
    for text, other in pairs:
        example = classification.InputExample("probe", text, other)
        arrays = features.features_to_arrays(
            [example], (), run.max_seq_length, tokenizer
        )
        ids = {
            key: tf.constant(arrays[key])
            for key in ("input_ids", "input_mask", "segment_ids")
        }
        expected = model(ids)["logits"]
        signatures = {"ids": ids, "serving_default": {"text": tf.constant([text])}}
        if other is not None:
            strings = {"text": [text], "text_pair": [other]}
            signatures = {"pair": {k: tf.constant(v) for k, v in strings.items()}}
        for name, inputs in signatures.items():
            logits = loaded.signatures[name](**inputs)["logits"]
            # Of large logits the same digits agree as of small ones.
            scale = np.maximum(1, np.abs(expected))
            worst = max(worst, float(np.max(np.abs(logits - expected) / scale)))
    return worst


def main():
    run = text_classification.read_run(FLAGS.model_dir)
    model = run.load_model()
    server = SERVERS[run.kind](
        model, run.labels, run.vocab_file, run.do_lower_case, run.max_seq_length
    )
    if run.document_stride:
        logging.warning(
            "the run read long texts in windows; the export cuts them after %d tokens",
            run.max_seq_length,
        )
    path = saved_model.next_version(FLAGS.export_dir)

    def check(unfinished):
        worst = largest_difference(model, unfinished, run)
        if not worst <= TOLERANCE:
            raise ValueError(
                f"the export differs from the model by {worst:.3g} in a logit, at most "
                f"{TOLERANCE:g} is allowed; nothing was written to {path}"
            )
        logging.info("largest difference from the model in memory: %.3g", worst)

    saved_model.save(server, path, check)
    logging.info("wrote %s with signatures %s", path, ", ".join(server.SIGNATURES))


if __name__ == "__main__":
    common_flags.run(main, define_flags)
