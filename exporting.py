"""The model in the folder of a run as a SavedModel that takes strings."""

import functools
import os
import pathlib

import numpy as np
import tensorflow as tf
from absl import logging

import choosing
import formats
import model_card
import model_files
import question_answering
import run_directory
import runs
import text_classification
import word_tagging
from data import filesystem, targets
from serving import classification, multiple_choice, saved_model, tagging, warm_up
from serving import question_answering as serving_question_answering

TOLERANCE = 1e-5  # difference of a logit, or relative to it where it is above 1
# The same of bfloat16, whose last digits depend on which operations are fused. Whether
# they matter, only the user's data can say; what is beyond this is not coarse but
# broken.
NARROW_TOLERANCE = 0.25

# What serves a classifier, by the kind of its labels.
CLASSIFIERS = {
    targets.Kind.CLASS: classification.TextClassifier,
    targets.Kind.MULTI_LABEL: classification.MultiLabelTextClassifier,
}
# What serves a model that chooses, by the task it was trained on.
CHOOSERS = {
    "swag": multiple_choice.SwagChooser,
    "arct": multiple_choice.ArctChooser,
}
# Beside the versions, for a person to change.
BATCHING_FILE = "batching_parameters.txt"
BATCHING = """\
# tensorflow_model_server --enable_batching --batching_parameters_file=THIS_FILE
#
# Values to start from: measure with your requests. Texts of any lengths share a batch,
# since the graph pads them to the longest. What clients give as rows (ids, words of a
# sentence, choices) does so only with as many columns: pad_variable_length_inputs must
# stay off, as it fills rows up with their first value, which is no padding here.
max_batch_size { value: 32 }
batch_timeout_micros { value: 2000 }
max_enqueued_batches { value: 100 }
"""

_LINE_ENDS = str.maketrans("\r\n", "  ")


def _classifier(model_dir, precision):
    run = runs.read(model_dir, "run_classifier", precision)
    if run.settings.get("document_stride"):
        logging.warning(
            "the run read long texts in windows; the export cuts them after %d tokens",
            run.max_seq_length,
        )
    model = text_classification.load_model(run)
    text = (run.vocab_file, run.do_lower_case, run.max_seq_length)
    kind = targets.Kind(run.identity["label_type"])
    if kind is targets.Kind.NUMBER:
        return classification.TextRegressor(model, *text)
    return CLASSIFIERS[kind](model, run.labels, *text)


def _question_answering(model_dir, precision):
    return serving_question_answering.QuestionAnswering(
        question_answering.load(model_dir, precision=precision),
        f"{model_dir}/vocab.txt",
    )


def _tagger(model_dir, precision):
    run = runs.read(model_dir, "run_ner", precision)
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


def _chooser(model_dir, precision):
    run = runs.read(model_dir, "run_swag", precision)
    return CHOOSERS[run.identity["task"]](
        choosing.load_model(run), run.vocab_file, run.do_lower_case, run.max_seq_length
    )


# By the script that made the folder: function of it and a precision, giving the server.
SERVERS = {
    "run_classifier": _classifier,
    "run_ner": _tagger,
    "run_squad": _question_answering,
    "run_swag": _chooser,
}


def export(model_dir, export_dir, names=(), precision="float32"):
    """Writes the next version of a fine-tuned model.

    Args:
        model_dir: str, output folder of a fine-tuning script.
        export_dir: str, folder of the versions of this model.
        names: other formats to write too, of `formats.NAMES`.
        precision: str, what the export computes in, see `inference.models_in`.
    Returns:
        str, the path that was written.
    Raises:
        ValueError: the folder is not of such a script, or holds no weights, or its
            model does not fit a format; and what `write` raises.
    """
    script = run_directory.read_script(model_dir)
    if script not in SERVERS:
        raise ValueError(
            f"{model_dir} is of {script}, which has no export; the scripts that have "
            f"are {', '.join(sorted(SERVERS))}; of others give --init_checkpoint and "
            "--head"
        )
    if run_directory.read(model_dir, script)[0].get("bilstm_layers"):
        formats.check_bilstm(names)
    server, narrow = make_servers(
        functools.partial(SERVERS[script], model_dir), precision
    )
    head = model_files.find_head(model_dir)
    about = model_card.of_run(model_dir, script)
    return write(server, export_dir, about, names, head, narrow)


