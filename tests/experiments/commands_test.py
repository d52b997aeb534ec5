"""Commands of experiments: names of folders, places, and what is read of results."""

import math

from experiments import commands, runs

CORPUS = commands.Corpus(
    name="text",
    text="{data}/text",
    held_out="{data}/held_out",
    vocab_file="{data}/vocab.txt",
    record_flags="--dupe_factor=2",
    training_flags="--num_train_steps=9",
    lengths=(16, 3),
)
TASK = commands.Task(
    "task 1", "run_ner.py --do_train --score_training_set", {"F1": "eval_f1"}
)
FOLDERS = {"data": "/d", "runs": "/r", "prepared": "/p"}


def test_a_pretraining_reads_its_records_and_the_usual_ones_held_out():
    records = CORPUS.records("text", 4, "odd", "--nosegment_pairs")
    step = CORPUS.pretraining("a/b", "small", 4, records, "--flag")
    script, *words = step.command(FOLDERS)
    assert script == "run_pretraining.py" and step.name == "text/pretraining/a/b/4"
    assert "--input_file=/r/text/records/odd/text_4/records.tfrecord" in words
    held_out = "--eval_input_file=/r/text/records/usual/held_out_1/records.tfrecord"
    assert held_out in words
    assert {"--output_dir=/r/text/pretraining/a/b/4", "--flag", "--seed=4"} < {*words}
    assert [need.name for need in step.needs] == [
        "text/records/odd/text_4",
        "text/records/usual/held_out_1",
    ]
    for need in step.needs:
        _, *of_records = need.command(FOLDERS)
        # Records and model are of one shape.
        shape = {"--max_seq_length=16", "--max_predictions_per_seq=3"}
        assert shape < {*words} and shape < {*of_records}
    assert "--nosegment_pairs" in records.words
    assert "--input_file=/d/text" in records.command(FOLDERS)


def test_a_run_of_a_task():
    run = TASK.run("table 9, x", "a/b: c", 3, None, "/weights", "--more")
    assert run.step.name == "table_9_x/a/b_c/task_1/3"
    assert run.step.command(FOLDERS)[-2:] == ["--seed=3", "--more"]
    assert "--init_checkpoint=/weights" in run.step.words and run.step.needs == ()
    file, key, convert = run.scores["F1"]
    assert (file, key, convert(0.25)) == ("eval_results.json", "eval_f1", 25.0)
    assert {name: x[:2] for name, x in run.training.items()} == {
        "accuracy": ("train_results.json", "train_accuracy"),
        "majority": ("train_results.json", "train_majority"),
    }


def test_perplexity_is_that_of_the_mean_loss():
    step = runs.Step("a", ("x.py",))
    run = commands.perplexity("e", "v", 1, step)
    _, key, convert = run.scores["perplexity"]
    assert key == "masked_lm_loss" and math.isclose(convert(math.log(7)), 7)
    assert run.step is step and not run.training
