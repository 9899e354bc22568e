"""`dovetail scheduler`: places pods on the nodes of a Kubernetes cluster, with their devices."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from functools import cache
from typing import Any

import click
import msgspec
import uvloop

from dovetail.cli.run import logs, readiness
from dovetail.cli.run.config import Setting, declared
from dovetail.cli.run.config_layers import layers, tree_of
from dovetail.cli.run.options import option
from dovetail.cli.support.exits import Failed
from dovetail.core.errors import DovetailError
from dovetail.kube.scheduler.settings import Settings

PREFIX = "DOVETAIL_SCHEDULER_"
FILE = "config_file"
FILE_VARIABLE = f"{PREFIX}CONFIG"


class SchedulerSetting(Setting, frozen=True):
    """Its variable is not that of a server's setting of the same name."""

    @property
    def variable(self) -> str:
        return PREFIX + self.argument.upper()


@cache
def settings() -> tuple[SchedulerSetting, ...]:
    return tuple(SchedulerSetting(*msgspec.structs.astuple(each)) for each in declared(Settings))


def flags(command: Any) -> Any:
    for setting in reversed(settings()):
        command = option(setting)(command)
    shown = f"Configuration (TOML). [env: {FILE_VARIABLE}]"
    return click.option("--config", FILE, metavar="FILE", help=shown)(command)


@click.command()
@flags
def scheduler(**given: Any) -> None:
    """Place pods of a Kubernetes cluster, and claim the devices they ask for.

    Pods with `schedulerName: dovetail` are placed. With --extender-listen, kube-scheduler can ask
    about devices of all others.
    """
    try:
        found = load(given, os.environ)
    except DovetailError as error:
        raise click.UsageError(str(error)) from error
    logs.configure(found.log_level)
    try:
        uvloop.run(_run(found))
    except DovetailError as error:
        raise Failed(str(error)) from error


def load(flags: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    """Flags over the environment over a file over the defaults. Raises BadConfig."""
    file = flags.get(FILE) or environment.get(FILE_VARIABLE)
    return msgspec.convert(tree_of(layers(settings(), file, environment, flags)), Settings)


async def _run(found: Settings) -> None:
    from dovetail.kube.daemon import run

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await run(found, stop, lambda: readiness.notify("READY=1"))
