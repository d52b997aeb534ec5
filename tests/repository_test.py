"""What the repository promises about its own files: sample data, scripts, documents."""

import csv
import hashlib
import os
import pathlib
import re
import subprocess
from collections import Counter, defaultdict

import pytest

ROOT = pathlib.Path(__file__).parent.parent
SAMPLE = ROOT / "sample_data"
SHELL_SCRIPTS = ("setup_env.sh", "run_tests.sh", "quickstart.sh", ".ci/run")
PACKAGES = ("data", "metrics", "modeling")


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


def test_changelog_has_dated_or_unreleased_sections():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.*)$", changelog, re.M)
    assert sections
    dated = r"\[(Unreleased|\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2})"
    assert [s for s in sections if not re.match(dated, s)] == []


def readme_tree() -> list[str]:
    """Paths of the tree in README.md: the code block whose first line is README.md."""
    path = ROOT / "README.md"
    if not path.exists():
        pytest.skip("README.md is not written yet")
    block = re.search(r"```\w*\n(README\.md .*?)```", path.read_text("utf-8"), re.S)
    assert block, "README.md shows the tree in a code block that starts with README.md"
    paths, folder = [], ""
    for line in block[1].splitlines():
        for name in re.split(r", ", re.split(r" {2,}", line.strip())[0]):
            if not line.startswith(" "):
                folder = ""
            paths.append(folder + name)
        if not line.startswith(" ") and line.split(" ")[0].endswith("/"):
            folder = line.split(" ")[0]
    return paths


def test_every_path_of_the_readme_tree_exists():
    assert [path for path in readme_tree() if not (ROOT / path).exists()] == []
