"""`dovetail intents`: hardware intents over many clusters, asked of a server."""

from __future__ import annotations

import click

from dovetail.cli.intents.applying import apply, delete, get
from dovetail.cli.intents.asking import explain, plan, status


@click.group()
def intents() -> None:
    """Say what hardware an application needs, and see which clusters can take it."""


for command in (apply, delete, get, plan, explain, status):
    intents.add_command(command)
