"""A ledger for tests of controllers, where it matters little of which kind it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dovetail.ledger import Ledger, open_ledger
from tests.support import databases


@pytest.fixture
def kept(sqlite_with_tables: str, tmp_path: Path) -> Iterator[Ledger]:
    opened = open_ledger(databases.copied(sqlite_with_tables, tmp_path / "ledger.db"))
    yield opened
    opened.close()
