r"""Tags words by the vectors of a frozen BERT (Devlin et al. 2018, v1 5.4, v2 5.3).

    python run_ner_feature_based.py --train_file=train.txt --dev_file=dev.txt \\
        --init_checkpoint=bert-base-cased/bert_model.ckpt --do_lower_case=False \\
        --bert_config_file=bert-base-cased/bert_config.json \\
        --vocab_file=bert-base-cased/vocab.txt --features=concat_last4 \\
        --output_dir=conll_features --do_train --do_eval --keep_best --patience=3 \\
        --save_checkpoints_steps=440 --document_context

The feature-based approach of table 7: BERT reads every window once, and what --features
says of its layers is all that a bidirectional LSTM of two layers and a softmax learn
from. They have their fresh weights, the paper's width of 768 and, for want of the
paper's, a recipe of ours. On CoNLL-2003 the paper has 96.1 F1 on the dev set for the
last four layers side by side, 95.9 for their weighted sum, 95.5 for that of all twelve,
95.6 for the second to last, 94.9 for the last, 91.0 for the embeddings, and 96.4 for
fine-tuning (run_ner.py).

Files, and what is written to --output_dir, are those of run_ner.py. The checkpoints
hold the tagger without the encoder: --do_eval and --do_predict take it from where the
training did, unless --init_checkpoint says where it is now.

The vectors stand in memory: 4 bytes times tokens, hidden size and layers (four for
concat_last4, all for weighted sums), and --document_context fills every window with
tokens. With BERT-Base, CoNLL-2003 needs some 3 GB without it and 21 GB with it.
"""

import os

import common_flags

from absl import flags

import fine_tuning
import frozen_features
import inference
import ner_runs
import run_directory
import strategies
import trained_weights
import training
import validation
from data import batching, ner
from modeling import checkpoint, feature_tagger, losses, models

FLAGS = flags.FLAGS
SCRIPT = "run_ner_feature_based"
# Of a new folder; one that holds a run has what that had.
DEFAULTS = {
    "init_checkpoint": None,
    "features": "concat_last4",
    "weighted_sums": False,
    "bilstm_layers": 2,
    "bilstm_size": 768,
}


def define_flags():
    common_flags.define_model()
    common_flags.define_text()
    common_flags.define_training(learning_rate=1e-3)
    common_flags.define_epochs(num_train_epochs=20.0)
    common_flags.define_keep_best()
    common_flags.define_length_buckets()
    common_flags.define_devices()
    ner_runs.define_flags()
    flags.adopt_module_key_flags(ner_runs)
    of_run = "default: that of the run in --output_dir, else {}."
    flags.DEFINE_enum(
        "features",
        None,
        feature_tagger.CHOICES,
        "Layers whose vectors are taken, and how: table 7 of the paper; "
        + of_run.format(DEFAULTS["features"]),
    )
    flags.DEFINE_bool(
        "weighted_sums",
        None,
        "Of --features=sum_...: learn a factor for every layer (v2) instead of adding "
        "them up as they are (v1); " + of_run.format("not"),
    )
    flags.DEFINE_integer(
        "bilstm_layers",
        None,
        "Layers of the LSTM; " + of_run.format(DEFAULTS["bilstm_layers"]),
        1,
    )
    flags.DEFINE_integer(
        "bilstm_size",
        None,
        "Width of the LSTM, both directions together, even; "
        + of_run.format(DEFAULTS["bilstm_size"]),
        2,
    )


def read_values():
    """The flags, of which those of DEFAULTS may be those of the run in the folder."""
    values, before = common_flags.values(), {}
    if os.path.exists(f"{FLAGS.output_dir}/{run_directory.IDENTITY_FILE}"):
        _, before = run_directory.read(FLAGS.output_dir, SCRIPT)
    for name, default in DEFAULTS.items():
        if values[name] is None:
            values[name] = before.get(name, default)
    if values["init_checkpoint"]:  # To be found from anywhere.
        values["init_checkpoint"] = os.path.abspath(values["init_checkpoint"])
    return values


def check(values):
    """Refuses flags that contradict one another, or have no effect."""
    fine_tuning.check_flags(values)
    if not values["init_checkpoint"]:
        raise ValueError(
            "there is no encoder to take vectors from: give its --init_checkpoint"
        )
    # One that is remembered is of another model, which the folder says.
    if FLAGS.weighted_sums and not feature_tagger.is_sum(values["features"]):
        raise ValueError(
            f"--weighted_sums has no effect with --features={values['features']}, "
            "which adds nothing up; leave it out"
        )
    if values["recompute"]:
        raise ValueError(
            "--recompute is for encoders that are trained; here it is frozen: leave it "
            "out"
        )


