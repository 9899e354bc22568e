"""`dovetail scheduler`: places pods on the nodes of a Kubernetes cluster, with their devices."""

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
from dovetail.kube.scheduler.settings import SchedulerSettings
from dovetail.telemetry import logs

SCHEDULER = Layers(SchedulerSettings, "DOVETAIL_SCHEDULER_")


@click.command()
@with_settings(SCHEDULER)
def scheduler(**flags: Any) -> None:
    """Place pods of a Kubernetes cluster, and claim the devices they ask for.

    Pods with `schedulerName: dovetail` are placed. With --extender-listen, kube-scheduler can ask
    about devices of all others.
    """
    settings = load_settings(SCHEDULER, flags).settings
    logs.configure(settings.log_level)
    try:
        uvloop.run(_run(settings))
    except DovetailError as error:
        raise LocalFailure(str(error)) from error


async def _run(settings: SchedulerSettings) -> None:
    from dovetail.kube.daemon import run

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await run(settings, stop, lambda: readiness.notify("READY=1"))
