"""Charges of deployments: what each app of one holds on a cluster, and how that follows its pods.

`take` is the claim of a plan, checked as every claim. From then on the charges follow: a pod that
is bound is charged on the node where it runs, as it was seen to ask; pods that are not bound yet
stay charged where they were planned. A pod that runs is no promise but a fact: where its node is
full by what others were promised, it is recorded all the same, and nobody gets more of that node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from dovetail.core.claim import Claim
from dovetail.core.errors import DovetailError, Refused
from dovetail.intents.deployment import AppOnCluster, PlannedWorkload
from dovetail.intents.names import APP_LABEL, DEPLOYMENT_LABEL, ClusterName, label_value
from dovetail.ledger import claims
from dovetail.ledger.database.protocol import Transaction
from dovetail.ledger.intents import nodes, others
from dovetail.ledger.intents.node_names import (
    DEPLOYMENT,
    consumer_uuid,
    device_uuid,
    root_name,
    root_uuid,
)
from dovetail.ledger.intents.node_rows import (
    NodeRow,
    holding_pods_of,
    named,
    of_roots,
)
from dovetail.ledger.intents.observed import NODE_DECODER, PODS_DECODER, DeviceUse
from dovetail.ledger.intents.others import allocations_on, ensure_inventories
from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_request import pod_request_of


class NodeGone(DovetailError):
    """A plan for a node that is no more."""


class ChargedPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that runs, or is about to, and where it is charged: on its node."""

    key: str
    workload: str
    """Empty: no object of the plan makes such pods."""
    node: str
    was_planned: bool
    """It is on a node that was planned for it."""


class FollowedCharges(msgspec.Struct, frozen=True, kw_only=True):
    pods: tuple[ChargedPod, ...]
    has_changed: bool
    is_overfull: bool = False
    """Pods run on nodes that have less than was promised there."""


class NodeCharge(msgspec.Struct):
    """What of a node an app is charged for."""

    amounts: dict[str, int]
    devices: list[str]

    def add(self, amounts: Iterable[tuple[str, int]], count: int = 1) -> None:
        for name, units in amounts:
            self.amounts[name] = self.amounts.get(name, 0) + units * count


Charges = dict[str, NodeCharge]
"""By node."""


def on(charges: Charges, node: str) -> NodeCharge:
    return charges.setdefault(node, NodeCharge({}, []))


# -- plans -----------------------------------------------------------------------------------------


def take(
    tx: Transaction,
    deployment: str,
    placements: Sequence[AppOnCluster],
    *,
    project: str,
    user: str,
) -> None:
    """Hold what was planned, all or nothing, in place of what is held for the same apps there.

    Raises NodeGone, CapacityExceeded and the other refusals of claims.
    """
    planned = [(each, charges_of(each)) for each in placements]
    rows = lock_nodes(tx, planned)
    wanted = []
    for each, charges in planned:
        there = rows[each.cluster]
        lost = sorted(node for node in charges if node not in there or there[node].is_gone)
        if lost:
            raise NodeGone(f"{each.cluster} has no node {lost[0]!r} any more")
        wanted.append(claim_of(deployment, each, allocations_of(charges, there), project, user))
    claims.replace(tx, wanted)
    others.recount(tx, {row.root_id for of_cluster in rows.values() for row in of_cluster.values()})


def charges_of(placement: AppOnCluster) -> Charges:
    """As it was planned."""
    charges: Charges = {}
    for workload in placement.workloads:
        for node, count in workload.nodes.items():
            on(charges, node).add(workload.amounts.items(), count)
            on(charges, node).devices += workload.devices.get(node, ())
    return charges


def lock_nodes(
    tx: Transaction, planned: Iterable[tuple[AppOnCluster, Charges]]
) -> dict[ClusterName, dict[str, NodeRow]]:
    """All nodes that are charged, by cluster and name."""
    names: dict[ClusterName, set[str]] = {}
    for placement, charges in planned:
        names.setdefault(placement.cluster, set()).update(charges)
    return {cluster: named(tx, cluster, names[cluster], lock=True) for cluster in sorted(names)}


