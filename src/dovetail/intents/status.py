"""Status of a deployment: what was sent, what clusters show, and where pods run beside the charges.

`service/intents` gathers the parts; this puts them together. The outer form is EMCO's; what EMCO
does not have (pods, charges, ages, scores) stands beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from dovetail.intents.deployment import (
    AppOnCluster,
    DeploymentRecord,
    ObjectState,
    OutboxObject,
    PlannedWorkload,
)
from dovetail.intents.fleet import ClusterHealth, ClusterInventory
from dovetail.intents.names import (
    APP_LABEL,
    DEPLOYMENT_LABEL,
    ClusterName,
    label_value,
    provider_and_cluster,
)
from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_sum import PODS

Json = dict[str, Any]
READY, NOT_READY = "Ready", "NotReady"
AVAILABLE, UNAVAILABLE = "available", "unavailable"
ANSWERING = (ClusterHealth.READY,)

Charges = Mapping[tuple[str, ClusterName], Mapping[str, Mapping[str, int]]]
"""By app and cluster: what is held of which node, by resource."""


class StatusFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which parts are shown; an empty list: all."""

    apps: Collection[str] = ()
    clusters: Collection[ClusterName] = ()
    resources: Collection[str] = ()
    is_summary: bool = False
    is_detailed: bool = False
    """With the objects themselves, as they were sent."""


