"""Fine-tunes BERT to tag words, such as named entities (Devlin et al. 2018, 5.3).

    python run_ner.py --train_file=train.txt --dev_file=dev.txt --test_file=test.txt \
        --init_checkpoint=bert-base-cased/bert_model.ckpt \
        --bert_config_file=bert-base-cased/bert_config.json \
        --vocab_file=bert-base-cased/vocab.txt --do_lower_case=False \
        --output_dir=conll --do_train --do_eval --do_predict \
        --learning_rate=5e-5 --num_train_epochs=4 --document_context

The paper takes cased models, the maximal document context, and the best on the dev set
of batches of 16 or 32, rates of 5e-5, 3e-5 or 2e-5 and 2 to 4 epochs. Its BERT-Base has
96.4 F1 on the dev set of CoNLL-2003 and 92.4 on the test set.

The files have a word a line in CoNLL columns; tags in BIO, IOB1 or IO are told apart
(see data/conll.py). F1 is that of conlleval. Types that the training data lacks are an
error in the dev set; in the test set they count as missed.

Writes to --output_dir: checkpoints (model.ckpt-STEP, in the original's format),
labels.json, eval_results.txt and .json with the scores of every type, and
eval_predictions.conll: the file's columns, the tags in BIO, the predicted tags. For
the test file the same as test_results and test_predictions.conll, if it has tags.
"""

import common_flags

import tensorflow as tf
from absl import flags, logging

import encoders
import fine_tuning
import inference
import run_directory
import strategies
import training
import validation
from data import batching, conll, filesystem, ner, padding, tag_schemes
from metrics import ner as metrics
from metrics.classification import majority_share
from modeling import losses, models

FLAGS = flags.FLAGS


def define_flags():
    common_flags.define_model()
    common_flags.define_text()
    common_flags.define_training()
    common_flags.define_fine_tuning()
    common_flags.define_training_scores()
    common_flags.define_length_buckets()
    common_flags.define_devices()
    for kind in ("train", "dev", "test"):
        flags.DEFINE_string(
            f"{kind}_file", None, f"Files of the {kind} set: globs, commas between."
        )
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


def read(kind):
    """The files of a set; list of conll.File."""
    patterns = FLAGS[f"{kind}_file"].value
    if not patterns:
        raise ValueError(f"there is no {kind} set: give --{kind}_file")
    columns = FLAGS.word_column, FLAGS.tag_column
    paths = filesystem.expand(patterns)
    files = [conll.read(path, *columns, FLAGS.allow_mixed_tags) for path in paths]
    for file in files:
        logging.info("%s", file)
        if kind != "test":
            ner.check_tagged(file)
        if FLAGS.document_context:
            ner.check_documents(file)
    return files


def find_labels(train_files):
    """The labels: of the training data, an earlier run, or from beside the weights."""
    if train_files:
        return ner.infer_labels(train_files)
    places = FLAGS.output_dir, FLAGS.init_checkpoint
    return fine_tuning.find_labels(*places, tag_schemes.is_tag)


