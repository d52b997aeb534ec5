r"""Pre-trains BERT on masked LM and next sentence prediction (Devlin et al. 2018, 3.1).

    python run_pretraining.py --input_file='records/*.tfrecord' \
        --output_dir=pretrained --bert_config_file=bert_config.json --do_train \
        --do_eval --num_train_steps=100000 --num_warmup_steps=10000

With "visibility": "left_to_right" and "pooled_position": "last" in the config, the same
records train the left-to-right model of section 5.1: every position predicts the next
token, and the results' masked_lm_* are of these predictions.

Writes checkpoints (model.ckpt-STEP, in the original's format), train_log.jsonl,
TensorBoard summaries and eval_results.txt to --output_dir. Started again after a kill
it goes on from the latest checkpoint and ends with the same bits.
"""

import os

import common_flags

from absl import flags, logging

import inference
import model_files
import run_directory
import strategies
import trained_weights
import training
import validation
from data import batching, filesystem, left_to_right, manifests, record_reading, records
from metrics import pretraining as pretraining_metrics
from modeling import losses, models, optimization

FLAGS = flags.FLAGS


def define_flags():
    common_flags.define_model()
    common_flags.define_training()
    common_flags.define_devices()
    flags.DEFINE_string(
        "input_file",
        None,
        "TFRecord files of create_pretraining_data.py: comma list of globs.",
        required=True,
    )
    flags.DEFINE_string(
        "eval_input_file",
        None,
        "Held-out records, likewise: --do_eval scores them instead of --input_file, "
        "with --do_train at every checkpoint.",
    )
    flags.DEFINE_integer(
        "max_seq_length", 128, "Length of the records; as they were made.", 1
    )
    flags.DEFINE_integer(
        "max_predictions_per_seq", 20, "Predictions a record; as they were made.", 1
    )
    flags.DEFINE_integer("num_train_steps", 100000, "Updates in all.", 1)
    flags.DEFINE_integer("num_warmup_steps", 10000, "Updates of linear warm-up.", 0)
    flags.DEFINE_bool(
        "next_sentence_loss",
        True,
        'Learn next sentence prediction, too; without: "No NSP" of section 5.1.',
    )
    flags.DEFINE_integer("max_eval_steps", 100, "At most so many batches.", 1)


def transform(config):
    """What makes batches for the model of the records', or None."""
    is_causal = config.visibility == "left_to_right"
    return left_to_right.next_tokens if is_causal else None


def check_pairs(files):
    """Refuses to learn next sentences from records that are known to hold no pairs."""
    for path, manifest in manifests.find(files).manifest_of.items():
        if not manifest.flags.get("segment_pairs", True):
            raise ValueError(
                f"{path} was built with --nosegment_pairs, so that there is no next "
                "sentence to predict; add --nonext_sentence_loss"
            )


def warn_of_shared_files(files, eval_files):
    """Says that what is trained on is not held out."""
    trained_on = set(map(os.path.realpath, files))
    shared = [path for path in eval_files if os.path.realpath(path) in trained_on]
    if shared:
        logging.warning(
            "%d of the %d files of --eval_input_file are trained on, too, such as %s, "
            "so that they are not held out; leave them out of --input_file",
            len(shared),
            len(eval_files),
            shared[0],
        )


def warn_of_long_warm_up():
    """Says that the rate never gets to what was asked for."""
    steps, warm_up = FLAGS.num_train_steps, FLAGS.num_warmup_steps
    if warm_up >= steps:
        logging.warning(
            "--num_warmup_steps=%d is not below --num_train_steps=%d, so the learning "
            "rate never reaches %g; give fewer",
            warm_up,
            steps,
            FLAGS.learning_rate,
        )


def evaluate(forward, files, spec):
    """Masked LM and next sentence scores on at most --max_eval_steps batches."""
    batches = batching.evaluation_batches(
        files, spec, FLAGS.eval_batch_size, transform(forward.model.config)
    )
    with record_reading.damage_explained(files, spec):
        rows = forward.rows(batches.take(FLAGS.max_eval_steps), "evaluating")
        return pretraining_metrics.scores(rows)


