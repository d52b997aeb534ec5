r"""Fine-tunes BERT to classify sentences and pairs (Devlin et al. 2018, section 4.1).

    python run_classifier.py --task_name=mrpc --data_dir=glue/MRPC --output_dir=mrpc \
        --vocab_file=bert/vocab.txt --bert_config_file=bert/bert_config.json \
        --init_checkpoint=bert/bert_model.ckpt --do_train --do_eval \
        --learning_rate=2e-5 --num_train_epochs=3

BERT-Base gives an accuracy of 0.84 to 0.88 over seeds (README of the original). Tasks:
those of GLUE (cola, sst-2, mrpc, sts-b, qqp, mnli, qnli, rte, wnli; ax, the diagnostic
set, in the folder of an mnli run), xnli, and `own` for {train,dev,test}.{tsv,csv,jsonl}
in --data_dir; or --tfds_name=glue/mrpc.

Writes to --output_dir: checkpoints (model.ckpt-STEP, in the original's format), records
(train.tf_record, ...), eval_results.txt, test_results.tsv (probabilities, as the
original), predictions.tsv (id, label, score), eval_predictions.tsv (the same of the dev
set, with the right label), and what export_saved_model.py needs.
"""

import common_flags

import numpy as np
from absl import flags

import classifier_tasks
import encoders
import fine_tuning
import run_directory
import strategies
import trained_weights
import training
import validation
from data import batching, classification, glue, padding, records, targets, tfds
from metrics.classification import majority_share
from modeling import models

FLAGS = flags.FLAGS


def define_flags():
    common_flags.define_model()
    common_flags.define_text()
    common_flags.define_training()
    common_flags.define_fine_tuning()
    common_flags.define_training_scores()
    common_flags.define_length_buckets()
    common_flags.define_devices()
    flags.DEFINE_string("task_name", None, f"{', '.join(glue.TASKS)} or own.")
    flags.DEFINE_string(
        "tfds_name",
        None,
        "Instead of --task_name: a prepared data set of TensorFlow Datasets, such as "
        "glue/mrpc.",
    )
    flags.DEFINE_string(
        "data_dir",
        None,
        "Folder with the files of the task; with --tfds_name where data sets are "
        "prepared (default there: ~/tensorflow_datasets).",
    )
    flags.DEFINE_bool("do_predict", False, "Predict the test set.")
    flags.DEFINE_integer("predict_batch_size", 8, "Examples a batch in prediction.", 1)
    flags.DEFINE_integer(
        "max_seq_length", 128, "Tokens an example; longer ones are cut.", 3
    )
    flags.DEFINE_integer(
        "document_stride",
        0,
        "Read longer texts whole, in windows of --max_seq_length that start so many "
        "tokens apart; the answer is the mean of their logits. 0: cut them.",
        0,
    )
    flags.DEFINE_string(
        "class_weights",
        None,
        "Weights of the classes in training: `balanced`, numbers in the order of "
        "labels.json with commas between, or a JSON file {label: number}.",
    )
    flags.DEFINE_string("text_column", "text", "Task own: column of the text.")
    flags.DEFINE_string(
        "text_pair_column", None, "Task own: column of the second text of a pair."
    )
    flags.DEFINE_string("label_column", "label", "Task own: column of the label.")
    flags.DEFINE_string("id_column", None, "Task own: column of the id of a row.")
    flags.DEFINE_enum_class(
        "label_type",
        targets.Kind.CLASS,
        targets.Kind,
        "Task own: one class, any number of labels (or none), or a number.",
    )
    flags.DEFINE_string(
        "label_separator", ",", "Between the labels of an example of several."
    )
    flags.DEFINE_string("xnli_language", "zh", "Task xnli: its language.")


