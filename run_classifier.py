r"""Fine-tunes BERT to classify sentences and pairs (Devlin et al. 2018, section 4.1).

    python run_classifier.py --task_name=mrpc --data_dir=glue/MRPC --output_dir=mrpc \
        --vocab_file=bert/vocab.txt --bert_config_file=bert/bert_config.json \
        --init_checkpoint=bert/bert_model.ckpt --do_train --do_eval \
        --learning_rate=2e-5 --num_train_epochs=3

BERT-Base gives an accuracy of 0.84 to 0.88 over seeds (README of the original). Tasks:
cola, mnli, mrpc, sst-2, xnli, and `own` for {train,dev,test}.{tsv,csv,jsonl} in
--data_dir.

Writes to --output_dir: checkpoints (model.ckpt-STEP, in the original's format), records
(train.tf_record, ...), eval_results.txt, test_results.tsv (probabilities, as the
original) and predictions.tsv (id, label, score), and what export_saved_model.py needs.
"""

import os

import numpy as np
from absl import flags

import common_flags
import model_files
import run_directory
import training
import validation
from data import batching, classification, features, glue, records, tokenization
from metrics import classification as metrics
from modeling import losses, models, optimization

FLAGS = flags.FLAGS


def define_flags():
    common_flags.define_model()
    common_flags.define_text()
    common_flags.define_training()
    common_flags.define_fine_tuning()
    common_flags.define_tpu()
    flags.DEFINE_string(
        "task_name", None, "cola, mnli, mrpc, sst-2, xnli or own.", required=True
    )
    flags.DEFINE_string(
        "data_dir", None, "Folder with the files of the task.", required=True
    )
    flags.DEFINE_bool("do_predict", False, "Predict the test set.")
    flags.DEFINE_integer("predict_batch_size", 8, "Examples a batch in prediction.", 1)
    flags.DEFINE_integer(
        "max_seq_length", 128, "Tokens an example; longer ones are cut.", 3
    )
    flags.DEFINE_string("text_column", "text", "Task own: column of the text.")
    flags.DEFINE_string(
        "text_pair_column", None, "Task own: column of the second text of a pair."
    )
    flags.DEFINE_string("label_column", "label", "Task own: column of the label.")
    flags.DEFINE_string("id_column", None, "Task own: column of the id of a row.")
    flags.DEFINE_string("xnli_language", "zh", "Task xnli: its language.")


def find_task(output_dir):
    """The task with its labels: published, of an earlier run, or inferred."""
    if FLAGS.task_name.lower() != "own":
        return glue.find_task(FLAGS.task_name, FLAGS.xnli_language)
    task = classification.OwnTask(
        FLAGS.text_column, FLAGS.text_pair_column, FLAGS.label_column, FLAGS.id_column
    )
    if FLAGS.do_train:
        labels = classification.infer_labels(task.examples(FLAGS.data_dir, "train"))
    else:
        labels = classification.read_labels(os.path.join(output_dir, "labels.json"))
    return task.with_labels(labels)


def trimmed(batches):
    """The batches without columns of padding, unless --pad_to_max asks for them."""
    return batches if FLAGS.pad_to_max else batches.map(batching.trim_padding)


def suffix(split):
    """What tells the files of a further dev or test set apart: "" or "_mismatched"."""
    return split.removeprefix("dev").removeprefix("test").removesuffix("_matched")


