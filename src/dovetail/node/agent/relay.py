"""The relay: the kubelet's endpoint in a process of its own, so that the agent may come and go.

It passes on everything but the calls that need a decision; these wait for the agent, which it asks
at a socket. It holds no state and reads no files, so there is hardly a reason to restart it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import structlog

from dovetail import __version__
from dovetail.config.values import BadSettings
from dovetail.node.agent.backends import GRACE_SECONDS
from dovetail.node.agent.settings import RuntimeSettings, seconds
from dovetail.node.cri_proxy.proxy import CriEndpoint
from dovetail.node.cri_proxy.remote_decisions import RemoteDecisions

LOG = structlog.get_logger("dovetail.node.agent")


async def run(settings: RuntimeSettings, stop: asyncio.Event, ready: Callable[[], None]) -> None:
    """Until told to stop. Raises BadSettings, CannotServe."""
    if settings.relay is None:
        raise BadSettings("runtime.relay: it must say at which socket the agent decides")
    decisions = RemoteDecisions(Path(settings.relay), seconds(settings.relay_wait))
    endpoint = CriEndpoint(Path(settings.listen), Path(settings.socket), decisions.handlers)
    decisions.start()
    try:
        await endpoint.start()
        try:
            LOG.info("relay started", version=__version__, agent=settings.relay)
            ready()
            await stop.wait()
        finally:
            await endpoint.stop(GRACE_SECONDS)
    finally:
        await decisions.stop()
    LOG.info("relay ended")
