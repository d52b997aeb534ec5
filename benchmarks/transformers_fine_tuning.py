r"""The fine-tuning of two tasks with PyTorch and transformers, beside ours.

    python -m benchmarks.fine_tuning --data_dir=DATA --init_checkpoint=MINILM \
        --output_dir=fine_tuning --tasks=sst-2,wikigold
    python -m benchmarks.transformers_fine_tuning --init_checkpoint=MINILM \
        --prepared_dir=fine_tuning/prepared --output_file=transformers.jsonl

The second command needs torch and transformers, and nothing of ours but the reader of
CoNLL files and the scorer; it may run in an environment of its own. Both train the same
weights on the same rows, which are those that the first command prepared, for the same
number of updates with the same batch size, rate, warm-up, decay, clipping and padding.
The peer's own are torch's AdamW, which corrects Adam's moments for their start at 0 as
the original BERT does not; the numbers that the seeds draw; and that the one sentence
of WikiGold beyond 128 pieces is cut off, where ours has another window for the rest.

Every seed is a process, as every one of ours is, and becomes a line of --output_file;
those that are there with the same settings are not run again. Then a table like the
first command's is shown.
"""

import argparse
import dataclasses
import itertools
import json
import multiprocessing
import os
import pathlib
import random
import time
from collections.abc import Callable, Iterator

import torch
import tqdm
import transformers

from benchmarks import tables
from data import conll
from metrics import ner

Example = dict[str, list[int]]  # input_ids, labels and the words that have labels
MAX_SEQ_LENGTH = 128
WARMUP_PROPORTION = 0.1
WEIGHT_DECAY = 0.01
NO_LABEL = -100  # what torch's cross entropy leaves out


@dataclasses.dataclass(frozen=True)
class Task:
    """What is trained; the settings are those of benchmarks/fine_tuning.py.

    Attributes:
        read: function of the folder of prepared data and "train" or "dev", giving
            (texts or lists of words, labels or lists of tags).
        is_tagging: bool, each word has a label, rather than each text.
        metric: str, name of the score.
    """

    read: Callable
    is_tagging: bool
    train_batch_size: int
    learning_rate: float
    num_train_epochs: int
    metric: str


def read_sst(folder: pathlib.Path, split: str) -> tuple[list[str], list[str]]:
    """Sentences and their labels."""
    lines = (folder / f"SST-2/{split}.tsv").read_text("utf-8").split("\n")[1:-1]
    texts, labels = zip(*(line.split("\t") for line in lines), strict=True)
    return list(texts), list(labels)


def read_wikigold(folder: pathlib.Path, split: str) -> tuple[list, list]:
    """Words of sentences and their tags in BIO."""
    sentences = conll.read(folder / f"wikigold.{split}.txt").sentences
    return [list(s.words) for s in sentences], [list(s.tags) for s in sentences]


TASKS = {
    "sst-2": Task(read_sst, False, 32, 5e-5, 2, "accuracy"),
    "wikigold": Task(read_wikigold, True, 16, 1e-4, 4, "F1"),
}


def to_examples(tokenizer, task: Task, texts: list, labels: list, names: list[str]):
    """Ids and label ids; the label of a word is that of its first piece.

    What is longer than MAX_SEQ_LENGTH is cut off.
    """
    encoded = tokenizer(
        texts,
        truncation=True,
        max_length=MAX_SEQ_LENGTH,
        is_split_into_words=task.is_tagging,
    )
    examples = []
    for number, gold in enumerate(labels):
        ids = encoded["input_ids"][number]
        if not task.is_tagging:
            examples.append({"input_ids": ids, "labels": [names.index(gold)]})
            continue
        label_ids, labelled = [NO_LABEL] * len(ids), []
        for place, word in enumerate(encoded.word_ids(number)):
            if word is not None and word not in labelled:
                labelled.append(word)
                label_ids[place] = names.index(gold[word])
        examples.append({"input_ids": ids, "labels": label_ids, "words": labelled})
    return examples