class DeploymentView(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of a deployment."""

    record: DeploymentRecord
    objects: Sequence[OutboxObject]
    charges: Charges
    clusters: Mapping[ClusterName, ClusterInventory]
    """Those that are registered."""
    now: int
    profile: str = ""
    """The composite profile of the group."""

    @property
    def placed(self) -> dict[tuple[str, ClusterName], AppOnCluster]:
        return {(each.app, each.cluster): each for each in self.record.document.placements}


def status_of(view: DeploymentView, wanted: StatusFilter) -> Json:
    record = view.record
    objects = [each for each in view.objects if is_wanted(each, wanted)]
    counts = Counter(str(each.state) for each in objects)
    ready = Counter(readiness_word(each) for each in objects if each.state in THERE)
    parts = record.group.split("/")
    found: Json = {
        "project": parts[1],
        "compositeApp": parts[3],
        "compositeAppVersion": parts[4],
        "compositeProfile": view.profile,
        "name": parts[-1],
        "states": {"actions": history(record), "statusContextId": record.id},
        "status": str(record.state),
        "deployedStatus": str(record.state),
        "readyStatus": READY if ready and not ready[NOT_READY] else NOT_READY,
        "deployedCounts": dict(sorted(counts.items())),
        "readyCounts": dict(sorted(ready.items())),
        "deployment": record.id,
        "revision": record.revision,
    }
    if record.document.reason:
        found["reason"] = record.document.reason
    if not wanted.is_summary:
        found["apps"] = apps_of(view, objects, wanted)
    return found


THERE = (ObjectState.APPLIED, ObjectState.APPLYING, ObjectState.PENDING, ObjectState.REPLACING)


def is_wanted(one: OutboxObject, wanted: StatusFilter) -> bool:
    return (
        (not wanted.apps or one.app in wanted.apps)
        and (not wanted.clusters or one.cluster in wanted.clusters)
        and (not wanted.resources or one.key.name in wanted.resources)
    )


def history(record: DeploymentRecord) -> list[Json]:
    return [
        {
            "state": str(each.state),
            "instance": record.id,
            "time": moment(each.time),
            "revision": each.revision,
        }
        for each in record.document.history
    ]


def moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def readiness_word(one: OutboxObject) -> str:
    is_ready = one.readiness is not None and one.readiness.is_ready
    return READY if is_ready and one.state is ObjectState.APPLIED else NOT_READY


def apps_of(
    view: DeploymentView, objects: Sequence[OutboxObject], wanted: StatusFilter
) -> list[Json]:
    pairs = {*view.placed, *((each.app, each.cluster) for each in objects)}
    order = {
        each.app: at for at, each in reversed(list(enumerate(view.record.document.placements)))
    }
    apps = sorted({app for app, _ in pairs}, key=lambda app: (order.get(app, len(order)), app))
    return [
        {
            "name": app,
            "clusters": [
                cluster_status(view, app, cluster, objects, wanted)
                for other, cluster in sorted(pairs)
                if other == app and (not wanted.clusters or cluster in wanted.clusters)
            ],
        }
        for app in apps
        if not wanted.apps or app in wanted.apps
    ]


def cluster_status(
    view: DeploymentView,
    app: str,
    cluster: ClusterName,
    objects: Iterable[OutboxObject],
    wanted: StatusFilter,
) -> Json:
    own = [each for each in objects if (each.app, each.cluster) == (app, cluster)]
    placed = view.placed.get((app, cluster))
    provider, name = provider_and_cluster(cluster)
    words = {readiness_word(each) for each in own if each.state in THERE}
    found: Json = {
        "clusterProvider": provider,
        "cluster": name,
        **connectivity(view, cluster),
        "readyStatus": READY if words == {READY} else NOT_READY,
        "score": placed.score if placed is not None else 0,
        "resources": [resource_status(each, wanted) for each in own],
        "workloads": [workload_status(each) for each in (placed.workloads if placed else ())],
        "pods": pods_of(view, app, cluster),
        "charges": [
            {"node": node, "resources": dict(sorted(amounts.items()))}
            for node, amounts in sorted(view.charges.get((app, cluster), {}).items())
        ],
    }
    return found


def connectivity(view: DeploymentView, cluster: ClusterName) -> Json:
    """How the cluster is, and how old that is."""
    known = view.clusters.get(cluster)
    silence = view.record.document.silent.get(cluster, "")
    if known is None:
        return {"connectivity": UNAVAILABLE, "why": silence or "the cluster is registered no more"}
    is_there = known.state in ANSWERING and not silence
    found: Json = {
        "connectivity": AVAILABLE if is_there else UNAVAILABLE,
        "observedAt": moment(known.observed_at),
        "ageSeconds": max(view.now - known.observed_at, 0),
    }
    return found if is_there else {**found, "why": silence or known.why}


def resource_status(one: OutboxObject, wanted: StatusFilter) -> Json:
    group, _, version = one.key.api_version.rpartition("/")
    found: Json = {
        "GVK": {"Group": group, "Version": version, "Kind": one.key.kind},
        "name": one.key.name,
        "namespace": one.key.namespace,
        "deployedStatus": str(one.state),
        "readyStatus": readiness_word(one),
    }
    words = one.message or (one.readiness.words if one.readiness is not None else "")
    if words:
        found["message"] = words
    if one.uid:
        found["uid"] = one.uid
    if wanted.is_detailed and one.key.kind != "Secret":
        found["detail"] = one.manifest
    return found


def workload_status(one: PlannedWorkload) -> Json:
    found: Json = {
        "kind": one.kind,
        "name": one.name,
        "pods": one.count,
        "plannedNodes": dict(sorted(one.nodes.items())),
        "granted": list(one.granted),
    }
    if one.devices:
        found["devices"] = {node: list(names) for node, names in sorted(one.devices.items())}
    return {**found, "pinnedBecause": one.pinned_because} if one.pinned_because else found


def pods_of(view: DeploymentView, app: str, cluster: ClusterName) -> list[Json]:
    """Where pods of the app run, and whether that node is charged for them."""
    known = view.clusters.get(cluster)
    charges = view.charges.get((app, cluster), {})
    found = []
    for node in known.nodes if known is not None else ():
        name = node.node.metadata.name
        left = charges.get(name, {}).get(PODS, 0)
        for pod in node.pods:
            if is_of(pod, view.record.id, app):
                found.append(pod_status(pod, name, is_charged=left > 0))
                left -= 1
    return sorted(found, key=lambda each: (each["namespace"], each["name"]))


def is_of(pod: Pod, deployment: str, app: str) -> bool:
    labels = pod.metadata.labels
    own = (label_value(deployment), label_value(app))
    return (labels.get(DEPLOYMENT_LABEL), labels.get(APP_LABEL)) == own


def pod_status(pod: Pod, node: str, *, is_charged: bool) -> Json:
    conditions = {each.type: each.status for each in pod.status.conditions}
    return {
        "namespace": pod.metadata.namespace,
        "name": pod.metadata.name,
        "phase": pod.status.phase,
        "ready": conditions.get("Ready") == "True",
        "node": node,
        "charged": is_charged,
    }
