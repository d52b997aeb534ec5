"""Exports a fine-tuned classifier as a SavedModel that takes raw text.

    python export_saved_model.py --model_dir=mrpc --export_dir=serving/mrpc

--model_dir is the output folder of run_classifier.py. Writes --export_dir/1 or the next
number (TensorFlow Serving loads the highest). The exporter loads what it wrote and
compares it with the model in memory, from text and from ids, before it says done.
"""

import json
import os

import numpy as np
import tensorflow as tf
from absl import flags, logging

import common_flags
import run_directory
import serving
import training
from data import classification, features, tokenization
from modeling import config as config_lib
from modeling import models

FLAGS = flags.FLAGS

TOLERANCE = 1e-5  # largest difference of a logit between the export and the model

# Texts the export is checked with: plain, accents, CJK, symbols, nothing, very long.
PROBES = (
    "How do I locate my card?",
    "Crème brûlée, naïve Ångström; ÉCOLE",
    "東京は日本の首都です",
    "a\u00a0b\u2028c\u200bd 😀 100% [MASK] İstanbul ΣΊΣΥΦΟΣ",
    "",
    "word " * 600,
)


def define_flags():
    flags.DEFINE_string(
        "model_dir", None, "Output folder of run_classifier.py.", required=True
    )
    flags.DEFINE_string(
        "export_dir", None, "Folder of the versions of this model.", required=True
    )


def read_run(model_dir):
    """What the run's folder says about the model.

    Returns:
        dict with config, labels, do_lower_case, max_seq_length and vocab_file.
    Raises:
        ValueError: the folder is not that of a classifier.
    """
    try:
        with open(f"{model_dir}/{run_directory.IDENTITY_FILE}") as file:
            identity = json.load(file)
        with open(f"{model_dir}/{run_directory.SETTINGS_FILE}") as file:
            settings = json.load(file)
    except FileNotFoundError as error:
        raise ValueError(
            f"{model_dir} is no output folder of a run: {error.filename} is missing"
        ) from None
    if identity["script"] != "run_classifier":
        raise ValueError(
            f"{model_dir} is of {identity['script']}; only runs of run_classifier can "
            "be exported"
        )
    return {
        "config": config_lib.BertConfig.from_dict(identity["config"]),
        "labels": identity["labels"],
        "do_lower_case": identity["do_lower_case"],
        "max_seq_length": settings["max_seq_length"],
        "vocab_file": f"{model_dir}/vocab.txt",
    }


def largest_difference(model, path, run):
    """Compares the SavedModel at `path` with the model in memory on `PROBES`.

    Returns:
        float, the largest absolute difference of a logit, from text, pairs and ids.
    """
    loaded = tf.saved_model.load(path)
    tokenizer = tokenization.FullTokenizer(run["vocab_file"], run["do_lower_case"])
    pairs = [(text, other) for text in PROBES for other in (None, *PROBES)]
    worst = 0.0
    for text, other in pairs:
        example = classification.InputExample("probe", text, other)
        arrays = features.features_to_arrays(
            [example], run["labels"], run["max_seq_length"], tokenizer
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
            worst = max(worst, float(np.abs(logits - expected).max()))
    return worst


def main():
    run = read_run(FLAGS.model_dir)
    model = models.BertForSequenceClassification(run["config"], len(run["labels"]))
    training.load_latest(model, FLAGS.model_dir, None)
    server = serving.TextClassifier(
        model,
        run["labels"],
        run["vocab_file"],
        run["do_lower_case"],
        run["max_seq_length"],
    )
    os.makedirs(FLAGS.export_dir, exist_ok=True)
    versions = [int(name) for name in os.listdir(FLAGS.export_dir) if name.isdecimal()]
    path = os.path.join(FLAGS.export_dir, str(max(versions, default=0) + 1))

    def check(unfinished):
        worst = largest_difference(model, unfinished, run)
        if not worst <= TOLERANCE:
            raise ValueError(
                f"the export differs from the model by {worst:.3g} in a logit, at most "
                f"{TOLERANCE:g} is allowed; nothing was written to {path}"
            )
        logging.info("largest difference from the model in memory: %.3g", worst)

    serving.save(server, path, check)
    logging.info("wrote %s with signatures %s", path, ", ".join(serving.SIGNATURES))


if __name__ == "__main__":
    common_flags.run(main, define_flags)
