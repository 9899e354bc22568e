"""A live server and its examiner for each test module: on SQLite, and on PostgreSQL.

The examples are the same in every run. For ten times as many, drawn anew each time:

    DOVETAIL_FUZZ_SCALE=10 .venv/bin/pytest tests/fuzz
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from . import servers
from .examiner import Examiner

POSTGRESQL_SHARE = 0.15
"""The rules are one code for both; PostgreSQL differs in what its columns can hold."""


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with servers.postgres(tmp_path_factory.mktemp("cluster") / "data") as url:
        yield url


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def examiner(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Examiner]:
    directory: Path = tmp_path_factory.mktemp("fuzz")
    if request.param == "sqlite":
        database, share = f"sqlite:///{directory / 'ledger.db'}", 1.0
    else:
        database, share = _new_database(request.getfixturevalue("cluster"), directory.name)
    with servers.running(database, directory / "server.log") as server:
        examiner = Examiner(server, share)
        yield examiner
        examiner.world.close()


def _new_database(cluster: str, name: str) -> tuple[str, float]:
    with psycopg.connect(cluster, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        # The world is rebuilt hundreds of times; nothing here has to outlive a power cut.
        connection.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    return cluster.replace("/postgres?", f"/{name}?"), POSTGRESQL_SHARE
