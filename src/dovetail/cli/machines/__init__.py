"""`dovetail machines`: what is sold, why a guest waits, what a change would do, what more fits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from dovetail.cli.support import exits
from dovetail.cli.support.output import output_option, show

FILE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
Command = TypeVar("Command", bound=Callable[..., None])


def reads_cluster(command: Command) -> Command:
    """Options that say which cluster is meant, and how much of it is seen."""
    for option in (
        click.option(
            "--cluster",
            default="",
            metavar="NAME",
            help="Name of the cluster in the ledger, where several share it.",
        ),
        click.option(
            "--database",
            metavar="URL",
            help="The operator's ledger, if it can be reached: what is sold is read there, "
            "and not from pods.",
        ),
        click.option(
            "--operator-namespace",
            "namespace",
            default="dovetail",
            show_default=True,
            metavar="NAME",
            help="Where the operator holds its stock.",
        ),
        click.option(
            "--kubeconfig",
            metavar="FILE",
            help="How the API server is reached; otherwise as kubectl would.",
        ),
    ):
        command = option(command)
    return command


@click.group()
def machines() -> None:
    """Show machines of a Kubernetes cluster: what is sold, why guests wait, what would fit."""


@machines.command("list")
@click.argument("name", metavar="[MACHINE]", required=False)
@output_option
@reads_cluster
def list_all(name: str | None, form: str, **options: Any) -> None:
    """List machine types with their units, who holds them, and who waits for what.

    All holders and all who wait, where the status of a Machine has the first hundred of a type.
    Who may read Machines, but neither nodes nor pods of others, is shown what the status has.
    """
    from dovetail.cli.machines import listing

    found = listing.listings(options, name)
    show(form, found, lambda: listing.lines(found))


@machines.command("explain")
@click.argument("pod")
@output_option
@reads_cluster
def explain_one(pod: str, form: str, **options: Any) -> None:
    """Say why POD has a unit or waits for one, and what would help.

    POD is a name, namespace/name, or a uid. Shows how many nodes of the pool each condition leaves,
    with those served who are ahead of it, and the smallest changes after which it would be sold
    a unit. Exits with 1 if it cannot have one now.
    """
    from dovetail.cli.machines import explaining, sources

    found = explaining.explained(sources.read(**options), pod)
    show(form, found, lambda: explaining.lines(found))
    sys.exit(0 if found["explanation"]["verdict"] == "fits" else exits.NO)


@machines.command("plan")
@click.option("-f", "--file", "file", type=FILE, required=True, help="The Machine: YAML or JSON.")
@click.option(
    "--nodes",
    "nodes_file",
    type=FILE,
    help="Nodes of this file instead of a cluster's, such as `kubectl get nodes -o yaml` writes. "
    "Pods, namespaces and Machines in it are counted as well.",
)
@output_option
@reads_cluster
def plan_one(*, file: Path, nodes_file: Path | None, form: str, **options: Any) -> None:
    """Say whether a Machine would be accepted, whether its stock fits, and what would change.

    Nothing is written. Exits with 1 if it would not be accepted, or if not all of its stock is
    known to fit beside what runs.
    """
    from dovetail.cli.machines import planning, sources

    state = sources.read(**options) if nodes_file is None else sources.from_file(nodes_file)
    found = planning.planned(state, sources.machine(file))
    show(form, found, lambda: planning.lines(found))
    sys.exit(0 if found["accepted"] and found["fits"] else exits.NO)


@machines.command("forecast")
@click.argument("name", metavar="[MACHINE]", required=False)
@output_option
@reads_cluster
def forecast_all(name: str | None, form: str, **options: Any) -> None:
    """Say how many more units of each type would really fit on the nodes of its pool.

    Beside the stock and all that runs, and if nothing but units were on the nodes. Each type by
    itself: what two could have more of, they may not have both.
    """
    from dovetail.cli.machines import forecasting, sources

    found = forecasting.forecasts(sources.read(**options), name)
    show(form, found, lambda: forecasting.lines(found))
