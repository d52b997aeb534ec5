"""Pre-training records the plain way: token by token, and all in memory.

The algorithm of the original, as its description has it, for comparisons of speed and
of statistics (`tests/data/pretraining_statistics_test.py`).
"""

import collections
import random
from collections.abc import Callable, Iterable

import tensorflow as tf

Sentence = list[str]
Document = list[Sentence]

# What an instance is: tokens, segment ids, positions and labels of predictions, and
# whether the second sentence is random.
Instance = collections.namedtuple(
    "Instance", "tokens segment_ids positions labels is_random_next"
)


def read(
    lines: Iterable[str], tokenize: Callable[[str], Sentence], rng: random.Random
) -> list[Document]:
    """Documents in random order; an empty line ends one."""
    documents = [[]]
    for line in lines:
        if not line.strip():
            documents.append([])
        elif tokens := tokenize(line):
            documents[-1].append(tokens)
    documents = [document for document in documents if document]
    rng.shuffle(documents)
    return documents


def one_pass(
    documents: list[Document],
    words: list[str],
    max_seq_length: int,
    max_predictions_per_seq: int,
    rng: random.Random,
    whole_words: bool = False,
) -> list[Instance]:
    """The instances of one pass, with the original's probabilities."""
    instances = []
    for number in range(len(documents)):
        for a, b, is_random in pairs(documents, number, max_seq_length - 3, rng):
            tokens = ["[CLS]", *a, "[SEP]", *b, "[SEP]"]
            segment_ids = [0] * (len(a) + 2) + [1] * (len(b) + 1)
            positions, labels = mask(
                tokens, words, max_predictions_per_seq, rng, whole_words
            )
            instances.append(
                Instance(tokens, segment_ids, positions, labels, is_random)
            )
    return instances


def pairs(
    documents: list[Document], number: int, max_tokens: int, rng: random.Random
) -> Iterable[tuple[Sentence, Sentence, bool]]:
    """Yields spans A and B of a document and whether B is random."""
    document = documents[number]
    target = max_tokens
    if rng.random() < 0.1:
        target = rng.randint(2, max_tokens)
    chunk, length, i = [], 0, 0
    while i < len(document):
        chunk.append(document[i])
        length += len(document[i])
        if i == len(document) - 1 or length >= target:
            a_end = rng.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
            a = [token for sentence in chunk[:a_end] for token in sentence]
            b = []
            is_random = len(chunk) == 1 or rng.random() < 0.5
            if is_random:
                for _ in range(10):
                    other = rng.randint(0, len(documents) - 1)
                    if other != number:
                        break
                start = rng.randint(0, len(documents[other]) - 1)
                for sentence in documents[other][start:]:
                    b.extend(sentence)
                    if len(b) >= target - len(a):
                        break
                i -= len(chunk) - a_end
            else:
                b = [token for sentence in chunk[a_end:] for token in sentence]
            while len(a) + len(b) > max_tokens:
                longer = a if len(a) > len(b) else b
                if rng.random() < 0.5:
                    del longer[0]
                else:
                    longer.pop()
            yield a, b, is_random
            chunk, length = [], 0
        i += 1


def mask(
    tokens: Sentence,
    words: list[str],
    max_predictions: int,
    rng: random.Random,
    whole_words: bool,
) -> tuple[list[int], list[str]]:
    """Masks tokens in place; positions in order, and what stood there."""
    groups = []
    for i, token in enumerate(tokens):
        if token in ("[CLS]", "[SEP]"):
            continue
        if whole_words and groups and token.startswith("##"):
            groups[-1].append(i)
        else:
            groups.append([i])
    rng.shuffle(groups)
    budget = min(max_predictions, max(1, round(len(tokens) * 0.15)))
    chosen = []
    for group in groups:
        if len(chosen) >= budget:
            break
        if len(chosen) + len(group) <= budget:
            chosen += group
    positions = sorted(chosen)
    labels = [tokens[i] for i in positions]
    for i in positions:
        if rng.random() < 0.8:
            tokens[i] = "[MASK]"
        elif rng.random() < 0.5:
            pass
        else:
            tokens[i] = words[rng.randint(0, len(words) - 1)]
    return positions, labels


def write(
    instances: list[Instance],
    vocab: dict[str, int],
    max_seq_length: int,
    max_predictions_per_seq: int,
    path: str,
) -> None:
    """Writes a TFRecord file."""
    with tf.io.TFRecordWriter(path) as writer:
        for instance in instances:
            num_tokens, count = len(instance.tokens), len(instance.positions)
            padding = [0] * (max_seq_length - num_tokens)
            empty = [0] * (max_predictions_per_seq - count)
            ids = [vocab[token] for token in instance.tokens]
            label_ids = [vocab[token] for token in instance.labels]
            feature = {
                "input_ids": integers(ids + padding),
                "input_mask": integers([1] * num_tokens + padding),
                "segment_ids": integers(instance.segment_ids + padding),
                "masked_lm_positions": integers(instance.positions + empty),
                "masked_lm_ids": integers(label_ids + empty),
                "masked_lm_weights": floats([1.0] * count + [0.0] * len(empty)),
                "next_sentence_labels": integers([int(instance.is_random_next)]),
            }
            features = tf.train.Features(feature=feature)
            example = tf.train.Example(features=features)
            writer.write(example.SerializeToString())


def integers(values: list[int]) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def floats(values: list[float]) -> tf.train.Feature:
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))
