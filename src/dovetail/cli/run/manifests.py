"""`dovetail manifests`: what is installed in a Kubernetes cluster, for `kubectl apply`."""

from __future__ import annotations

import click

from dovetail.cli.support.output import printing, table
from dovetail.kube.manifests import PARTS, text


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(tuple(PARTS)), metavar="[PART]...")
@click.option("--list", "listing", is_flag=True, help="Only say which parts there are.")
def manifests(parts: tuple[str, ...], listing: bool) -> None:
    """Print what Kubernetes needs to know.

    All of it, or these parts of it:

    \b
    dovetail manifests crds | kubectl apply --server-side -f -
    """
    chosen = {part: PARTS[part] for part in parts or PARTS}
    with printing():
        if listing:
            for line in table(("PART", "HOLDS"), list(chosen.items())):
                click.echo(line)
        else:
            click.echo(text(tuple(chosen)), nl=False)