def load_encoder(strategy, config, path):
    """The frozen encoder, and what tells its weights from any others."""
    with training.new_model(strategy, FLAGS.seed, FLAGS.precision):
        encoder = models.BertModel(config)
    trained_weights.load(encoder, path)
    weights = {
        name: variable.numpy()
        for name, variable in checkpoint.weight_names(encoder).items()
        if not name.startswith("bert/pooler/")
    }
    return encoder, validation.fingerprint(weights)


def make_tagger(strategy, values, num_labels, vectors_shape):
    """The model to train."""
    with training.new_model(strategy, FLAGS.seed, FLAGS.precision):
        return feature_tagger.FeatureTagger(
            num_labels,
            vectors_shape,
            values["bilstm_layers"],
            values["bilstm_size"],
            values["weighted_sums"],
        )


def main():
    values = read_values()
    check(values)
    strategy = strategies.from_values(values)
    settings = training.Settings.from_values(values)
    files = fine_tuning.locate_files(values)
    sets, labels = ner_runs.read_sets(values)
    encoder, fingerprint = load_encoder(
        strategy, files.config, values["init_checkpoint"]
    )
    frozen = frozen_features.FrozenEncoder(
        strategy, encoder, values["features"], values["weighted_sums"]
    )
    model = make_tagger(strategy, values, len(labels), frozen.vectors_shape)
    names = "features", "weighted_sums", "bilstm_size"
    identity = {name: values[name] for name in names}
    identity |= {"script": SCRIPT, "labels": labels, "encoder_sha256": fingerprint}
    fine_tuning.claim_folder(files, identity, values, labels)
    forward = inference.Forward(strategy, model, ner_runs.measure)
    tokenizer = files.tokenizer()

    def featurize(kind):
        """Windows of a set, and what makes model inputs of a batch of them."""
        arrays = ner.files_to_arrays(
            sets[kind], labels, FLAGS.max_seq_length, tokenizer, FLAGS.document_context
        )
        return frozen(arrays, ner_runs.trim(FLAGS.pad_to_max))

    def tag(kind, data, batch_size):
        arrays, transform = data
        batches = batching.in_memory_evaluation_batches(arrays, batch_size, transform)
        return ner_runs.tag(forward, labels, sets[kind], batches)

    dev, checked = featurize("dev") if sets["dev"] else None, None
    if FLAGS.keep_best:
        checked = validation.Validation(
            FLAGS.output_dir,
            lambda: tag("dev", dev, FLAGS.eval_batch_size)[1],
            "f1",
            FLAGS.patience,
            validation.fingerprint(dev[0]),
        )
    if FLAGS.do_train:
        step = train(strategy, model, settings, featurize("train"), checked)
    if FLAGS.keep_best or not FLAGS.do_train:
        step = trained_weights.load_trained(model, FLAGS.output_dir)
    if FLAGS.do_eval:
        tagged = tag("dev", dev, FLAGS.eval_batch_size)
        ner_runs.write(FLAGS.output_dir, "eval", sets["dev"], step, tagged)
    if FLAGS.do_predict:
        tagged = tag("test", featurize("test"), FLAGS.predict_batch_size)
        ner_runs.write(FLAGS.output_dir, "test", sets["test"], step, tagged)


def train(strategy, model, settings, data, checked):
    """Trains the tagger, or resumes; returns the number of updates done."""
    arrays, transform = data
    batches = batching.InMemoryBatches(
        arrays, FLAGS.train_batch_size, FLAGS.seed, transform, FLAGS.length_buckets
    )
    steps, schedule = fine_tuning.plan_epochs(
        settings,
        len(arrays["input_ids"]),
        FLAGS.num_train_epochs,
        FLAGS.warmup_proportion,
    )
    trainer = training.make_trainer(strategy, model, losses.TOKENS, schedule, settings)
    trainer.start(FLAGS.output_dir, init_checkpoint=None)
    plan = training.Plan.from_settings(steps, settings)
    training.train(trainer, batches, plan, FLAGS.output_dir, checked)
    return trainer.step


if __name__ == "__main__":
    common_flags.run(main, define_flags)
