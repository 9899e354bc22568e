"""`dovetail version`: shows what is installed here."""

from __future__ import annotations

import platform

import click

from dovetail import __version__
from dovetail.cli.support.output import output_option, show


@click.command()
@output_option
def version(form: str) -> None:
    """Show the version."""
    found = {"dovetail": __version__, "python": platform.python_version()}
    show(form, found, lambda: [f"{name} {number}" for name, number in found.items()])
