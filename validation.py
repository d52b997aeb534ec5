"""Evaluation while training: keeps the best checkpoint, stops when nothing improves.

What happened is kept in validation.jsonl, one line a checkpoint, and everything else
follows from it. So a run that is killed and resumed decides as if it had not been.
"""

import json
import os

from absl import logging

import inference
import run_directory
from modeling import checkpoint


class Validation:
    """Evaluates at every checkpoint.

    Args:
        output_dir: str.
        evaluate: function of no arguments, giving a dict of name → number.
        metric: str, the number that decides; larger is better.
        patience: int, stop after so many checkpoints without a better one; 0: never.
    """

    def __init__(self, output_dir, evaluate, metric, patience):
        self.output_dir, self.evaluate = output_dir, evaluate
        self.metric, self.patience = metric, patience
        self._path = os.path.join(output_dir, inference.VALIDATION_FILE)

    def after_checkpoint(self, trainer):
        """Evaluates the checkpoint just written or resumed from, once.

        Args:
            trainer: training.Trainer.
        Returns:
            bool, whether training should end here.
        """
        step = trainer.step
        lines = [line for line in self._lines() if line["step"] <= step]
        if not any(line["step"] == step for line in lines):
            lines.append({"step": step, **self.evaluate()})
        best = max(lines, key=lambda line: (line[self.metric], -line["step"]))
        if best["step"] == step:
            names = checkpoint.weight_names(trainer.model)
            weights = {name: weight.value.numpy() for name, weight in names.items()}
            prefix = os.path.join(self.output_dir, inference.BEST, f"model.ckpt-{step}")
            weights["global_step"] = trainer.optimizer.step.numpy()
            checkpoint.write_tf1(prefix, weights, max_to_keep=1)
        # Last: a line says that its checkpoint has been dealt with.
        text = "".join(json.dumps(line) + "\n" for line in lines)
        run_directory.write_text(self._path, text)
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

    def _lines(self):
        if not os.path.exists(self._path):
            return []
        with open(self._path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]
