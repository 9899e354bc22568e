"""Cluster events: EMCO's clm controllers are told of clusters that come, change and go.

`service/intents` publishes one after the document of a cluster was kept or dropped. Nothing waits
for what a controller makes of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import structlog

from dovetail.core.errors import DovetailError
from dovetail.intents.controllers import CallTerms, ControllerCall, ControllerSpec, terms_of
from dovetail.intents.names import ClusterName, provider_and_cluster
from dovetail.service.intents.controllers.contracts.emco import (
    PUBLISH,
    ClusterEventRequest,
    ClusterEventType,
)
from dovetail.service.intents.controllers.external import endpoint_of
from dovetail.wire.client import TlsIdentity, ask, connected

LOG = structlog.get_logger("dovetail.controllers")


async def publish(
    registered: Mapping[str, ControllerSpec],
    cluster: ClusterName,
    event: ClusterEventType,
    *,
    identity: TlsIdentity | None = None,
    terms: CallTerms | None = None,
) -> dict[str, str]:
    """Tell all clm controllers at once; by name, why one does not know."""
    provider, name = provider_and_cluster(cluster)
    question = ClusterEventRequest(provider_name=provider, cluster_name=name, event=event)
    calls = [ControllerCall(name=each, intent="", spec=registered[each]) for each in registered]
    told = await asyncio.gather(
        *(_told(call, question, identity, terms or CallTerms()) for call in calls)
    )
    return {call.name: why for call, why in zip(calls, told, strict=True) if why}


async def _told(
    call: ControllerCall,
    question: ClusterEventRequest,
    identity: TlsIdentity | None,
    terms: CallTerms,
) -> str:
    """Why not; empty if it was."""
    seconds = terms_of(call.spec, terms).deadline_seconds
    try:
        async with connected(endpoint_of(call, identity)) as channel:
            response = await ask(channel, PUBLISH, question, seconds)
        why = "" if response.status else response.message or "it has no reason to give"
    except DovetailError as error:
        why = str(error)
    if why:
        LOG.warning("cluster event not taken", controller=call.name, why=why)
    return why
