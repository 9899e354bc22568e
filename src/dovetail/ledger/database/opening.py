"""Opens the ledger at a database URL, and brings its tables to the newest revision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Any, Protocol

from dovetail.core.errors import DovetailError
from dovetail.ledger.database.protocol import Ledger
from dovetail.ledger.database.settings import DEFAULTS, LedgerSettings
from dovetail.ledger.database.sqlite import SQLITE, SqliteLedger, database_path
from dovetail.ledger.database.sqlite_file import OPENING_SECONDS, FaultsTold
from dovetail.ledger.standards import sync_standard_names

if TYPE_CHECKING:
    from alembic.config import Config

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006")
"""Of the tables, the oldest first; a test compares them with the migrations themselves."""
HEAD = REVISIONS[-1]


class BadDatabase(DovetailError):
    """A URL that names no database we know, or tables of another version."""


def open_ledger(url: str, settings: LedgerSettings = DEFAULTS) -> Ledger:
    """Open the ledger at `url`, making or upgrading its tables if they are not of this version.

    Raises BadDatabase, LedgerBusy.
    """
    if revision(url) != HEAD:
        upgrade(url)
    ledger = kind_of(url)(url, settings)
    try:
        ledger.write(sync_standard_names).result()
    except BaseException:
        ledger.close()
        raise
    return ledger


@contextmanager
def opened(url: str, settings: LedgerSettings = DEFAULTS) -> Iterator[Ledger]:
    """The ledger at `url` while the block runs."""
    ledger = open_ledger(url, settings)
    try:
        yield ledger
    finally:
        ledger.close()


class LedgerKind(Protocol):
    """A kind of ledger: opens one at a URL, and tells the revision of the tables there."""

    def __call__(self, url: str, settings: LedgerSettings = DEFAULTS) -> Ledger: ...

    def revision(self, url: str) -> str | None: ...


def kind_of(url: str) -> LedgerKind:
    if url.startswith(SQLITE):
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
    """Bring the tables to the newest revision: all of it, or nothing. Raises as `open_ledger`."""
    refuse_unknown(revision(url))
    if url.startswith(SQLITE):
        with FaultsTold(database_path(url)):
            migrate(
                url, (f"PRAGMA busy_timeout = {int(OPENING_SECONDS * 1000)}", "BEGIN EXCLUSIVE")
            )
        return
    from dovetail.ledger.database.postgres import migrating

    with migrating(url) as (options, statements):
        migrate(with_driver(url), statements, options)


def refuse_unknown(found: str | None) -> None:
    if found is not None and found not in REVISIONS:
        raise BadDatabase(
            f"the ledger's tables are of revision {found}, and this Dovetail knows them up to "
            f"{HEAD}: a newer one made them; use that, or another database"
        )


def migrate(
    target: str, first: Iterable[str], connect_options: Mapping[str, Any] | None = None
) -> None:
    """Run the migrations in one transaction, after these statements, which keep others out."""
    import sqlalchemy as sa
    from alembic import command

    engine = sa.create_engine(target, connect_args=dict(connect_options or {}))
    try:
        with engine.begin() as connection:
            for statement in first:
                connection.exec_driver_sql(statement)
            config = alembic_config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except sa.exc.DBAPIError as error:
        # The driver's own error is what those who know the driver have words for.
        raise (error.orig or error) from error
    finally:
        engine.dispose()


def with_driver(url: str) -> str:
    """As SQLAlchemy wants it."""
    scheme, rest = url.split("://", 1)
    assert scheme in {"postgres", "postgresql"}
    return f"postgresql+psycopg://{rest}"


def alembic_config() -> Config:
    from alembic.config import Config

    config = Config()
    migrations = resources.files("dovetail.ledger") / "migrations"
    config.set_main_option("script_location", str(migrations))
    config.set_main_option("path_separator", "os")
    return config
