"""Which runs there are: what they share, and that the commands take their flags."""

import dataclasses
import importlib

import pytest
from absl import flags

from experiments import miniatures, ways


def runs_of(suite, seeds=(1, 2)):
    return list(miniatures.SUITES[suite](seeds))


def chain(step):
    return {step.name: step} | {n: s for x in step.needs for n, s in chain(x).items()}


def test_what_one_run_learns_on_others_learn_on_too():
    """All else is equal: variants of a table differ in what they are about."""
    for suite in ("table_5", "table_5_real"):
        by_variant = {
            r.variant: " ".join(" ".join(s.words) for s in chain(r.step).values())
            for r in runs_of(suite, (1,))
        }
        usual = by_variant["MLM + NSP"]
        assert "nonext_sentence_loss" not in usual and "_ltr" not in usual
        assert "--nonext_sentence_loss" in by_variant["No NSP"]
        assert "--nosegment_pairs" in by_variant["No NSP, single spans"]
        for variant in ("LTR", "LTR + BiLSTM"):
            assert "_ltr.json" in by_variant[variant]
            assert ("--bilstm_layers=1" in by_variant[variant]) == (
                variant == "LTR + BiLSTM"
            )
        for variant, words in by_variant.items():
            assert ("records/usual/text" in words) == (
                variant != "No NSP, single spans"
            )


def test_tables_share_their_pretrainings():
    names = {
        suite: {n for run in runs_of(suite) for n in chain(run.step) if "/pretr" in n}
        for suite in miniatures.SUITES
    }
    assert len(names["table_5"]) == 4 * 2
    assert names["figure_5"] < names["table_5"]
    assert len(names["table_6"] & names["table_5"]) == 2
    assert len(names["table_8"] & names["table_5"]) == 2
    assert len(names["table_8"]) == 2 * len(ways.MIXES)
    assert names["table_7_language"] < names["table_6"]


def test_variants_are_in_the_order_of_the_paper():
    assert miniatures.variants("table 5, novels") == list(miniatures.TABLE_5)
    assert miniatures.variants("table 8") == list(ways.MIXES)
    assert miniatures.variants("table 9") == []


def test_seeds_are_those_of_all_steps_of_a_run():
    for suite in miniatures.SUITES:
        for run in runs_of(suite, (7,)):
            for step in chain(run.step).values():
                for word in step.words:
                    if "seed=" in word and "held_out" not in step.name:
                        assert word.endswith("seed=7")


def test_figure_5_starts_at_steps_that_are_saved():
    every = miniatures.STEPS // 8
    for run in runs_of("figure_5"):
        step = int(run.variant.rpartition(" ")[2])
        (model,) = run.step.needs
        assert f"--save_checkpoints_steps={every}" in model.words
        assert "--keep_checkpoint_max=0" in model.words
        assert step % every == 0 and step <= miniatures.STEPS
    assert len(miniatures.checkpoints()) == 6


def commands():
    """One command of each script with each set of flags."""
    found = {}
    for suite in miniatures.SUITES:
        for run in runs_of(suite, (1,)):
            for step in chain(run.step).values():
                names = tuple(word.partition("=")[0] for word in step.words)
                found.setdefault(names, step)
    return found.values()


@pytest.mark.parametrize("step", commands(), ids=lambda s: s.name)
def test_the_script_knows_the_flags(step):
    script, *words = step.command(
        {n: f"/{n}" for n in ("runs", "prepared", "data", "init_checkpoint")}
    )
    module = importlib.import_module(script.removesuffix(".py"))
    values, known = flags.FlagValues(), flags.FLAGS
    before = set(known)
    module.define_flags()
    for name in set(known) - before:
        values[name] = known[name]
    try:
        left = values([script, *words])
    finally:
        for name in set(known) - before:
            delattr(known, name)
    assert left == [script]


def test_a_task_with_training_scores_says_where_they_are():
    run, *_ = runs_of("table_5", (1,))
    assert run.training.keys() == {"accuracy", "majority"}
    assert not dataclasses.replace(run, training={}).training
