"""The tables and figures of the paper, with its numbers, and what stands beside them.

Numbers of Devlin et al. 2018 (arXiv 1810.04805), version 2 unless version 1 is named.
A claim is a direction that the paper reports: of two variants, the first is better.
"""

import dataclasses
from collections.abc import Sequence

LANGUAGE = (
    "On the made-up language (experiments/grammar.py), where the type of an entity "
    "hangs on the verb to its right by construction: that left to right tags worse was "
    "put there, by how much was not."
)
NOVELS = (
    "On novels and published tasks, at one small size (2 layers of 128, 3,000 "
    "updates): as it comes. So few updates teach a masked model little, since 15 % of "
    "the tokens are predicted and not all: the left-to-right one is ahead (the paper's "
    "masked model converges slower too, C.1, but is soon ahead), and MRPC is no better "
    "than its majority, 68.4."
)


@dataclasses.dataclass(frozen=True)
class Claim:
    """That one variant is better than another on a task.

    Attributes:
        better, worse: variants; of perplexity, less is better.
        task, score: where.
    """

    better: str
    worse: str
    task: str
    score: str


@dataclasses.dataclass(frozen=True)
class Measured:
    """An experiment of ours beside a table of the paper.

    Attributes:
        experiment: its name in the records.
        about: a sentence.
        columns: heading → (task, score) in the records.
        claims: directions of the paper that it may show.
    """

    experiment: str
    about: str
    columns: dict[str, tuple[str, str]]
    claims: Sequence[Claim] = ()


@dataclasses.dataclass(frozen=True)
class Exhibit:
    """A table of the paper.

    Attributes:
        title: with its number.
        header: of the published table, the name of the variant first.
        published: its rows.
        measured: ours.
    """

    title: str
    header: Sequence[str]
    published: Sequence[Sequence[str]]
    measured: Sequence[Measured] = ()


def _tasks(*pairs: tuple[str, str]) -> dict[str, tuple[str, str]]:
    return {f"{task}, {score}": (task, score) for task, score in pairs}


LANGUAGE_TASKS = _tasks(
    ("tagging", "F1"), ("pairs", "accuracy"), ("topics", "accuracy")
)
TABLE_5 = Exhibit(
    "Table 5: pre-training tasks",
    ("tasks (BERT-Base, dev)", "MNLI-m", "QNLI", "MRPC", "SST-2", "SQuAD F1"),
    (
        ("MLM + NSP", "84.4", "88.4", "86.7", "92.7", "88.5"),
        ("No NSP", "83.9", "84.9", "86.5", "92.6", "87.9"),
        ("LTR & No NSP", "82.1", "84.3", "77.5", "92.1", "77.8"),
        ("LTR & No NSP + BiLSTM", "82.1", "84.1", "75.7", "91.6", "84.9"),
    ),
    (
        Measured(
            "table 5, language",
            LANGUAGE,
            {**LANGUAGE_TASKS, **_tasks(("held-out text", "perplexity"))},
            (
                Claim("MLM + NSP", "LTR", "tagging", "F1"),
                Claim("LTR + BiLSTM", "LTR", "tagging", "F1"),
                Claim("MLM + NSP", "LTR + BiLSTM", "tagging", "F1"),
                Claim("MLM + NSP", "No NSP", "pairs", "accuracy"),
                Claim("MLM + NSP", "LTR", "topics", "accuracy"),
            ),
        ),
        Measured(
            "table 5, novels",
            NOVELS,
            _tasks(
                ("MRPC", "accuracy"),
                ("SST-2", "accuracy"),
                ("WikiGold", "F1"),
                ("held-out text", "perplexity"),
            ),
            (
                Claim("MLM + NSP", "No NSP", "MRPC", "accuracy"),
                Claim("MLM + NSP", "LTR", "MRPC", "accuracy"),
                Claim("MLM + NSP", "LTR", "SST-2", "accuracy"),
                Claim("MLM + NSP", "LTR", "WikiGold", "F1"),
                Claim("LTR + BiLSTM", "LTR", "WikiGold", "F1"),
            ),
        ),
    ),
)
TABLE_6 = Exhibit(
    "Table 6: model size",
    ("layers, hidden size, heads", "perplexity", "MNLI-m", "MRPC", "SST-2"),
    (
        ("3, 768, 12", "5.84", "77.9", "79.8", "88.4"),
        ("6, 768, 3", "5.24", "80.6", "82.2", "90.7"),
        ("6, 768, 12", "4.68", "81.9", "84.8", "91.3"),
        ("12, 768, 12", "3.99", "84.4", "86.7", "92.9"),
        ("12, 1024, 16", "3.54", "85.7", "86.9", "93.3"),
        ("24, 1024, 16", "3.23", "86.6", "87.8", "93.7"),
    ),
    (
        Measured(
            "table 6",
            LANGUAGE,
            {**_tasks(("held-out text", "perplexity")), **LANGUAGE_TASKS},
            (
                Claim("L2 H64", "L1 H64", "held-out text", "perplexity"),
                Claim("L4 H64", "L2 H64", "held-out text", "perplexity"),
                Claim("L2 H64", "L1 H64", "tagging", "F1"),
                Claim("L4 H64", "L2 H64", "tagging", "F1"),
            ),
        ),
    ),
)
_CHOICES = ("last", "embeddings"), ("concat_last4", "last"), ("sum_last4", "last")


