"""Who may import whom: read from the source, so that no import has to succeed.

Scripts may import the shared modules of the root folder, and both may import the
packages; nothing points the other way. data, metrics and modeling do not know one
another, serving puts data and modeling together, server knows SavedModels only, and in
modeling the core does not know its variants. Benchmarks and experiments stand above:
they import what they like, but no tests, and nothing but scripts imports them.
"""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parent.parent
# The packages, and which others each may import.
PACKAGES = {
    "data": set(),
    "metrics": set(),
    "modeling": set(),
    "serving": {"data", "modeling"},
    "server": set(),
}
# What BERT itself needs. A file of modeling/ that is not listed is a variant: it may
# import these, and deleting it must not touch them.
CORE_MODELING = {
    "attention",
    "checkpoint",
    "checkpoint_state",
    "config",
    "dropout",
    "embeddings",
    "encoder",
    "heads",
    "huggingface",
    "huggingface_config",
    "huggingface_names",
    "layer_norm",
    "layers",
    "losses",
    "models",
    "optimization",
    "torch_pickle",
    "weight_shapes",
}


def imported_modules(source: str) -> set[str]:
    """Dotted names that Python source imports anywhere, also inside functions.

    `from a import b` counts as a and as a.b, since b may be a module; a relative
    import keeps its leading dots.
    """
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            names.add(module)
            names.update(f"{module}.{alias.name}" for alias in node.names)
    return names


def imports_of(path: pathlib.Path) -> set[str]:
    return imported_modules(path.read_text(encoding="utf-8"))


def top_level(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


def root_modules() -> set[str]:
    return {path.stem for path in ROOT.glob("*.py")}


def scripts() -> set[str]:
    """Root modules that can be run; the others are what scripts share."""
    return {
        path.stem
        for path in ROOT.glob("*.py")
        if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
    }


def package_files() -> list[pathlib.Path]:
    return [
        path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))
    ]


def relative(path: pathlib.Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_reader_of_imports_sees_every_form():
    source = (
        "import a.b as c\n"
        "from d import e, f\n"
        "from . import g\n"
        "def late():\n"
        "    from h.i import j\n"
        "text = 'import k'\n"
    )
    expected = {"a.b", "d", "d.e", "d.f", ".", "..g", "h.i", "h.i.j"}
    assert imported_modules(source) == expected


@pytest.mark.parametrize("path", package_files(), ids=relative)
def test_a_package_imports_what_it_may_and_no_script(path):
    own = relative(path).split("/")[0]
    forbidden = set(PACKAGES) - {own} - PACKAGES[own]
    forbidden |= root_modules() | {"benchmarks", "experiments", "tests"}
    assert top_level(imports_of(path)) & forbidden == set()


@pytest.mark.parametrize("path", package_files(), ids=relative)
def test_imports_are_absolute(path):
    assert [name for name in imports_of(path) if name.startswith(".")] == []


@pytest.mark.parametrize("name", sorted(CORE_MODELING))
def test_core_modeling_never_imports_a_variant(name):
    names = imports_of(ROOT / "modeling" / f"{name}.py")
    imported = {n.split(".")[1] for n in names if n.startswith("modeling.")}
    assert imported - CORE_MODELING == set()


@pytest.mark.parametrize(
    "path",
    [p for name in ("benchmarks", "experiments") for p in (ROOT / name).glob("*.py")],
    ids=relative,
)
def test_benchmarks_and_experiments_import_no_tests_and_no_scripts(path):
    assert "tests" not in top_level(imports_of(path))
    assert top_level(imports_of(path)) & scripts() == set()


def test_nothing_in_the_root_folder_imports_a_script():
    found = scripts()
    assert found
    wrong = {
        name: sorted(top_level(imports_of(ROOT / f"{name}.py")) & found)
        for name in root_modules()
    }
    assert {name: names for name, names in wrong.items() if names} == {}


def test_init_files_are_empty():
    found = sorted(ROOT.glob("*/**/__init__.py"))
    found = [path for path in found if ".venv" not in path.parts]
    assert {relative(path) for path in found} >= {f"{p}/__init__.py" for p in PACKAGES}
    assert [relative(path) for path in found if path.read_bytes()] == []
