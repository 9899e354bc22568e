"""Databases for tests: empty ones, copies of a ledger with its tables, and a way past the ledger.

Making the tables is nearly half of a server's start; copying them takes a moment.
"""

from __future__ import annotations

import shutil
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

SQLITE = "sqlite:///"


def empty(cluster: str) -> str:
    """The URL of a database without tables, on the PostgreSQL server that this URL leads to."""
    return _created(cluster)


def copied(ledger: str, file: Path) -> str:
    """The URL of a copy of a ledger that nobody has open: beside it, or in the file on SQLite."""
    if ledger.startswith(SQLITE):
        shutil.copyfile(ledger.removeprefix(SQLITE), file)
        return f"{SQLITE}{file}"
    return _created(ledger, f"TEMPLATE {urlsplit(ledger).path[1:]}")


@contextmanager
def connected(url: str) -> Iterator[Any]:
    """A connection of the driver's own; what is done in the block is one transaction."""
    sqlite = url.startswith(SQLITE)
    connection = sqlite3.connect(url.removeprefix(SQLITE)) if sqlite else _postgresql(url)
    with closing(connection), connection:
        yield connection


def _created(url: str, how: str = "") -> str:
    name = f"test_{uuid.uuid4().hex}"
    with _postgresql(url, dbname="postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} {how}")
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/{name}?{parts.query}"


def _postgresql(url: str, **options: Any) -> Any:
    # Only those who use PostgreSQL wait for its driver.
    import psycopg

    return psycopg.connect(url, **options)
