"""What the model learns and answers for each kind of label.

Scripts and predictors pick an entry of `HEADS` by the kind of a task's labels; nothing
else depends on it.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
from absl import logging

import inference
from data import batching, documents, features, padding, records, targets
from metrics import classification as metrics
from modeling import losses


@dataclasses.dataclass(frozen=True)
class Head:
    """What goes with a kind of label.

    Attributes:
        objective: losses.Objective of training.
        losses: function of (outputs, batch), giving the loss of each example.
        activate: function of logits, giving probabilities or numbers.
        decide: function of logits, giving what metrics.classification scores.
    """

    objective: losses.Objective
    losses: Callable
    activate: Callable
    decide: Callable


HEADS = {
    targets.Kind.CLASS: Head(
        losses.CLASSIFICATION,
        losses.classification_losses,
        losses.softmax,
        metrics.best_class,
    ),
    targets.Kind.MULTI_LABEL: Head(
        losses.MULTI_LABEL,
        losses.multi_label_losses,
        losses.sigmoid,
        metrics.likely_labels,
    ),
    targets.Kind.NUMBER: Head(
        losses.REGRESSION, losses.regression_losses, np.asarray, metrics.number
    ),
}


def num_outputs(labels):
    """int, outputs of the model: one a label; without labels, one number."""
    return len(labels) or 1


def suffix(split):
    """What tells the files of a further dev or test set apart: "" or "_mismatched"."""
    return split.removeprefix(split.split("_")[0]).removesuffix("_matched")


def to_arrays(examples, task, max_seq_length, tokenizer, document_stride=0):
    """Featurizes examples, each as one row or as windows.

    Args:
        examples: list of classification.InputExample.
        task: such as glue.Task, with `labels` and `kind`.
        max_seq_length: int.
        tokenizer: tokenization.FullTokenizer.
        document_stride: int, tokens from window to window; 0: no windows, texts are
            cut.
    Returns:
        (dict of arrays, records.Spec of them).
    """
    spec = {
        targets.Kind.CLASS: records.classifier_spec(max_seq_length),
        targets.Kind.MULTI_LABEL: records.multi_label_spec(
            max_seq_length, len(task.labels)
        ),
        targets.Kind.NUMBER: records.regression_spec(max_seq_length),
    }[task.kind]
    if not document_stride:
        arrays = features.examples_to_arrays(
            examples, task.labels, max_seq_length, tokenizer, task.kind
        )
        return arrays, spec
    arrays = documents.documents_to_arrays(
        examples, task.labels, max_seq_length, tokenizer, document_stride, task.kind
    )
    return arrays, records.window_spec(spec)


def objective(task, class_weights, label_ids):
    """The loss to train with.

    Args:
        task: with `labels` and `kind`.
        class_weights: str or None: "balanced", or see `targets.read_weights`.
        label_ids: of the training set.
    Returns:
        losses.Objective.
    Raises:
        ValueError: classes cannot be weighted as asked.
    """
    if not class_weights:
        return HEADS[task.kind].objective
    if task.kind != targets.Kind.CLASS:
        raise ValueError(
            f"class weights are for labels that are one class, not for {task.kind}"
        )
    if class_weights == "balanced":
        weights = targets.balanced_weights(label_ids, len(task.labels))
    else:
        weights = targets.read_weights(class_weights, task.labels)
    logging.info("class weights: %s", dict(zip(task.labels, weights, strict=True)))
    return losses.weighted_classification(weights)


class Runner:
    """Runs a model over data sets, by the kind of label of a task.

    Args:
        strategy: tf.distribute strategy.
        model: models.BertForSequenceClassification.
        task: with `kind` and `metrics`.
        pad_to_max: bool, leave columns of padding in the batches.
    """

    def __init__(self, strategy, model, task, pad_to_max):
        self._task, self._head, self._pad_to_max = task, HEADS[task.kind], pad_to_max
        self._forward = inference.Forward(strategy, model, self._measure)

    def _measure(self, outputs, batch):
        kept = {
            "logits": outputs["logits"],
            "label_ids": batch["label_ids"],
            "losses": self._head.losses(outputs, batch),
        }
        if "document_ids" in batch:
            kept["document_ids"] = batch["document_ids"]
        return kept

    def _rows(self, arrays, batch_size, description):
        transform = padding.trimming(self._pad_to_max)
        batches = batching.in_memory_evaluation_batches(arrays, batch_size, transform)
        rows = list(self._forward.rows(batches, description))
        return [self._join_windows(rows)] if "document_ids" in arrays else rows

    def _join_windows(self, rows):
        """One row a document: the logits of its windows become their mean."""
        names = ("logits", "label_ids", "document_ids")
        logits, label_ids, ids = (np.concatenate([r[n] for r in rows]) for n in names)
        logits = documents.mean_of_windows(logits, ids)
        label_ids = label_ids[np.unique(ids, return_index=True)[1]]
        of_documents = self._head.losses({"logits": logits}, {"label_ids": label_ids})
        return {
            "logits": logits,
            "label_ids": label_ids,
            "losses": of_documents.numpy(),
        }

    def evaluate(self, arrays, batch_size):
        """Scores of a labelled data set.

        Returns:
            (dict of name → number, logits float32 [examples, outputs]).
        """
        rows = self._rows(arrays, batch_size, "evaluating")
        names = list(self._task.metrics)
        if self._task.kind != targets.Kind.NUMBER:
            names.append("accuracy")  # as in the original, whatever the metric is
        return metrics.scores(rows, names, self._head.decide), _logits(rows)

    def predict(self, arrays, batch_size):
        """Logits, float32 [examples, outputs]."""
        return _logits(self._rows(arrays, batch_size, "predicting"))


def _logits(rows):
    return np.concatenate([row["logits"] for row in rows])


def answers(logits, labels, kind):
    """What the model says of each example, in words.

    Args:
        logits: float32, [examples, outputs].
        labels: sequence of str.
        kind: targets.Kind.
    Returns:
        list of dict. CLASS: label, score (its probability) and probabilities, a dict by
        label. MULTI_LABEL: label and score, lists of those of probability 0.5 or more,
        and probabilities. NUMBER: value.
    """
    head = HEADS[kind]
    if kind == targets.Kind.NUMBER:
        return [{"value": float(value)} for value in head.decide(logits)]
    found = []
    probabilities = np.asarray(head.activate(logits)).tolist()
    for decided, row in zip(head.decide(logits).tolist(), probabilities, strict=True):
        if kind == targets.Kind.CLASS:
            label, score = labels[decided], row[decided]
        else:
            chosen = [i for i, yes in enumerate(decided) if yes]
            label, score = [labels[i] for i in chosen], [row[i] for i in chosen]
        by_label = dict(zip(labels, row, strict=True))
        found.append({"label": label, "score": score, "probabilities": by_label})
    return found


def table(examples, logits, task, separator=",", with_gold=False):
    """Rows of predictions.tsv, the header first.

    Args:
        examples: list of classification.InputExample.
        logits: float32, [examples, outputs].
        task: with `labels` and `kind`.
        separator: str, between several labels, and their scores, of an example.
        with_gold: bool, also a column with the labels of the examples.
    """

    def cell(value):
        if isinstance(value, list | tuple):
            return separator.join(map(cell, value))
        return str(np.float32(value)) if isinstance(value, float) else value

    names = ["value"] if task.kind == targets.Kind.NUMBER else ["label", "score"]
    rows = [["id", *(["gold"] if with_gold else []), *names]]
    found = answers(logits, task.labels, task.kind)
    for example, answer in zip(examples, found, strict=True):
        gold = [example.label] if with_gold else []
        cells = [*gold, *(answer[name] for name in names)]
        rows.append([example.guid, *map(cell, cells)])
    return rows
