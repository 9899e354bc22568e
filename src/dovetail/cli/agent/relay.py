"""`dovetail agent relay`: the kubelet's runtime endpoint, in a process that outlives the agent."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import click

from dovetail.cli.agent.settings import AGENT
from dovetail.cli.support.exits import LocalFailure
from dovetail.cli.support.setting_options import load_settings, with_settings
from dovetail.config.values import BadSettings
from dovetail.core.errors import DovetailError

KEYS = (
    "runtime.socket",
    "runtime.listen",
    "runtime.relay",
    "runtime.relay_wait",
    "log_level",
    "log_format",
)


@click.command("relay")
@with_settings(AGENT, *KEYS)
def command(**flags: Any) -> None:
    """Stand between kubelet and runtime in the agent's place, and outlive its restarts.

    Reads the agent's settings, of which it needs those of the runtime. Runs until it is told to
    stop.
    """
    from dovetail.cli.run import readiness
    from dovetail.node.agent import relay
    from dovetail.telemetry import logs

    settings = load_settings(AGENT, flags).settings
    logs.configure(settings.log_level, settings.log_format, to_stderr=True)

    async def run() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await relay.run(settings.runtime, stop, lambda: readiness.notify("READY=1"))

    try:
        asyncio.run(run())
    except BadSettings as error:
        raise click.UsageError(str(error)) from error
    except DovetailError as error:
        raise LocalFailure(str(error)) from error
