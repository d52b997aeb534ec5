r"""Asks a pre-trained model about lines of text: masked words, perplexity, pairs.

    python score_text.py --task=fill_mask --input_file=lines.txt --top_k=3 \
        --output_file=words.jsonl --init_checkpoint=bert_folder

Every line is TEXT or TEXT_A ||| TEXT_B and gives one line of JSON with its number:

fill_mask: for each [MASK] of the text, the likeliest words and their probabilities.
perplexity: the tokens, the log-probability of each while it alone is masked, and their
    sum with its perplexity (pseudo_log_likelihood and pseudo_perplexity, Salazar et al.
    2020); those of all lines are shown in the end. A left-to-right model predicts each
    token from those before it (log_likelihood and perplexity).
next_sentence: the probability that TEXT_B follows TEXT_A.

--init_checkpoint is what was pre-trained: a Hugging Face folder, a TF1 checkpoint, or
the output folder of run_pretraining.py (with --vocab_file). A line that is too long or
cannot be asked about is refused before anything is computed. Memory does not grow with
the number of lines.
"""

import collections
import itertools
import math

import common_flags

from absl import flags, logging
from tqdm import tqdm

import command_line
import language_model
from data import extraction, scoring

FLAGS = flags.FLAGS

READERS = {
    "fill_mask": scoring.of_masks,
    "perplexity": scoring.of_tokens,
    "next_sentence": scoring.of_pair,
}
WINDOW = 256  # lines read, sorted by length and answered before the next


def define_flags():
    flags.DEFINE_enum("task", None, list(READERS), "What to ask.", required=True)
    flags.DEFINE_string(
        "input_file", None, "Text in UTF-8, one example a line.", required=True
    )
    flags.DEFINE_string("output_file", None, "JSON lines to write.", required=True)
    common_flags.define_model()
    flags.mark_flag_as_required("init_checkpoint")
    common_flags.define_text()
    flags.DEFINE_integer(
        "max_seq_length",
        None,
        "Tokens a line, at most; default: the positions of the model.",
        3,
    )
    flags.DEFINE_integer("batch_size", 32, "Sequences a batch.", 1)
    flags.DEFINE_integer("top_k", 5, "Of fill_mask: so many words for each [MASK].", 1)
    flags.DEFINE_bool(
        "within_words",
        False,
        "Of perplexity: with a token mask the later pieces of its word as well, which "
        "would give it away (Kauf and Ivanova 2023).",
    )
    flags.DEFINE_bool("overwrite", False, "Replace --output_file if it exists.")


def check_flags():
    """Refuses flags that have no effect on the task."""
    for name, task in (("top_k", "fill_mask"), ("within_words", "perplexity")):
        if FLAGS[name].present and FLAGS.task != task:
            raise ValueError(
                f"--{name} is for --task={task}; leave it out of --task={FLAGS.task}"
            )


def main():
    check_flags()
    command_line.prepare_output(FLAGS.output_file, [FLAGS.input_file], FLAGS.overwrite)
    predictor = language_model.load(
        FLAGS.init_checkpoint,
        FLAGS.vocab_file,
        FLAGS.bert_config_file,
        FLAGS.do_lower_case,
        FLAGS.max_seq_length,
        FLAGS.batch_size,
    )
    ask = {"fill_mask": fill, "perplexity": score, "next_sentence": follow}[FLAGS.task]
    ask(predictor, [], [])  # what the model has no head for is refused now
    total = count_positions(predictor)
    sums = collections.Counter()
    with tqdm(total=total, desc=FLAGS.task, unit=" answers") as progress:
        predictor.on_answers = progress.update
        extraction.write_json_lines(FLAGS.output_file, answers(ask, predictor, sums))
    if FLAGS.task == "perplexity":
        kind = "" if predictor.is_left_to_right else "pseudo_"
        logging.info(
            "all lines: %d tokens, sum of log-probabilities %.4f, %sperplexity %.4f",
            total,
            sums["log_probabilities"],
            kind,
            language_model.perplexity(sums["log_probabilities"], total) or math.nan,
        )
    logging.info("wrote %s", FLAGS.output_file)


def fill(predictor, texts, pairs):
    """dicts of what stands in a line for --task=fill_mask; so on below."""
    found = predictor.fill_mask(texts, pairs, FLAGS.top_k)
    return [{"masks": masks} for masks in found]


def score(predictor, texts, pairs):
    return predictor.score(texts, pairs, FLAGS.within_words)


def follow(predictor, texts, pairs):
    return [{"probability": p} for p in predictor.next_sentence(texts, pairs)]


def count_positions(predictor):
    """How much is asked about all lines.

    Raises:
        ValueError: there is a line that cannot be asked about; names it.
    """
    read, total = READERS[FLAGS.task], 0
    examples = extraction.read_examples(FLAGS.input_file)
    for number, example in enumerate(tqdm(examples, "reading", unit=" lines"), 1):
        try:
            row = read(example, predictor.max_seq_length, predictor.tokenizer)
        except ValueError as error:
            raise ValueError(f"{FLAGS.input_file}, line {number}: {error}") from None
        total += len(row.masked_lm_positions)
    return total


def answers(ask, predictor, sums):
    """Yields the object that is written for each line.

    Args:
        ask: function of predictor, texts and pairs, giving dicts.
        predictor: language_model.Predictor.
        sums: collections.Counter, to which all log-probabilities are added.
    """
    examples = extraction.read_examples(FLAGS.input_file)
    numbers = itertools.count(1)
    while window := list(itertools.islice(examples, WINDOW)):
        texts, pairs = zip(*((e.text_a, e.text_b) for e in window), strict=True)
        for answer in ask(predictor, texts, pairs):
            sums["log_probabilities"] += sum(answer.get("log_probabilities", ()))
            yield {"line": next(numbers), **answer}


if __name__ == "__main__":
    common_flags.run(main, define_flags)
