"""`dovetail db`: the tables of the ledger."""

from __future__ import annotations

import sys

import click

from dovetail.core.errors import DovetailError
from dovetail.ledger import opening

DATABASE = click.option(
    "--database",
    default="sqlite:///dovetail.db",
    show_default=True,
    envvar="DOVETAIL_DATABASE",
    help="sqlite:///PATH or postgresql://USER@HOST/NAME",
)


@click.group()
def db() -> None:
    """Make, upgrade and check the tables of the ledger."""


@db.command()
@DATABASE
def upgrade(database: str) -> None:
    """Bring the tables to the newest revision (making them where there are none)."""
    before = state(database)
    opening.upgrade(database)
    click.echo(f"{database}: {before or 'no tables'} -> {opening.HEAD}")


@db.command()
@DATABASE
def check(database: str) -> None:
    """Exit with 0 if the tables are of the newest revision, with 1 if not."""
    found = state(database)
    click.echo(f"{database}: {found or 'no tables'}, newest is {opening.HEAD}")
    sys.exit(found != opening.HEAD)


def state(database: str) -> str | None:
    try:
        return opening.revision(database)
    except DovetailError as error:
        raise click.ClickException(str(error)) from error
