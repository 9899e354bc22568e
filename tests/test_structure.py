"""Rules about the code itself that a newcomer should be able to rely on."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.paths import ROOT

MODULES = sorted((ROOT / "src").rglob("*.py"))
LONGEST_FILE = 500
LONGEST_FUNCTION = 60


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


def test_every_package_is_on_the_map() -> None:
    """ARCHITECTURE.md names each package, and nothing that does not exist."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    packages = {path.parent.name for path in (ROOT / "src/dovetail").glob("*/__init__.py")}
    missing = {package for package in packages if f"`{package}/`" not in text}
    assert not missing
