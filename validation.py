"""Evaluation while training: keeps the best checkpoint, stops when nothing improves.

What happened is kept in validation.jsonl, one line a checkpoint, and everything else
follows from it. So a run that is killed and resumed decides as if it had not been.
Lines say what was scored, and by what: scores of other data or of another metric are
not compared.
"""

import hashlib
import json
import math
import os

import numpy as np
from absl import logging

import run_directory
import strategies
import trained_weights
import training_log
from modeling import checkpoint

# What predictors and exports need besides the weights.
_MODEL_FILES = (
    run_directory.IDENTITY_FILE,
    run_directory.SETTINGS_FILE,
    *("bert_config.json", "vocab.txt", "labels.json"),
)


class HeldOut:
    """Scores every checkpoint on data that is not trained on.

    Args:
        output_dir: str.
        evaluate: function of no arguments, giving a dict of name → number.
        metric: str, the number to show, or to decide by; larger is better.
        data: str, tells the data that is scored from any other, see `fingerprint`.
    """

    def __init__(self, output_dir, evaluate, metric, data):
        self.output_dir, self.evaluate, self.metric = output_dir, evaluate, metric
        self._scored = {"data": data, "metric": metric}
        self._path = os.path.join(output_dir, trained_weights.VALIDATION_FILE)

    def after_checkpoint(self, trainer):
        """Evaluates the checkpoint just written or resumed from, once.

        Args:
            trainer: trainer.Trainer.
        Returns:
            bool, whether training should end here.
        """
        step = trainer.step
        lines = [line for line in self._lines() if line["step"] <= step]
        if not any(line["step"] == step for line in lines):
            lines.append({"step": step, **self._scored, **self.evaluate()})
        ends = self._judge(trainer, lines)
        # Last: a line says that its checkpoint has been dealt with.
        text = "".join(json.dumps(line) + "\n" for line in lines)
        run_directory.write_text(self._path, text)
        training_log.write_summaries(self.output_dir, step, lines[-1], "held_out/")
        # What the first worker has written, the others may read from here on.
        strategies.meet(trainer.strategy)
        return ends

    def _judge(self, trainer, lines):
        """Says how the last of the lines compares; whether training should end."""
        logging.info(
            "step %d: %s %.4f", trainer.step, self.metric, lines[-1][self.metric]
        )
        return False

    def _lines(self):
        """What was found before of the same data by the same metric."""
        lines = trained_weights.read_validation(self.output_dir)
        scored = self._scored.items()
        same = [line for line in lines if scored <= line.items()]
        if len(same) < len(lines):
            logging.warning(
                "%s: left out %d scores of other data or of another metric than %s",
                self._path,
                len(lines) - len(same),
                self.metric,
            )
        return same


class Validation(HeldOut):
    """Also keeps the best checkpoint, and may end the training.

    Args:
        output_dir, evaluate, metric, data: see HeldOut.
        patience: int, stop after so many checkpoints without a better one; 0: never.
    """

    def __init__(self, output_dir, evaluate, metric, patience, data):
        super().__init__(output_dir, evaluate, metric, data)
        self.patience = patience

    def _judge(self, trainer, lines):
        step = trainer.step
        best = max(lines, key=self._rank)
        if best["step"] == step:
            self._keep(trainer)
        logging.info(
            "step %d: %s %.4f; best so far %.4f at step %d",
            step,
            self.metric,
            lines[-1][self.metric],
            best[self.metric],
            best["step"],
        )
        since = sum(line["step"] > best["step"] for line in lines)
        if self.patience and since >= self.patience:
            logging.info("stopping: no better for %d checkpoints", since)
            return True
        return False

    def _rank(self, line):
        """What to compare: a score that is not a number is worse than any other."""
        score = line[self.metric]
        return (not math.isnan(score), score, -line["step"])

    def _keep(self, trainer):
        """Makes the weights the best ones, in a folder that is a model by itself."""
        if not run_directory.is_first():
            return
        names = checkpoint.weight_names(trainer.model)
        weights = {name: weight.value.numpy() for name, weight in names.items()}
        weights["global_step"] = trainer.optimizer.step.numpy()
        folder = os.path.join(self.output_dir, trained_weights.BEST)
        prefix = os.path.join(folder, f"model.ckpt-{trainer.step}")
        checkpoint.write_tf1(prefix, weights, max_to_keep=1)
        for name in _MODEL_FILES:
            path = os.path.join(self.output_dir, name)
            if os.path.exists(path):
                run_directory.copy(path, folder, name)


def fingerprint(arrays):
    """str that tells data sets apart; of a dict of arrays."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()