def make_held_out(forward, files, spec):
    """What scores --eval_input_file at every checkpoint."""

    def evaluate_with_perplexity():
        results = evaluate(forward, files, spec)
        perplexity = pretraining_metrics.perplexity(results["masked_lm_loss"])
        # Not in eval_results.txt, which has the original's scores.
        return {**results, "masked_lm_perplexity": perplexity}

    size = f"{FLAGS.max_eval_steps} batches of {FLAGS.eval_batch_size}"
    return validation.HeldOut(
        FLAGS.output_dir,
        evaluate_with_perplexity,
        "masked_lm_accuracy",
        f"{size} from {record_reading.fingerprint(files)}",
    )


def main():
    common_flags.check_actions(common_flags.values())
    if FLAGS.eval_input_file and not FLAGS.do_eval:
        raise ValueError("--eval_input_file has no effect without --do_eval; add it")
    settings = training.Settings.from_values(common_flags.values())
    strategy = strategies.from_values(common_flags.values())
    config = model_files.read_config(
        FLAGS.bert_config_file, FLAGS.init_checkpoint, FLAGS.output_dir
    )
    model_files.check(config, FLAGS.max_seq_length)
    spec = records.pretraining_spec(FLAGS.max_seq_length, FLAGS.max_predictions_per_seq)
    given = [FLAGS.input_file, *filter(None, [FLAGS.eval_input_file])]
    expanded = [filesystem.expand(patterns) for patterns in given]
    for paths in expanded:
        record_reading.check(paths, spec, vocab_size=config.vocab_size)
        if FLAGS.next_sentence_loss:
            check_pairs(paths)
    files, eval_files = expanded[0], expanded[-1]
    if FLAGS.do_train:
        warn_of_long_warm_up()
        if FLAGS.eval_input_file:
            warn_of_shared_files(files, eval_files)

    identity = {"script": "run_pretraining", "config": config.to_dict()}
    if not FLAGS.next_sentence_loss:  # folders of before do not speak of it
        identity["next_sentence_loss"] = False
    run_directory.claim(FLAGS.output_dir, identity, common_flags.values())
    run_directory.write_text(
        f"{FLAGS.output_dir}/bert_config.json", config.to_json_string()
    )
    with training.new_model(strategy, FLAGS.seed, FLAGS.precision):
        model = models.BertForPretraining(config)
    objective, measures = losses.PRETRAINING, losses.pretraining_measures
    if not FLAGS.next_sentence_loss:
        objective, measures = losses.MASKED_LM, losses.masked_lm_measures
    forward = inference.Forward(strategy, model, measures)
    if FLAGS.do_train:
        schedule = optimization.warmup_then_decay(
            FLAGS.learning_rate, FLAGS.num_train_steps, FLAGS.num_warmup_steps
        )
        trainer = training.make_trainer(strategy, model, objective, schedule, settings)
        trainer.start(FLAGS.output_dir, FLAGS.init_checkpoint)
        plan = training.Plan.from_settings(FLAGS.num_train_steps, settings)
        batches = batching.FileBatches(
            files, spec, FLAGS.train_batch_size, FLAGS.seed, transform(config)
        )
        held_out = None
        if FLAGS.eval_input_file:
            held_out = make_held_out(forward, eval_files, spec)
        with record_reading.damage_explained(files, spec):
            training.train(trainer, batches, plan, FLAGS.output_dir, held_out)
        step = trainer.step
    else:
        step = trained_weights.load_trained(
            model, FLAGS.output_dir, FLAGS.init_checkpoint
        )
    if FLAGS.do_eval:
        results = {**evaluate(forward, eval_files, spec), "global_step": step}
        run_directory.write_results(FLAGS.output_dir, "eval_results", results)


if __name__ == "__main__":
    common_flags.run(main, define_flags)
