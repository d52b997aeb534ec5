"""The frame of a script: flags, messages, exit codes, screen."""

import subprocess
import sys

from tests import scripts

SCRIPT = """
import common_flags
from absl import flags, logging

def define_flags():
    common_flags.define_model()
    common_flags.define_text()
    common_flags.define_training()
    common_flags.define_fine_tuning()
    common_flags.define_devices()
    flags.DEFINE_string("raises", "", "What to raise.")

def swap_axes():
    # As models do in inference, which TensorFlow has a remark about.
    import tensorflow as tf
    from modeling import attention, layers

    @tf.function(input_signature=[tf.TensorSpec([None, None, 2, 4])])
    def swap(x):
        with layers.without_gradients():
            return attention._swap(x)

    swap(tf.zeros([3, 5, 2, 4]))

def main():
    logging.info("here %d", 1)
    swap_axes()
    values = common_flags.values()
    assert {"output_dir", "raises", "learning_rate", "use_tpu"} <= set(values)
    assert "verbosity" not in values
    if flags.FLAGS.raises == "value":
        raise ValueError("first line,\\n   second line")
    if flags.FLAGS.raises == "os":
        open("/nowhere/at/all")
    if flags.FLAGS.raises == "bug":
        raise KeyError("bug")
    if flags.FLAGS.raises == "interrupt":
        raise KeyboardInterrupt

if __name__ == "__main__":
    common_flags.run(main, define_flags)
"""


def run(*arguments, folder):
    path = folder / "script.py"
    path.write_text(SCRIPT)
    return subprocess.run(
        [sys.executable, path, "--output_dir=out", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(scripts.ROOT), "PATH": ""},
    )


def test_only_what_the_script_says_is_on_the_screen(tmp_path):
    result = run(folder=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "here 1\n")


def test_errors_a_person_can_mend_are_one_line(tmp_path):
    result = run("--raises=value", folder=tmp_path)
    assert result.returncode == 1
    assert result.stderr == "here 1\nscript: error: first line, second line\n"
    result = run("--raises=os", folder=tmp_path)
    assert result.returncode == 1
    assert result.stderr.endswith(
        "script: error: /nowhere/at/all: No such file or directory\n"
    )
    assert "Traceback" in run("--raises=value", "--verbosity=1", folder=tmp_path).stderr


def test_numbers_out_of_range_are_refused(tmp_path):
    for given in ("learning_rate=nan", "num_train_epochs=inf", "seed=-1"):
        result = run(f"--{given}", folder=tmp_path)
        assert result.returncode == 1
        name, _, value = given.partition("=")
        assert name in result.stderr and value in result.stderr
        assert "here 1" not in result.stderr and "Traceback" not in result.stderr


def test_bugs_keep_their_traceback(tmp_path):
    result = run("--raises=bug", folder=tmp_path)
    assert result.returncode != 0
    assert "Traceback" in result.stderr


def test_an_interruption_is_said(tmp_path):
    result = run("--raises=interrupt", folder=tmp_path)
    assert result.returncode == 130
    assert result.stderr.endswith("script: interrupted\n")


def test_flags_that_are_not_there(tmp_path):
    for given, nearest in [
        ("--do_lower=False", "do_lower_case"),  # in the original's own README
        ("--dotrain=true", "do_train"),
        ("--learning_rat=1", "learning_rate"),
    ]:
        result = run(given, folder=tmp_path)
        assert result.returncode != 0
        assert nearest in result.stderr
        assert "Traceback" not in result.stderr
    result = run("train", folder=tmp_path)
    assert result.returncode == 1
    assert "'train'" in result.stderr