def release(tx: Transaction, deployment: str, app: str, cluster: ClusterName) -> bool:
    """Give back all that the app holds there; False if it holds nothing.

    Pods of it that are still there are others' from now on: what they use is not given away.
    """
    consumer = consumer_uuid(deployment, app, cluster)
    roots = roots_of(tx, consumer)
    of_roots(tx, roots, lock=True)
    if not claims.release(tx, consumer):
        return False
    others.recount(tx, roots)
    nodes.sweep(tx, roots)
    return True


def roots_of(tx: Transaction, consumer: str) -> list[int]:
    """Of the trees that a consumer holds something in."""
    rows = tx.rows(
        """SELECT DISTINCT p.root_id FROM consumers c
           JOIN allocations a ON a.consumer_id = c.id
           JOIN providers p ON p.id = a.provider_id
           WHERE c.uuid = ?""",
        (consumer,),
    )
    return [root for (root,) in rows]


def claim_of(
    deployment: str,
    placement: AppOnCluster,
    allocations: Mapping[str, Mapping[str, int]],
    project: str,
    user: str,
) -> Claim:
    return Claim(
        consumer=consumer_uuid(deployment, placement.app, placement.cluster),
        project=project,
        user=user,
        consumer_type=DEPLOYMENT,
        allocations=allocations,
        check_generation=False,
    )


