"""A live server and its examiner for each test module: on SQLite, and on PostgreSQL.

The examples are the same in every run. For ten times as many, drawn anew each time:

    DOVETAIL_FUZZ_SCALE=10 .venv/bin/pytest tests/fuzz
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.stress import servers

from .examiner import Examiner

POSTGRESQL_SHARE = 0.15
"""The rules are one code for both; PostgreSQL differs in what its columns can hold."""


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def examiner(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Examiner]:
    directory: Path = tmp_path_factory.mktemp("fuzz")
    if request.param == "sqlite":
        database, share = f"sqlite:///{directory / 'ledger.db'}", 1.0
    else:
        database, share = _hasty_database(request.getfixturevalue("postgres")), POSTGRESQL_SHARE
    server = servers.Server(database, directory / "server.log")
    with servers.running(server):
        examiner = Examiner(server, share)
        with closing(examiner.world):
            yield examiner


def _hasty_database(cluster: str) -> str:
    """The world is rebuilt hundreds of times; nothing here has to outlive a power cut."""
    database = servers.fresh_database(cluster)
    with psycopg.connect(database, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    return database
