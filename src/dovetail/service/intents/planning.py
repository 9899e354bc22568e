"""Planning: read a group, ask all controllers at once, pick, place and edit; `actions` calls it.

Nothing is claimed and nothing sent. Reading and asking happen on the event loop; picking, packing
and editing, which may take long for large fleets, in threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from dovetail.core.errors import Malformed, NotFound
from dovetail.intents.candidates.conflicts import NoPick
from dovetail.intents.deployment import (
    AppOnCluster,
    DeploymentRecord,
    DeploymentState,
    ObjectState,
    OutboxObject,
)
from dovetail.intents.fleet import FleetSnapshot
from dovetail.intents.hpa.answer import HpaAnswer
from dovetail.intents.names import ClusterName
from dovetail.intents.own_usage import without_deployment
from dovetail.intents.plan import CurrentClusters, GroupPlan, outbox_objects, plan_of
from dovetail.intents.plan_document import (
    conflict_document,
    explanation_document,
    fleet_document,
    limited,
    plan_document,
    reasons_of,
    replacements,
)
from dovetail.podfit.packing.solver.problem import BudgetSpent
from dovetail.service.intents.controllers.fan_out import ControllerAnswers, ControllerFanOut
from dovetail.service.intents.deploying.acting import ActionControllers, AppObjects
from dovetail.service.intents.deploying.cluster_port import ClusterPort
from dovetail.service.intents.deploying.transitions import PlannedDeployment
from dovetail.service.intents.fleet import FleetKeeper
from dovetail.service.intents.known import KnownDeployment, charges_of
from dovetail.service.intents.ports import Answer, GroupPath, Infeasible, WrongState
from dovetail.service.intents.reading import GroupReader, ReadGroup

Json = dict[str, Any]
UPDATED = (DeploymentState.INSTANTIATED, DeploymentState.UPDATE_FAILED)
"""Of a group in one of these a plan is that of an update."""


class AskedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group with all that controllers said of it."""

    read: ReadGroup
    fleet: FleetSnapshot
    answers: ControllerAnswers[HpaAnswer]

    @property
    def failures(self) -> list[Json]:
        return [msgspec.to_builtins(each) for each in self.answers.failures]

    def refuse_without_answers(self) -> HpaAnswer:
        """Raises Infeasible if a controller is missing without which nothing is placed."""
        refusals = self.answers.refusals
        hpa = self.answers.hpa
        if refusals or hpa is None:
            words = "; ".join(each.words for each in refusals) or "the HPA controller is missing"
            reasons = [
                {"controller": each.controller, "token": each.token, "words": each.words}
                for each in refusals
            ]
            raise Infeasible(words, reasons)
        return hpa


