"""Rules about the code itself that a newcomer should be able to rely on."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.support.paths import ROOT

MODULES = sorted((ROOT / "src").rglob("*.py"))
LONGEST_FILE = 400
LONGEST_FUNCTION = 60
MOST_MODULES = 16
"""Of a folder, without `__init__`: more than that nobody looks through."""

FOREIGN_WORDS = (
    "src/dovetail/node/wire/",
    "src/dovetail/wire/",
    "src/dovetail/service/intents/controllers/contracts/",
    "src/dovetail/podfit/objects.py",
    "src/dovetail/machines/documents.py",
)
"""Their classes have the names that a wire protocol, Kubernetes or Imperator gives them."""


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_module(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    module = ast.parse(text)
    assert ast.get_docstring(module), "a module says what it holds"
    assert len(text.splitlines()) <= LONGEST_FILE
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            length = node.end_lineno - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{node.name} has {length} lines"


def test_folders_are_small() -> None:
    counts = Counter(path.parent for path in MODULES if path.name != "__init__.py")
    large = {name(folder): count for folder, count in counts.items() if count > MOST_MODULES}
    assert not large


def test_a_class_name_stands_for_one_class() -> None:
    """So that whoever looks for a name finds the one that is meant."""
    places: dict[str, list[str]] = {}
    for path in MODULES:
        if not name(path).startswith(FOREIGN_WORDS):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    places.setdefault(node.name, []).append(name(path))
    repeated = {each: paths for each, paths in places.items() if len(paths) > 1}
    assert not repeated


def test_what_the_makefile_calls_exists() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    modules = set(re.findall(r"/python -m ([a-z_.]+)", text))
    missing = {each for each in modules if importlib.util.find_spec(each) is None}
    paths = set(
        re.findall(r"(?<![\w./-])(?:tests|bench|requirements|packaging|docs)/[\w./-]+", text)
    )
    missing |= {each for each in paths if not (ROOT / each).exists()}
    assert "tests.kube.soak" in modules
    assert not missing


def test_every_package_is_on_the_map() -> None:
    """ARCHITECTURE.md names each package, and nothing that does not exist."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    packages = {path.parent.name for path in (ROOT / "src/dovetail").glob("*/__init__.py")}
    missing = {package for package in packages if f"`{package}/`" not in text}
    assert not missing
