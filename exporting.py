"""The model in the folder of a run as a SavedModel that takes strings."""

import numpy as np
import tensorflow as tf
from absl import logging

import choosing
import question_answering
import run_directory
import runs
import text_classification
import word_tagging
from data import targets
from serving import classification, multiple_choice, saved_model, tagging
from serving import question_answering as serving_question_answering

TOLERANCE = 1e-5  # difference of a logit, or relative to it where it is above 1

# What serves a classifier, by the kind of its labels.
CLASSIFIERS = {
    targets.Kind.CLASS: classification.TextClassifier,
    targets.Kind.MULTI_LABEL: classification.TextTagger,
    targets.Kind.NUMBER: classification.TextRegressor,
}
# What serves a model that chooses, by the task it was trained on.
CHOOSERS = {
    "swag": multiple_choice.SwagChooser,
    "arct": multiple_choice.ArctChooser,
}


def _classifier(model_dir):
    run = runs.read(model_dir, "run_classifier")
    if run.settings.get("document_stride"):
        logging.warning(
            "the run read long texts in windows; the export cuts them after %d tokens",
            run.max_seq_length,
        )
    return CLASSIFIERS[targets.Kind(run.identity["label_type"])](
        text_classification.load_model(run),
        run.labels,
        run.vocab_file,
        run.do_lower_case,
        run.max_seq_length,
    )


def _question_answering(model_dir):
    return serving_question_answering.QuestionAnswering(
        question_answering.load(model_dir), f"{model_dir}/vocab.txt"
    )


def _tagger(model_dir):
    run = runs.read(model_dir, "run_ner")
    if run.settings["document_context"]:
        logging.warning(
            "the run read each sentence with those around it; the export reads it by "
            "itself"
        )
    return tagging.WordTagger(
        word_tagging.load_model(run),
        run.labels,
        run.vocab_file,
        run.do_lower_case,
        run.max_seq_length,
    )


def _chooser(model_dir):
    run = runs.read(model_dir, "run_swag")
    return CHOOSERS[run.identity["task"]](
        choosing.load_model(run), run.vocab_file, run.do_lower_case, run.max_seq_length
    )


# By the script that made the folder: function of the folder, giving the server, a
# tf.Module for `saved_model.save`. Its `differences` compares the signatures of what
# was written with the model in memory, by way of our Python code, and yields floats.
SERVERS = {
    "run_classifier": _classifier,
    "run_ner": _tagger,
    "run_squad": _question_answering,
    "run_swag": _chooser,
}


def export(model_dir, export_dir):
    """Writes the next version of a model, compared with the one in memory.

    Args:
        model_dir: str, output folder of a fine-tuning script.
        export_dir: str, folder of the versions of this model.
    Returns:
        str, the path that was written.
    Raises:
        ValueError: the folder is not of such a script, or holds no weights; or what was
            written differs from the model by more than TOLERANCE, and was removed.
    """
    script = run_directory.read_script(model_dir)
    if script not in SERVERS:
        raise ValueError(
            f"{model_dir} is of {script}, which has no export; the scripts that have "
            f"are {', '.join(sorted(SERVERS))}"
        )
    server = SERVERS[script](model_dir)
    path = saved_model.next_version(export_dir)

    def check(unfinished):
        signatures = tf.saved_model.load(unfinished).signatures
        worst = np.max(list(server.differences(signatures)))
        if not worst <= TOLERANCE:  # nor if it is NaN
            raise ValueError(
                f"the export differs from the model by {worst:.3g} in a logit, at most "
                f"{TOLERANCE:g} is allowed; nothing was written to {path}"
            )
        logging.info("largest difference from the model in memory: %.3g", worst)

    saved_model.save(server, path, check)
    logging.info("wrote %s with signatures %s", path, ", ".join(server.SIGNATURES))
    return path
