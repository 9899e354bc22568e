"""`dovetail manifests`: what is installed in a Kubernetes cluster, for `kubectl apply`."""

from __future__ import annotations

import click

from dovetail.cli.support.output import printing, table
from dovetail.kube.manifests import OPTIONAL_PARTS, PARTS, text

EVERY_PART = PARTS | OPTIONAL_PARTS


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(tuple(EVERY_PART)), metavar="[PART]...")
@click.option("--list", "listing", is_flag=True, help="Only say which parts there are.")
def manifests(parts: tuple[str, ...], listing: bool) -> None:
    """Print what Kubernetes needs to know.

    All of it but what is optional, or these parts of it:

    \b
    dovetail manifests crds | kubectl apply --server-side -f -
    """
    chosen = {part: EVERY_PART[part] for part in parts or (EVERY_PART if listing else PARTS)}
    with printing():
        if listing:
            for line in table(("PART", "HOLDS"), list(chosen.items())):
                click.echo(line)
        else:
            click.echo(text(tuple(chosen)), nl=False)
