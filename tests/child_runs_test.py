"""Scripts in processes of their own."""

import subprocess
import sys
import time

import pytest

import child_runs


@pytest.fixture
def lock(tmp_path):
    with child_runs.wait_for_folder(str(tmp_path / "runs")) as lock:
        yield lock


def run(tmp_path, program, lock, **kwargs):
    arguments = [sys.executable, "-c", program]
    return child_runs.run(arguments, str(tmp_path / "log.txt"), lock, **kwargs)


def test_the_log_has_the_command_and_what_it_shows(tmp_path, lock):
    status, _ = run(tmp_path, "print('shown')", lock)
    assert status == 0
    program = "import sys; print('odd Error: x', file=sys.stderr); sys.exit(3)"
    assert run(tmp_path, program, lock)[0] == 3
    first, shown, second, error = (tmp_path / "log.txt").read_text().splitlines()
    assert first.startswith(f"$ {sys.executable} -c") and second.startswith("$ ")
    assert (shown, error) == ("shown", "odd Error: x")
    assert child_runs.last_error(tmp_path / "log.txt") == error


def test_cpu_seconds_are_those_of_this_command_alone(tmp_path, lock):
    busy = "import time\nwhile time.process_time() < 0.5: pass"
    assert run(tmp_path, busy, lock)[1] >= 0.5
    assert run(tmp_path, "pass", lock)[1] < 0.4


def test_variables_are_added_to_the_environment(tmp_path, lock):
    program = "import os; print(os.environ['THREADS'], 'PATH' in os.environ)"
    run(tmp_path, program, lock, environment={"THREADS": "1"})
    assert (tmp_path / "log.txt").read_text().endswith("1 True\n")


def test_a_folder_is_waited_for(tmp_path):
    program = (
        "import child_runs, time\n"
        f"lock = child_runs.wait_for_folder({str(tmp_path)!r})\n"
        "print('held', flush=True)\n"
        "time.sleep(1)\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    start = time.monotonic()
    child_runs.wait_for_folder(str(tmp_path)).close()
    assert time.monotonic() - start > 0.3
    holder.wait()
    holder.stdout.close()