def check_flags():
    """Refuses flags that contradict one another."""
    fine_tuning.check_flags(common_flags.values())
    if bool(FLAGS.task_name) == bool(FLAGS.tfds_name):
        raise ValueError("give one of --task_name and --tfds_name")
    if FLAGS.task_name and not FLAGS.data_dir:
        raise ValueError("--task_name needs --data_dir, the folder with its files")
    is_own = bool(FLAGS.task_name) and FLAGS.task_name.lower() == "own"
    if FLAGS.label_type != targets.Kind.CLASS and not is_own:
        raise ValueError(
            "--label_type is for --task_name=own; other data say what their labels are"
        )
    if FLAGS.label_type != targets.Kind.CLASS and FLAGS.class_weights:
        raise ValueError(
            f"--class_weights weighs classes, which --label_type={FLAGS.label_type} "
            "does not have"
        )
    if FLAGS.document_stride and FLAGS.text_pair_column:
        raise ValueError(
            "--document_stride cuts single texts into windows, so it does not go with "
            "--text_pair_column"
        )
    if FLAGS.document_stride > FLAGS.max_seq_length - 2:
        raise ValueError(
            f"--document_stride is {FLAGS.document_stride}, but a window has only "
            f"{FLAGS.max_seq_length - 2} tokens of the text (--max_seq_length - 2)"
        )


def find_task():
    """The task with its labels: published, of an earlier run, or inferred."""
    if FLAGS.tfds_name:
        return tfds.find_task(
            FLAGS.tfds_name,
            FLAGS.data_dir,
            FLAGS.text_column,
            FLAGS.text_pair_column,
            FLAGS.label_column,
        )
    if FLAGS.task_name.lower() != "own":
        return glue.find_task(FLAGS.task_name, FLAGS.xnli_language)
    task = classification.OwnTask(
        FLAGS.text_column,
        FLAGS.text_pair_column,
        FLAGS.label_column,
        FLAGS.id_column,
        FLAGS.label_type,
        FLAGS.label_separator,
    )
    if task.kind == targets.Kind.NUMBER:
        return task
    if FLAGS.do_train:
        labels = classification.infer_labels(task.examples(FLAGS.data_dir, "train"))
    else:
        labels = fine_tuning.find_labels(FLAGS.output_dir, FLAGS.init_checkpoint)
    return task.with_labels(labels)


def identity(task):
    """What makes the model of this run what it is, besides its config."""
    name = FLAGS.tfds_name or FLAGS.task_name.lower()
    if not FLAGS.tfds_name and name != "own":
        name = glue.canonical_name(name)
    return {
        "script": "run_classifier",
        "task": "mnli" if name == "ax" else name,  # ax is answered by an mnli model
        "labels": task.labels,
        "label_type": task.kind,
    }


def main():
    check_flags()
    strategy = strategies.from_values(common_flags.values())
    settings = fine_tuning.Settings.from_values(common_flags.values())
    files = fine_tuning.find_files(settings)
    task = find_task()
    sets = read_sets(task, files.tokenizer())
    values = common_flags.values()
    fine_tuning.claim_folder(files, identity(task), values, task.labels)
    folder = run_directory.own(FLAGS.output_dir)
    for name, of_kind in sets.items():
        for split, _, arrays, spec in of_kind:
            suffix = classifier_tasks.suffix(split)
            records.write(f"{folder}/{name}{suffix}.tf_record", arrays, spec)

    with training.new_model(strategy, FLAGS.seed, FLAGS.precision):
        model = models.BertForSequenceClassification(
            files.config,
            classifier_tasks.num_outputs(task.labels),
            make_encoder=encoders.find(FLAGS.bilstm_layers),
        )
    runner = classifier_tasks.Runner(strategy, model, task, FLAGS.pad_to_max)

    if FLAGS.do_train:
        ((_, _, arrays, _),) = sets["train"]
        objective = classifier_tasks.objective(
            task, FLAGS.class_weights, arrays["label_ids"]
        )
        checked = make_validation(runner, task, sets) if FLAGS.keep_best else None
        step = fine_tuning.train(
            strategy,
            model,
            objective,
            settings,
            len(arrays["label_ids"]),
            training_batches(arrays),
            checked,
        )
    if FLAGS.keep_best or not FLAGS.do_train:
        step = trained_weights.load_trained(
            model, FLAGS.output_dir, FLAGS.init_checkpoint
        )
    if FLAGS.score_training_set:
        score_training_set(runner, task, sets["train"][0], step)
    if FLAGS.do_eval:
        for data in sets["eval"]:
            evaluate(runner, task, data, step)
    for data in sets["predict"]:
        predict(runner, task, data)
    if FLAGS.do_export:
        fine_tuning.export(FLAGS.output_dir, FLAGS.export_dir)


