"""Every command that a page shows prints what the page says, and no command is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dovetail.cli.main import VERBS
from dovetail.cli.support import exits
from tests.cli.conftest import commands, demo_server
from tests.support.page import PAGE, PAGES, Player

TEXT = PAGE.read_text(encoding="utf-8")
VARYING = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[0-9:]+Z|python .*"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_everything_shown_is_what_is_printed(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    with demo_server(tmp_path) as url:
        player = Player(commands(url))
        played = player.play(text)
    assert VARYING.sub("…", played) == VARYING.sub("…", text)
    assert player.tried


def test_no_command_is_missing() -> None:
    assert [name for name in VERBS if f"`{name}`" not in TEXT] == []


def test_exit_codes_are_those_of_the_command() -> None:
    for code, meaning in exits.TABLE:
        assert f"| {code} | {meaning} |" in TEXT
