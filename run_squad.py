r"""Fine-tunes BERT to answer questions from a text (Devlin et al. 2018, 4.2 and 4.3).

    python run_squad.py --train_file=train-v1.1.json --predict_file=dev-v1.1.json \
        --vocab_file=bert/vocab.txt --bert_config_file=bert/bert_config.json \
        --init_checkpoint=bert/bert_model.ckpt --output_dir=squad --do_train \
        --do_predict --train_batch_size=12 --learning_rate=3e-5 --num_train_epochs=2 \
        --max_seq_length=384 --doc_stride=128

BERT-Base gives F1 88.4 (README of the original). With --version_2_with_negative for
SQuAD 2.0. Then, from the trained model:

    python run_squad.py --output_dir=squad --question="Who ...?" --context="..."

--train_file may be a list of files with commas between, which are shuffled together. To
train on one after the other, as the paper did with TriviaQA before SQuAD, give the
output folder of the first run as the second one's --init_checkpoint.

Writes to --output_dir: checkpoints (model.ckpt-STEP, in the original's format), records
(train.tf_record, eval.tf_record), predictions.json, nbest_predictions.json and
null_odds.json (as the original), and answers.jsonl: id, text, start and end (the very
characters of the context), score, probability, null_score and candidates. Where
--predict_file has answers, also eval_results.txt with the official scores, and, for
2.0, the best threshold of no answer in null_score_diff_threshold.json.
"""

import json
import random

import common_flags

from absl import flags, logging
from tqdm import tqdm

import encoders
import fine_tuning
import inference
import model_files
import question_answering
import run_directory
import squad_results
import strategies
import trained_weights
import training
import validation
from data import padding, squad, squad_answers, squad_records, squad_windows
from modeling import checkpoint, losses, models

FLAGS = flags.FLAGS


def define_flags():
    common_flags.define_model()
    common_flags.define_text()
    common_flags.define_training()
    common_flags.define_fine_tuning()
    common_flags.define_devices()
    FLAGS.set_default("pad_to_max", True)  # the original's losses and answers
    flags.DEFINE_string("train_file", None, "SQuAD JSON to train on; or several, a,b.")
    flags.DEFINE_string("predict_file", None, "SQuAD JSON to answer, and to score.")
    flags.DEFINE_bool("do_predict", False, "Answer --predict_file; also --do_eval.")
    flags.DEFINE_integer("predict_batch_size", 8, "Windows a batch in prediction.", 1)
    flags.DEFINE_integer("max_seq_length", 384, "Tokens of question and window.", 4)
    flags.DEFINE_integer("doc_stride", 128, "Tokens from one window to the next.", 1)
    flags.DEFINE_integer(
        "max_query_length", 64, "Tokens of a question; longer ones are cut.", 0
    )
    flags.DEFINE_integer(
        "n_best_size", 20, "Starts, ends and answers to consider, and to write.", 1
    )
    flags.DEFINE_integer("max_answer_length", 30, "Tokens of the longest answer.", 1)
    flags.DEFINE_bool(
        "verbose_logging", False, "Log the answers whose words cannot be aligned."
    )
    flags.DEFINE_bool(
        "version_2_with_negative", False, "SQuAD 2.0: some questions have no answer."
    )
    flags.DEFINE_float(
        "null_score_diff_threshold",
        0.0,
        "SQuAD 2.0: give no answer if its score is higher than the best answer's by "
        "more than this.",
    )
    flags.DEFINE_enum(
        "threshold",
        "given",
        ["given", "found"],
        "SQuAD 2.0: use --null_score_diff_threshold as given, or the one that was best "
        "when a file with answers was predicted.",
    )
    flags.DEFINE_enum(
        "several_answers",
        "refuse",
        ["refuse", "first"],
        "What to do with a question to train on that has several answers.",
    )
    flags.DEFINE_enum(
        "epochs_of",
        "questions",
        ["questions", "windows"],
        "What --num_train_epochs counts. An epoch of questions, as in the original, is "
        "less than all windows where long texts have several.",
    )
    flags.DEFINE_string("question", None, "Answer only this, from --context.")
    flags.DEFINE_string("context", None, "The text to answer --question from.")


def check_flags():
    """Refuses flags that do not go together, before anything is done."""
    fine_tuning.check_flags(common_flags.values())
    for name, needed in (
        ("do_train", "train_file"),
        ("do_predict", "predict_file"),
        ("do_eval", "predict_file"),
        ("keep_best", "predict_file"),
    ):
        if FLAGS[name].value and not FLAGS[needed].value:
            raise ValueError(f"--{name} needs a --{needed}")
    if FLAGS.do_train and FLAGS.threshold == "found":
        raise ValueError(
            "--threshold=found is of a trained model; give it without --do_train"
        )


def read_questions():
    """The questions to train on and those to answer; [] of what is not needed."""
    version_2 = FLAGS.version_2_with_negative
    train_examples, examples = [], []
    if FLAGS.do_train:
        paths = [path for path in FLAGS.train_file.split(",") if path]
        train_examples = squad.read_training_set(
            paths, version_2, FLAGS.several_answers
        )
        random.Random(FLAGS.seed).shuffle(train_examples)  # as the original, with 12345
    if FLAGS.do_predict or FLAGS.do_eval or FLAGS.keep_best:
        examples = squad.read_prediction_set(FLAGS.predict_file)
        must_score = FLAGS.do_eval or (FLAGS.do_train and FLAGS.keep_best)
        if must_score and not squad.has_answers(examples, version_2):
            raise ValueError(
                f"{FLAGS.predict_file} cannot be scored: not all questions have answers"
                " (an empty list of them needs --version_2_with_negative)"
            )
    return train_examples, examples


