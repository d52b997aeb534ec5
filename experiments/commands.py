"""The commands that experiments are made of: records, pre-training, fine-tuning."""

import dataclasses
import math
import re
from collections.abc import Mapping

from experiments import runs


@dataclasses.dataclass(frozen=True)
class Corpus:
    """A text and how models are pre-trained on it.

    Attributes:
        name: of the folder of its steps.
        text, held_out, vocab_file: places; {prepared} and {data} stand for folders.
        record_flags: of create_pretraining_data.py.
        training_flags: of run_pretraining.py.
        lengths: max_seq_length and max_predictions_per_seq.
        needs: steps that make the vocabulary, if it is not there.
    """

    name: str
    text: str
    held_out: str
    vocab_file: str
    record_flags: str
    training_flags: str
    lengths: tuple[int, int]
    needs: tuple[runs.Step, ...] = ()

    def _shape(self) -> list[str]:
        length, predictions = self.lengths
        return [
            f"--max_seq_length={length}",
            f"--max_predictions_per_seq={predictions}",
        ]

    def records(self, part: str, seed: int, name: str, flags: str = "") -> runs.Step:
        """Records of the "text" or "held_out" part, in an own way called `name`."""
        return runs.Step(
            f"{self.name}/records/{name}/{part}_{seed}",
            (
                "create_pretraining_data.py",
                f"--input_file={getattr(self, part)}",
                "--output_file={out}/records.tfrecord",
                f"--vocab_file={self.vocab_file}",
                f"--random_seed={seed}",
                "--num_workers=1",
                *self._shape(),
                *self.record_flags.split(),
                *flags.split(),
            ),
            self.needs,
        )

    def pretraining(
        self, name: str, config: str, seed: int, records: runs.Step, flags: str = ""
    ) -> runs.Step:
        """A pre-training called `name`, scored on held-out records of the usual kind.

        Args:
            name: of the variant.
            config: name of a file in {prepared}/configs.
            seed: of the training and of the records.
            records: step that makes them.
            flags: further ones of run_pretraining.py.
        """
        held_out = self.records("held_out", 1, "usual")
        return runs.Step(
            f"{self.name}/pretraining/{name}/{seed}",
            (
                "run_pretraining.py",
                f"--input_file={{runs}}/{records.name}/records.tfrecord",
                f"--eval_input_file={{runs}}/{held_out.name}/records.tfrecord",
                f"--bert_config_file={{prepared}}/configs/{config}.json",
                "--output_dir={out}",
                "--do_train",
                "--do_eval",
                f"--seed={seed}",
                *self._shape(),
                *self.training_flags.split(),
                *flags.split(),
            ),
            (records, held_out),
        )


@dataclasses.dataclass(frozen=True)
class Task:
    """What a model is fine-tuned on.

    Attributes:
        name: of the task.
        command: without the model and the seed.
        scores: name → key in eval_results.json; shares that are shown in percent.
    """

    name: str
    command: str
    scores: Mapping[str, str]

    def run(
        self,
        experiment: str,
        variant: str,
        seed: int,
        pretraining: runs.Step | None,
        init_checkpoint: str,
        flags: str = "",
    ) -> runs.Run:
        """The run of this task from a model.

        Args:
            experiment, variant, seed: of the run.
            pretraining: step that makes the model, or None.
            init_checkpoint: its weights, with their config and vocabulary beside them
                or in `flags`.
            flags: further ones.
        """
        script, *rest = self.command.split()
        step = runs.Step(
            re.sub(r"[^\w./+-]+", "_", f"{experiment}/{variant}/{self.name}/{seed}"),
            (
                script,
                *rest,
                f"--init_checkpoint={init_checkpoint}",
                "--output_dir={out}",
                f"--seed={seed}",
                *flags.split(),
            ),
            () if pretraining is None else (pretraining,),
        )
        scores = {
            n: ("eval_results.json", k, runs.percent) for n, k in self.scores.items()
        }
        training = {
            name: ("train_results.json", f"train_{name}", runs.percent)
            for name in ("accuracy", "majority")
            if "--score_training_set" in rest
        }
        return runs.Run(experiment, variant, self.name, seed, step, scores, training)


def perplexity(
    experiment: str, variant: str, seed: int, pretraining: runs.Step
) -> runs.Run:
    """The run that is the pre-training itself: its scores on held-out text."""
    scores = {
        "perplexity": ("eval_results.json", "masked_lm_loss", math.exp),
        "accuracy": ("eval_results.json", "masked_lm_accuracy", runs.percent),
    }
    return runs.Run(experiment, variant, "held-out text", seed, pretraining, scores)
