"""Runs the agent's daemon for `dovetail agent`: its settings, its logs, its signals."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import click

from dovetail.cli.agent.settings import AGENT
from dovetail.cli.run import readiness
from dovetail.cli.support.exits import LocalFailure
from dovetail.cli.support.setting_options import load_settings
from dovetail.core.errors import DovetailError
from dovetail.node.agent import checks
from dovetail.node.agent.daemon import run as run_agent
from dovetail.node.agent.device_publisher import Publish
from dovetail.node.agent.settings import AgentSettings, DeviceSettings
from dovetail.node.refusals.refused_pods import FailPod
from dovetail.telemetry import logs


def run(flags: Mapping[str, Any]) -> None:
    """Until SIGTERM or SIGINT."""
    settings = load_settings(AGENT, flags).settings
    try:
        checks.check(settings)
    except DovetailError as error:
        raise click.UsageError(str(error)) from error
    logs.configure(settings.log_level, settings.log_format, to_stderr=True)
    try:
        checks.check_machine(settings)
        asyncio.run(_run(settings))
    except DovetailError as error:
        raise LocalFailure(str(error)) from error


async def _run(settings: AgentSettings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        publish = await publisher(settings.devices, stack) if settings.devices.publish else None
        fail_pod = await pod_failer(settings, stack) if settings.refusals.fail_pods else None
        await run_agent(settings, stop, lambda: readiness.notify("READY=1"), publish, fail_pod)


async def publisher(settings: DeviceSettings, stack: AsyncExitStack) -> Publish:
    """Here, since the agent itself knows no Kubernetes client."""
    # Most agents publish nothing, and need not wait for what it takes.
    from dovetail.kube.api.client import connect
    from dovetail.kube.classes.node_annotation import publish

    api = await stack.enter_async_context(connect(settings.kubeconfig, agent="dovetail-agent"))
    return partial(publish, api)


async def pod_failer(settings: AgentSettings, stack: AsyncExitStack) -> FailPod:
    from dovetail.kube.api.client import connect
    from dovetail.kube.runtime.pod_failure import fail_pod

    kubeconfig = settings.refusals.kubeconfig or settings.devices.kubeconfig
    api = await stack.enter_async_context(connect(kubeconfig, agent="dovetail-agent"))
    return partial(fail_pod, api)
