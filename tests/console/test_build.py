"""The bundle is built once for the same sources, aside, and put in place as a whole."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT

SCRIPT = ROOT / "packaging/build_console.py"


def build_of(root: Path) -> Any:
    spec = importlib.util.spec_from_file_location("build_console", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ConsoleBuild(root)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """With the console's sources, and the modules that are installed here."""
    shutil.copytree(
        ROOT / "console", tmp_path / "console", ignore=shutil.ignore_patterns("node_modules")
    )
    (tmp_path / "console/node_modules").symlink_to(ROOT / "console/node_modules")
    (tmp_path / "src/dovetail/rest/console").mkdir(parents=True)
    return tmp_path


def test_nothing_is_built_twice(checkout: Path) -> None:
    build = build_of(checkout)
    assert not build.is_built
    assert build.build()
    assert build.is_built
    assert not build.build()
    first = files(build.bundle)
    assert "manifest.json" in first

    source = checkout / "console/src/main.tsx"
    source.write_text(f"{source.read_text()}\nconsole.log('another');\n")
    assert not build.is_built
    assert build.build()
    assert files(build.bundle) != first
    beside = {path.name for path in build.bundle.parent.iterdir()}
    assert beside == {"static"}, "nothing is left beside it"


def test_a_build_that_fails_leaves_the_bundle_that_is_there(checkout: Path) -> None:
    build = build_of(checkout)
    build.build()
    first = files(build.bundle)
    (checkout / "console/src/main.tsx").write_text("import './not-there';\n")
    with pytest.raises(Exception, match="vite"):
        build.build()
    assert files(build.bundle) == first
    assert not build.is_built


def test_the_bundle_is_not_committed() -> None:
    """It holds the code of others."""
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert "/src/dovetail/rest/console/static*/" in ignored
    assert "/console/node_modules/" in ignored


def files(folder: Path) -> set[str]:
    return {
        str((Path(top) / name).relative_to(folder))
        for top, _, names in os.walk(folder)
        for name in names
    }
