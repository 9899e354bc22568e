"""The example of the page prints what the page says, apart from times."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dovetail.cli.main import main
from tests.support.paths import ROOT

PAGE = ROOT / "docs/simulate.md"
BLOCK = re.compile(r"^    \$ (.*)\n((?:    (?!\$ ).*\n)+)", re.MULTILINE)


def test_the_example_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tried = 0
    for line, printed in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        verb, *arguments = line.split()
        text = re.sub("^    ", "", printed, flags=re.MULTILINE)
        if verb == "cat":
            Path(arguments[0]).write_text(text)
        else:
            result = CliRunner().invoke(main, [*arguments, "-j", "1"])
            assert without_times(result.stdout) == without_times(text)
            tried += 1
    assert tried == 1


def without_times(table: str) -> list[list[str]]:
    """The words of each line; the last three columns are times."""
    header, *rows = table.splitlines()
    return [header.split(), *(row.split()[:-3] for row in rows)]
