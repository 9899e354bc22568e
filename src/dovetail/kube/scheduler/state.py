"""The cluster as the scheduler sees it: what informers, the ledger and its own plans say.

Everything that happens comes through here, on the event loop, and is handed to the two tables that
decisions look at: the nodes (room, labels, taints, pods) and the book (devices and who has them).
A plan counts at once, before anybody else knows of it, and until the pod is seen to be bound or the
plan is forgotten. Does no I/O; whoever makes it is told what became of pods and devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Protocol

import structlog

from dovetail.core.device import Device
from dovetail.core.errors import Malformed
from dovetail.core.rows import Rows
from dovetail.devices.allocation.inventory import DeviceInventory
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.devices.classes import documents
from dovetail.kube.classes.capacity import pool_name
from dovetail.kube.scheduler.device_holders import Amounts, DeviceHolders, HeldOnNode, holder_of
from dovetail.kube.scheduler.extended_resources import Pools, asked_directly, pools_of
from dovetail.kube.scheduler.plans import BindingPlan, asked_classes, holdings_of, is_over
from dovetail.kube.scheduler.queue import Wake
from dovetail.podfit.objects import Namespace, Node, Pod, ResourceClass, ResourceSlice
from dovetail.podfit.pod_request import pod_request_of
from dovetail.podfit.table import NodeTable, is_same_node

LOG = structlog.get_logger("dovetail.kube.scheduler")

DevicesOf = Callable[[Node, Sequence[ResourceSlice]], tuple[Device, ...]]


class Listener(Protocol):
    """Who is told; each call must return at once."""

    def pending(self, pod: Pod) -> None:
        """A pod waits for a node, and no plan of ours is under way for it."""

    def settled(self, uid: str) -> None:
        """A pod needs no node any more: it is bound, over or gone."""

    def over(self, pod: Pod) -> None:
        """A pod that may hold devices holds them no longer."""

    def devices_changed(self, node: str, devices: tuple[Device, ...] | None) -> None:
        """None: the node is gone."""

    def class_changed(self, name: str) -> None:
        """A class came, changed or went."""

    def cluster_changed(self, what: Wake) -> None:
        """Something happened that may help pods that fit nowhere."""


class ClusterState:
    def __init__(self, listener: Listener, devices_of: DevicesOf) -> None:
        self.rows = Rows()
        self.nodes = NodeTable(self.rows)
        self.book = DeviceInventory(self.rows)
        self.holders = DeviceHolders(self.book, self._count_pools)
        self.pods: dict[str, Pod] = {}
        """By uid: all that are not over."""
        self.devices: dict[str, tuple[Device, ...]] = {}
        """By node."""
        self.classes: dict[str, documents.DeviceClass] = {}
        """By name: those that can be read."""
        self.unreadable: dict[str, tuple[str, ...]] = {}
        """By name: what is wrong with those that cannot."""
        self._listener = listener
        self._devices_of = devices_of
        self._plans: dict[str, BindingPlan] = {}
        self._slices: dict[str, dict[str, ResourceSlice]] = {}
        """By node, by name."""
        self._known: dict[str, Node] = {}
        self._pools: dict[str, Pools] = {}
        """By node."""
        self._moments = dict.fromkeys(Wake, 0)

    def moment(self, wake_on: Wake) -> int:
        """Grows with everything that may help a pod with these hopes."""
        return sum(count for what, count in self._moments.items() if what & wake_on)

    def name_of(self, holder: str) -> str:
        """What users call a holder: the pod's name, where it is a pod of this cluster."""
        uid = holder_of(holder)
        pod = self.pods.get(uid)
        return f"pod {pod.key}" if pod is not None else uid or "the pod itself"

    def has_node(self, name: str) -> bool:
        return name in self._known

    def crowded(self, node: str, direct: Iterable[DeviceHolding]) -> str:
        """The first resource of which too few units are left there for a pod that asks for so many
        directly; empty if there is none, or the node has no such devices."""
        resources = {pool_name(resource): resource for _, resource in self._pools.get(node, ())}
        for each in direct:
            resource = resources.get(each.device)
            if resource is not None and self.nodes.free(node, resource) < each.units:
                return resource
        return ""

    # Plans.

    def is_planned(self, uid: str) -> bool:
        return uid in self._plans

    def planned(self) -> Set[str]:
        """Uids of pods that plans are under way for."""
        return self._plans.keys()

    def assume(self, plan: BindingPlan) -> None:
        """Count the plan as if it were carried out."""
        self._plans[plan.uid] = plan
        self._count_pod(plan.pod, plan.node)
        if plan.holdings:
            self.holders.assume(plan.uid, HeldOnNode(plan.node, plan.holdings))

    def forget(self, uid: str) -> None:
        """The plan came to nothing."""
        if self._plans.pop(uid, None) is None:
            return
        pod = self.pods.get(uid)
        if pod is None or not pod.spec.node_name:
            self._uncount_pod(uid)
        self.holders.forget(uid)
        self._cluster_changed(Wake.GONE)

    def _count_pod(self, pod: Pod, node: str) -> None:
        self.nodes.add_pod(pod, node)
        direct = asked_directly(pod_request_of(pod))
        self.holders.use(pod.metadata.uid, HeldOnNode(node, direct) if direct else None)

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
                self._listener.pending(new)

    def _pod_over(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        known = self.pods.pop(uid, None)
        if known is None:
            return
        self._listener.settled(uid)
        self.holders.hear_pod(uid, None)
        if self._plans.pop(uid, None) is not None or known.spec.node_name:
            self._uncount_pod(uid)
            self.holders.forget(uid)
            self._cluster_changed(Wake.GONE)
        if asked_classes(pod):
            self._listener.over(pod)

    def _pod_bound(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        before, self.pods[uid] = self.pods.get(uid), pod
        if before is not None and is_alike(before, pod):
            return
        self._count_pod(pod, pod.spec.node_name)
        holdings = holdings_of(pod)
        self.holders.hear_pod(uid, HeldOnNode(pod.spec.node_name, holdings) if holdings else None)
        if self._plans.pop(uid, None) is not None:
            self.holders.forget(uid)
        self._listener.settled(uid)
        self._cluster_changed(Wake.PLACED)

    def on_node(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            assert old is not None
            self._node_gone(old.metadata.name)
            return
        name = new.metadata.name
        before, self._known[name] = self._known.get(name), new
        if before is None or not is_same_node(before, new):
            self.nodes.set_node(new)
            self._cluster_changed(Wake.NODE)
        if before is None or not has_same_devices(before, new):
            self._see_devices(new)

    def _node_gone(self, name: str) -> None:
        self._known.pop(name, None)
        self.devices.pop(name, None)
        self._pools.pop(name, None)
        self.nodes.set_aside(name, {})
        self.nodes.drop_node(name)
        self.book.drop_node(name)
        self.rows.drop(name)
        self._listener.devices_changed(name, None)

    def on_slice(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        for each in (old, new):
            if each is not None and each.spec.node_name:
                there = self._slices.setdefault(each.spec.node_name, {})
                if each is new:
                    there[each.key] = each
                else:
                    there.pop(each.key, None)
                if not there:
                    del self._slices[each.spec.node_name]
        for name in {each.spec.node_name for each in (old, new) if each is not None}:
            if (node := self._known.get(name)) is not None:
                self._see_devices(node)

    def _see_devices(self, node: Node) -> None:
        name = node.metadata.name
        slices = tuple(self._slices.get(name, {}).values())
        try:
            devices = self._devices_of(node, slices)
        except Malformed as error:
            # What was known of them stays: a slip of the pen must not take devices from pods.
            LOG.warning("devices not read", node=name, error=str(error))
            return
        if devices == self.devices.get(name):
            return
        self.devices[name] = devices
        self.book.set_node(name, devices)
        self._pools[name] = pools_of(devices)
        self._count_pools(name)
        self._listener.devices_changed(name, devices)
        self._cluster_changed(Wake.DEVICES)

    def _count_pools(self, node: str) -> None:
        """What is held by class is no room for pods that ask for the same units directly."""
        held: dict[str, int] = {}
        for device, resource in self._pools.get(node, ()):
            held[resource] = held.get(resource, 0) + self.holders.by_class(node, device)
        self.nodes.set_aside(node, held)

    def on_class(self, old: ResourceClass | None, new: ResourceClass | None) -> None:
        written = new or old
        assert written is not None
        if new is not None and old is not None and old.spec == new.spec:
            return
        self._drop_class(written.metadata.name)
        if new is not None:
            self._see_class(new)
        self._listener.class_changed(written.metadata.name)

    def _see_class(self, written: ResourceClass) -> None:
        name = written.metadata.name
        try:
            self.classes[name] = documents.read(name, written.spec)
        except documents.BadClass as error:
            self.unreadable[name] = tuple(map(str, error.problems))
            LOG.warning("resource class not read", error=str(error))
            return
        self.book.set_class(self.classes[name])
        self._cluster_changed(Wake.CLASS)

    def _drop_class(self, name: str) -> None:
        self.unreadable.pop(name, None)
        if self.classes.pop(name, None) is not None:
            self.book.drop_class(name)

    def on_namespace(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is not None:
            self.nodes.set_namespace(new)
        elif old is not None:
            self.nodes.drop_namespace(old.metadata.name)

    # What the ledger tells.

    def hear_ledger(self, nodes: Mapping[str, Mapping[str, Amounts]]) -> None:
        freed = [self.holders.hear_ledger(node, devices) for node, devices in nodes.items()]
        if any(freed):
            self._cluster_changed(Wake.DEVICES)

    def hear_release(self, uid: str) -> None:
        if self.holders.claimed(uid) is not None:
            self.holders.hear_release(uid)
            self._cluster_changed(Wake.DEVICES)

    def _cluster_changed(self, what: Wake) -> None:
        self._moments[what] += 1
        self._listener.cluster_changed(what)


def is_alike(before: Pod, now: Pod) -> bool:
    """Whether nothing changed of a bound pod that matters here: most updates are status."""
    return (
        before.spec == now.spec
        and before.metadata.labels == now.metadata.labels
        and before.metadata.annotations == now.metadata.annotations
        and before.metadata.deletion_timestamp == now.metadata.deletion_timestamp
    )


def has_same_devices(before: Node, now: Node) -> bool:
    """As far as the node itself tells; slices are looked at when they change."""
    return (
        before.metadata.annotations == now.metadata.annotations
        and before.metadata.labels == now.metadata.labels
        and before.status.capacity == now.status.capacity
        and before.status.allocatable == now.status.allocatable
    )
