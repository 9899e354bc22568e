"""Cluster state: what informers, the ledger and plans under way say, as decisions look at it.

Informers and the ledger's watch bring everything here, on the event loop; it is handed to the
tables that decisions look at: the nodes (room, labels, taints, pods) and the catalogue's inventory
(devices and who has them). What follows for others goes one way, into queues that were handed in:
pods that wait, and what may help them, into the scheduling queue; pods that are over into the queue
of releases; nodes whose devices changed are kept until the reconciler takes them. A plan counts at
once, before anybody else knows of it, and until the pod is seen to be bound or the plan is
forgotten. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from functools import partial

from dovetail.core.rows import Rows
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.kube.classes.catalogue import DeviceCatalogue, DevicesOf
from dovetail.kube.classes.device_requests import requested_classes
from dovetail.kube.classes.extended_resources import direct_holdings_of, pool_name, pools_of
from dovetail.kube.classes.resource_claims import (
    KubeDeviceClass,
    ResourceClaim,
    allocated_devices,
    holder_name,
    mapped_resource,
)
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.kube.scheduler.device_holders import (
    Amounts,
    DeviceHolders,
    DirectUse,
    HeldOnNode,
    holder_of,
)
from dovetail.kube.scheduler.dra.claimed_devices import ClaimedDevices
from dovetail.kube.scheduler.plans import BindingPlan, holdings_of, is_over
from dovetail.kube.scheduler.queue import SchedulingQueue, Wake
from dovetail.podfit.objects import Namespace, Node, Pod, ResourceClass, ResourceSlice
from dovetail.podfit.pod_request import PodRequest, pod_request_of
from dovetail.podfit.pod_sum import CLASS_PREFIX
from dovetail.podfit.table import NodeTable


class ClusterState:
    def __init__(self, devices_of: DevicesOf, queue: SchedulingQueue, releases: WorkQueue) -> None:
        self.rows = Rows()
        self.nodes = NodeTable(self.rows)
        self.catalogue = DeviceCatalogue(self.rows, devices_of)
        self.inventory = self.catalogue.inventory
        self.devices = self.catalogue.devices
        self.classes = self.catalogue.classes
        self.holders = DeviceHolders(self.inventory)
        self.claimed = ClaimedDevices()
        self.device_classes: dict[str, str] = {}
        """DeviceClasses of Kubernetes, by the extended resource that they say they are."""
        self.pods: dict[str, Pod] = {}
        """By uid: all that are not over."""
        self._queue = queue
        self._releases = releases
        self._plans: dict[str, BindingPlan] = {}
        self._mapped: dict[str, str] = {}
        """The extended resources of DeviceClasses, by their names."""
        self._change_counts = dict.fromkeys(Wake, 0)
        self._changed_device_nodes: set[str] = set()

    def change_count(self, wake_on: Wake) -> int:
        """Grows with everything that may help a pod that waits for such changes."""
        return sum(count for what, count in self._change_counts.items() if what & wake_on)

    def name_of(self, holder: str) -> str:
        """What users call a holder: the pod's name, where it is a pod of this cluster."""
        uid = holder_of(holder)
        pod, claim = self.pods.get(uid), self.claimed.find(uid)
        if pod is None and claim is not None:
            return f"ResourceClaim {claim.key}"
        return f"pod {pod.key}" if pod is not None else uid or "the pod itself"

    def mapped_reason(self, pod_request: PodRequest) -> str:
        """Why a pod that asks for classes cannot have what else it asks for; empty if it can."""
        found = mapped_resource((name for name, _ in pod_request.amounts), self.device_classes)
        if found is None:
            return ""
        return (
            f"{found[0]} is devices of DeviceClass {found[1]!r}, and a pod has one ResourceClaim"
            " for all its extended resources: with resource classes it cannot ask for that, too;"
            " ask for a resource class of those devices instead."
        )

    def twice_served_reason(self, classes: Iterable[str]) -> str:
        """Why kube-scheduler cannot have these classes served here, too; empty if it can."""
        names = (f"{CLASS_PREFIX}{name}" for name in sorted(classes))
        found = mapped_resource(names, self.device_classes)
        if found is None:
            return ""
        return (
            f"DeviceClass {found[1]!r} has the extendedResourceName {found[0]}, so kube-scheduler"
            " itself would give the pod devices for its resource class, and so would this: it has"
            " to be taken out of the DeviceClass."
        )

    def has_node(self, name: str) -> bool:
        return self.catalogue.has_node(name)

    def take_changed_device_nodes(self) -> frozenset[str]:
        """Nodes whose devices changed, or that are gone, since this was last asked."""
        taken, self._changed_device_nodes = frozenset(self._changed_device_nodes), set()
        return taken

    def exhausted_resource(self, node: str, direct: Iterable[DeviceHolding]) -> str:
        """The first resource of which too few units are left there for a pod that asks for so many
        directly; empty if there is none, or the node has no such devices."""
        resources = {pool_name(pool.resource): pool.resource for pool in self.holders.pools(node)}
        for each in direct:
            resource = resources.get(each.device)
            if resource is not None and self.nodes.free(node, resource) < each.units:
                return resource
        return ""

    @contextmanager
    def own_claim_as_room(self, uid: str, direct: tuple[DeviceHolding, ...]) -> Iterator[None]:
        """The nodes as a pod sees them that uses directly what the ledger holds for it."""
        claimed = self.holders.claim_of(uid)
        if claimed is None or not direct:
            yield
            return
        node, _ = claimed
        try:
            with self.holders.using_claim(uid, node, direct):
                self._count_pools(node)
                yield
        finally:
            self._count_pools(node)

    # Plans.

    def plan(
        self, pod: Pod, node: str, holdings: tuple[DeviceHolding, ...] = (), **about: bool
    ) -> BindingPlan:
        """A plan that knows who brings the devices into the pod's containers."""
        wanted = {each.device for each in holdings}
        origins = {
            each.name: each.origin
            for each in (self.devices.get(node, ()) if wanted else ())
            if each.origin is not None and each.name in wanted
        }
        return BindingPlan(pod, node, holdings, origins=origins, **about)

    def is_planned(self, uid: str) -> bool:
        return uid in self._plans

    def planned_uids(self) -> Set[str]:
        """Uids of pods that plans are under way for."""
        return self._plans.keys()

    def assume(self, plan: BindingPlan) -> None:
        """Count the plan as if it were carried out."""
        self._plans[plan.uid] = plan
        self._count_pod(plan.pod, plan.node)
        if plan.holdings:
            self.holders.assume(plan.uid, HeldOnNode(plan.node, plan.holdings))
        self._recount_pools()

    def forget(self, uid: str) -> None:
        """The plan came to nothing."""
        if self._plans.pop(uid, None) is None:
            return
        pod = self.pods.get(uid)
        if pod is None or not pod.spec.node_name:
            self._uncount_pod(uid)
        self.holders.forget(uid)
        self._recount_pools()
        self._cluster_changed(Wake.GONE)

    def _count_pod(self, pod: Pod, node: str) -> None:
        self.nodes.add_pod(pod, node)
        direct = direct_holdings_of(pod_request_of(pod))
        used = DirectUse(HeldOnNode(node, direct), is_claimed=not requested_classes(pod))
        self.holders.use(pod.metadata.uid, used if direct else None)

    def _uncount_pod(self, uid: str) -> None:
        self.nodes.remove_pod(uid)
        self.holders.use(uid, None)

    # What informers tell.

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        assert pod is not None
        if new is None or is_over(new):
            self._pod_over(pod)
        elif new.spec.node_name:
            self._pod_bound(new)
        else:
            self.pods[pod.metadata.uid] = new
            if pod.metadata.uid not in self._plans:
                self._queue.offer(new)

    def _pod_over(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        known = self.pods.pop(uid, None)
        if known is None:
            return
        self._queue.drop(uid)
        self.holders.on_pod(uid, None)
        if self._plans.pop(uid, None) is not None or known.spec.node_name:
            self._uncount_pod(uid)
            self.holders.forget(uid)
            self._cluster_changed(Wake.GONE)
        self._recount_pools()
        if requested_classes(pod):
            self._releases.add(uid)

    def _pod_bound(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        before, self.pods[uid] = self.pods.get(uid), pod
        changes = bound_pod_changes(before, pod)
        if not changes:
            return
        self._count_pod(pod, pod.spec.node_name)
        holdings = holdings_of(pod)
        self.holders.on_pod(uid, HeldOnNode(pod.spec.node_name, holdings) if holdings else None)
        if self._plans.pop(uid, None) is not None:
            self.holders.forget(uid)
        if holdings and self.claimed.rival_of(uid) is not None:
            self._changed_device_nodes.add(pod.spec.node_name)
        self._recount_pools()
        self._queue.drop(uid)
        self._cluster_changed(changes)

    def on_node(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            assert old is not None
            self._node_gone(old.metadata.name)
            return
        if self.nodes.set_node(new):
            self._cluster_changed(Wake.NODE)
        name = new.metadata.name
        if self.catalogue.set_node(new):
            self._devices_changed(name)
        elif self.holders.has_devices_by_id(name):
            self._count_pools(name)

    def _node_gone(self, name: str) -> None:
        self.holders.set_pools(name, ())
        self.nodes.set_aside(name, {})
        self.nodes.drop_node(name)
        self.catalogue.drop_node(name)
        self.rows.drop(name)
        self._changed_device_nodes.add(name)
        self._cluster_changed(Wake.NODE_GONE)

    def on_slice(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        for holder in self.claimed.set_slice(old, new):
            self.holders.on_resource_claims(holder, self.claimed.held_by(holder))
        for node in self.catalogue.set_slice(old, new):
            self._devices_changed(node)
        self._recount_pools()

    def on_resource_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        before, now = (allocated_devices(each) if each else frozenset() for each in (old, new))
        disputed = self._disputed_nodes(old)
        for holder in self.claimed.set_claim(old, new):
            self.holders.on_resource_claims(holder, self.claimed.held_by(holder))
        self._changed_device_nodes |= disputed | self._disputed_nodes(new)
        self._recount_pools()
        if before - now:
            self._cluster_changed(Wake.DEVICES)

    def _disputed_nodes(self, claim: ResourceClaim | None) -> Set[str]:
        """Where somebody else has devices of the claim, too: pods there are told of it."""
        holder = holder_name(claim) if claim is not None else ""
        if not holder or self.claimed.rival_of(holder) is None:
            return frozenset()
        return self.claimed.held_by(holder).keys()

    def on_device_class(self, old: KubeDeviceClass | None, new: KubeDeviceClass | None) -> None:
        if old is not None:
            self._mapped.pop(old.metadata.name, None)
        if new is not None and new.spec.extended_resource_name:
            self._mapped[new.metadata.name] = new.spec.extended_resource_name
        self.device_classes = {resource: name for name, resource in sorted(self._mapped.items())}
        self._cluster_changed(Wake.CLASS)

    def _devices_changed(self, node: str) -> None:
        self.holders.set_pools(node, pools_of(self.devices[node]))
        self._count_pools(node)
        self._changed_device_nodes.add(node)
        self._cluster_changed(Wake.DEVICES)

    def _recount_pools(self) -> None:
        for node in self.holders.take_changed_nodes():
            self._count_pools(node)

    def _count_pools(self, node: str) -> None:
        """What is held otherwise is no room for pods that ask for the same units directly."""
        amounts = partial(self.nodes.allocatable, node)
        self.nodes.set_aside(node, self.holders.units_set_aside(node, amounts))

    def on_class(self, old: ResourceClass | None, new: ResourceClass | None) -> None:
        if self.catalogue.set_class(old, new):
            self._cluster_changed(Wake.CLASS)

    def on_namespace(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is not None:
            changed = self.nodes.set_namespace(new)
        else:
            assert old is not None
            changed = self.nodes.drop_namespace(old.metadata.name)
        if changed:
            self._cluster_changed(Wake.NAMESPACE)

    # What the ledger tells.

    def on_ledger(self, nodes: Mapping[str, Mapping[str, Amounts]]) -> None:
        heard = [self.holders.on_ledger(node, devices) for node, devices in nodes.items()]
        self._recount_pools()
        if any(each.freed for each in heard):
            self._cluster_changed(Wake.DEVICES)
        for uid in {uid for each in heard for uid in each.consumers}:
            self._queue.retry_parked(uid)

    def on_release(self, uid: str) -> None:
        if self.holders.claim_of(uid) is not None:
            self.holders.on_release(uid)
            self._recount_pools()
            self._cluster_changed(Wake.DEVICES)

    def _cluster_changed(self, what: Wake) -> None:
        for each in what:
            self._change_counts[each] += 1
        self._queue.cluster_changed(what)


def bound_pod_changes(before: Pod | None, now: Pod) -> Wake:
    """What others may notice of a bound pod that came or changed; mostly nothing.

    Its status is looked at, too: what a pod that is being resized counts for is said there.
    """
    if before is None or not before.spec.node_name:
        return Wake.PLACED
    changes = Wake(0)
    old, new = before.metadata, now.metadata
    if amounts_counted(before) != amounts_counted(now):
        changes |= Wake.RESIZED
    if old.labels != new.labels or old.deletion_timestamp != new.deletion_timestamp:
        changes |= Wake.RELABELLED
    if old.annotations != new.annotations:
        changes |= Wake.DEVICES
    return changes


def amounts_counted(pod: Pod) -> tuple[object, object]:
    request = pod_request_of(pod)
    return request.amounts, request.score_amounts
