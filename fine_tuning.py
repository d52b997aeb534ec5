"""What the fine-tuning scripts share: a model's files, the output folder, training.

What is learned, from what, and how it is scored is the scripts' own, in their `main`.
"""

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence

import command_line
import model_files
import run_directory
import training
from data import batching, classification, tokenization
from modeling import config as config_lib
from modeling import optimization
from serving import saved_model

# Flags that do something only with another one: its name, and the flag's default.
_NEEDED = {
    "patience": ("keep_best", 0),
    "export_dir": ("do_export", None),
    "score_training_set": ("do_train", False),
    "threshold": ("version_2_with_negative", "given"),
}


@dataclasses.dataclass(frozen=True)
class Settings(training.Settings):
    """How to fine-tune: the values of flags that all the scripts have."""

    bert_config_file: str | None
    vocab_file: str | None
    do_lower_case: bool
    skip_mismatched_heads: bool
    num_train_epochs: float
    warmup_proportion: float
    layer_decay: float
    freeze_layers: int


@dataclasses.dataclass(frozen=True)
class ModelFiles:
    """What belongs to a model besides its weights."""

    config: config_lib.BertConfig
    vocab_file: str
    do_lower_case: bool

    def tokenizer(self) -> tokenization.FullTokenizer:
        return tokenization.FullTokenizer(self.vocab_file, self.do_lower_case)


def check_flags(values: Mapping) -> None:
    """Refuses flags that ask for nothing, or have no effect without another.

    Args:
        values: of all flags of the script, by name.
    Raises:
        ValueError: says which flag to add.
    """
    command_line.check_actions(values)
    for flag, (needed, default) in _NEEDED.items():
        value = values.get(flag, default)
        if value != default and not values[needed]:
            raise ValueError(
                f"--{flag}={value} has no effect without --{needed}; add it, or leave "
                f"out --{flag}"
            )
    if values.get("length_buckets") and values["pad_to_max"]:
        raise ValueError(
            "--length_buckets saves padding that --pad_to_max asks for; leave out one"
        )


def find_files(settings: Settings) -> ModelFiles:
    """The files as given, or those beside the weights, or of an earlier run.

    Raises:
        FileNotFoundError, ValueError: they are not there, or do not fit one another.
    """
    files = locate_files(dataclasses.asdict(settings))
    num_layers = files.config.num_hidden_layers
    if settings.freeze_layers > num_layers:
        raise ValueError(
            f"--freeze_layers is {settings.freeze_layers}, but the model has "
            f"{num_layers} layers"
        )
    return files


def locate_files(values: Mapping) -> ModelFiles:
    """The files that the flags in a dict name; see `find_files`."""
    do_lower_case = values["do_lower_case"]
    model_files.check_case(do_lower_case, values["init_checkpoint"])
    places = values["init_checkpoint"], values["output_dir"]
    config = model_files.read_config(values["bert_config_file"], *places)
    vocab_file = model_files.find_vocab(values["vocab_file"], *places)
    model_files.check(config, values["max_seq_length"], vocab_file)
    return ModelFiles(config, vocab_file, do_lower_case)


def claim_folder(
    files: ModelFiles, identity: Mapping, values: Mapping, labels: Sequence[str] = ()
) -> None:
    """Makes --output_dir this run's, with what belongs to the model beside it.

    That is vocab.txt, bert_config.json and, if there are any, labels.json. Of several
    workers only the first does it.

    Args:
        files: of the model.
        identity: what else makes the model what it is, such as the script, the task.
        values: of all flags, by name.
        labels: in the order of the model's outputs.
    Raises:
        ValueError: the folder holds another model, or another process is at work there.
    """
    if not run_directory.is_first():
        return
    identity = {
        "config": files.config.to_dict(),
        "do_lower_case": files.do_lower_case,
        "vocab_sha256": model_files.fingerprint(files.vocab_file),
        **identity,
    }
    if values.get("bilstm_layers"):  # Folders of before do not speak of it.
        identity["bilstm_layers"] = values["bilstm_layers"]
    output_dir = values["output_dir"]
    run_directory.claim(output_dir, identity, values)
    run_directory.copy(files.vocab_file, output_dir, "vocab.txt")
    if labels:
        classification.write_labels(f"{output_dir}/labels.json", labels)
    run_directory.write_text(
        f"{output_dir}/bert_config.json", files.config.to_json_string()
    )
    if values.get("do_export"):  # A mistake should not show after the training.
        saved_model.check_export_dir(_export_dir(output_dir, values["export_dir"]))


