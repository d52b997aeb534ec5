"""What scripts that tag words share: their flags, files, labels, scores and results."""

import tensorflow as tf
from absl import flags, logging

import fine_tuning
import run_directory
from data import conll, filesystem, ner, padding, tag_schemes
from metrics import ner as metrics
from metrics.classification import majority_share
from modeling import losses


def define_flags():
    """What to read, and what to predict."""
    files = "Files of the {} set: globs, commas between."
    flags.DEFINE_string("train_file", None, files.format("training"))
    flags.DEFINE_string("dev_file", None, files.format("dev"))
    flags.DEFINE_string("test_file", None, files.format("test"))
    flags.DEFINE_bool("do_predict", False, "Predict --test_file.")
    flags.DEFINE_integer("predict_batch_size", 8, "Windows a batch in prediction.", 1)
    flags.DEFINE_integer(
        "max_seq_length", 128, "Tokens a window; longer sentences have several.", 3
    )
    flags.DEFINE_integer(
        "word_column", None, "Column of the words, from 0; found out by default."
    )
    flags.DEFINE_integer(
        "tag_column",
        None,
        "Column of the tags, from 0, or from the end if negative; the last by default.",
    )
    flags.DEFINE_bool(
        "allow_mixed_tags",
        False,
        "Take files that mix BIO and IOB1, as conlleval does.",
    )
    flags.DEFINE_bool(
        "document_context",
        False,
        "Fill windows with the sentences around, of the same document (-DOCSTART-).",
    )


def _read(values, kind):
    """The files of a set; list of conll.File."""
    patterns = values[f"{kind}_file"]
    if not patterns:
        raise ValueError(f"there is no {kind} set: give --{kind}_file")
    columns = values["word_column"], values["tag_column"]
    paths = filesystem.expand(patterns)
    files = [conll.read(path, *columns, values["allow_mixed_tags"]) for path in paths]
    for file in files:
        logging.info("%s", file)
        if kind != "test":
            ner.check_tagged(file)
        if values["document_context"]:
            ner.check_documents(file)
    return files


def _find_labels(values, train_files):
    """The labels: of the training data, an earlier run, or from beside the weights."""
    if train_files:
        return ner.infer_labels(train_files)
    places = values["output_dir"], values["init_checkpoint"]
    return fine_tuning.find_labels(*places, tag_schemes.is_tag)


def read_sets(values):
    """Reads the files that the flags ask for.

    Args:
        values: dict of flag name → value.
    Returns:
        (dict of train, dev, test → list of conll.File, empty where there is no need;
        labels, tuple of str).
    Raises:
        ValueError: a file is missing or wrong, or the dev set has tags that the model
            has not.
    """
    wanted = {
        "train": values["do_train"],
        "dev": values["do_eval"] or values["keep_best"],
        "test": values["do_predict"],
    }
    sets = {kind: _read(values, kind) if wanted[kind] else [] for kind in wanted}
    labels = _find_labels(values, sets["train"])
    for file in sets["dev"]:
        ner.check_labels(file, labels)
    for file in sets["test"]:
        if unknown := ner.unknown_tags(file, labels):
            logging.warning(
                "%s: the model's labels lack %s, so these entities count as missed",
                file.path,
                ", ".join(unknown),
            )
    return sets, labels


def trim(pad_to_max):
    """What cuts the columns of padding off a batch, unless --pad_to_max is given."""
    return padding.trimming(pad_to_max, also=("label_ids", "label_mask"))


def measure(outputs, batch):
    """The best label of every token, which tokens count, and their losses."""
    return {
        "label_ids": tf.argmax(outputs["logits"], axis=-1),
        "label_mask": batch["label_mask"],
        "losses": losses.token_losses(outputs, batch),
    }


def tag(forward, labels, files, batches):
    """Tags the words of files.

    Args:
        forward: inference.Forward with `measure`.
        labels: tuple of str.
        files: list of conll.File.
        batches: tf.data.Dataset of their windows, see `ner.files_to_arrays`, in order.
    Returns:
        The predicted tag of every word, in order, and scores if the files have tags.
        The loss is not among them if there are tags that the model lacks.
    """
    tags, loss = [], 0.0
    for row in forward.rows(batches, "tagging"):
        tags += [labels[i] for i in row["label_ids"][row["label_mask"] == 1]]
        loss += float(row["losses"].sum())
    sentences = [sentence for file in files for sentence in file.sentences]
    gold = [sentence.tags for sentence in sentences]
    if None in gold:
        return tags, {}
    results = metrics.scores(gold, ner.split(sentences, tags))
    if not any(ner.unknown_tags(file, labels) for file in files):
        results["loss"] = loss / len(tags)
    return tags, results


def write_training_scores(output_dir, files, step, scores):
    """Writes the scores on what was trained on, beside that of a constant answer.

    Args:
        output_dir: str.
        files: list of conll.File, those of the training set.
        step: int, updates behind the model.
        scores: dict, the second of what `tag` gave.
    """
    results = {f"train_{key}": value for key, value in scores.items()}
    tags = [t for file in files for s in file.sentences for t in s.tags]
    results["train_majority"] = majority_share(tags)
    results["global_step"] = step
    run_directory.write_results(output_dir, "train_results", results)


def write(output_dir, name, files, step, tagged):
    """Writes NAME_predictions.conll, and NAME_results if there are any.

    Args:
        output_dir: str.
        name: str, "eval" or "test".
        files: list of conll.File.
        step: int, updates behind the model.
        tagged: what `tag` gave.
    """
    tags, results = tagged
    rest = iter(tags)
    lines = [line for file in files for line in conll.add_tags(file, rest)]
    path = f"{output_dir}/{name}_predictions.conll"
    run_directory.write_text(path, "\n".join(lines) + "\n")
    if results:
        results = {f"{name}_{key}": value for key, value in results.items()}
        results["global_step"] = step
        run_directory.write_results(output_dir, f"{name}_results", results)