def training_batches(arrays):
    """Batches without needless padding, unless it is wanted."""
    transform = padding.trimming(FLAGS.pad_to_max)
    return batching.InMemoryBatches(
        arrays, FLAGS.train_batch_size, FLAGS.seed, transform, FLAGS.length_buckets
    )


def read_sets(task, tokenizer):
    """{name: [(split, examples, arrays, spec), ...]} of all that is needed.

    Before anything is done: a mistake in a test file should not show after the
    training, nor in a folder that another run needs.
    """
    sets = {}
    for name, kind, wanted in (
        ("train", "train", FLAGS.do_train),
        ("eval", "dev", FLAGS.do_eval or FLAGS.keep_best),
        ("predict", "test", FLAGS.do_predict),
    ):
        found = task.splits(kind) if wanted else []
        if wanted and not found:
            raise ValueError(f"{FLAGS.task_name or FLAGS.tfds_name} has no {kind} set")
        sets[name] = []
        for split in found:
            examples = task.examples(FLAGS.data_dir, split)
            arrays, spec = classifier_tasks.to_arrays(
                examples, task, FLAGS.max_seq_length, tokenizer, FLAGS.document_stride
            )
            sets[name].append((split, examples, arrays, spec))
    return sets


def evaluate(runner, task, data, step):
    """Writes the scores of a dev set, and what the model says of each example."""
    split, examples, arrays, _ = data
    suffix = classifier_tasks.suffix(split)
    results, logits = runner.evaluate(arrays, FLAGS.eval_batch_size)
    write_table(f"eval_predictions{suffix}", examples, logits, task)
    # Last: where it is, the run is complete.
    results["global_step"] = step
    run_directory.write_results(FLAGS.output_dir, f"eval_results{suffix}", results)


def score_training_set(runner, task, data, step):
    """Writes the scores on what was trained on, beside that of a constant answer."""
    _, examples, arrays, _ = data
    scores, _ = runner.evaluate(arrays, FLAGS.eval_batch_size)
    results = {name.replace("eval", "train", 1): x for name, x in scores.items()}
    if task.kind == targets.Kind.CLASS:
        labels = [example.label for example in examples]
        results["train_majority"] = majority_share(labels)
    results["global_step"] = step
    run_directory.write_results(FLAGS.output_dir, "train_results", results)


def predict(runner, task, data):
    """Writes test_results.tsv as the original, and predictions.tsv with a header."""
    split, examples, arrays, _ = data
    suffix = classifier_tasks.suffix(split)
    logits = runner.predict(arrays, FLAGS.predict_batch_size)
    run_directory.write_table(
        f"{FLAGS.output_dir}/test_results{suffix}.tsv",
        np.asarray(classifier_tasks.HEADS[task.kind].activate(logits)),
    )
    write_table(f"predictions{suffix}", examples, logits, task)


def write_table(name, examples, logits, task):
    """Writes the answers to examples; for the dev set, the right ones beside them."""
    rows = classifier_tasks.table(
        examples, logits, task, FLAGS.label_separator, name.startswith("eval")
    )
    run_directory.write_table(f"{FLAGS.output_dir}/{name}.tsv", rows)


def make_validation(runner, task, sets):
    """The Validation that --keep_best asks for, on the first dev set."""
    _, _, arrays, _ = sets["eval"][0]
    return validation.Validation(
        FLAGS.output_dir,
        lambda: runner.evaluate(arrays, FLAGS.eval_batch_size)[0],
        f"eval_{task.metrics[0]}",
        FLAGS.patience,
        validation.fingerprint(arrays),
    )


if __name__ == "__main__":
    common_flags.run(main, define_flags)
