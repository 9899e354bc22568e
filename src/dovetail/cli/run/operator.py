"""`dovetail operator`: holds the stock of Machines in a Kubernetes cluster, and sells it."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import click
import uvloop

from dovetail.cli.run import readiness
from dovetail.cli.support.exits import LocalFailure
from dovetail.cli.support.setting_options import load_settings, with_settings
from dovetail.config.layers import Layers
from dovetail.core.errors import DovetailError
from dovetail.kube.machines.settings import OperatorSettings
from dovetail.telemetry import logs

OPERATOR = Layers(OperatorSettings, "DOVETAIL_OPERATOR_")


@click.command()
@with_settings(OPERATOR)
def operator(**flags: Any) -> None:
    """Hold the stock of Machines of a Kubernetes cluster, and sell it to guests.

    A Machine names shapes and the nodes they are sold from; pods take a unit by their labels. See
    docs/machines.md.
    """
    settings = load_settings(OPERATOR, flags).settings
    logs.configure(settings.log_level)
    try:
        uvloop.run(_run(settings))
    except DovetailError as error:
        raise LocalFailure(str(error)) from error


async def _run(settings: OperatorSettings) -> None:
    from dovetail.kube.machines.daemon import run

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await run(settings, stop, lambda: readiness.notify("READY=1"))
