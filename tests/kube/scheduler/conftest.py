from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dovetail.kube.classes import status as class_status
from dovetail.kube.scheduler import ledger_watch, queue, scheduler
from tests.kube.scheduler.world import World
from tests.support import databases


@pytest.fixture
def database(sqlite_with_tables: str, tmp_path: Path) -> str:
    return databases.copied(sqlite_with_tables, tmp_path / "ledger.db")


@pytest.fixture
def world(database: str) -> Iterator[World]:
    made = World(database)
    yield made
    made.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done every second, or waits for one, does so twenty times as often."""
    monkeypatch.setattr(queue, "FIRST_BACK_OFF", 0.05)
    monkeypatch.setattr(ledger_watch, "SECONDS", 0.05)
    monkeypatch.setattr(scheduler, "WATCH_SECONDS", 0.05)
    monkeypatch.setattr(class_status, "INTERVAL", 0.05)
