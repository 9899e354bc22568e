"""Runs the agent's daemon for `dovetail agent`: its settings, its logs, its signals."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import click

from dovetail.aio.background import Background
from dovetail.cli.agent.settings import AGENT
from dovetail.cli.run import readiness
from dovetail.cli.support.exits import LocalFailure
from dovetail.cli.support.setting_options import load_settings
from dovetail.core.errors import DovetailError
from dovetail.node.agent import checks
from dovetail.node.agent.cluster_calls import NO_CALLS, ClusterCalls
from dovetail.node.agent.daemon import run as run_agent
from dovetail.node.agent.settings import AgentSettings
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
        calls = await cluster_calls(settings, stack)
        await run_agent(settings, stop, lambda: readiness.notify("READY=1"), calls)


async def cluster_calls(settings: AgentSettings, stack: AsyncExitStack) -> ClusterCalls:
    """Here, since the agent itself knows no Kubernetes client."""
    calls = NO_CALLS
    # Most agents have nothing to do with a cluster, and need not wait for what it takes.
    if settings.devices.publish or settings.devices.kubeconfig is not None:
        calls = await device_calls(settings, stack)
    if settings.refusals.fail_pods:
        calls = calls._replace(fail_pod=await pod_failer(settings, stack))
    return calls


async def device_calls(settings: AgentSettings, stack: AsyncExitStack) -> ClusterCalls:
    from dovetail.kube.api.client import connect
    from dovetail.kube.classes.guard import why_not_guarded
    from dovetail.kube.classes.node_annotation import publish
    from dovetail.kube.classes.pod_chain import GivenTeller
    from dovetail.kube.runtime.events import Recorder

    devices = settings.devices
    node = devices.node or socket.gethostname().lower()
    api = await stack.enter_async_context(connect(devices.kubeconfig, agent="dovetail-agent"))
    recorder = Recorder(api, "dovetail-agent", node)
    sending = Background()
    sending.start(recorder.run())
    stack.push_async_callback(sending.stop)
    return ClusterCalls(
        publish=partial(publish, api) if devices.publish else None,
        ask_guard=partial(why_not_guarded, api),
        tell_pod=GivenTeller(recorder) if devices.events else None,
    )


async def pod_failer(settings: AgentSettings, stack: AsyncExitStack) -> FailPod:
    from dovetail.kube.api.client import connect
    from dovetail.kube.runtime.pod_failure import fail_pod

    kubeconfig = settings.refusals.kubeconfig or settings.devices.kubeconfig
    api = await stack.enter_async_context(connect(kubeconfig, agent="dovetail-agent"))
    return partial(fail_pod, api)