def main():
    if not (FLAGS.do_train or FLAGS.do_eval or FLAGS.do_predict):
        raise ValueError("nothing to do: give --do_train, --do_eval or --do_predict")
    tokenization.validate_case_matches_checkpoint(
        FLAGS.do_lower_case, FLAGS.init_checkpoint
    )
    config = model_files.read_config(FLAGS.bert_config_file, FLAGS.init_checkpoint)
    vocab_file = model_files.find_vocab(FLAGS.vocab_file, FLAGS.init_checkpoint)
    model_files.check(config, FLAGS.max_seq_length, vocab_file)
    tokenizer = tokenization.FullTokenizer(vocab_file, FLAGS.do_lower_case)
    task = find_task(FLAGS.output_dir)

    def read(split, name):
        """Examples and arrays of a split; the arrays are kept as a record file."""
        examples = task.examples(FLAGS.data_dir, split)
        arrays = features.features_to_arrays(
            examples, task.labels, FLAGS.max_seq_length, tokenizer
        )
        path = os.path.join(FLAGS.output_dir, f"{name}.tf_record")
        records.write(path, arrays, records.classifier_spec(FLAGS.max_seq_length))
        return examples, arrays

    identity = {
        "script": "run_classifier",
        "config": config.to_dict(),
        "labels": task.labels,
        "do_lower_case": FLAGS.do_lower_case,
    }
    run_directory.claim(FLAGS.output_dir, identity, common_flags.values())
    run_directory.copy(vocab_file, FLAGS.output_dir, "vocab.txt")
    classification.write_labels(f"{FLAGS.output_dir}/labels.json", task.labels)
    run_directory.write_text(
        f"{FLAGS.output_dir}/bert_config.json", config.to_json_string()
    )
    strategy = training.make_strategy(
        FLAGS.use_tpu, FLAGS.tpu_name, FLAGS.tpu_zone, FLAGS.gcp_project
    )
    with strategy.scope():
        training.set_seed(FLAGS.seed)
        model = models.BertForSequenceClassification(config, len(task.labels))

    scorer = training.Forward(strategy, model, measure)
    if FLAGS.do_train:
        _, arrays = read("train", "train")
        step = train(strategy, model, arrays, make_validation(scorer, task, read))
    else:
        step = training.load_latest(model, FLAGS.output_dir, FLAGS.init_checkpoint)
    if FLAGS.keep_best:
        step = training.load_best(model, FLAGS.output_dir)
    if FLAGS.do_eval:
        for split in task.splits("dev"):
            _, arrays = read(split, f"eval{suffix(split)}")
            results = evaluate(scorer, task.metrics, arrays)
            run_directory.write_results(
                FLAGS.output_dir,
                f"eval_results{suffix(split)}",
                {**results, "global_step": step},
            )
    if FLAGS.do_predict:
        for split in task.splits("test"):
            examples, arrays = read(split, f"predict{suffix(split)}")
            predict(strategy, model, task.labels, (examples, arrays), suffix(split))


def measure(outputs, batch):
    """What metrics.classification scores."""
    return {
        "logits": outputs["logits"],
        "label_ids": batch["label_ids"],
        "losses": losses.classification_losses(outputs, batch),
    }


def evaluate(scorer, metric_names, arrays):
    """Scores of a labelled data set."""
    batches = batching.in_memory_evaluation_batches(arrays, FLAGS.eval_batch_size)
    rows = scorer.rows(trimmed(batches), "evaluating")
    return metrics.scores(rows, metric_names)


def make_validation(scorer, task, read):
    """The Validation that --keep_best asks for, on the first dev set, or None."""
    if not FLAGS.keep_best:
        return None
    split = task.splits("dev")[0]
    _, arrays = read(split, f"eval{suffix(split)}")
    return validation.Validation(
        FLAGS.output_dir,
        lambda: evaluate(scorer, task.metrics, arrays),
        f"eval_{task.metrics[0]}",
        FLAGS.patience,
    )


def train(strategy, model, arrays, checked):
    """Trains, or resumes; returns the number of updates done."""
    num_examples = len(arrays["label_ids"])
    steps = int(num_examples / FLAGS.train_batch_size * FLAGS.num_train_epochs)
    schedule = optimization.warmup_then_decay(
        FLAGS.learning_rate, steps, int(steps * FLAGS.warmup_proportion)
    )
    optimizer = training.make_optimizer(
        strategy,
        model,
        schedule,
        FLAGS.bias_correction,
        training.frozen_layers(FLAGS.freeze_layers),
    )
    trainer = training.Trainer(
        strategy, model, optimizer, losses.CLASSIFICATION, FLAGS.seed
    )
    trainer.start(FLAGS.output_dir, FLAGS.init_checkpoint)
    plan = training.Plan(steps, FLAGS.save_checkpoints_steps, FLAGS.train_batch_size)

    def batches_from(step):
        return trimmed(
            batching.in_memory_batches(arrays, FLAGS.train_batch_size, FLAGS.seed, step)
        )

    training.train(trainer, batches_from, plan, FLAGS.output_dir, checked)
    return trainer.step


def predict(strategy, model, labels, data, suffix):
    """Writes test_results.tsv as the original, and predictions.tsv with a header."""
    examples, arrays = data
    batches = batching.in_memory_evaluation_batches(arrays, FLAGS.predict_batch_size)
    rows = training.rows(
        strategy,
        model,
        trimmed(batches),
        lambda outputs, _: {"probabilities": losses.softmax(outputs["logits"])},
        "predicting",
    )
    probabilities = np.concatenate([row["probabilities"] for row in rows])
    run_directory.write_table(
        f"{FLAGS.output_dir}/test_results{suffix}.tsv", probabilities
    )
    best = probabilities.argmax(axis=-1)
    rows = zip(examples, best, probabilities, strict=True)
    table = [(example.guid, labels[i], row[i]) for example, i, row in rows]
    run_directory.write_table(
        f"{FLAGS.output_dir}/predictions{suffix}.tsv",
        [("id", "label", "score"), *table],
    )


if __name__ == "__main__":
    common_flags.run(main, define_flags)