class Planner:
    """`GroupPlanner`."""

    def __init__(
        self,
        reader: GroupReader,
        fleet: FleetKeeper,
        controllers: ControllerFanOut[HpaAnswer],
        clusters: ClusterPort,
        *,
        actions: ActionControllers,
        apply_seconds: int,
    ) -> None:
        """`apply_seconds`: how long it may take until all objects are applied."""
        self._reader, self._fleet, self._actions = reader, fleet, actions
        self._controllers, self._clusters = controllers, clusters
        self._apply_seconds = apply_seconds

    async def planned(
        self, record: DeploymentRecord, *, may_replace: bool = False
    ) -> PlannedDeployment:
        known = await self._reader.known(record.group) if record.state in UPDATED else None
        asked = await self._asked(record.group, known)
        plan = await self._made(asked, record.id, known)
        if isinstance(plan.pick, NoPick):
            more = {
                "fleet": fleet_document(plan.fleet),
                "failures": asked.failures,
                **conflict_document(plan.pick),
            }
            raise Infeasible(plan.pick.words, limited(reasons_of(plan)), **more)
        done = await self._actions.edited(
            plan.group,
            asked.read.roster.actions,
            plan.manifests(),
            deployment=record.id,
            update_from="" if known is None else known.record.document.context,
        )
        objects = await self._objects(done.objects, plan.group.namespace)
        anew = {} if known is None else replacements(known.objects, objects)
        if anew and not may_replace:
            changes = [change for each in anew.values() for change in each]
            first = changes[0]
            raise WrongState(
                f"{first['object']} on {first['cluster']}: {first['path']} {first['why']}; "
                "update with replace=true deletes it and makes it anew"
            )
        return PlannedDeployment(
            id=record.id,
            namespace=plan.group.namespace,
            placements=plan.placements(),
            objects=tuple(
                replace(each, state=ObjectState.REPLACING) if each.place in anew else each
                for each in objects
            ),
            apply_seconds=self._apply_seconds,
            context=done.context,
        )

    async def recorded(self, record: DeploymentRecord) -> None:
        """Somebody claimed what was planned."""
        context = record.document.context
        if context:
            calls = (await self._reader.roster(record.group)).actions
            is_update = record.state is DeploymentState.UPDATING
            await self._actions.recorded(context, calls, is_update=is_update)

    async def ended(self, record: DeploymentRecord) -> None:
        context = record.document.context
        if context:
            calls = (await self._reader.roster(record.group)).actions
            await self._actions.ended(context, calls)

    async def discarded(self, planned: PlannedDeployment) -> None:
        """Nothing comes of it."""
        await self._actions.discarded(planned.context)

    async def plan(self, group: GroupPath) -> Answer:
        known = await self._deployed(group)
        asked = await self._asked(group, known)
        deployment = PLANNED_ID if known is None else known.record.id
        plan = await self._made(asked, deployment, known)
        document = await asyncio.to_thread(plan_document, plan, asked.failures)
        if known is not None and plan.is_feasible:
            objects = outbox_objects(plan.manifests(), plan.group.namespace)
            anew = replacements(known.objects, objects)
            document["replacements"] = [change for each in anew.values() for change in each]
        return document

    async def explain(self, group: GroupPath, *, app: str, cluster: str | None) -> Answer:
        asked = await self._asked(group, await self._deployed(group))
        if app not in {each.name for each in asked.read.group.apps}:
            raise NotFound(f"the group has no app {app!r}")
        if cluster is not None and cluster not in asked.fleet.clusters:
            raise NotFound(f"there is no cluster {cluster!r}")
        hpa = asked.refuse_without_answers()
        plan = await self._made(asked, PLANNED_ID, None)
        return await asyncio.to_thread(explanation_document, plan, hpa.explanation, app, cluster)

    async def _deployed(self, group: GroupPath) -> KnownDeployment | None:
        """What the group holds is in nobody's way but its own; None if it holds nothing."""
        known = await self._reader.known(group)
        return known if known.holdings else None

    async def _asked(self, group: GroupPath, known: KnownDeployment | None) -> AskedGroup:
        try:
            read = await self._reader.read(group)
        except Malformed as error:
            reason = {"token": "manifests", "words": str(error)}
            raise Infeasible(str(error), [reason]) from error
        fleet = await self._fleet.fresh()
        if known is not None:
            fleet = without_own(fleet, known)
        answers = await self._controllers.answers(read.group, fleet, read.roster)
        return AskedGroup(read=read, fleet=fleet, answers=answers)

    async def _made(
        self, asked: AskedGroup, deployment: str, known: KnownDeployment | None
    ) -> GroupPlan:
        hpa = asked.refuse_without_answers()
        current = None if known is None else current_clusters(known.record.document.placements)
        try:
            return await asyncio.to_thread(
                plan_of,
                asked.read.group,
                asked.fleet,
                asked.answers.answers,
                hpa,
                deployment=deployment,
                current=current,
            )
        except BudgetSpent as error:
            raise Infeasible(UNDECIDED, [{"token": "undecided", "words": UNDECIDED}]) from error

    async def _objects(self, manifests: AppObjects, namespace: str) -> list[OutboxObject]:
        """Nothing is sent to clusters to which there is no way."""
        clusters = {cluster for of in manifests.values() for cluster in of}
        served = {each: await self._clusters.is_served(each) for each in sorted(clusters)}
        return [
            each if served[each.cluster] else replace(each, state=ObjectState.SKIPPED)
            for each in outbox_objects(manifests, namespace)
        ]


UNDECIDED = "where pods go on the picked clusters could not be decided in time"
PLANNED_ID = "00000000-0000-0000-0000-000000000000"
"""Of a deployment that nobody has asked for yet."""


def current_clusters(placements: Sequence[AppOnCluster]) -> CurrentClusters:
    found: dict[str, frozenset[ClusterName]] = {}
    for each in placements:
        found[each.app] = found.get(each.app, frozenset()) | {each.cluster}
    return found


def without_own(fleet: FleetSnapshot, known: KnownDeployment) -> FleetSnapshot:
    charges: dict[ClusterName, dict[str, dict[str, int]]] = {}
    for (_, cluster), nodes in charges_of(known.holdings, fleet).items():
        on_cluster = charges.setdefault(cluster, {})
        for node, amounts in nodes.items():
            on_node = on_cluster.setdefault(node, {})
            for resource, units in amounts.items():
                on_node[resource] = on_node.get(resource, 0) + units
    record = known.record
    return without_deployment(fleet, record.id, charges, record.document.placements)