def allocations_of(charges: Charges, rows: Mapping[str, NodeRow]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for node, charge in sorted(charges.items()):
        uses = [DeviceUse(name, "") for name in charge.devices]
        document = NODE_DECODER.decode(rows[node].document)
        found |= allocations_on(rows[node].root, document, charge.amounts, uses)
    return found


# -- pods ------------------------------------------------------------------------------------------


def follow(tx: Transaction, deployment: str, placement: AppOnCluster) -> FollowedCharges:
    """Charge pods where they run. Of an app that holds nothing (any more), nothing is charged."""
    cluster = placement.cluster
    consumer = consumer_uuid(deployment, placement.app, cluster)
    holding = claims.of_consumer(tx, consumer)
    if holding is None:
        return FollowedCharges(pods=(), has_changed=False)
    seen = {row.name: row for row in holding_pods_of(tx, cluster, deployment)}
    pods = tuple(bound_pods(seen.values(), deployment, placement))
    charges, charged = charges_by(placement, pods)
    planned = named(tx, cluster, charges.keys() - seen.keys())
    rows = {name: row for name, row in {**seen, **planned}.items() if not row.is_gone}
    kept = {node: charge for node, charge in charges.items() if node in rows}
    held: dict[str, dict[str, int]] = {}
    for each in holding.held:
        held.setdefault(each.provider_uuid, {})[each.class_name] = each.amount
    gone = {node: charge for node, charge in charges.items() if node not in rows}
    allocations = {
        **allocations_of(kept, rows),
        # A node that is gone may come back: what is held of it stays.
        **{at: held[at] for at in uuids_of(cluster, gone) if at in held},
    }
    if allocations == held or not allocations:
        return FollowedCharges(pods=charged, has_changed=False)
    for node in kept:
        document = NODE_DECODER.decode(rows[node].document)
        ensure_inventories(tx, rows[node].root, document.node, allocations)
    claim = claim_of(deployment, placement, allocations, holding.project, holding.user)
    try:
        claims.replace(tx, [claim])
    except Refused:
        claims.observe(tx, [claim])
        return FollowedCharges(pods=charged, has_changed=True, is_overfull=True)
    return FollowedCharges(pods=charged, has_changed=True)


def uuids_of(cluster: ClusterName, charges: Charges) -> Iterator[str]:
    """Of the providers that are charged."""
    for node, charge in charges.items():
        root = root_name(cluster, node)
        yield root_uuid(cluster, node)
        yield from (device_uuid(root, each) for each in charge.devices)


class BoundPod(msgspec.Struct, frozen=True):
    pod: Pod
    devices: tuple[str, ...]
    """That it was seen to have."""

    @property
    def node(self) -> str:
        return self.pod.spec.node_name


def bound_pods(
    rows: Iterable[NodeRow], deployment: str, placement: AppOnCluster
) -> Iterable[BoundPod]:
    """Pods of the app that are on a node, in the order of their keys."""
    app = label_value(placement.app)
    found = []
    for row in rows:
        seen = PODS_DECODER.decode(row.pods)
        for pod in seen.pods:
            labels = pod.metadata.labels
            if labels.get(DEPLOYMENT_LABEL) == deployment and labels.get(APP_LABEL) == app:
                uid = pod.metadata.uid
                devices = tuple(
                    use.device for use in seen.uses if use.pod == uid for _ in range(use.units)
                )
                found.append(BoundPod(pod, devices))
    return sorted(found, key=lambda each: each.pod.key)


def charges_by(
    placement: AppOnCluster, pods: Iterable[BoundPod]
) -> tuple[Charges, tuple[ChargedPod, ...]]:
    """What is charged where: pods that run, and planned ones that do not run yet."""
    charges: Charges = {}
    charged: list[ChargedPod] = []
    by_workload: dict[str, list[BoundPod]] = {}
    for each in pods:
        name = workload_of(each.pod.metadata.name, placement.workloads)
        by_workload.setdefault(name, []).append(each)
        on(charges, each.node).add(pod_request_of(each.pod).amounts)
    planned = {workload.name: workload for workload in placement.workloads}
    for name, mine in by_workload.items():
        nodes_planned = planned[name].nodes if name in planned else {}
        for each in mine:
            charged.append(
                ChargedPod(
                    key=each.pod.key,
                    workload=name,
                    node=each.node,
                    was_planned=each.node in nodes_planned,
                )
            )
    others_named = Counter(workload.name for workload in placement.workloads)
    for workload in placement.workloads:
        mine = by_workload.get(workload.name, [])
        others_named[workload.name] -= 1
        # Objects of two kinds may share a name: the last of them has what is too many.
        count = workload.count if others_named[workload.name] else len(mine)
        charge_workload(charges, workload, mine[:count])
        del mine[:count]
    for each in by_workload.get("", ()):
        on(charges, each.node).devices += each.devices
    return charges, tuple(sorted(charged, key=lambda each: each.key))


def charge_workload(charges: Charges, workload: PlannedWorkload, pods: Sequence[BoundPod]) -> None:
    """Planned pods that do not run yet, and the devices of all.

    A pod on a node that was planned takes a planned place there; one that went elsewhere takes
    the last of those that are left.
    """
    running = Counter(each.node for each in pods)
    left = {node: max(count - running[node], 0) for node, count in sorted(workload.nodes.items())}
    elsewhere = len(pods) - sum(min(running[node], count) for node, count in workload.nodes.items())
    for node in reversed(left):
        moved = min(elsewhere, left[node])
        left[node] -= moved
        elsewhere -= moved
    for node, count in left.items():
        if count:
            on(charges, node).add(workload.amounts.items(), count)
    for node in workload.nodes.keys() | running.keys():
        seen = [name for each in pods if each.node == node for name in each.devices]
        chosen = workload.devices.get(node, ())
        per_pod = len(chosen) // workload.nodes[node] if chosen else 0
        is_told = len(seen) >= per_pod * running[node]
        waiting = left.get(node, 0) if is_told else left.get(node, 0) + running[node]
        free = [name for name in chosen if name not in seen]
        of_node = [*seen, *free[: per_pod * waiting]]
        if of_node:
            on(charges, node).devices += of_node


def workload_of(pod: str, workloads: Iterable[PlannedWorkload]) -> str:
    """The object that made a pod, by its name; of several the one with the longest name."""
    matching = (
        each.name for each in workloads if pod == each.name or pod.startswith(f"{each.name}-")
    )
    return max(matching, key=len, default="")
