"""`dovetail agent`: the daemon of a node, and what can be asked of it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

SUMMARIES = {
    "topology": "Show the CPUs, NUMA nodes, caches and NICs of this machine.",
    "plugins": "Show resource plugins and device plugins, and how they fare.",
    "state": "Show which pods hold what on this node.",
    "explain": "Say what POD was given on this node and how that came about, or why not.",
    "plugin": "Serve the plugin for CPUs, memory or NICs, until it is told to stop.",
    "relay": "Stand between kubelet and runtime in the agent's place, and outlive its restarts.",
    "pools": "Show the pools; with sizes, have the plugin resize them.",
}
"""The first sentence of each command's help, so that listing them needs no import."""


class Agent(click.Group):
    """Flags and verbs are looked up when they are needed: the settings take time to import."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        from dovetail.cli.agent.settings import options

        return [*options(), *super().get_params(ctx)]

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(SUMMARIES)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in SUMMARIES:
            return None
        command: click.Command = import_module(f"dovetail.cli.agent.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))


@click.group(cls=Agent, invoke_without_command=True)
@click.pass_context
def agent(ctx: click.Context, /, **flags: Any) -> None:
    """Run the daemon of a node, which gives pods their CPUs and memory; or ask it.

    Without a command the daemon runs, with these options. The commands ask a daemon that runs,
    on its control socket, or run something else.
    """
    given = {name: value for name, value in flags.items() if value not in (None, ())}
    if ctx.invoked_subcommand is None:
        from dovetail.cli.agent.daemon import run

        run(given)
    elif given:
        command = ctx.invoked_subcommand
        words = f"options of the daemon do not go with {command}; those of {command} come after it"
        raise click.UsageError(words)
