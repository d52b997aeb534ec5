"""The folder of a fine-tuning script, as predictors and exports read it."""

import dataclasses
import os

import encoders
import inference
import model_files
import run_directory
import trained_weights
from data import tokenization
from modeling import config as config_lib


@dataclasses.dataclass(frozen=True)
class Run:
    """What an output folder says about its model.

    Attributes:
        model_dir: str, the folder.
        identity: dict, what makes the model what it is: config, do_lower_case and what
            else the script gives, such as labels.
        settings: dict of flag name → value, how it was trained.
        precision: str, of the models that `load` gives, see `inference.models_in`.
    """

    model_dir: str
    identity: dict
    settings: dict
    precision: str = "float32"

    @property
    def config(self):
        """BertConfig."""
        return config_lib.BertConfig.from_dict(self.identity["config"])

    @property
    def labels(self):
        """tuple of str, in the order of the outputs; empty if there are none."""
        return tuple(self.identity["labels"])

    @property
    def vocab_file(self):
        """str."""
        return os.path.join(self.model_dir, "vocab.txt")

    @property
    def do_lower_case(self):
        """bool."""
        return self.identity["do_lower_case"]

    @property
    def max_seq_length(self):
        """int, tokens of a sequence."""
        return self.settings["max_seq_length"]

    def tokenizer(self):
        """The tokenization.FullTokenizer of the model."""
        return tokenization.FullTokenizer(self.vocab_file, self.do_lower_case)

    def load(self, model_class, *args):
        """The trained model.

        A run that has trained is about its own checkpoints, and of no use without them.
        One that has not is about the weights it was started from.

        Args:
            model_class: of modeling.models, called with the config and `args`.
        Returns:
            (keras.Model, int, updates behind its weights).
        Raises:
            ValueError: there are no weights, or they lack the head.
        """
        trained = self.settings.get("do_train")
        initial = None if trained else self.settings["init_checkpoint"]
        make_encoder = encoders.find(self.identity.get("bilstm_layers", 0))
        with inference.models_in(self.precision):
            model = model_class(self.config, *args, make_encoder=make_encoder)
        step = trained_weights.load_trained(
            model, self.model_dir, initial, complete=True
        )
        return model, step


def read(model_dir, script, precision="float32"):
    """The Run in a folder.

    Args:
        model_dir: str.
        script: str, the script whose run it must be, such as "run_classifier".
        precision: str, of the models that it gives.
    Raises:
        ValueError: it is not the folder of a run of that script, or damaged, or its
            vocabulary is larger than its model's.
    """
    found = run_directory.read(model_dir, script, max_seq_length=int)
    run = Run(str(model_dir), *found, precision)
    model_files.check(run.config, run.max_seq_length, run.vocab_file)
    return run
