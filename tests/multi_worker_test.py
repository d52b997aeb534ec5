"""Fine-tuning by two workers: one folder, one result, the weights of the best."""

import json
import os
import subprocess

import pytest

from tests import scripts, trainer_test


@pytest.mark.slow
def test_two_workers_evaluate_and_predict_with_the_best_weights(golden, tmp_path):
    flags = {
        "task_name": "mrpc",
        "data_dir": golden / "glue_samples/MRPC",
        "bert_config_file": golden / "tiny_tf1/bert_config.json",
        "vocab_file": golden / "tiny_tf1/vocab.txt",
        "max_seq_length": 48,
        "output_dir": tmp_path / "out",
        "do_eval": True,
        "do_predict": True,
        "eval_batch_size": 5,  # the loss is a mean over batches, as the original's
    }
    training = {
        "do_train": True,
        "keep_best": True,
        "train_batch_size": 4,
        "learning_rate": 1e-3,
        "num_train_epochs": 6,
        "save_checkpoints_steps": 2,
        "distribution_strategy": "multi_worker",
    }
    command = scripts.command("run_classifier.py", **flags, **training)
    processes = [
        subprocess.Popen(
            command,
            env={**os.environ, "TF_CONFIG": config},
            stderr=subprocess.PIPE,
            text=True,
        )
        for config in trainer_test.cluster()
    ]
    for process in processes:
        _, shown = process.communicate(timeout=600)
        assert process.returncode == 0, shown[-3000:]
    out = tmp_path / "out"
    together = json.loads((out / "eval_results.json").read_text())
    predicted = (out / "test_results.tsv").read_text()
    # One process alone finds the same in the folder.
    scripts.succeed("run_classifier.py", **flags)
    assert json.loads((out / "eval_results.json").read_text()) == pytest.approx(
        together, abs=1e-5
    )
    alone = (out / "test_results.tsv").read_text()
    for one, other in zip(predicted.split(), alone.split(), strict=True):
        assert float(one) == pytest.approx(float(other), abs=1e-5)
    # The other worker kept nothing but the records that it made for itself.
    own = {path.name for path in (out / "worker-1").iterdir()}
    assert own == {"train.tf_record", "eval.tf_record", "predict.tf_record"}


def test_a_cluster_is_refused_where_it_makes_no_sense(golden, tmp_path):
    (tmp_path / "text").write_text("the\n")
    shown = scripts.refusal(
        "extract_features.py",
        input_file=tmp_path / "text",
        output_file=tmp_path / "out.jsonl",
        bert_config_file=golden / "tiny_tf1/bert_config.json",
        vocab_file=golden / "tiny_tf1/vocab.txt",
        init_checkpoint=golden / "tiny_tf1/bert_model.ckpt",
        distribution_strategy="multi_worker",
    )
    assert "--distribution_strategy=multi_worker is for training" in shown
