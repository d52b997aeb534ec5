"""Runs of experiments: commands with folders of their own, resumable, in JSON lines.

A run is what one variant scored on one task with one seed. Behind it is a chain of
steps, each a command that could be typed by hand and the folder it writes; runs share
steps, such as a pre-training that several are fine-tuned from. A step that is done is
not done again, a killed one goes on (our scripts resume), and a run that stands in the
results is not looked at, even if its folders are gone.
"""

import concurrent.futures
import contextlib
import dataclasses
import fcntl
import json
import math
import os
import pathlib
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO

from tqdm import tqdm

import child_runs
from data import filesystem

ROOT = pathlib.Path(__file__).parent.parent
DONE = "step.json"  # in the folder of a step: what it took
# A step gets one core; more of them run side by side.
ONE_THREAD = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}


Score = tuple[str, str, Callable[[float], float]]


def percent(share: float) -> float:
    return 100 * share


@dataclasses.dataclass(frozen=True)
class Step:
    """A command and the folder it writes.

    Attributes:
        name: of the folder, below that of all runs.
        words: the command without "python"; {out} stands for its folder, {runs} for
            that of all runs, {data} and whatever else is given for other folders.
        needs: steps that come before.
    """

    name: str
    words: tuple[str, ...]
    needs: tuple["Step", ...] = ()

    def command(self, folders: Mapping[str, str]) -> list[str]:
        """The words with the folders put in."""
        out = f"{folders['runs']}/{self.name}"
        return [word.format(out=out, **folders) for word in self.words]


