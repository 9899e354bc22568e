"""The audit without a server: faults are shown, and healed only when told to."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dovetail.cli.main import main
from dovetail.ledger import open_ledger
from tests.ledger.world import claim, make

MISCOUNT = "miscount: DISK_GB of host: 3 is recorded as used, allocations say 10"


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A ledger with a wrong count, which can be healed, and too much in use, which cannot."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    ledger = open_ledger(url)
    host = make(ledger, "host", VCPU=8, DISK_GB=100)
    claim(ledger, (host, {"VCPU": 8, "DISK_GB": 10}))
    ledger.close()
    connection = sqlite3.connect(tmp_path / "ledger.db")
    with connection:
        connection.execute("UPDATE inventories SET used = 3 WHERE total = 100")
        connection.execute("UPDATE inventories SET total = 4 WHERE total = 8")
    connection.close()
    return url


def audit(database: str, *options: str) -> Result:
    return CliRunner().invoke(main, ["audit", "--database", database, *options])


def test_faults_are_shown_and_only_then_healed(database: str) -> None:
    found = audit(database)
    assert found.exit_code == 1
    assert found.stdout.splitlines() == [
        "Checked 1 providers, 2 inventories, 1 consumers, 2 allocations.",
        f"fault   {MISCOUNT} (--fix heals this)",
        "fault   overcommit: VCPU of host: 8 is used of a capacity of 4",
        "2 faults.",
    ]
    assert audit(database).stdout == found.stdout
    healed = audit(database, "--fix", "-o", "json")
    assert healed.exit_code == 1
    answer = json.loads(healed.stdout)
    assert [fault["kind"] for fault in answer["healed"]] == ["miscount"]
    assert [fault["kind"] for fault in answer["faults"]] == ["overcommit"]
    assert audit(database).stdout.endswith("\n1 fault.\n")


def test_a_database_that_is_none_is_not_made(tmp_path: Path) -> None:
    for url in (f"sqlite:///{tmp_path}/nothing.db", "mysql://x"):
        assert audit(url).exit_code == 2
    assert not (tmp_path / "nothing.db").exists()
