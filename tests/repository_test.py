"""What the repository promises about its own files: sample data, scripts, documents."""

import ast
import csv
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
from collections import Counter, defaultdict

import pytest

ROOT = pathlib.Path(__file__).parent.parent
SAMPLE = ROOT / "sample_data"
SHELL_SCRIPTS = ("setup_env.sh", "run_tests.sh", "quickstart.sh", ".ci/run")
DOCS = sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))
PACKAGES = ("data", "experiments", "metrics", "modeling", "server", "serving")


def read_rows(path: pathlib.Path) -> list[tuple[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        assert next(reader) == ["text", "category"]
        return [(text, category) for text, category in reader]


def normalized(text: str) -> str:
    return " ".join(text.lower().split())


@pytest.fixture(scope="module")
def splits():
    return {
        name: read_rows(SAMPLE / "banking77" / f"{name}.csv")
        for name in ("train", "dev")
    }


def test_banking77_row_counts_and_intents(splits):
    assert {name: len(rows) for name, rows in splits.items()} == {
        "train": 9000,
        "dev": 1003,
    }
    intents = {name: {label for _, label in rows} for name, rows in splits.items()}
    assert len(intents["train"]) == 77
    assert intents["train"] == intents["dev"]


def test_banking77_splits_share_no_text(splits):
    texts = {name: {normalized(t) for t, _ in rows} for name, rows in splits.items()}
    assert texts["train"] & texts["dev"] == set()


def test_banking77_division_follows_the_rule_of_its_notice(splits):
    texts_of = defaultdict(set)
    for text, label in splits["train"] + splits["dev"]:
        texts_of[label].add(normalized(text))
    expected = set()
    for texts in texts_of.values():
        by_hash = sorted(texts, key=lambda t: hashlib.sha256(t.encode()).hexdigest())
        expected.update(by_hash[: round(len(texts) / 10)])
    assert {normalized(text) for text, _ in splits["dev"]} == expected


def test_banking77_is_the_published_training_file(splits, shared):
    source = read_rows(shared / "data/classification/banking77/train.csv")
    assert Counter(splits["train"] + splits["dev"]) == Counter(source)


def test_banking77_notice_gives_credit_licence_and_changes():
    notice = (SAMPLE / "banking77" / "NOTICE").read_text(encoding="utf-8")
    for part in ("Casanueva", "CC BY 4.0", "PolyAI-LDN", "Changes made here"):
        assert part in notice


def test_sample_data_is_what_its_readme_says():
    readme = (SAMPLE / "README.md").read_text(encoding="utf-8")
    sums = dict(re.findall(r"^\| `([^`]+)` \| `([0-9a-f]{64})` \|$", readme, re.M))
    found = {
        name: hashlib.sha256((SAMPLE / name).read_bytes()).hexdigest() for name in sums
    }
    assert set(sums) == {
        "corpus.txt",
        "vocab.txt",
        "banking77/train.csv",
        "banking77/dev.csv",
    }
    assert found == sums


def test_sample_corpus_counts():
    text = (SAMPLE / "corpus.txt").read_text(encoding="utf-8")
    documents = [document for document in text.split("\n\n") if document.strip()]
    assert len(documents) == 55
    assert sum(len(document.strip().split("\n")) for document in documents) == 7760


def test_sample_data_readme_names_every_file():
    readme = (SAMPLE / "README.md").read_text(encoding="utf-8")
    files = {
        str(path.relative_to(SAMPLE)) for path in SAMPLE.rglob("*") if path.is_file()
    }
    assert {name for name in files - {"README.md"} if f"`{name}`" not in readme} <= {
        "banking77/NOTICE"
    }


@pytest.mark.parametrize("name", SHELL_SCRIPTS)
def test_shell_script_parses_and_is_executable(name):
    path = ROOT / name
    assert os.access(path, os.X_OK), f"chmod +x {name}"
    result = subprocess.run(
        ["bash", "-n", path], check=False, capture_output=True, text=True
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_has_a_test_of_the_same_name(package):
    modules = {path.stem for path in (ROOT / package).glob("*.py")} - {"__init__"}
    tests = {
        path.name.removesuffix("_test.py")
        for path in (ROOT / "tests" / package).glob("*_test.py")
    }
    assert modules
    assert modules - tests == set()


def test_requirements_name_what_is_imported():
    """Also what TensorFlow would bring anyway: it may stop doing so."""
    required, of_server, of_formats = (
        set(re.findall(r"^(\w[\w-]*)", (ROOT / name).read_text("utf-8"), re.M))
        for name in (f"requirements{x}.txt" for x in ("", "-serving", "-formats"))
    )
    files = [*ROOT.glob("*.py"), *(p for n in PACKAGES for p in ROOT.glob(f"{n}/*.py"))]
    imported = set()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module.split(".")[0])
    own = {path.stem for path in files} | set(PACKAGES)
    distributions = {
        "absl": "absl-py",
        "google": "protobuf",
        "grpc": "grpcio",
        "tensorflow_serving": "tensorflow-serving-api",
    }
    needed = {
        distributions.get(name, name.replace("_", "-"))
        for name in imported - own - set(sys.stdlib_module_names)
    }
    # tf.summary works only where tensorboard is installed.
    assert required - needed == {"tensorboard"}
    # Only who asks for what they do needs these; create_pretraining_data_beam.py with
    # beam_files.py, data/tfds.py, and experiments/figures.py import them.
    others = needed - required - of_server - of_formats
    assert others == {"apache-beam", "matplotlib", "tensorflow-datasets"}
    assert of_server | of_formats <= needed | {"tf2onnx"}  # Keras imports that


def test_changelog_has_dated_or_unreleased_sections():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.*)$", changelog, re.M)
    assert sections
    dated = r"\[(Unreleased|\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2})"
    assert [s for s in sections if not re.match(dated, s)] == []


def test_every_path_of_the_readme_tree_exists():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    tree = re.search(r"^## The tree\n+```\n(.*?)```", readme, re.M | re.S)[1]
    paths = re.findall(r"^([\w./]+)(?:  |$)", tree, re.M)
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []


def commands(text: str) -> list[tuple[str, list[str]]]:
    """(script, flag names) of each command line of a script in a document."""
    joined = text.replace("\\\n", " ")
    found = re.findall(r"(\w+\.py)((?: +[^\s#;|]+)*)", joined)
    # What follows ` -- ` is for another program.
    found = [(script, rest.partition(" -- ")[0]) for script, rest in found]
    return [(script, re.findall(r"--(\w+)", rest)) for script, rest in found]


def defined_flags(script: str) -> set[str]:
    names = (script, "common_flags.py", "command_line.py")
    names += "pretraining_flags.py", "ner_runs.py"
    text = "".join((ROOT / name).read_text("utf-8") for name in names)
    names = set(re.findall(r'DEFINE_\w+\(\s*"(\w+)"', text))
    return names | {"help", "verbosity"}


@pytest.mark.parametrize("document", ["README.md", "quickstart.sh", *DOCS])
def test_commands_shown_name_scripts_and_flags_that_exist(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    scripts = re.findall(r"\bpython (?:-I )?([\w/]+\.py)", text)
    assert [script for script in scripts if not (ROOT / script).exists()] == []
    shown = [(script, flags) for script, flags in commands(text) if flags]
    assert shown
    unknown = {
        f"{script} --{flag}"
        for script, flags in shown
        for flag in flags
        if flag not in defined_flags(script)
        and flag.removeprefix("no") not in defined_flags(script)
    }
    assert unknown == set()


@pytest.mark.parametrize("folder", [".", "benchmarks"])
def test_commands_in_the_help_of_scripts_can_be_pasted(folder):
    for path in sorted((ROOT / folder).glob("*.py")):
        node = ast.parse(path.read_text("utf-8")).body[0]
        shown = ast.get_docstring(ast.Module([node], []), clean=False) or ""
        for command in re.findall(r"^    python .*(?:\n {8}.*)*", shown, re.M):
            # Each line goes on in the next: no backslash was eaten by Python.
            assert re.fullmatch(r"(?:.*\\\n)*.*", command), f"{path}: make it raw"
            parts = re.sub(r"'[^'\n]*'|\"[^\"\n]*\"", "", command)
            assert not re.search(r"[*?]", parts), f"{path}: quote the pattern"


def blocks_of_commands(document: str) -> list[str]:
    """The indented blocks of a document that are to be pasted into a shell."""
    text = (ROOT / document).read_text("utf-8")
    blocks = re.findall(r"(?:^ {4}.*\n)+", text, re.M)
    starts = r" +(?:python|curl|\./|/usr/bin/time|TF_CONFIG=)"
    return [block for block in blocks if re.match(starts, block)]


def test_the_quick_start_takes_as_long_everywhere():
    said = {
        name: re.search(
            r"(\d+) minutes on 2 CPU cores", (ROOT / name).read_text("utf-8")
        )
        for name in ("README.md", "quickstart.sh")
    }
    assert said["README.md"][1] == said["quickstart.sh"][1]


@pytest.mark.parametrize("document", ["README.md", *DOCS])
def test_commands_shown_are_what_a_shell_takes(document):
    for block in blocks_of_commands(document):
        result = subprocess.run(
            ["bash", "-n"], input=block, check=False, capture_output=True, text=True
        )
        assert (result.returncode, result.stderr) == (0, ""), block


@pytest.mark.slow
def test_a_vocabulary_is_learnt_and_a_model_grown_as_the_readme_says(golden, tmp_path):
    (block,) = (b for b in blocks_of_commands("README.md") if "--mode=extend" in b)
    (tmp_path / "text").mkdir()
    (tmp_path / "text/novels.txt").symlink_to(SAMPLE / "corpus.txt")
    (tmp_path / "bert_folder").mkdir()
    for path in (golden / "hf_tiny/pretraining_gelu").iterdir():
        (tmp_path / "bert_folder" / path.name).symlink_to(path)
    (tmp_path / "bert_folder/vocab.txt").symlink_to(golden / "scoring/vocab.txt")
    commands = re.sub(r"python (\w+\.py)", rf"{sys.executable} {ROOT}/\1", block)
    result = subprocess.run(
        ["bash", "-euc", commands],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    grown = json.loads((tmp_path / "grown_bert/bert_config.json").read_text("utf-8"))
    config = json.loads((tmp_path / "bert_folder/config.json").read_text("utf-8"))
    lines = (tmp_path / "larger.txt").read_text("utf-8").splitlines()
    assert grown["vocab_size"] == len(lines) == config["vocab_size"] + 1000
