"""The settings, the files and the folder that the fine-tuning scripts share."""

import dataclasses
import hashlib
import json
import os

import pytest

import fine_tuning
import run_directory

VALUES = {
    "bert_config_file": None,
    "vocab_file": None,
    "do_lower_case": True,
    "max_seq_length": 64,
    "skip_mismatched_heads": False,
    "num_train_epochs": 3.0,
    "train_batch_size": 32,
    "learning_rate": 5e-5,
    "warmup_proportion": 0.1,
    "optimizer": "adamw",
    "bias_correction": False,
    "gradient_accumulation_steps": 1,
    "jit_compile": False,
    "recompute": False,
    "non_finite": "stop",
    "layer_decay": 1.0,
    "freeze_layers": -1,
    "save_checkpoints_steps": 1000,
    "keep_checkpoint_max": 5,
    "seed": 1,
    "a_flag_of_the_script": "x",
}


@pytest.fixture
def values(golden, tmp_path):
    checkpoint = str(golden / "tiny_tf1/bert_model.ckpt")
    output_dir = str(tmp_path / "out")
    return {**VALUES, "init_checkpoint": checkpoint, "output_dir": output_dir}


def test_settings_are_the_flags_of_their_names(values):
    settings = dataclasses.asdict(fine_tuning.Settings.from_values(values))
    assert settings == {k: v for k, v in values.items() if k != "a_flag_of_the_script"}
    with pytest.raises(ValueError, match="--bias_correction is for --optimizer=adamw"):
        fine_tuning.Settings.from_values(
            {**values, "optimizer": "lamb", "bias_correction": True}
        )
    del values["freeze_layers"]
    with pytest.raises(KeyError, match="freeze_layers"):
        fine_tuning.Settings.from_values(values)


def test_files_lie_beside_the_weights_or_in_the_folder_of_an_earlier_run(
    golden, values, tmp_path
):
    settings = fine_tuning.Settings.from_values(values)
    files = fine_tuning.find_files(settings)
    assert files.vocab_file == str(golden / "tiny_tf1/vocab.txt")
    assert files.config.max_position_embeddings == 64
    assert files.tokenizer().encode("the") == files.tokenizer().encode("THE")

    identity = {"script": "run_x"}
    fine_tuning.claim_folder(files, identity, values, labels=("b", "a"))
    again = dataclasses.replace(settings, init_checkpoint=None)
    assert fine_tuning.find_files(again).config == files.config
    assert fine_tuning.find_files(again).vocab_file == str(tmp_path / "out/vocab.txt")
    assert json.loads((tmp_path / "out/labels.json").read_text()) == ["b", "a"]
    vocab = (golden / "tiny_tf1/vocab.txt").read_bytes()
    assert json.loads((tmp_path / "out/model.json").read_text()) == {
        "script": "run_x",
        "do_lower_case": True,
        "vocab_sha256": hashlib.sha256(vocab).hexdigest(),
        "config": json.loads((tmp_path / "out/bert_config.json").read_text()),
    }
    assert json.loads((tmp_path / "out/settings.json").read_text()) == values


def test_of_several_workers_only_the_first_claims_the_folder(values, tmp_path):
    files = fine_tuning.find_files(fine_tuning.Settings.from_values(values))
    run_directory.share(1)
    try:
        fine_tuning.claim_folder(files, {"script": "run_x"}, values, labels=("a",))
    finally:
        run_directory.share(None)
    assert not (tmp_path / "out").exists()


def test_a_folder_of_another_model_keeps_its_files(values, tmp_path):
    files = fine_tuning.find_files(fine_tuning.Settings.from_values(values))
    fine_tuning.claim_folder(files, {"script": "run_x"}, values, labels=("a",))
    (tmp_path / "out/eval_results.txt").write_text("x = 1\n")
    with pytest.raises(ValueError, match="there 'script' is run_x, this run's run_y"):
        fine_tuning.claim_folder(files, {"script": "run_y"}, values, labels=("b",))
    other = tmp_path / "vocab.txt"
    other.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n")
    files = dataclasses.replace(files, vocab_file=str(other))
    with pytest.raises(ValueError, match="another model: there 'vocab_sha256' is"):
        fine_tuning.claim_folder(files, {"script": "run_x"}, values)
    assert (tmp_path / "out/vocab.txt").read_text() != other.read_text()
    assert json.loads((tmp_path / "out/labels.json").read_text()) == ["a"]