def _feature_claims(task: str) -> tuple[Claim, ...]:
    pairs = (*_CHOICES, ("fine-tuning", "concat_last4"))
    return tuple(Claim(better, worse, task, "F1") for better, worse in pairs)


TABLE_7 = Exhibit(
    "Table 7: features or fine-tuning",
    ("system (CoNLL-2003, entity F1)", "dev", "test"),
    (
        ("ELMo", "95.7", "92.2"),
        ("CVT", "–", "92.6"),
        ("CSE", "–", "93.1"),
        ("fine-tuning, BERT-Large", "96.6", "92.8"),
        ("fine-tuning, BERT-Base", "96.4", "92.4"),
        ("embeddings", "91.0", "–"),
        ("second_to_last", "95.6", "–"),
        ("last", "94.9", "–"),
        ("sum_last4, weighted", "95.9", "–"),
        ("concat_last4", "96.1", "–"),
        ("sum_all, weighted", "95.5", "–"),
    ),
    (
        Measured(
            "table 7",
            "MiniLM (6 layers of 384, trained for the similarity of sentences) on "
            "WNUT-17, the best of the checkpoints on the dev set that is scored, for "
            "all.",
            _tasks(("WNUT-17", "F1")),
            _feature_claims("WNUT-17"),
        ),
        Measured(
            "table 7, language",
            "The model of 4 layers of 64 on the made-up language.",
            _tasks(("tagging", "F1")),
            _feature_claims("tagging"),
        ),
    ),
)
TABLE_8 = Exhibit(
    "Table 8: the mix of masking",
    ("[MASK]/same/random", "MNLI", "NER, fine-tuned", "NER, features"),
    (
        ("80/10/10", "84.2", "95.4", "94.9"),
        ("100/0/0", "84.3", "94.9", "94.0"),
        ("80/0/20", "84.1", "95.2", "94.6"),
        ("80/20/0", "84.4", "95.2", "94.7"),
        ("0/20/80", "83.7", "94.8", "94.6"),
        ("0/0/100", "83.6", "94.9", "94.6"),
    ),
    (
        Measured(
            "table 8",
            LANGUAGE,
            _tasks(("topics", "accuracy"), ("tagging", "F1")),
            (
                Claim("80/10/10", "0/0/100", "topics", "accuracy"),
                Claim("80/10/10", "100/0/0", "tagging", "F1"),
                Claim("80/10/10", "0/0/100", "tagging", "F1"),
            ),
        ),
    ),
)
EXHIBITS = (TABLE_5, TABLE_6, TABLE_7, TABLE_8)
LESS_IS_BETTER = ("perplexity",)
