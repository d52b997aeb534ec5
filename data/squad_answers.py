"""From the scores of tokens to answers in the words of the text.

Devlin et al. 2018, sections 4.2 and 4.3. The best span over all windows of a question
is its answer. In SQuAD 2.0 no answer is a span too, the one that starts and ends at
[CLS], and its score decides whether an answer is given.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from data import squad, squad_text, squad_windows, tokenization

# "null score - score of the best span" where there is no span: more than logits reach,
# but finite, as JSON has no infinity.
NO_SPAN_ODDS = 1e9

NO_CANDIDATE = "empty"  # what the original has for an answer if there is none, in 1.1

_NO_TOKEN = -1  # stands for the tokens of no answer

# Start and end logits of one window, each [seq_length].
Logits = tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True)
class AnswerOptions:
    """How to choose answers.

    Attributes:
        n_best_size: how many starts, ends and spans to consider.
        max_answer_length: in tokens.
        version_2_with_negative: a question may have no answer, as in SQuAD 2.0.
        null_score_diff_threshold: no answer is given where the score of none is higher
            than that of the best span by more than this.
        verbose_logging: log where the words of an answer could not be found.
        drop_padding: padding is not considered. In the original it is, and takes up
            some of the n_best_size places, as the question does.
    """

    n_best_size: int = 20
    max_answer_length: int = 30
    version_2_with_negative: bool = False
    null_score_diff_threshold: float = 0.0
    verbose_logging: bool = False
    drop_padding: bool = False


@dataclasses.dataclass(frozen=True)
class Candidate:
    """One of the best answers to a question.

    Attributes:
        text: as the original gives it: words with single spaces; "" for no answer.
        start_logit, end_logit: of the first and the last token.
        probability: among the candidates of the question.
        span: the characters of the context that the tokens are, the first and the one
            after the last; None for no answer.
    """

    text: str
    start_logit: float
    end_logit: float
    probability: float = 1.0
    span: tuple[int, int] | None = None

    @property
    def score(self) -> float:
        """The larger, the better."""
        return self.start_logit + self.end_logit

    def exact_text(self, context: str) -> str:
        """The characters of the context, just as they stand there."""
        return context[slice(*self.span)] if self.span else ""


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer to a question.

    Attributes:
        example: the question.
        candidates: the best answers, best first; at least one.
        chosen: the one that is given.
        null_score: score of no answer, the lowest of all windows; None without tokens.
        null_odds: null_score - score of the best candidate that is an answer.
    """

    example: squad.SquadExample
    candidates: list[Candidate]
    chosen: Candidate
    null_score: float | None
    null_odds: float

    @property
    def text(self) -> str:
        """The answer that is given."""
        return self.chosen.text

    @property
    def best_text(self) -> str:
        """The best answer, whether it is given or not; "" if there is none."""
        best = _best(self.candidates)
        return best.text if best else ""

    def to_dict(self) -> dict[str, Any]:
        """What is known about the answer, as plain values.

        Here `text` is exactly what stands in the context from character `start` to
        before character `end`.
        """
        context = self.example.paragraph.text

        def plain(candidate: Candidate) -> dict[str, Any]:
            start, end = candidate.span or (None, None)
            return {
                "text": candidate.exact_text(context),
                "start": start,
                "end": end,
                "score": candidate.score,
                "probability": candidate.probability,
            }

        return {
            **plain(self.chosen),
            "null_score": self.null_score,
            "candidates": [plain(candidate) for candidate in self.candidates],
        }


def find_answers(
    examples: Iterable[squad.SquadExample],
    windows: Iterable[squad_windows.Window],
    logits: Iterable[Logits],
    tokenizer: tokenization.FullTokenizer,
    options: AnswerOptions,
) -> Iterator[Answer]:
    """Yields the answer to every question, in order.

    Args:
        examples: the questions.
        windows: all of their windows, in order.
        logits: of each window, of all of max_seq_length or, with `drop_padding`, of any
            length that holds its sequence.
        tokenizer: that made the windows.
        options: how to choose.
    Raises:
        ValueError: the windows are more than the logits, or fewer.
    """
    groups = itertools.groupby(
        zip(windows, logits, strict=True), key=lambda pair: pair[0].example_index
    )
    group = next(groups, None)
    for index, example in enumerate(examples):
        own = []
        if group and group[0] == index:
            own = list(group[1])
            group = next(groups, None)
        yield find_answer(example, own, tokenizer, options)