def collate(examples: list[Example]) -> dict[str, torch.Tensor]:
    """A batch padded to its longest example, in steps of 8 as ours."""
    longest = max(len(example["input_ids"]) for example in examples)
    longest = -(-longest // 8) * 8

    def pad(values: list[int], filling: int) -> list[int]:
        return values + [filling] * (longest - len(values))

    tagging = len(examples[0]["labels"]) > 1
    rows = [example["labels"] for example in examples]
    labels = [pad(row, NO_LABEL) for row in rows] if tagging else [r[0] for r in rows]
    ids = [example["input_ids"] for example in examples]
    return {
        "input_ids": torch.tensor([pad(row, 0) for row in ids]),
        "attention_mask": torch.tensor([pad([1] * len(row), 0) for row in ids]),
        "labels": torch.tensor(labels),
    }


def training_batches(examples: list[Example], size: int, seed: int) -> Iterator:
    """Endless batches of permutations, which run on from one epoch to the next."""
    rng = random.Random(seed)
    rows = itertools.chain.from_iterable(
        rng.sample(examples, len(examples)) for _ in itertools.count()
    )
    while True:
        yield collate(list(itertools.islice(rows, size)))


def make_optimizer(model, learning_rate: float) -> torch.optim.Optimizer:
    """AdamW without decay of biases and layer normalization."""
    groups = {True: [], False: []}
    for name, parameter in model.named_parameters():
        groups["LayerNorm" not in name and not name.endswith("bias")].append(parameter)
    return torch.optim.AdamW(
        [
            {"params": groups[True], "weight_decay": WEIGHT_DECAY},
            {"params": groups[False], "weight_decay": 0.0},
        ],
        lr=learning_rate,
        eps=1e-6,
    )


def train(model, task: Task, examples: list[Example], seed: int, steps: int) -> None:
    """Does so many updates; the schedule ends with the last."""
    optimizer = make_optimizer(model, task.learning_rate)
    schedule = transformers.get_linear_schedule_with_warmup(
        optimizer, int(steps * WARMUP_PROPORTION), steps
    )
    batches = training_batches(examples, task.train_batch_size, seed)
    model.train()
    for batch in tqdm.tqdm(itertools.islice(batches, steps), "training", steps):
        model(**batch).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()


@torch.no_grad()
def evaluate(model, task: Task, examples: list[Example], labels: list, names) -> float:
    """Accuracy of texts, or F1 of entities by our scorer, as a share of 1."""
    model.eval()
    predicted = []
    for first in range(0, len(examples), 32):
        rows = examples[first : first + 32]
        batch = collate(rows)
        is_labelled = batch.pop("labels") != NO_LABEL
        best = model(**batch).logits.argmax(-1)
        if not task.is_tagging:
            predicted += [names[i] for i in best.tolist()]
            continue
        for number, example in enumerate(rows):
            # Words that were cut off, and words without pieces, have no other tag.
            tags = ["O"] * len(labels[first + number])
            found = best[number][is_labelled[number]].tolist()
            for word, i in zip(example["words"], found, strict=True):
                tags[word] = names[i]
            predicted.append(tags)
    if task.is_tagging:
        return ner.scores(labels, predicted)["f1"]
    return sum(a == b for a, b in zip(predicted, labels, strict=True)) / len(labels)


def run(name: str, seed: int, arguments: argparse.Namespace, results) -> None:
    """Trains and scores a task with a seed; puts (score, updates) into a queue."""
    task, folder = TASKS[name], pathlib.Path(arguments.prepared_dir)
    transformers.set_seed(seed)
    (texts, labels), (dev_texts, dev_labels) = (
        task.read(folder, split) for split in ("train", "dev")
    )
    names = sorted(set(itertools.chain(*labels) if task.is_tagging else labels))
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.init_checkpoint)
    kind = (
        transformers.AutoModelForTokenClassification
        if task.is_tagging
        else transformers.AutoModelForSequenceClassification
    )
    model = kind.from_pretrained(arguments.init_checkpoint, num_labels=len(names))
    examples = to_examples(tokenizer, task, texts, labels, names)
    steps = int(len(examples) / task.train_batch_size * task.num_train_epochs)
    steps = min(steps, arguments.max_steps or steps)
    train(model, task, examples, seed, steps)
    dev_examples = to_examples(tokenizer, task, dev_texts, dev_labels, names)
    results.put((evaluate(model, task, dev_examples, dev_labels, names), steps))


def settings_of(name: str, seed: int, arguments: argparse.Namespace) -> dict:
    """What runs are told apart by."""
    names = ("train_batch_size", "learning_rate", "num_train_epochs")
    return {
        "task": name,
        "seed": seed,
        "init_checkpoint": arguments.init_checkpoint,
        "max_steps": arguments.max_steps,
        **{key: getattr(TASKS[name], key) for key in names},
    }


def measure(name: str, seed: int, arguments: argparse.Namespace) -> dict:
    """What a run in a process of its own gives and takes."""
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    before, start = tables.cpu_seconds(), time.time()
    process = context.Process(target=run, args=(name, seed, arguments, results))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{name} with seed {seed} ended with {process.exitcode}")
    score, steps = results.get()
    return {
        **settings_of(name, seed, arguments),
        "metric": TASKS[name].metric,
        "score": score,
        "updates": steps,
        "wall_seconds": time.time() - start,
        "cpu_seconds": tables.cpu_seconds() - before,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def write_lines(path: pathlib.Path, rows: list[dict]) -> None:
    """All lines, whole or not at all."""
    unfinished = path.with_name(path.name + ".tmp")
    unfinished.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    os.replace(unfinished, path)


def table(names: list[str], seeds: list[int], rows: list[dict], arguments) -> str:
    """Of the runs with these settings."""
    shown = []
    for name in names:
        done = [tables.find(rows, settings_of(name, seed, arguments)) for seed in seeds]
        scores = {TASKS[name].metric: [100 * row["score"] for row in done]}
        minutes = [row["cpu_seconds"] / 60 for row in done]
        shown.append({"what": name, "scores": scores, "cpu_minutes": minutes})
    return tables.markdown(shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--prepared_dir", required=True, help="`prepared`, of benchmarks.fine_tuning."
    )
    parser.add_argument("--init_checkpoint", required=True, help="Folder of a BERT.")
    parser.add_argument("--output_file", required=True, help="JSON lines.")
    parser.add_argument("--tasks", default=",".join(TASKS), help="Commas between.")
    parser.add_argument("--seeds", default="1,2,3", help="Commas between.")
    parser.add_argument(
        "--max_steps", type=int, default=0, help="To try it out: end after so many."
    )
    arguments = parser.parse_args()
    path = pathlib.Path(arguments.output_file)
    names = arguments.tasks.split(",")
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    lines = path.read_text("utf-8").split("\n")[:-1] if path.exists() else []
    rows = [json.loads(line) for line in lines]
    for name, seed in itertools.product(names, seeds):
        if not tables.find(rows, settings_of(name, seed, arguments)):
            rows.append(measure(name, seed, arguments))
            write_lines(path, rows)
            print(json.dumps(rows[-1]), flush=True)
    print(table(names, seeds, rows, arguments))


if __name__ == "__main__":
    main()