def find_labels(
    output_dir: str,
    init_checkpoint: str | None,
    suits: Callable[[str], bool] = bool,
) -> Sequence[str]:
    """The labels of a model that is not trained now.

    They are those of an earlier run in the folder, or lie beside the weights.

    Args:
        output_dir: folder of the run.
        init_checkpoint: weights, which may be a Hugging Face folder.
        suits: whether a label may be one of this script's.
    Raises:
        FileNotFoundError: there are none.
        ValueError: those beside the weights do not suit.
    """
    path = os.path.join(output_dir, "labels.json")
    if init_checkpoint and not os.path.exists(path):
        labels = model_files.find_head(init_checkpoint).labels or ()
        strange = [label for label in labels if not suits(label)]
        if strange:
            raise ValueError(
                f"the labels of {init_checkpoint} are none that this script predicts: "
                f"{', '.join(map(repr, strange[:5]))}; train first (--do_train), or "
                "give an --init_checkpoint that was trained for this"
            )
        if labels:
            return labels
    if not os.path.exists(path):
        raise FileNotFoundError(
            f"the labels are not known: there is no {path}; train first (--do_train), "
            "or give an --init_checkpoint with a labels.json beside it"
        )
    return classification.read_labels(path)


def plan_epochs(
    settings: training.Settings,
    num_examples: int,
    num_train_epochs: float,
    warmup_proportion: float,
):
    """So many epochs in updates, and their warm-up and linear decay.

    Returns:
        (int, updates; schedule, see optimization.AdamWeightDecay).
    """
    # As the original, which rounds once: an epoch may end within a batch.
    steps = int(num_examples / settings.train_batch_size * num_train_epochs)
    return steps, optimization.warmup_then_decay(
        settings.learning_rate, steps, int(steps * warmup_proportion)
    )


def train(
    strategy,
    model,
    objective,
    settings: Settings,
    num_examples: int,
    batches: batching.Batches,
    checked=None,
) -> int:
    """Trains, or resumes: warm-up, then linear decay, over so many epochs.

    Args:
        strategy: tf.distribute strategy.
        model: keras.Model made under it.
        objective: losses.Objective.
        settings: Settings.
        num_examples: what an epoch has.
        batches: of the training set, see `training.train`.
        checked: validation.Validation or None.
    Returns:
        The number of updates done.
    """
    steps, schedule = plan_epochs(
        settings, num_examples, settings.num_train_epochs, settings.warmup_proportion
    )
    rates = training.learning_rates(model, settings.freeze_layers, settings.layer_decay)
    trainer = training.make_trainer(
        strategy, model, objective, schedule, settings, rates
    )
    trainer.start(
        settings.output_dir, settings.init_checkpoint, settings.skip_mismatched_heads
    )
    plan = training.Plan.from_settings(steps, settings)
    training.train(trainer, batches, plan, settings.output_dir, checked)
    return trainer.step


def export(output_dir: str, export_dir: str | None) -> None:
    """Writes what export_saved_model.py would of this run.

    Args:
        output_dir: folder of the run.
        export_dir: folder of the versions of the model; default: `export` in it.
    Raises:
        ValueError: the export differs from the model.
    """
    import exporting  # Needs TensorFlow Text, which training does not.

    if not run_directory.is_first():
        return
    exporting.export(output_dir, _export_dir(output_dir, export_dir))


def _export_dir(output_dir: str, export_dir: str | None) -> str:
    return export_dir or f"{output_dir}/export"
