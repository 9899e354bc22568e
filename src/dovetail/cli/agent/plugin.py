"""`dovetail agent plugin`: runs one of the plugins that ship with the agent."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from dovetail.cli.support.exits import LocalFailure
from dovetail.core.errors import DovetailError

DIRECTORY = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
LEVELS = ("debug", "info", "warning", "error")


@click.command("plugin")
@click.argument("kind", type=click.Choice(("cpu", "memory", "nic")))
@click.option("--roles", type=FILE, required=True, help="What is done for whom (TOML).")
@click.option(
    "--socket-dir", type=DIRECTORY, required=True, help="Where the agent looks for plugins."
)
@click.option(
    "--state-dir", type=DIRECTORY, required=True, help="Where it keeps who has what; only its own."
)
@click.option("--resource", help="What to register for.  [default: cpu, memory or NIC]")
@click.option("--sysfs", type=DIRECTORY, default="/sys", show_default=True)
@click.option("--proc", type=DIRECTORY, help="[default: proc beside the sysfs]")
@click.option(
    "--period",
    type=click.FloatRange(0.05, 3600),
    default=1.0,
    show_default=True,
    help="Seconds between looks at the roles, at wishes of pools and at the load.",
)
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True)
def command(
    *,
    kind: str,
    roles: Path,
    socket_dir: Path,
    state_dir: Path,
    resource: str | None,
    sysfs: Path,
    proc: Path | None,
    period: float,
    log_level: str,
) -> None:
    """Serve the plugin for CPUs, memory or NICs, until it is told to stop.

    SIGHUP has the file of roles read again, which happens by itself when the file changes.
    """
    from dovetail.node.plugins import running
    from dovetail.telemetry import logs

    logs.configure(log_level)
    setup = running.PluginSetup(
        kind=kind,
        resource=resource or running.RESOURCES[kind],
        roles=roles,
        socket_directory=socket_dir,
        state_directory=state_dir,
        sysfs=sysfs,
        proc=proc or sysfs.parent / "proc",
        period=period,
    )
    try:
        asyncio.run(running.run(setup, running.prepare(setup)))
    except (DovetailError, OSError) as error:
        raise LocalFailure(str(error)) from error
