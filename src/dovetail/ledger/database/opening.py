"""Opens the ledger at a database URL, and brings its tables to the newest revision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Protocol

from dovetail.core.errors import DovetailError
from dovetail.ledger.database.protocol import Ledger
from dovetail.ledger.database.sqlite import SqliteLedger
from dovetail.ledger.standards import sync_standard_names

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATION_SECONDS = 60
"""How long one who opens a SQLite ledger waits for another who makes its tables."""
HEAD = "0004"
"""The newest revision; a test compares it with the migrations themselves."""


class BadDatabase(DovetailError):
    """A URL that names no database we know, or tables of another version."""


def open_ledger(url: str) -> Ledger:
    """Open the ledger at `url`, making or upgrading its tables if they are not of this version."""
    if revision(url) != HEAD:
        upgrade(url)
    ledger = kind_of(url)(url)
    ledger.write(sync_standard_names).result()
    return ledger


@contextmanager
def opened(url: str) -> Iterator[Ledger]:
    """The ledger at `url` while the block runs."""
    ledger = open_ledger(url)
    try:
        yield ledger
    finally:
        ledger.close()


class LedgerKind(Protocol):
    """A kind of ledger: opens one at a URL, and tells the revision of the tables there."""

    def __call__(self, url: str) -> Ledger: ...

    def revision(self, url: str) -> str | None: ...


def kind_of(url: str) -> LedgerKind:
    if url.startswith("sqlite:///"):
        return SqliteLedger
    if url.startswith(("postgresql://", "postgres://")):
        # Only those who use PostgreSQL wait for its driver.
        from dovetail.ledger.database.postgres import PostgresLedger

        return PostgresLedger
    raise BadDatabase(
        f"{url!r} is no database URL: use sqlite:///path/to/file or postgresql://user@host/name"
    )


def revision(url: str) -> str | None:
    """The revision of the tables at `url`; None where there are none."""
    return kind_of(url).revision(url)


def upgrade(url: str) -> None:
    """Bring the tables to the newest revision."""
    import sqlalchemy as sa
    from alembic import command

    target = url.replace("postgres://", "postgresql://").replace(
        "postgresql://", "postgresql+psycopg://"
    )
    engine = sa.create_engine(target)
    try:
        with engine.begin() as connection:
            # Two replicas that start together must not both migrate.
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(4711)"))
            else:
                connection.exec_driver_sql(f"PRAGMA busy_timeout = {MIGRATION_SECONDS * 1000}")
                connection.exec_driver_sql("BEGIN EXCLUSIVE")
            config = alembic_config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    finally:
        engine.dispose()


def alembic_config() -> Config:
    from alembic.config import Config

    config = Config()
    migrations = resources.files("dovetail.ledger") / "migrations"
    config.set_main_option("script_location", str(migrations))
    config.set_main_option("path_separator", "os")
    return config
