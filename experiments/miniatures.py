"""The paper's experiments at the size of two cores: which runs there are.

Sizes are minutes of pre-training on a made-up language (grammar.py) and on novels. A
name in the code is the variant's name in the records and on the results page.
"""

import json
import pathlib
from collections.abc import Callable, Iterable

from experiments import commands, grammar, runs, ways

SEED_OF_THE_LANGUAGE = 1
STEPS = 2000  # of pre-training on the language
LTR = {"visibility": "left_to_right", "pooled_position": "last"}
# Layers and hidden size; 64 units in 2 heads, 128 in 2.
SIZES = {"L1 H64": (1, 64), "L2 H64": (2, 64), "L4 H64": (4, 64)}
FEATURES = (
    *("embeddings", "second_to_last", "last"),
    *("sum_last4", "concat_last4", "sum_all"),
)

GRAMMAR = commands.Corpus(
    name="grammar",
    text="{prepared}/grammar/corpus.txt",
    held_out="{prepared}/grammar/held_out.txt",
    vocab_file="{prepared}/grammar/vocab.txt",
    record_flags="--dupe_factor=5",
    training_flags=(
        "--train_batch_size=64 --eval_batch_size=64 --learning_rate=2e-3 "
        f"--num_train_steps={STEPS} --num_warmup_steps=200 "
        f"--save_checkpoints_steps={STEPS // 8}"
    ),
    lengths=(32, 5),
)
_SMALL_TASK = (
    "--do_train --do_eval --score_training_set --max_seq_length=32 "
    "--train_batch_size=16 --eval_batch_size=64 --learning_rate=2e-3 --layer_decay=0.2 "
    "--vocab_file={prepared}/grammar/vocab.txt"
)
TAGGING = commands.Task(
    "tagging",
    "run_ner.py --train_file={prepared}/grammar/tagging/train.txt "
    "--dev_file={prepared}/grammar/tagging/dev.txt "
    f"--num_train_epochs=40 {_SMALL_TASK}",
    {"F1": "eval_f1"},
)
PAIRS = commands.Task(
    "pairs",
    "run_classifier.py --task_name=own --data_dir={prepared}/grammar/pairs "
    f"--text_pair_column=text_pair --num_train_epochs=20 {_SMALL_TASK}",
    {"accuracy": "eval_accuracy"},
)
TOPICS = commands.Task(
    "topics",
    "run_classifier.py --task_name=own --data_dir={prepared}/grammar/topics "
    f"--num_train_epochs=10 {_SMALL_TASK}",
    {"accuracy": "eval_accuracy"},
)

NOVELS_VOCABULARY = runs.Step(
    "novels/vocabulary",
    (
        "build_vocab.py",
        "--input_file={prepared}/novels/text",
        "--vocab_size=8000",
        "--output_file={out}/vocab.txt",
        "--overwrite",  # of one that was killed behind it
    ),
)
NOVELS = commands.Corpus(
    name="novels",
    text="{prepared}/novels/text",
    held_out="{prepared}/novels/held_out",
    vocab_file="{runs}/novels/vocabulary/vocab.txt",
    record_flags="--split_sentences --dupe_factor=3",
    training_flags=(
        "--train_batch_size=32 --eval_batch_size=32 --learning_rate=1e-3 "
        "--num_train_steps=3000 --num_warmup_steps=300 --save_checkpoints_steps=100000"
    ),
    lengths=(64, 10),
    needs=(NOVELS_VOCABULARY,),
)
_REAL_TASK = (
    "--do_train --do_eval --score_training_set --max_seq_length=64 "
    "--eval_batch_size=32 --learning_rate=3e-4 --num_train_epochs=3 "
    "--vocab_file={runs}/novels/vocabulary/vocab.txt"
)
REAL_TASKS = (
    commands.Task(
        "MRPC",
        "run_classifier.py --task_name=mrpc --data_dir={data}/glue/MRPC " + _REAL_TASK,
        {"accuracy": "eval_accuracy"},
    ),
    commands.Task(
        "SST-2",
        "run_classifier.py --task_name=sst-2 --data_dir={prepared}/SST-2 " + _REAL_TASK,
        {"accuracy": "eval_accuracy"},
    ),
    commands.Task(
        "WikiGold",
        "run_ner.py --train_file={prepared}/wikigold.train.txt "
        "--dev_file={prepared}/wikigold.dev.txt --train_batch_size=16 " + _REAL_TASK,
        {"F1": "eval_f1"},
    ),
)