@dataclasses.dataclass(frozen=True)
class Run:
    """A variant, a task and a seed of an experiment.

    Attributes:
        step: the last of its chain.
        scores: name → (JSON file in the step's folder, key, what to make of the value).
        training: the same of "accuracy" and "majority" on the training set, if the task
            has such; a run whose accuracy is no more than a point above what always
            giving the most frequent label has is degenerate.
    """

    experiment: str
    variant: str
    task: str
    seed: int
    step: Step
    scores: Mapping[str, Score]
    training: Mapping[str, Score] = dataclasses.field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What tells it from other runs."""
        return self.experiment, self.variant, self.task, self.seed


def read(path: str | pathlib.Path) -> list[dict]:
    """The recorded runs; none if there is no file.

    Raises:
        ValueError: a line is no record of a run.
    """
    path = pathlib.Path(path)
    if not path.exists():
        return []
    lines = []
    for number, text in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
            tuple(line[n] for n in ("experiment", "variant", "task", "seed", "scores"))
        except (ValueError, KeyError, TypeError):
            raise ValueError(
                f"{path}, line {number}: expected the record of a run, got {text:.60}; "
                "delete the line, and it is made again"
            ) from None
        lines.append(line)
    return lines


def key_of(line: Mapping) -> tuple[str, str, str, int]:
    """`Run.key` of a record."""
    return line["experiment"], line["variant"], line["task"], line["seed"]


def find_missing(
    runs: Sequence[Run], results_file: str, init_checkpoint: str | None
) -> list[Run]:
    """The runs that are not recorded yet.

    Args:
        runs: all.
        results_file: JSON lines.
        init_checkpoint: what will stand for {init_checkpoint}, if anything.

    Raises:
        ValueError: a record is of other commands than its run.
    """
    recorded = {key_of(line): line for line in read(results_file)}
    for run in runs:
        there = recorded.get(run.key, {}).get("commands")
        if there not in (None, _commands(run, init_checkpoint)):
            raise ValueError(
                f"{results_file} has {', '.join(map(str, run.key))} of other commands, "
                f"such as {there[-1]}; delete its line, or give another --results_file"
            )
    return [run for run in runs if run.key not in recorded]


def _commands(run: Run, init_checkpoint: str | None) -> list[str]:
    """What could be typed by hand, in order.

    Folders have names in their place. Of weights from elsewhere the end of the path is
    told, not where it lies on this machine, so that two models are told apart.
    """
    path = init_checkpoint or "{init_checkpoint}"
    weights = "/".join(pathlib.Path(path).parts[-2:])
    return [
        shlex.join(step.words).replace("{init_checkpoint}", weights)
        for step in _in_order([run.step])
    ]


class Runner:
    """Does runs, several side by side.

    Args:
        folders: what stands for {runs}, {data}, ... in commands.
        results_file: JSON lines, one a run; added to.
        num_processes: how many steps at once.
        lock: of {runs}, from `child_runs.wait_for_folder`.
    """

    def __init__(
        self,
        folders: Mapping[str, str],
        results_file: str,
        num_processes: int,
        lock: IO,
    ):
        self._folders, self._results_file = dict(folders), results_file
        self._num_processes, self._lock = num_processes, lock
        self._weights = self._folders.get("init_checkpoint")

    def do(self, runs: Sequence[Run]) -> None:
        """Does what is not recorded yet, in about the order given; shows progress.

        Raises:
            ValueError: a step failed (says why, and where its log is); or a folder or a
                record is of another command.
        """
        # Its folder may be another one than that of the runs.
        os.makedirs(os.path.dirname(os.path.abspath(self._results_file)), exist_ok=True)
        missing = find_missing(runs, self._results_file, self._weights)
        done = len(runs) - len(missing)
        with tqdm(total=len(runs), initial=done, unit="run") as bar:
            self._do(missing, bar)

    def _do(self, runs: Sequence[Run], bar: tqdm) -> None:
        waiting = _in_order(run.step for run in runs)
        running: dict[concurrent.futures.Future, Step] = {}
        done: set[str] = set()
        with concurrent.futures.ThreadPoolExecutor(self._num_processes) as pool:
            while waiting or running:
                ready = [s for s in waiting if done.issuperset(n.name for n in s.needs)]
                for step in ready[: self._num_processes - len(running)]:
                    waiting.remove(step)
                    running[pool.submit(self._do_step, step)] = step
                bar.set_description(", ".join(step.name for step in running.values()))
                ended, _ = concurrent.futures.wait(
                    running, return_when=concurrent.futures.FIRST_COMPLETED
                )
                for future in ended:
                    step = running.pop(future)
                    future.result()
                    done.add(step.name)
                    for run in runs:
                        if run.step == step:
                            self._record(run)
                            bar.update()

    def _do_step(self, step: Step) -> None:
        folder = pathlib.Path(self._folders["runs"]) / step.name
        command = step.command(self._folders)
        typed = folder / "command.txt"
        is_resumed = typed.exists()
        if is_resumed and typed.read_text("utf-8").strip() != shlex.join(command):
            raise ValueError(
                f"{folder} holds a run of another command, "
                f"{typed.read_text('utf-8').strip()}; delete it, or give another "
                "--output_dir"
            )
        if (folder / DONE).exists():
            return
        folder.mkdir(parents=True, exist_ok=True)
        filesystem.write_text(str(typed), shlex.join(command) + "\n")
        log = str(folder / "log.txt")
        status, cpu_seconds = child_runs.run(
            [sys.executable, str(ROOT / command[0]), *command[1:]],
            log,
            self._lock,
            environment=ONE_THREAD,
        )
        if status:
            last = child_runs.last_error(log) or f"exit status {status}"
            raise ValueError(f"{last} (the whole log is {log})")
        # Of one that was killed in between, only the last part was measured.
        took = {"cpu_seconds": None if is_resumed else round(cpu_seconds, 1)}
        filesystem.write_json(str(folder / DONE), took)

    def _record(self, run: Run) -> None:
        """Adds a run that is done to the results."""
        folder = pathlib.Path(self._folders["runs"]) / run.step.name
        line = {
            "experiment": run.experiment,
            "variant": run.variant,
            "task": run.task,
            "seed": run.seed,
            "scores": _read_scores(folder, run.scores),
            **filesystem.read_json(str(folder / DONE)),
            "commands": _commands(run, self._weights),
        }
        if run.training:
            training = _read_scores(folder, run.training)
            is_degenerate = training["accuracy"] <= training["majority"] + 1
            line |= {"training": training, "degenerate": is_degenerate}
        # Others may write to the file, from other folders.
        with _locked(os.path.dirname(os.path.abspath(self._results_file))):
            lines = [*read(self._results_file), line]
            text = "".join(json.dumps(line) + "\n" for line in lines)
            filesystem.write_text(self._results_file, text)


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Holds a folder within the `with` block, waiting for it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _in_order(steps: Iterable[Step]) -> list[Step]:
    """The steps and all that they need, each once, needs first."""
    found: dict[str, Step] = {}

    def add(step):
        if found.setdefault(step.name, step) != step:
            raise ValueError(f"two different steps are called {step.name}")

    def add_all(step):
        for need in step.needs:
            add_all(need)
        add(step)

    for step in steps:
        add_all(step)
    return list(found.values())


def _read_scores(folder: pathlib.Path, wanted: Mapping[str, Score]) -> dict[str, float]:
    scores = {}
    for name, (file, key, convert) in wanted.items():
        value = filesystem.read_json(str(folder / file))[key]
        scores[name] = math.nan if value is None else convert(value)
    return scores