def find_answer(
    example: squad.SquadExample,
    scored_windows: Sequence[tuple[squad_windows.Window, Logits]],
    tokenizer: tokenization.FullTokenizer,
    options: AnswerOptions,
) -> Answer:
    """The answer to one question, from all its windows; see `find_answers`."""
    nulls = [
        Candidate("", float(starts[0]), float(ends[0]))
        for _, (starts, ends) in scored_windows
    ]
    null = min(nulls, key=lambda candidate: candidate.score, default=None)
    candidates = _n_best(example, scored_windows, null, tokenizer, options)
    best = _best(candidates)
    odds = NO_SPAN_ODDS
    if best:
        odds = null.score - best.start_logit - best.end_logit
    chosen = candidates[0]
    if options.version_2_with_negative:
        give_none = best is None or odds > options.null_score_diff_threshold
        chosen = next(c for c in candidates if not c.text) if give_none else best
    return Answer(example, candidates, chosen, null.score if null else None, odds)


def _best(candidates: Sequence[Candidate]) -> Candidate | None:
    """The first that is an answer."""
    return next((c for c in candidates if c.text and c.span), None)


def _n_best(
    example: squad.SquadExample,
    scored_windows: Sequence[tuple[squad_windows.Window, Logits]],
    null: Candidate | None,
    tokenizer: tokenization.FullTokenizer,
    options: AnswerOptions,
) -> list[Candidate]:
    """The best answers of different text, best first, with probabilities.

    In SQuAD 2.0 no answer is one of them, last if it is not among the best.
    """
    candidates = []
    if scored_windows:  # a text without tokens has none
        context = scored_windows[0][0].context
        texts = squad_text.Texts(
            example.paragraph, context, tokenizer, options.verbose_logging
        )
        spans = np.concatenate([_spans(*scored, options) for scored in scored_windows])
        if options.version_2_with_negative:
            row = [_NO_TOKEN, _NO_TOKEN, null.start_logit, null.end_logit]
            spans = np.concatenate([spans, [row]])
        order = np.argsort(-(spans[:, 2] + spans[:, 3]), kind="stable")
        candidates = _distinct(spans[order], texts, options.n_best_size)
    if options.version_2_with_negative and all(c.text for c in candidates):
        candidates.append(null or Candidate("", 0.0, 0.0))
    if not candidates:
        candidates.append(Candidate(NO_CANDIDATE, 0.0, 0.0))
    return _with_probabilities(candidates)


def _spans(
    window: squad_windows.Window, logits: Logits, options: AnswerOptions
) -> np.ndarray:
    """The spans of a window that its best starts and ends make.

    Returns:
        float64, [spans, 4]: first and last token of the context, their logits.
    """
    length = len(window.input_ids) if options.drop_padding else None
    starts, ends = (np.asarray(values, np.float64)[:length] for values in logits)
    # Positions of [CLS], question and padding take their places among the best before
    # they are discarded, as in the original.
    first = np.argsort(-starts, kind="stable")[: options.n_best_size]
    last = np.argsort(-ends, kind="stable")[: options.n_best_size]
    first, last = (grid.ravel() for grid in np.meshgrid(first, last, indexing="ij"))
    num_tokens = window.end - window.start
    first_token, last_token = first - window.doc_offset, last - window.doc_offset
    valid = (
        (first_token >= 0)
        & (last_token < num_tokens)
        & (last_token >= first_token)
        & (last_token - first_token < options.max_answer_length)
    )
    first, last, first_token, last_token = (
        values[valid] for values in (first, last, first_token, last_token)
    )
    spans = np.stack(
        [
            first_token + window.start,
            last_token + window.start,
            starts[first],
            ends[last],
        ],
        axis=1,
    )
    return spans[window.is_max_context[first_token]]


def _distinct(
    ranked: np.ndarray, texts: squad_text.Texts, n_best_size: int
) -> list[Candidate]:
    """The first `n_best_size` candidates whose text did not come before."""
    candidates, seen = [], set()
    for row in ranked.tolist():
        if len(candidates) >= n_best_size:
            break
        first, last, *logits = int(row[0]), int(row[1]), row[2], row[3]
        text = "" if first == _NO_TOKEN else texts.final_text(first, last)
        if text in seen:
            continue
        seen.add(text)
        span = None if first == _NO_TOKEN else texts.characters(first, last)
        candidates.append(Candidate(text, *logits, span=span))
    return candidates


def _with_probabilities(candidates: list[Candidate]) -> list[Candidate]:
    """Softmax of the scores."""
    best = max(candidate.score for candidate in candidates)
    exponentials = [math.exp(candidate.score - best) for candidate in candidates]
    total = sum(exponentials)
    return [
        dataclasses.replace(candidate, probability=value / total)
        for candidate, value in zip(candidates, exponentials, strict=True)
    ]
