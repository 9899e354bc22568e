"""Caller of EMCO's placement controllers: they filter an AppContext; what is left, is the answer.

The fan-out calls it. EMCO has its controllers work on one AppContext, one after the other; here
each gets one of its own, with all clusters that the generic placement intent leaves. So all can
work at once, and none sees what another removed. The AppContext is removed afterwards; should this
process end before, its lease does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import structlog

from dovetail.intents.candidates.cluster_set import ClusterSet
from dovetail.intents.candidates.partitions import (
    AppClusters,
    ClusterRefusal,
    ControllerAnswer,
    Part,
    PartitionCandidates,
)
from dovetail.intents.controllers import ControllerCall, ControllerContract
from dovetail.intents.fleet import FleetSnapshot
from dovetail.intents.generic import generic_answer
from dovetail.intents.group import DeploymentGroup
from dovetail.intents.names import ClusterName
from dovetail.service.intents.controllers.app_context import AppContext, ContextApps, ContextCluster
from dovetail.service.intents.controllers.contracts.emco import FILTER_CLUSTERS, ResourceRequest
from dovetail.service.intents.controllers.etcd_store import etcd_store
from dovetail.service.intents.controllers.external import (
    PlacementCaller,
    TypedCaller,
    endpoint_of,
)
from dovetail.service.intents.controllers.translation import BadAnswer, shown_name
from dovetail.wire.client import (
    CallFailure,
    EndpointError,
    GrpcEndpoint,
    TlsIdentity,
    ask,
    connected,
)

LOG = structlog.get_logger("dovetail.controllers")

LEASE_MARGIN_SECONDS = 60
REMOVAL_SECONDS = 1.0
"""For removing a context: what does not go in time, goes with its lease."""


def placement_callers(
    etcd: GrpcEndpoint | None, identity: TlsIdentity | None = None
) -> dict[ControllerContract, PlacementCaller]:
    """For the fan-out; without etcd, EMCO's controllers cannot be asked."""
    found: dict[ControllerContract, PlacementCaller] = {
        ControllerContract.DOVETAIL: TypedCaller(identity)
    }
    if etcd is not None:
        found[ControllerContract.EMCO] = EmcoCaller(etcd, identity)
    return found


class EmcoCaller:
    """Asks controllers that filter clusters."""

    def __init__(self, etcd: GrpcEndpoint, identity: TlsIdentity | None) -> None:
        """`etcd` is the one that the controllers use."""
        self._etcd, self._identity = etcd, identity

    async def answer(
        self, call: ControllerCall, group: DeploymentGroup, fleet: FleetSnapshot, seconds: float
    ) -> ControllerAnswer:
        """Raises EndpointError, BadAnswer and Malformed."""
        given = given_clusters(group, fleet)
        context = AppContext()
        end = asyncio.get_running_loop().time() + seconds
        try:
            async with etcd_store(self._etcd, seconds) as store:
                lease = await store.grant(int(seconds) + LEASE_MARGIN_SECONDS)
                await store.write(context.entries(group, given), lease)
                await self._filter(call, context, end - asyncio.get_running_loop().time())
                left = context.clusters(await store.keys(context.apps), given)
        finally:
            await self._remove(context)
        return answer_left(call.name, given, left, fleet)

    async def _filter(self, call: ControllerCall, context: AppContext, seconds: float) -> None:
        question = ResourceRequest(app_context=context.identifier)
        async with connected(endpoint_of(call, self._identity)) as channel:
            response = await ask(channel, FILTER_CLUSTERS, question, seconds)
        if not response.status:
            raise EndpointError(CallFailure.FAILED, response.message or "it has no reason to give")

    async def _remove(self, context: AppContext) -> None:
        try:
            async with etcd_store(self._etcd, REMOVAL_SECONDS) as store:
                await store.delete(context.root)
        except EndpointError as error:
            LOG.warning("context left to its lease", context=context.identifier, why=str(error))


def given_clusters(group: DeploymentGroup, fleet: FleetSnapshot) -> ContextApps:
    """The clusters that each app could go to, with EMCO's numbers: every cluster of a part that
    takes all has one of its own, clusters of a part that takes some are alternatives."""
    candidates = generic_answer(group, fleet.clusters).candidates
    assert isinstance(candidates, PartitionCandidates)
    (candidate,) = candidates.alternatives
    found: dict[str, dict[ClusterName, ContextCluster]] = {}
    for app in group.apps:
        clusters = found[app.name] = {}
        number = 0
        for part in candidate[app.name].parts:
            names = list(part.clusters.within(fleet.clusters))
            is_all = part.count >= len(names)
            number += not is_all
            for name in names:
                number += is_all
                clusters.setdefault(name, ContextCluster(number, app.objects))
    return found


def answer_left(
    controller: str,
    given: ContextApps,
    left: Mapping[str, list[ClusterName]],
    fleet: FleetSnapshot,
) -> ControllerAnswer:
    """What it says of clusters that it was given. Raises BadAnswer for those nobody knows."""
    alternative: dict[str, AppClusters] = {}
    refusals: dict[str, dict[ClusterName, ClusterRefusal]] = {}
    removed = ClusterRefusal(token="removed", words=f"removed by {controller}")  # noqa: S106
    for app, clusters in given.items():
        for name in left[app]:
            if name not in fleet.clusters:
                raise BadAnswer(f"has cluster {shown_name(name)}, which does not exist")
        allowed = frozenset(left[app]) & clusters.keys()
        alternative[app] = AppClusters(
            parts=(Part(1, ClusterSet.allow(allowed)),), is_counted=False
        )
        refusals[app] = {name: removed for name in clusters if name not in allowed}
    return ControllerAnswer(
        controller=controller,
        candidates=PartitionCandidates(alternatives=(alternative,)),
        refusals={app: why for app, why in refusals.items() if why},
    )
