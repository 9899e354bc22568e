"""Databases, their revisions, and URLs that name none."""

from __future__ import annotations

import subprocess
import sys

import pytest
from alembic.script import ScriptDirectory

from dovetail.ledger.database import opening
from dovetail.ledger.database.opening import BadDatabase, alembic_config, open_ledger


def test_revisions_are_those_of_the_migrations() -> None:
    newest_first = ScriptDirectory.from_config(alembic_config()).walk_revisions()
    assert tuple(each.revision for each in newest_first) == opening.REVISIONS[::-1]


def test_an_empty_database_gets_its_tables(empty_url: str) -> None:
    assert opening.revision(empty_url) is None
    opening.upgrade(empty_url)
    assert opening.revision(empty_url) == opening.HEAD


def test_opening_twice_changes_nothing(empty_url: str) -> None:
    first = open_ledger(empty_url)
    before = first.read(lambda tx: tx.rows("SELECT id, name FROM traits ORDER BY id")).result()
    first.close()
    second = open_ledger(empty_url)
    after = second.read(lambda tx: tx.rows("SELECT id, name FROM traits ORDER BY id")).result()
    second.close()
    assert before == after
    assert len(after) > 300


@pytest.mark.parametrize("url", ["mysql://host/db", "ledger.db", ""])
def test_a_url_that_names_no_database_is_refused(url: str) -> None:
    with pytest.raises(BadDatabase, match="sqlite:///path/to/file or postgresql://"):
        open_ledger(url)


def test_several_processes_may_open_an_empty_database_at_once(empty_url: str) -> None:
    """As replicas that are started together do."""
    program = (
        "import sys; from dovetail.ledger import open_ledger; open_ledger(sys.argv[1]).close()"
    )
    command = [sys.executable, "-c", program, empty_url]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(4)]
    said = [process.communicate()[1].decode() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, said