def write_configs(folder: pathlib.Path) -> None:
    """The configs of all sizes, each also left to right."""
    folder.mkdir(parents=True, exist_ok=True)
    # What was seen to learn the language in 2,000 updates, and the usual.
    grammar_rates, novels_rates = (0.0, 0.05), (0.1, 0.02)
    for corpus, vocab_size, (dropout, spread), (layers, size) in (
        *(
            ("grammar", len(grammar.vocabulary()), grammar_rates, numbers)
            for numbers in SIZES.values()
        ),
        ("novels", 8000, novels_rates, (2, 128)),
    ):
        config = {
            "vocab_size": vocab_size,
            "hidden_size": size,
            "num_hidden_layers": layers,
            "num_attention_heads": 2,
            "intermediate_size": 4 * size,
            "max_position_embeddings": 128,
            "type_vocab_size": 2,
            "hidden_act": "gelu",
            "hidden_dropout_prob": dropout,
            "attention_probs_dropout_prob": dropout,
            "initializer_range": spread,
        }
        for end, values in (("", config), ("_ltr", config | LTR)):
            path = folder / f"{corpus}_L{layers}_H{size}{end}.json"
            path.write_text(json.dumps(values, indent=2) + "\n", "utf-8")


def pretraining(
    corpus: commands.Corpus, variant: str, seed: int, size: str
) -> runs.Step:
    """The pre-training of a variant, a key of ways.WAYS."""
    way = ways.WAYS[variant]
    records = corpus.records("text", seed, way.records, way.record_flags)
    # Of the language every checkpoint is kept, for figure 5.
    kept = " --keep_checkpoint_max=0" if corpus is GRAMMAR else ""
    return corpus.pretraining(
        f"{size}/{way.name}",
        f"{corpus.name}_{size}{way.config_end}",
        seed,
        records,
        way.flags + kept,
    )


TABLE_5 = ("MLM + NSP", "No NSP", "No NSP, single spans", "LTR", "LTR + BiLSTM")


def table_5(seeds: Iterable[int]) -> Iterable[runs.Run]:
    """Pre-training tasks, on the language."""
    return _table_5(
        "table 5, language", GRAMMAR, "L2_H64", (TAGGING, PAIRS, TOPICS), seeds
    )


def table_5_real(seeds: Iterable[int]) -> Iterable[runs.Run]:
    """Pre-training tasks, on novels and published tasks."""
    return _table_5("table 5, novels", NOVELS, "L2_H128", REAL_TASKS, seeds)


def _table_5(experiment, corpus, size, tasks, seeds):
    for seed in seeds:
        for variant in TABLE_5:
            model = pretraining(corpus, variant, seed, size)
            weights = f"{{runs}}/{model.name}"
            flags = "--bilstm_layers=1" if "BiLSTM" in variant else ""
            for task in tasks:
                yield task.run(experiment, variant, seed, model, weights, flags)
            if not flags:
                yield commands.perplexity(experiment, variant, seed, model)


def table_6(seeds: Iterable[int]) -> Iterable[runs.Run]:
    """Model size, on the language."""
    for seed in seeds:
        for size, (layers, units) in SIZES.items():
            model = pretraining(GRAMMAR, "MLM + NSP", seed, f"L{layers}_H{units}")
            weights = f"{{runs}}/{model.name}"
            yield commands.perplexity("table 6", size, seed, model)
            for task in (TAGGING, PAIRS, TOPICS):
                yield task.run("table 6", size, seed, model, weights)


