"""One command, `dovetail`. Verbs are imported when they are used, so help is instant."""

from __future__ import annotations

from importlib import import_module

import click

from dovetail import __version__

VERBS = {
    "serve": ("dovetail.cli.serve", "serve"),
    "db": ("dovetail.cli.db", "db"),
    "token": ("dovetail.cli.token", "token"),
}


class Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in VERBS:
            return None
        module, attribute = VERBS[name]
        command: click.Command = getattr(import_module(module), attribute)
        return command


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dovetail")
def main() -> None:
    """Fits workloads to hardware: one ledger of a fleet, one engine that finds every fit."""
