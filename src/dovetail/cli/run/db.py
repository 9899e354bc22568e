"""`dovetail db`: makes, upgrades, checks, backs up and restores the tables of the ledger."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from dovetail.cli.run.settings import SERVER
from dovetail.cli.support.exits import LocalFailure
from dovetail.cli.support.setting_options import FILE_ARGUMENT, load_settings, with_settings
from dovetail.config.declaration import without_passwords
from dovetail.core.errors import DovetailError
from dovetail.ledger.bulk import backup, restore
from dovetail.ledger.database import opening

DATABASE = with_settings(SERVER, "database")


@click.group()
def db() -> None:
    """Make, upgrade and check the tables of the ledger; back up and restore what is in them."""


@db.command()
@DATABASE
def upgrade(config_file: str | None, database: str | None) -> None:
    """Bring the tables to the newest revision (making them where there are none)."""
    url = chosen(config_file, database)
    before = state(url)
    with refusals():
        opening.upgrade(url)
    click.echo(f"{without_passwords(url)}: {before or 'no tables'} -> {opening.HEAD}")


@db.command()
@DATABASE
def check(config_file: str | None, database: str | None) -> None:
    """Exit with 0 if the tables are of the newest revision, with 1 if not."""
    url = chosen(config_file, database)
    found = state(url)
    click.echo(f"{without_passwords(url)}: {found or 'no tables'}, newest is {opening.HEAD}")
    sys.exit(found != opening.HEAD)


@db.command("backup")
@click.argument("file", type=click.Path(path_type=Path))
@DATABASE
def back_up(file: Path, config_file: str | None, database: str | None) -> None:
    """Write the whole ledger to a new FILE, as it is now; servers may go on working."""
    url = chosen(config_file, database)
    with refusals():
        counts = backup.backup(url, file)
    click.echo(f"{file}: {shown(counts)}; {file.stat().st_size} bytes")


@db.command("restore")
@click.argument("file", type=click.Path(path_type=Path))
@DATABASE
def restore_from(file: Path, config_file: str | None, database: str | None) -> None:
    """Fill an empty ledger from FILE, of whichever database it was made."""
    url = chosen(config_file, database)
    with refusals():
        counts = restore.restore(file, url)
    click.echo(f"{without_passwords(url)}: {shown(counts)}")


def shown(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())


def chosen(config_file: str | None, database: str | None) -> str:
    """The database that flag, environment or file name."""
    given = {FILE_ARGUMENT: config_file, "database": database}
    return load_settings(SERVER, given).settings.database


def state(database: str) -> str | None:
    with refusals():
        return opening.revision(database)


@contextmanager
def refusals() -> Iterator[None]:
    """What the ledger refuses is told in a line, without a traceback."""
    try:
        yield
    except DovetailError as error:
        raise LocalFailure(str(error)) from error
