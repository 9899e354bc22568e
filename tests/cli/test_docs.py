"""The page about the command: every command it shows prints what it says, and none is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dovetail.cli import exits
from dovetail.cli.main import VERBS
from tests.cli.conftest import commands, demo_server
from tests.cli.page import PAGE, Player

TEXT = PAGE.read_text(encoding="utf-8")
VARYING = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[0-9:]+Z|python .*"
)


def test_everything_shown_is_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with demo_server(tmp_path) as url:
        player = Player(commands(url))
        played = player.play(TEXT)
    assert VARYING.sub("…", played) == VARYING.sub("…", TEXT)
    assert player.tried > 20


def test_no_command_is_missing() -> None:
    assert [name for name in VERBS if f"`{name}`" not in TEXT] == []


def test_exit_codes_are_those_of_the_command() -> None:
    for code, meaning in exits.TABLE:
        assert f"| {code} | {meaning} |" in TEXT