def main():
    fine_tuning.check_flags(common_flags.values())
    strategy = strategies.from_values(common_flags.values())
    settings = fine_tuning.Settings.from_values(common_flags.values())
    files = fine_tuning.find_files(settings)
    tokenizer = files.tokenizer()
    train_files = read("train") if FLAGS.do_train else []
    dev_files = read("dev") if FLAGS.do_eval or FLAGS.keep_best else []
    test_files = read("test") if FLAGS.do_predict else []
    labels = find_labels(train_files)
    for file in dev_files:
        ner.check_labels(file, labels)
    for file in test_files:
        if unknown := ner.unknown_tags(file, labels):
            logging.warning(
                "%s: the model's labels lack %s, so these entities count as missed",
                file.path,
                ", ".join(unknown),
            )
    fine_tuning.claim_folder(
        files,
        {"script": "run_ner", "labels": labels},
        common_flags.values(),
        labels,
    )
    with training.new_model(strategy, FLAGS.seed, FLAGS.precision):
        model = models.BertForTokenClassification(
            files.config,
            len(labels),
            make_encoder=encoders.find(FLAGS.bilstm_layers),
        )
    forward = inference.Forward(strategy, model, measure)

    def featurize(files):
        return files, ner.files_to_arrays(
            files, labels, FLAGS.max_seq_length, tokenizer, FLAGS.document_context
        )

    dev, checked = featurize(dev_files), None
    if FLAGS.keep_best:
        checked = validation.Validation(
            FLAGS.output_dir,
            lambda: tag(forward, labels, dev, FLAGS.eval_batch_size)[1],
            "f1",
            FLAGS.patience,
            validation.fingerprint(dev[1]),
        )
    if FLAGS.do_train:
        step = train(strategy, model, settings, featurize(train_files)[1], checked)
    if FLAGS.keep_best or not FLAGS.do_train:
        step = inference.load_trained(model, FLAGS.output_dir, FLAGS.init_checkpoint)
    if FLAGS.score_training_set:
        score_training_set(forward, labels, featurize(train_files), step)
    if FLAGS.do_eval:
        tagged = tag(forward, labels, dev, FLAGS.eval_batch_size)
        write("eval", dev_files, step, *tagged)
    if FLAGS.do_predict:
        tagged = tag(forward, labels, featurize(test_files), FLAGS.predict_batch_size)
        write("test", test_files, step, *tagged)
    if FLAGS.do_export:
        fine_tuning.export(FLAGS.output_dir, FLAGS.export_dir)


def train(strategy, model, settings, arrays, checked):
    """Trains, or resumes; returns the number of updates done."""
    batches = batching.InMemoryBatches(
        arrays, FLAGS.train_batch_size, FLAGS.seed, trim(), FLAGS.length_buckets
    )
    return fine_tuning.train(
        strategy,
        model,
        losses.TOKENS,
        settings,
        len(arrays["input_ids"]),
        batches,
        checked,
    )


def trim():
    """What cuts the columns of padding off a batch, unless --pad_to_max is given."""
    return padding.trimming(FLAGS.pad_to_max, also=("label_ids", "label_mask"))


def measure(outputs, batch):
    """The best label of every token, which tokens count, and their losses."""
    return {
        "label_ids": tf.argmax(outputs["logits"], axis=-1),
        "label_mask": batch["label_mask"],
        "losses": losses.token_losses(outputs, batch),
    }


def tag(forward, labels, data, batch_size):
    """The predicted tag of every word, in order, and scores if the files have tags.

    The loss is not among them if there are tags that the model lacks.
    """
    files, arrays = data
    batches = batching.in_memory_evaluation_batches(arrays, batch_size, trim())
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


def score_training_set(forward, labels, data, step):
    """Writes the scores on what was trained on, beside that of a constant answer."""
    _, scores = tag(forward, labels, data, FLAGS.eval_batch_size)
    results = {f"train_{key}": value for key, value in scores.items()}
    tags = [t for file in data[0] for s in file.sentences for t in s.tags]
    results["train_majority"] = majority_share(tags)
    results["global_step"] = step
    run_directory.write_results(FLAGS.output_dir, "train_results", results)


def write(name, files, step, tags, results):
    """Writes NAME_predictions.conll, and NAME_results if there are any."""
    rest = iter(tags)
    lines = [line for file in files for line in conll.add_tags(file, rest)]
    path = f"{FLAGS.output_dir}/{name}_predictions.conll"
    run_directory.write_text(path, "\n".join(lines) + "\n")
    if results:
        results = {f"{name}_{key}": value for key, value in results.items()}
        results["global_step"] = step
        run_directory.write_results(FLAGS.output_dir, f"{name}_results", results)


if __name__ == "__main__":
    common_flags.run(main, define_flags)
