"""The tour of hardware intents prints what its page says, in the folder of its examples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import commands, demo_server
from tests.support.page import INTENT_FILES, INTENTS, Player

AGE = re.compile(r"told \d+ s ago")


def test_everything_shown_is_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(INTENT_FILES)
    text = INTENTS.read_text(encoding="utf-8")
    with demo_server(tmp_path) as url:
        player = Player(commands(url))
        played = player.play(text)
    assert AGE.sub("…", played) == AGE.sub("…", text)
    assert player.tried


def test_every_file_of_the_examples_is_used() -> None:
    text = INTENTS.read_text(encoding="utf-8")
    shown = {
        path.name
        for path in INTENT_FILES.iterdir()
        if f"]({path.relative_to(INTENTS.parent)})" in text
    }
    named = {
        path.name
        for path in INTENT_FILES.iterdir()
        if any(f"file: {path.name}" in other.read_text() for other in INTENT_FILES.iterdir())
    }
    assert shown | named == {path.name for path in INTENT_FILES.iterdir()}
