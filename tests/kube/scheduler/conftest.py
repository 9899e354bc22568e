from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

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