def threshold():
    """The null score difference above which no answer is given."""
    if FLAGS.threshold == "given":
        return FLAGS.null_score_diff_threshold
    path = trained_weights.find_trained(FLAGS.output_dir, FLAGS.init_checkpoint)
    return squad_results.read_threshold(FLAGS.output_dir, checkpoint.global_step(path))


def answer_options():
    """How the flags say to choose answers."""
    return squad_answers.AnswerOptions(
        FLAGS.n_best_size,
        FLAGS.max_answer_length,
        FLAGS.version_2_with_negative,
        threshold(),
        FLAGS.verbose_logging,
        drop_padding=not FLAGS.pad_to_max,
    )


def main():
    if FLAGS.question is not None:
        answer_one_question()
        return
    check_flags()
    strategy = strategies.from_values(common_flags.values())
    settings = fine_tuning.Settings.from_values(common_flags.values())
    files = fine_tuning.find_files(settings)
    tokenizer = files.tokenizer()
    sizes = squad_windows.WindowSizes(
        FLAGS.max_seq_length, FLAGS.doc_stride, FLAGS.max_query_length
    )
    options = answer_options()
    train_examples, examples = read_questions()
    version_2 = FLAGS.version_2_with_negative
    identity = {"script": "run_squad", "version_2_with_negative": version_2}
    fine_tuning.claim_folder(files, identity, common_flags.values())
    with training.new_model(strategy, FLAGS.seed, FLAGS.precision):
        model = models.BertForQuestionAnswering(
            files.config, make_encoder=encoders.find(FLAGS.bilstm_layers)
        )

    def write_windows(name, questions):
        """Writes a record file of windows to the output folder."""
        progress = tqdm(questions, desc="tokenizing", unit=" questions", delay=1)
        return squad_records.WindowFile.write(
            f"{run_directory.own(FLAGS.output_dir)}/{name}.tf_record",
            squad_windows.make_windows(progress, tokenizer, sizes),
            FLAGS.max_seq_length,
            is_training=name == "train",
        )

    forward = inference.Forward(strategy, model, measure)
    eval_windows = write_windows("eval", examples)

    def answer():
        """Answers with the weights that the model has now."""
        batches = eval_windows.evaluation_batches(
            FLAGS.predict_batch_size, padding.trimming(FLAGS.pad_to_max)
        )
        rows = forward.rows(batches, "answering")
        logits = (
            pair
            for row in rows
            for pair in zip(row["start_logits"], row["end_logits"], strict=True)
        )
        windows = squad_windows.make_windows(examples, tokenizer, sizes)
        return list(
            squad_answers.find_answers(examples, windows, logits, tokenizer, options)
        )

    if FLAGS.do_train:
        checked = FLAGS.keep_best and validation.Validation(
            FLAGS.output_dir,
            lambda: squad_results.score(answer(), version_2),
            "best_f1" if version_2 else "f1",
            FLAGS.patience,
            model_files.fingerprint(FLAGS.predict_file),
        )
        windows = write_windows("train", train_examples)
        step = train(strategy, model, settings, windows, len(train_examples), checked)
    if FLAGS.keep_best or not FLAGS.do_train:
        step = trained_weights.load_trained(
            model, FLAGS.output_dir, FLAGS.init_checkpoint
        )
    if FLAGS.do_predict or FLAGS.do_eval:
        write_results(answer(), step)
    if FLAGS.do_export:
        fine_tuning.export(FLAGS.output_dir, FLAGS.export_dir)


def measure(outputs, _):
    """What squad_answers.find_answers needs of every window."""
    return {name: outputs[name] for name in ("start_logits", "end_logits")}


def train(strategy, model, settings, windows, num_questions, checked):
    """Trains, or resumes; returns the number of updates done."""
    batches = windows.training_batches(
        FLAGS.train_batch_size, FLAGS.seed, padding.trimming(FLAGS.pad_to_max)
    )
    return fine_tuning.train(
        strategy,
        model,
        losses.SPAN,
        settings,
        num_questions if FLAGS.epochs_of == "questions" else windows.num_windows,
        batches,
        checked,
    )


def write_results(answers, step):
    """Writes the answers and, where the accepted ones are known, their scores."""
    version_2 = FLAGS.version_2_with_negative
    squad_results.write_answers(FLAGS.output_dir, answers, version_2)
    if not squad.has_answers((answer.example for answer in answers), version_2):
        logging.info("%s has no answers to score with", FLAGS.predict_file)
        return
    results = squad_results.score(answers, version_2)
    run_directory.write_results(
        FLAGS.output_dir, "eval_results", {**results, "global_step": step}
    )
    # What was found on one file must not be found again on the file it is for.
    if version_2 and FLAGS.threshold == "given":
        squad_results.write_threshold(
            FLAGS.output_dir, results, FLAGS.predict_file, step
        )


def answer_one_question():
    """Shows the answer to --question as a line of JSON."""
    if FLAGS.context is None:
        raise ValueError("--question needs a --context to answer it from")
    if FLAGS.do_train or FLAGS.do_eval or FLAGS.do_predict or FLAGS.do_export:
        raise ValueError(
            "--question is for a model that is trained already; give it "
            "without --do_train, --do_eval, --do_predict and --do_export"
        )
    flag = FLAGS["null_score_diff_threshold"]
    given = flag.value if flag.present else None  # None: that of the run
    predictor = question_answering.load(FLAGS.output_dir, given)
    (answer,) = predictor.predict([FLAGS.question], [FLAGS.context])
    del answer["candidates"]
    print(json.dumps(answer, ensure_ascii=False))


if __name__ == "__main__":
    common_flags.run(main, define_flags)
