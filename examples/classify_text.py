"""Classifies texts with an exported SavedModel; imports none of the code here.

    python examples/classify_text.py EXPORT_DIR/1 "Where is my card?" "Close my account"

Needs only tensorflow and tensorflow-text. Copy it to wherever the model is used.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # hides start-up notices

import tensorflow as tf
import tensorflow_text  # noqa: F401  # registers the operations of the tokenizer

if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} SAVED_MODEL TEXT [TEXT ...]")
    folder, *texts = sys.argv[1:]
    try:
        classify = tf.saved_model.load(folder).signatures["serving_default"]
    except (OSError, KeyError):
        sys.exit(f"{folder} is no export; name a version, such as exports/my_model/1")
    inputs = classify.structured_input_signature[1]
    if set(inputs) != {"text"} or "label" not in classify.structured_outputs:
        sys.exit(f"{folder} takes {', '.join(inputs)}; export a classifier of texts")
    result = classify(text=tf.constant(texts))
    for text, label, score in zip(
        texts, result["label"].numpy(), result["score"].numpy(), strict=True
    ):
        print(f"{label.decode()}\t{score:.3f}\t{text}")
