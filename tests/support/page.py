"""Pages with commands, played: every command they show is run, on the demo fleet.

`python -m tests.support.page` writes what they print now into the pages.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from pathlib import Path

from tests.cli.conftest import Run, commands, demo_server
from tests.support.paths import ROOT

PAGE = ROOT / "docs/cli.md"
PAGES = (PAGE, ROOT / "docs/explain.md", ROOT / "docs/ranking.md", ROOT / "README.md")
INTENTS = ROOT / "docs/intents.md"
INTENT_FILES = ROOT / "docs/examples/intents"
"""Where the commands of that page are run."""
NOT_PLAYED = {"serve", "token", "db"}
"""Verbs that are not about the demo fleet."""
BLOCK = re.compile(r"^    \$ (.*)\n((?:    (?!\$ ).*\n|\n(?=\n*    (?!\$ )))*)", re.MULTILINE)
"""A command and what it prints; lines of that may be empty, the last is not."""


class Player:
    """Runs commands as a shell would, as far as the page needs one."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._code = 0
        self.tried = 0

    def play(self, text: str) -> str:
        """The page with what the commands print now."""
        return BLOCK.sub(self._block, text)

    def _block(self, found: re.Match[str]) -> str:
        line, printed = found.groups()
        verb, *arguments = shlex.split(line, comments=True)
        if verb == "cat":
            text = re.sub("^    ", "", printed, flags=re.MULTILINE)
            Path(arguments[0]).write_text(text, encoding="utf-8")
        elif verb == "echo":
            printed = indented(f"{self._code}\n")
        elif verb == "dovetail" and arguments[0] not in NOT_PLAYED:
            self.tried += 1
            result = self._run(*arguments)
            self._code, printed = result.exit_code, indented(result.output)
        return f"    $ {line}\n{printed}"


def indented(text: str) -> str:
    return "".join(f"    {line}".rstrip() + "\n" for line in text.splitlines())


def main() -> None:
    for page in (*PAGES, INTENTS):
        with tempfile.TemporaryDirectory() as folder, demo_server(Path(folder)) as url:
            os.chdir(INTENT_FILES if page == INTENTS else folder)
            played = Player(commands(url)).play(page.read_text(encoding="utf-8"))
            page.write_text(played, encoding="utf-8")


if __name__ == "__main__":
    main()
