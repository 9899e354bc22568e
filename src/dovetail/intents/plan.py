"""Plan of a group: from the answers of all controllers to objects for the clusters that are picked.

`service/intents/planning.py` makes one for every plan, instantiate and update, in a thread. The
same group, fleet and answers make the same plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from dovetail.intents.candidates.cluster_set import ClusterSet
from dovetail.intents.candidates.combining import CombinedCandidates, combine
from dovetail.intents.candidates.conflicts import NoPick
from dovetail.intents.candidates.partitions import (
    AppClusters,
    ControllerAnswer,
    Part,
    PartitionCandidates,
)
from dovetail.intents.candidates.picking import Pick, pick
from dovetail.intents.deployment import (
    AppOnCluster,
    ObjectKey,
    OutboxObject,
    PlannedWorkload,
)
from dovetail.intents.fleet import FleetSnapshot
from dovetail.intents.group import DeploymentGroup, ManifestObject
from dovetail.intents.hpa.placement import AppPlacement, ClusterPlacement, WorkloadPlacement
from dovetail.intents.manifests.editing import EditedApp, edited
from dovetail.intents.names import ClusterName

CURRENT = "current"
"""The controller that speaks for the clusters which a deployment has already."""

CurrentClusters = Mapping[str, frozenset[ClusterName]]
"""By app."""


class HardwarePlaces(Protocol):
    """What a plan asks of the built-in HPA controller once it has answered."""

    def score_of_set(self, cluster: ClusterName, apps: Iterable[str]) -> int | None: ...

    def placement(self, cluster: ClusterName, apps: Iterable[str]) -> ClusterPlacement | None: ...


class PlannedApp(msgspec.Struct, frozen=True, kw_only=True):
    """An app on one of its clusters."""

    cluster: ClusterName
    placement: AppPlacement
    edited: EditedApp

    @property
    def app(self) -> str:
        return self.placement.app


class GroupPlan(msgspec.Struct, frozen=True, kw_only=True):
    group: DeploymentGroup
    fleet: FleetSnapshot
    combined: CombinedCandidates
    pick: Pick | NoPick
    clusters: tuple[ClusterPlacement, ...] = ()
    """In the order of their names."""
    apps: tuple[PlannedApp, ...] = ()
    """In the order of the group, then of clusters."""

    @property
    def is_feasible(self) -> bool:
        return isinstance(self.pick, Pick)

    def placements(self) -> tuple[AppOnCluster, ...]:
        workloads = {
            (intent.name, consumer.name): consumer.object_name
            for intent in self.group.hpa
            for consumer in intent.consumers
        }
        return tuple(
            AppOnCluster(
                app=each.app,
                cluster=each.cluster,
                score=each.placement.score,
                workloads=tuple(
                    planned_workload(one, each.placement, workloads)
                    for one in each.placement.workloads
                ),
            )
            for each in self.apps
        )

    def manifests(self) -> dict[str, dict[ClusterName, Sequence[ManifestObject]]]:
        """By app and cluster, in the order of the plan."""
        found: dict[str, dict[ClusterName, Sequence[ManifestObject]]] = {}
        for each in self.apps:
            found.setdefault(each.app, {})[each.cluster] = each.edited.objects
        return found


def outbox_objects(
    manifests: Mapping[str, Mapping[ClusterName, Sequence[ManifestObject]]], namespace: str
) -> Iterator[OutboxObject]:
    """Objects as they are sent, each with its namespace."""
    for app, clusters in manifests.items():
        for cluster, objects in clusters.items():
            for position, manifest in enumerate(objects):
                key = ObjectKey.of(manifest, namespace)
                meta = {**(manifest.get("metadata") or {}), "namespace": key.namespace}
                yield OutboxObject(
                    cluster=cluster,
                    app=app,
                    position=position,
                    key=key,
                    manifest={**manifest, "metadata": meta},
                )


def planned_workload(
    one: WorkloadPlacement, app: AppPlacement, workloads: Mapping[tuple[str, str], str]
) -> PlannedWorkload:
    """`workloads`: the object of each consumer, by intent and name."""
    devices: dict[str, tuple[str, ...]] = {}
    for each in one.devices:
        devices[each.node] = (*devices.get(each.node, ()), *(each.device,) * each.units)
    return PlannedWorkload(
        kind=one.kind,
        name=one.name,
        count=sum(one.nodes.values()),
        amounts=one.amounts,
        nodes=one.nodes,
        devices=devices,
        granted=tuple(
            each.requirement
            for each in app.options
            if each.granted and workloads[each.intent, each.consumer] == one.name
        ),
        pinned_because=one.pin.why if one.pin is not None else "",
    )


def plan_of(
    group: DeploymentGroup,
    fleet: FleetSnapshot,
    answers: Sequence[ControllerAnswer],
    hpa: HardwarePlaces,
    *,
    deployment: str,
    current: CurrentClusters | None = None,
) -> GroupPlan:
    """`current`: where a deployment is that is to be updated: it stays if it can, and moves as
    little as it has to otherwise. Raises what editing raises."""
    found: GroupPlan | None = None
    for stay in stays(current or {}):
        combined = combine(
            [*answers, *stay], [each.name for each in group.apps], list(fleet.clusters)
        )
        picked = pick(combined, hpa.score_of_set)
        found = GroupPlan(group=group, fleet=fleet, combined=combined, pick=picked)
        if isinstance(picked, Pick):
            return placed(found, picked, hpa, deployment)
    assert found is not None
    return found


def stays(current: CurrentClusters) -> Iterator[list[ControllerAnswer]]:
    """What is tried in turn: every app where it is, then all else, where it is preferred."""
    if current:
        only = {
            app: AppClusters(parts=(Part(1, ClusterSet.allow(names)),), is_counted=False)
            for app, names in current.items()
        }
        yield [current_answer(only)]
        near = {
            app: AppClusters(
                parts=(Part(1, ClusterSet.deny(())),),
                is_counted=False,
                preference=(ClusterSet.allow(names),),
            )
            for app, names in current.items()
        }
        yield [current_answer(near)]
    yield []


def current_answer(apps: Mapping[str, AppClusters]) -> ControllerAnswer:
    return ControllerAnswer(
        controller=CURRENT, candidates=PartitionCandidates(alternatives=(apps,))
    )


def placed(plan: GroupPlan, picked: Pick, hpa: HardwarePlaces, deployment: str) -> GroupPlan:
    clusters = []
    for cluster, apps in picked.apps_by_cluster().items():
        placement = hpa.placement(cluster, apps)
        assert placement is not None, "what is picked fits"
        clusters.append(placement)
    by_app = {(one.app, each.cluster): one for each in clusters for one in each.apps}
    group = plan.group
    planned = [
        PlannedApp(
            cluster=each.cluster,
            placement=by_app[app.name, each.cluster],
            edited=edited(
                app,
                group.hpa,
                by_app[app.name, each.cluster].grants(deployment),
                group.namespace,
            ),
        )
        for app in group.apps
        for each in picked.clusters[app.name]
    ]
    return msgspec.structs.replace(plan, clusters=tuple(clusters), apps=tuple(planned))