def table_7(seeds: Iterable[int]) -> Iterable[runs.Run]:
    """Features or fine-tuning, with a real model on WNUT-17."""
    files = (
        "--train_file={data}/ner/wnut17/wnut17train.conll "
        "--dev_file={data}/ner/wnut17/emerging.dev.conll --do_train --do_eval"
    )
    best = "--keep_best --save_checkpoints_steps=106"  # an epoch
    fine_tuning = commands.Task(
        "WNUT-17",
        f"run_ner.py {files} --learning_rate=1e-4 --num_train_epochs=4 {best}",
        {"F1": "eval_f1"},
    )
    feature_based = commands.Task(
        "WNUT-17",
        f"run_ner_feature_based.py {files} --num_train_epochs=5 --learning_rate=1e-3 "
        f"--length_buckets --bilstm_size=384 --keep_checkpoint_max=1 {best}",
        {"F1": "eval_f1"},
    )
    for seed in seeds:
        model = (seed, None, "{init_checkpoint}")
        yield from _table_7("table 7", fine_tuning, feature_based, model)


def table_7_language(seeds: Iterable[int]) -> Iterable[runs.Run]:
    """The same with the largest of the models of the language."""
    feature_based = commands.Task(
        TAGGING.name,
        "run_ner_feature_based.py --train_file={prepared}/grammar/tagging/train.txt "
        "--dev_file={prepared}/grammar/tagging/dev.txt --do_train --do_eval "
        "--max_seq_length=32 --vocab_file={prepared}/grammar/vocab.txt",
        TAGGING.scores,
    )
    for seed in seeds:
        model = pretraining(GRAMMAR, "MLM + NSP", seed, "L4_H64")
        given = (seed, model, f"{{runs}}/{model.name}")
        yield from _table_7("table 7, language", TAGGING, feature_based, given)


def _table_7(experiment, fine_tuning, feature_based, model):
    yield fine_tuning.run(experiment, "fine-tuning", *model)
    for choice in FEATURES:
        flags = f"--features={choice}"
        yield feature_based.run(experiment, choice, *model, flags)
        if choice.startswith("sum"):
            flags += " --weighted_sums"
            yield feature_based.run(experiment, f"{choice}, weighted", *model, flags)


def table_8(seeds: Iterable[int]) -> Iterable[runs.Run]:
    """Mixes of masking, on the language."""
    for seed in seeds:
        for mix in ways.MIXES:
            model = pretraining(GRAMMAR, mix, seed, "L2_H64")
            weights = f"{{runs}}/{model.name}"
            for task in (TAGGING, TOPICS):
                yield task.run("table 8", mix, seed, model, weights)


def figure_5(seeds: Iterable[int]) -> Iterable[runs.Run]:
    """Updates of pre-training, on the language: every saved step is fine-tuned."""
    for seed in seeds:
        for variant in ("MLM + NSP", "LTR"):
            model = pretraining(GRAMMAR, variant, seed, "L2_H64")
            for step in checkpoints():
                place = f"{{runs}}/{model.name}"
                yield TAGGING.run(
                    "figure 5",
                    f"{variant}, step {step}",
                    seed,
                    model,
                    f"{place}/model.ckpt-{step}",
                    f"--bert_config_file={place}/bert_config.json",
                )


def checkpoints() -> list[int]:
    """The saved steps of a pre-training on the language."""
    every = STEPS // 8
    return [every * i for i in (1, 2, 3, 4, 6, 8)]


SUITES: dict[str, Callable[[Iterable[int]], Iterable[runs.Run]]] = {
    "table_5": table_5,
    "table_6": table_6,
    "table_7": table_7,
    "table_7_language": table_7_language,
    "table_8": table_8,
    "figure_5": figure_5,
    "table_5_real": table_5_real,
}
# Seeds 1 to so many, where --seeds does not say otherwise.
NUM_SEEDS = dict.fromkeys(SUITES, 3) | {"table_5": 5}


def variants(experiment: str) -> list[str]:
    """The variants of an experiment, in order."""
    made = [run for suite in SUITES.values() for run in suite((1,))]
    return list(dict.fromkeys(r.variant for r in made if r.experiment == experiment))
