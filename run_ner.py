r"""Fine-tunes BERT to tag words, such as named entities (Devlin et al. 2018, 5.3).

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

from absl import flags

import encoders
import fine_tuning
import inference
import ner_runs
import strategies
import trained_weights
import training
import validation
from data import batching, ner
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
    ner_runs.define_flags()
    flags.adopt_module_key_flags(ner_runs)


def main():
    fine_tuning.check_flags(common_flags.values())
    strategy = strategies.from_values(common_flags.values())
    settings = fine_tuning.Settings.from_values(common_flags.values())
    files = fine_tuning.find_files(settings)
    tokenizer = files.tokenizer()
    sets, labels = ner_runs.read_sets(common_flags.values())
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
    forward = inference.Forward(strategy, model, ner_runs.measure)

    def featurize(kind):
        return ner.files_to_arrays(
            sets[kind], labels, FLAGS.max_seq_length, tokenizer, FLAGS.document_context
        )

    def tag(kind, arrays, batch_size):
        batches = batching.in_memory_evaluation_batches(
            arrays, batch_size, ner_runs.trim(FLAGS.pad_to_max)
        )
        return ner_runs.tag(forward, labels, sets[kind], batches)

    dev, checked = featurize("dev"), None
    if FLAGS.keep_best:
        checked = validation.Validation(
            FLAGS.output_dir,
            lambda: tag("dev", dev, FLAGS.eval_batch_size)[1],
            "f1",
            FLAGS.patience,
            validation.fingerprint(dev),
        )
    if FLAGS.do_train:
        step = train(strategy, model, settings, featurize("train"), checked)
    if FLAGS.keep_best or not FLAGS.do_train:
        step = trained_weights.load_trained(
            model, FLAGS.output_dir, FLAGS.init_checkpoint
        )
    if FLAGS.score_training_set:
        _, scores = tag("train", featurize("train"), FLAGS.eval_batch_size)
        ner_runs.write_training_scores(FLAGS.output_dir, sets["train"], step, scores)
    if FLAGS.do_eval:
        tagged = tag("dev", dev, FLAGS.eval_batch_size)
        ner_runs.write(FLAGS.output_dir, "eval", sets["dev"], step, tagged)
    if FLAGS.do_predict:
        tagged = tag("test", featurize("test"), FLAGS.predict_batch_size)
        ner_runs.write(FLAGS.output_dir, "test", sets["test"], step, tagged)
    if FLAGS.do_export:
        fine_tuning.export(FLAGS.output_dir, FLAGS.export_dir)


def train(strategy, model, settings, arrays, checked):
    """Trains, or resumes; returns the number of updates done."""
    batches = batching.InMemoryBatches(
        arrays,
        FLAGS.train_batch_size,
        FLAGS.seed,
        ner_runs.trim(FLAGS.pad_to_max),
        FLAGS.length_buckets,
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


if __name__ == "__main__":
    common_flags.run(main, define_flags)