def make_servers(make, precision):
    """The two that `write` takes.

    Args:
        make: function of a precision, giving a saved_model.Server.
        precision: str, of the export.
    Returns:
        server, in float32.
        narrow: in the precision, or None if that is float32.
    """
    return make("float32"), None if precision == "float32" else make(precision)


def write(server, export_dir, about, names=(), head=None, narrow=None):
    """Writes the next version of a model, compared with the one in memory.

    Args:
        server: saved_model.Server.
        export_dir: str, folder of the versions of this model.
        about: dict, sections of the model card, see `model_card.text`.
        names: other formats to write too, into the version's folder; see `formats`.
        head: huggingface_config.Head of them, or None.
        narrow: saved_model.Server, the same in bfloat16, to write in its place.
    Returns:
        str, the path that was written.
    Raises:
        ValueError: what was written differs from the model by more than is allowed,
            and was removed; and what `formats.write` raises.
    """
    name = os.path.basename(os.path.abspath(export_dir))

    def finish(unfinished):
        signatures = dict(tf.saved_model.load(unfinished).signatures)
        try:
            compared = _compare(server, narrow, signatures)
        except ValueError as error:
            raise ValueError(f"{error}; nothing was written to {export_dir}") from None
        sections = {**about, "Comparison": compared}
        if names:
            results = formats.write(server, unfinished, names, head, TOLERANCE)
            sections["Formats"] = formats.describe(results)
        card = model_card.text(
            name,
            sections,
            server.label_names,
            signatures,
            server.METHODS,
        )
        _add_files(pathlib.Path(unfinished), card, server.label_names)
        try:
            warm_up.write(unfinished, name, signatures, server.METHODS)
        except ImportError:
            logging.info(
                "without requests to warm up: they need requirements-serving.txt"
            )

    path = saved_model.save(narrow or server, export_dir, finish)
    batching = os.path.join(export_dir, BATCHING_FILE)
    if not os.path.exists(batching):
        with filesystem.replacing(batching) as file:
            file.write(BATCHING.encode())
    logging.info("wrote %s", path)
    return path


def _compare(server, narrow, signatures):
    """How far an export is from the model in memory: dict of name → str, for its card.

    Args:
        server, narrow: as of `write`.
        signatures: dict of name → function, of the export.
    Raises:
        ValueError: it is too far.
    """
    found = np.array(list((narrow or server).differences(signatures)))
    tolerance = TOLERANCE
    if narrow:
        # Where scores tie, another answer is as good; a wrong one has another score.
        found, tolerance = found[~np.isinf(found)], NARROW_TOLERANCE
    worst = np.max(found, initial=0)
    if not worst <= tolerance:  # nor if it is NaN
        raise ValueError(
            f"the export differs from the model by {worst:.3g} in a logit, at most "
            f"{tolerance:g} is allowed"
        )
    compared = {
        "computes in": "bfloat16" if narrow else "float32",
        "largest difference from the model in memory": f"{worst:.3g}",
    }
    if narrow:
        compared["from the model in float32"] = formats.measure(server, narrow)
    names = ", ".join(sorted(signatures))
    lines = "; ".join(f"{name}: {text}" for name, text in compared.items())
    logging.info("signatures %s; %s", names, lines)
    return compared


def _add_files(folder, card, labels):
    """Writes what is for people, and labels for clients of the ids."""
    (folder / "model_card.md").write_text(card, encoding="utf-8")
    if labels:
        (folder / "assets").mkdir(exist_ok=True)
        lines = [f"{label.translate(_LINE_ENDS)}\n" for label in labels]
        (folder / "assets/labels.txt").write_text("".join(lines), encoding="utf-8")