NO_FLAGS = {
    "do_train": False,
    "do_predict": False,
    "do_export": False,
    "keep_best": False,
    "patience": 0,
    "export_dir": None,
    "question": None,
    "threshold": "given",
    "version_2_with_negative": False,
}


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        ({"patience": 3}, "keep_best"),
        ({"export_dir": "x"}, "do_export"),
        ({"threshold": "found"}, "version_2_with_negative"),
    ],
)
def test_flags_without_effect_are_refused(given, needed):
    values = NO_FLAGS | {"do_predict": True}
    fine_tuning.check_flags(values)
    (flag,) = given
    message = f"^--{flag}={given[flag]} has no effect without --{needed}; add it, or "
    with pytest.raises(ValueError, match=message):
        fine_tuning.check_flags(values | given)
    fine_tuning.check_flags(values | given | {needed: True})


def test_length_buckets_and_whole_padding_are_refused():
    values = NO_FLAGS | {"do_train": True, "pad_to_max": True}
    fine_tuning.check_flags(values | {"length_buckets": False})
    with pytest.raises(ValueError, match="saves padding that --pad_to_max asks for"):
        fine_tuning.check_flags(values | {"length_buckets": True})
    fine_tuning.check_flags(values | {"length_buckets": True, "pad_to_max": False})


def test_what_can_be_done_is_named():
    flags = "--do_train, --do_predict, --do_export or --question"
    with pytest.raises(ValueError, match=f"^nothing to do: give {flags}$"):
        fine_tuning.check_flags(NO_FLAGS)


def test_more_layers_than_there_are_cannot_be_frozen(values):
    settings = fine_tuning.Settings.from_values({**values, "freeze_layers": 2})
    fine_tuning.find_files(settings)
    settings = dataclasses.replace(settings, freeze_layers=3)
    with pytest.raises(ValueError, match="--freeze_layers is 3, but the model has 2 l"):
        fine_tuning.find_files(settings)


def test_labels_are_those_of_the_run_or_lie_beside_the_weights(golden, tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    with pytest.raises(FileNotFoundError, match="out/labels.json; train first"):
        fine_tuning.find_labels(str(out), None)
    source.mkdir()
    (source / "labels.json").write_text('["x", "y"]')
    assert fine_tuning.find_labels(str(out), str(source / "m.ckpt-1")) == ("x", "y")
    message = "the labels of .*source are none that this script predicts: 'y'; train"
    with pytest.raises(ValueError, match=message):
        fine_tuning.find_labels(str(out), str(source), suits=lambda label: label == "x")
    classes = golden / "hf_tiny/classification"  # of transformers
    assert "ENTAILMENT" in map(
        str.upper, fine_tuning.find_labels(str(out), str(classes))
    )
    out.mkdir()
    (out / "labels.json").write_text('["a", "b"]')
    assert fine_tuning.find_labels(str(out), str(source)) == ("a", "b")


def test_sequences_longer_than_the_model_are_refused(values):
    settings = fine_tuning.Settings.from_values({**values, "max_seq_length": 65})
    with pytest.raises(ValueError, match="--max_seq_length is 65.* 64 positions"):
        fine_tuning.find_files(settings)


def test_a_folder_that_cannot_take_the_export_is_refused_at_once(values, tmp_path):
    files = fine_tuning.find_files(fine_tuning.Settings.from_values(values))
    (tmp_path / "file").write_text("")
    values |= {"do_export": True, "export_dir": str(tmp_path / "file")}
    with pytest.raises(ValueError, match="--export_dir=.*file is a file; name a fol"):
        fine_tuning.claim_folder(files, {"script": "run_x"}, values)


def test_the_folder_of_an_export_is_not_made_before_there_is_one(values, tmp_path):
    files = fine_tuning.find_files(fine_tuning.Settings.from_values(values))
    for export_dir in (None, str(tmp_path / "export")):
        values |= {"do_export": True, "export_dir": export_dir}
        fine_tuning.claim_folder(files, {"script": "run_x"}, values)
    assert os.listdir(tmp_path) == ["out"]
    assert "export" not in os.listdir(tmp_path / "out")
