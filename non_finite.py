"""What to do about an update whose loss or gradients are not finite.

Trainer gives it no effect. In float16 that is how the scale of the loss is found.
"""

from absl import logging

MOST_SKIPPED = 50  # updates in a row that may be left out
_WORDS = "not finite"  # which every message has


def is_told(message):
    """Whether an error's message says that a training ended for such updates."""
    return _WORDS in message


class Guard:
    """Sees to updates that were left out because they were not finite.

    Args:
        trainer: trainer.Trainer.
        batches: data.batching.Batches, to name the records.
        skip: bool, go on without such an update instead of ending.
        output_dir: str.
    """

    def __init__(self, trainer, batches, skip, output_dir):
        self._trainer, self._batches = trainer, batches
        self._skip, self._output_dir = skip, output_dir
        self._in_a_row = 0

    def check(self, step, results):
        """Goes on, warns, or ends the training as it was before the update.

        Args:
            step: int, updates before this one.
            results: of the update.
        Raises:
            ValueError: it ends; the checkpoint of before the update is written.
        """
        if results["finite"]:
            self._in_a_row = 0
            return
        self._in_a_row += 1
        too_many = self._in_a_row > MOST_SKIPPED
        scale = float(results.get("loss_scale", 1.0))
        if scale > 1 and not too_many:
            logging.info("update %d left out: overflow at loss scale %g", step, scale)
            return
        what = (
            f"update {step} is {_WORDS} (loss {float(results['loss']):g}, norm of "
            f"the gradients {float(results['gradient_norm']):g}); its records: "
            f"{self._batches.describe(step)}"
        )
        if self._skip and not too_many:
            logging.warning("%s; left out", what)
            return
        self._trainer.optimizer.step.assign_sub(1)
        self._trainer.save(self._output_dir)
        if too_many:
            raise ValueError(
                f"{self._in_a_row} updates in a row were {_WORDS}; the last: {what}; "
                "lower --learning_rate, or mend the data"
            )
        raise ValueError(
            f"{what}; the state before it is saved: lower --learning_rate, mend the "
            "records, or leave such updates out by --non_finite=skip"
        )
