"""Steps of the pages, run as they are written: the blocks after `<!-- install: NAME -->`."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from tests.support.paths import ROOT

DOCS = ROOT / "docs"
OURS = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
"""Variables of those who run the tests, which somebody who installs does not have."""
SECONDS = 580


def written(page: str, name: str) -> str:
    """The commands of one block."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.search(rf"^<!-- install: {name} -->\n\n((?:    .*\n)+)", text, re.MULTILINE)
    assert found is not None, f"{page} has no steps {name}"
    return dedent(found[1])


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in OURS}
    return kept | dict(more or {})


def play(script: str, *, cwd: Path = ROOT, more: Mapping[str, str] | None = None) -> str:
    """What it prints; a step that fails ends it, and the test."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=cwd,
        env=environment(more),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout
