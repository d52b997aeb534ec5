r"""Fine-tunes BERT to choose among continuations (Devlin et al. 2018, section 4.4).

    python run_swag.py --task_name=swag --data_dir=swag --output_dir=swag_run \
        --vocab_file=bert/vocab.txt --bert_config_file=bert/bert_config.json \
        --init_checkpoint=bert/bert_model.ckpt --do_train --do_eval \
        --train_batch_size=16 --learning_rate=2e-5 --num_train_epochs=3

BERT-Base has a dev accuracy of 0.816 (table 4 there). Tasks: swag, and arct, the choice
between two warrants of an argument (Habernal et al. 2018), with --max_seq_length=80.
--train_file, --eval_file and --predict_file name other files in the columns of the
task, with any number of choices.

Writes to --output_dir: checkpoints (model.ckpt-STEP, in the original's format), records
(train.tf_record, ...); with --do_eval eval_results.txt, and with --do_predict
predictions.tsv (id, label, probability of every choice).
"""

import os

import common_flags

import numpy as np
from absl import flags

import encoders
import fine_tuning
import inference
import run_directory
import strategies
import trained_weights
import training
import validation
from data import batching, multiple_choice, padding, records
from metrics import classification as metrics
from modeling import losses, models

FLAGS = flags.FLAGS


def define_flags():
    common_flags.define_model()
    common_flags.define_text()
    common_flags.define_training()
    common_flags.define_fine_tuning()
    common_flags.define_length_buckets()
    common_flags.define_devices()
    flags.DEFINE_string(
        "task_name", None, "swag (CODAH too, in its columns) or arct.", required=True
    )
    flags.DEFINE_string(
        "data_dir", None, "Folder with the files of the task.", required=True
    )
    for name, published in (
        ("train_file", "train.csv, train-full.txt"),
        ("eval_file", "val.csv, dev-full.txt"),
        ("predict_file", "test.csv, test-only-data.txt; may have labels"),
    ):
        flags.DEFINE_string(
            name, None, f"File in --data_dir, if not the published one ({published})."
        )
    flags.DEFINE_bool("do_predict", False, "Predict the test set.")
    flags.DEFINE_integer("predict_batch_size", 8, "Examples a batch in prediction.", 1)
    flags.DEFINE_integer(
        "max_seq_length", 128, "Tokens a choice, with its context; cut if longer.", 3
    )


def read_sets(task, tokenizer):
    """{name: (examples, arrays)} of all that is needed, before anything is done."""
    sets = {}
    for name, wanted, split, file in (
        ("train", FLAGS.do_train, "train", FLAGS.train_file),
        ("eval", FLAGS.do_eval or FLAGS.keep_best, "dev", FLAGS.eval_file),
        ("predict", FLAGS.do_predict, "test", FLAGS.predict_file),
    ):
        if wanted:
            path = os.path.join(FLAGS.data_dir, file or task.files[split])
            examples = task.examples(path, split)
            length = FLAGS.max_seq_length
            arrays = multiple_choice.to_arrays(examples, length, tokenizer)
            sets[name] = examples, arrays
    return sets


def main():
    fine_tuning.check_flags(common_flags.values())
    strategy = strategies.from_values(common_flags.values())
    settings = fine_tuning.Settings.from_values(common_flags.values())
    files = fine_tuning.find_files(settings)
    sets = read_sets(multiple_choice.find_task(FLAGS.task_name), files.tokenizer())
    identity = {"script": "run_swag", "task": FLAGS.task_name.lower()}
    fine_tuning.claim_folder(files, identity, common_flags.values())
    for name, (_, arrays) in sets.items():
        spec = records.multiple_choice_spec(*arrays["input_ids"].shape[1:])
        path = f"{run_directory.own(FLAGS.output_dir)}/{name}.tf_record"
        records.write(path, arrays, spec)

    with training.new_model(strategy, FLAGS.seed, FLAGS.precision):
        model = models.BertForMultipleChoice(
            files.config, make_encoder=encoders.find(FLAGS.bilstm_layers)
        )
    forward = inference.Forward(strategy, model, measure)

    if FLAGS.do_train:
        checked = FLAGS.keep_best and validation.Validation(
            FLAGS.output_dir,
            lambda: evaluate(forward, sets["eval"]),
            "eval_accuracy",
            FLAGS.patience,
            validation.fingerprint(sets["eval"][1]),
        )
        step = train(strategy, model, settings, sets["train"], checked)
    if FLAGS.keep_best or not FLAGS.do_train:
        step = trained_weights.load_trained(
            model, FLAGS.output_dir, FLAGS.init_checkpoint
        )
    if FLAGS.do_eval:
        results = {**evaluate(forward, sets["eval"]), "global_step": step}
        run_directory.write_results(FLAGS.output_dir, "eval_results", results)
    if FLAGS.do_predict:
        predict(forward, sets["predict"])
    if FLAGS.do_export:
        fine_tuning.export(FLAGS.output_dir, FLAGS.export_dir)


def train(strategy, model, settings, data, checked):
    """Trains, or resumes; returns the number of updates done."""
    _, arrays = data
    batches = batching.InMemoryBatches(
        arrays,
        FLAGS.train_batch_size,
        FLAGS.seed,
        padding.trimming(FLAGS.pad_to_max),
        FLAGS.length_buckets,
    )
    return fine_tuning.train(
        strategy,
        model,
        losses.CLASSIFICATION,
        settings,
        len(arrays["label_ids"]),
        batches,
        checked,
    )


def measure(outputs, batch):
    """The logits of every choice, the right ones, and their losses."""
    return {
        "logits": outputs["logits"],
        "label_ids": batch["label_ids"],
        "losses": losses.classification_losses(outputs, batch),
    }


def evaluate(forward, data):
    """Accuracy and loss on a labelled data set."""
    _, arrays = data
    batches = batching.in_memory_evaluation_batches(
        arrays, FLAGS.eval_batch_size, padding.trimming(FLAGS.pad_to_max)
    )
    return metrics.scores(forward.rows(batches, "evaluating"), ["accuracy"])


def predict(forward, data):
    """Writes predictions.tsv: the choice and all probabilities of every example."""
    examples, arrays = data
    batches = batching.in_memory_evaluation_batches(
        arrays, FLAGS.predict_batch_size, padding.trimming(FLAGS.pad_to_max)
    )
    rows = forward.rows(batches, "predicting")
    logits = np.concatenate([row["logits"] for row in rows])
    probabilities = losses.softmax(logits).numpy()
    header = [f"probability{i}" for i in range(probabilities.shape[1])]
    table = [
        (example.guid, row.argmax(), *row)
        for example, row in zip(examples, probabilities, strict=True)
    ]
    run_directory.write_table(
        f"{FLAGS.output_dir}/predictions.tsv", [("id", "label", *header), *table]
    )


if __name__ == "__main__":
    common_flags.run(main, define_flags)
