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
(train.tf_record, ...), eval_results.txt and predictions.tsv (id, label, probability of
every choice).
"""

import os

import common_flags

import numpy as np
from absl import flags

import inference
import model_files
import run_directory
import training
from data import batching, multiple_choice, records, tokenization
from metrics import classification as metrics
from modeling import losses, models, optimization

FLAGS = flags.FLAGS


def define_flags():
    common_flags.define_model()
    common_flags.define_text()
    common_flags.define_training()
    common_flags.define_tpu()
    flags.DEFINE_string("task_name", None, "swag or arct.", required=True)
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
    flags.DEFINE_bool(
        "pad_to_max",
        False,
        "Pad every batch to --max_seq_length instead of to its longest choice: slower, "
        "but of one shape, as TPUs want it.",
    )
    flags.DEFINE_float("num_train_epochs", 3.0, "Passes over the training set.", 0.0)
    flags.DEFINE_float(
        "warmup_proportion", 0.1, "Share of the updates used for warm-up.", 0.0, 1.0
    )


def trimmed(batches):
    """The batches without columns of padding, unless --pad_to_max asks for them."""
    return batches if FLAGS.pad_to_max else batches.map(batching.trim_padding)


def claim_folder(config, vocab_file):
    """Makes --output_dir this run's, with what belongs to the model beside it."""
    identity = {
        "script": "run_swag",
        "config": config.to_dict(),
        "task": FLAGS.task_name.lower(),
        "do_lower_case": FLAGS.do_lower_case,
    }
    run_directory.claim(FLAGS.output_dir, identity, common_flags.values())
    run_directory.copy(vocab_file, FLAGS.output_dir, "vocab.txt")
    run_directory.write_text(
        f"{FLAGS.output_dir}/bert_config.json", config.to_json_string()
    )


def main():
    if not (FLAGS.do_train or FLAGS.do_eval or FLAGS.do_predict):
        raise ValueError("nothing to do: give --do_train, --do_eval or --do_predict")
    model_files.check_case(FLAGS.do_lower_case, FLAGS.init_checkpoint)
    config = model_files.read_config(FLAGS.bert_config_file, FLAGS.init_checkpoint)
    vocab_file = model_files.find_vocab(FLAGS.vocab_file, FLAGS.init_checkpoint)
    model_files.check(config, FLAGS.max_seq_length, vocab_file)
    tokenizer = tokenization.FullTokenizer(vocab_file, FLAGS.do_lower_case)
    task = multiple_choice.find_task(FLAGS.task_name)

    def read(split, file, name):
        """Examples and arrays of a file; the arrays are kept as a record file."""
        path = os.path.join(FLAGS.data_dir, file or task.files[split])
        examples = task.examples(path, split)
        arrays = multiple_choice.to_arrays(examples, FLAGS.max_seq_length, tokenizer)
        spec = records.multiple_choice_spec(*arrays["input_ids"].shape[1:])
        records.write(f"{FLAGS.output_dir}/{name}.tf_record", arrays, spec)
        return examples, arrays

    claim_folder(config, vocab_file)
    strategy = training.make_strategy(
        FLAGS.use_tpu, FLAGS.tpu_name, FLAGS.tpu_zone, FLAGS.gcp_project
    )
    with strategy.scope():
        training.set_seed(FLAGS.seed)
        model = models.BertForMultipleChoice(config)

    if FLAGS.do_train:
        _, arrays = read("train", FLAGS.train_file, "train")
        step = train(strategy, model, arrays)
    else:
        step = inference.load_trained(model, FLAGS.output_dir, FLAGS.init_checkpoint)
    if FLAGS.do_eval:
        _, arrays = read("dev", FLAGS.eval_file, "eval")
        results = evaluate(strategy, model, arrays)
        run_directory.write_results(
            FLAGS.output_dir, "eval_results", {**results, "global_step": step}
        )
    if FLAGS.do_predict:
        predict(strategy, model, *read("test", FLAGS.predict_file, "predict"))


def train(strategy, model, arrays):
    """Trains, or resumes; returns the number of updates done."""
    num_examples = len(arrays["label_ids"])
    steps = int(num_examples / FLAGS.train_batch_size * FLAGS.num_train_epochs)
    schedule = optimization.warmup_then_decay(
        FLAGS.learning_rate, steps, int(steps * FLAGS.warmup_proportion)
    )
    optimizer = training.make_optimizer(
        strategy, model, schedule, FLAGS.bias_correction
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

    training.train(trainer, batches_from, plan, FLAGS.output_dir)
    return trainer.step


def evaluate(strategy, model, arrays):
    """Accuracy and loss on a labelled data set."""

    def measure(outputs, batch):
        return {
            "logits": outputs["logits"],
            "label_ids": batch["label_ids"],
            "losses": losses.classification_losses(outputs, batch),
        }

    batches = trimmed(
        batching.in_memory_evaluation_batches(arrays, FLAGS.eval_batch_size)
    )
    rows = inference.rows(strategy, model, batches, measure, "evaluating")
    return metrics.scores(rows, ["accuracy"])


def predict(strategy, model, examples, arrays):
    """Writes predictions.tsv: the choice and all probabilities of every example."""

    def measure(outputs, _):
        return {"probabilities": losses.softmax(outputs["logits"])}

    batches = trimmed(
        batching.in_memory_evaluation_batches(arrays, FLAGS.predict_batch_size)
    )
    rows = inference.rows(strategy, model, batches, measure, "predicting")
    probabilities = np.concatenate([row["probabilities"] for row in rows])
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
