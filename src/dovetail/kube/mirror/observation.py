"""Observation of one cluster: what informers, or the items of a snapshot, told of it. No I/O.

Handlers take in what came, changed or went, and note the nodes that are others since; `taken` hands
those over to be written, each as it is then: a burst of pods makes one write of their node. What
does not change a node's document is not noted at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import msgspec
import structlog

from dovetail.core.device import Device
from dovetail.core.errors import DovetailError, Malformed
from dovetail.devices.allocation_document import ALLOCATION, read_allocation
from dovetail.intents.names import ClusterName
from dovetail.kube.classes.node_annotation import DEVICES
from dovetail.kube.classes.resource_claims import ResourceClaim
from dovetail.kube.classes.slices import SlicesByNode, slice_devices
from dovetail.kube.classes.sources import devices_of
from dovetail.kube.mirror.resource_claims import uses_of
from dovetail.ledger.devices import refuse_unfit
from dovetail.ledger.intents.node_names import root_name
from dovetail.ledger.intents.observed import (
    DeviceUse,
    SeenNode,
    SeenPod,
    observed_pod,
    pruned_node,
    pruned_pod,
)
from dovetail.podfit.objects import (
    Node,
    NodeStatus,
    ObjectMeta,
    Pod,
    ResourceClass,
    ResourceSlice,
)
from dovetail.podfit.pod_sum import allocatable_of

LOG = structlog.get_logger("dovetail.kube.mirror")

PINS_CPUS = "dovetail.dev/pins-cpus"
"""The label by which a node agent tells that CPUs of the node can be exclusive."""


class PodOnNode(msgspec.Struct, frozen=True):
    seen: SeenPod
    uses: tuple[DeviceUse, ...]


class SeenChanges(msgspec.Struct, frozen=True):
    """Nodes that are others than before, and those that are no more."""

    nodes: tuple[SeenNode, ...]
    gone: tuple[str, ...]


class ClusterObservation:
    def __init__(self, cluster: ClusterName, wake: Callable[[], None] = lambda: None) -> None:
        """`wake` is called when there is something to be taken."""
        self._cluster = cluster
        self._wake = wake
        self._changed: set[str] = set()
        self._nodes: dict[str, Node] = {}
        self._sources: dict[str, Node] = {}
        """By name, what nodes say of their devices."""
        self._pods: dict[str, dict[str, PodOnNode]] = {}
        """By node, also of nodes that are not there (yet), by key."""
        self._node_of: dict[str, str] = {}
        """By key of a pod."""
        self._slices = SlicesByNode()
        self._devices: dict[str, tuple[Device, ...]] = {}
        self._by_claim: set[str] = set()
        """Nodes that have devices of ResourceSlices."""
        self._nodes_with: dict[str, set[str]] = {}
        """By device."""
        self._claims: dict[str, tuple[DeviceUse, ...]] = {}
        self._claimed: dict[str, dict[str, DeviceUse]] = {}
        """By device, by key of the claim."""
        self._policies: dict[str, bool | None] = {}
        """By node, whether its kubelet pins CPUs, where it told."""
        self.classes: dict[str, dict[str, Any]] = {}
        """By name: specifications of ResourceClasses as they were written."""
        self.classes_changed = False

    @property
    def nodes(self) -> Collection[str]:
        return self._nodes.keys()

    def changed_nodes(self) -> list[str]:
        """Those that are to be written, in the order of their names."""
        return sorted(self._changed)

    def taken(self, names: Collection[str]) -> SeenChanges:
        """These nodes as they are now; they are not noted as changed any more."""
        self._changed.difference_update(names)
        return SeenChanges(
            tuple(self._seen(name) for name in names if name in self._nodes),
            tuple(name for name in names if name not in self._nodes),
        )

    def note(self, names: Iterable[str]) -> None:
        """These are to be written: they may not be in the ledger as they are."""
        self._changed.update(names)
        if self._changed:
            self._wake()

    # -- what informers tell -----------------------------------------------------------------------

    def on_node(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            assert old is not None
            name = old.metadata.name
            self._nodes.pop(name, None)
            self._sources.pop(name, None)
            self._policies.pop(name, None)
            self._index_devices(name, ())
            self.note([name])
            return
        name = new.metadata.name
        allocatable_of(new.status.allocatable)  # Raises BadQuantity before anything is changed.
        pruned = pruned_node(new)
        before = self._nodes.get(name)
        self._nodes[name] = pruned
        changed = before is None or before != pruned
        source = device_source(new)
        if self._sources.get(name) != source:
            self._sources[name] = source
            changed = self._read_devices(name) or changed
        if changed:
            self.note([name])

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        key = (new or old or Pod()).key
        now = self._pod_on_node(new) if new is not None else None
        before_on = self._node_of.pop(key, None)
        before = self._pods[before_on].pop(key) if before_on is not None else None
        if before_on is not None and not self._pods[before_on]:
            del self._pods[before_on]
        if new is not None and now is not None:
            self._node_of[key] = new.spec.node_name
            self._pods.setdefault(new.spec.node_name, {})[key] = now
        if now != before:
            both = (before_on, self._node_of.get(key))
            self.note(name for name in both if name is not None and name in self._nodes)

    def on_slice(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        for name in self._slices.set_slice(old, new):
            if name in self._nodes and self._read_devices(name):
                self.note([name])

    def on_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        key = (new or old or ResourceClaim()).key
        before = self._claims.pop(key, ())
        for use in before:
            self._claimed[use.device].pop(key, None)
            if not self._claimed[use.device]:
                del self._claimed[use.device]
        now = uses_of(new) if new is not None else ()
        if now:
            self._claims[key] = now
        for use in now:
            self._claimed.setdefault(use.device, {})[key] = use
        if before != now:
            devices = {use.device for use in (*before, *now)}
            self.note({node for each in devices for node in self._nodes_with.get(each, ())})

    def on_class(self, old: ResourceClass | None, new: ResourceClass | None) -> None:
        for each in filter(None, (old, new)):
            before = self.classes.pop(each.metadata.name, None)
            if each is new:
                self.classes[each.metadata.name] = each.spec
            self.classes_changed |= before != self.classes.get(each.metadata.name)
        if self.classes_changed:
            self._wake()

    def set_policy(self, node: str, pins_cpus: bool | None) -> None:
        """What the kubelet of a node told of its CPU manager."""
        if node in self._nodes and self._policies.get(node) != pins_cpus:
            self._policies[node] = pins_cpus
            self.note([node])

    # -- inside ------------------------------------------------------------------------------------

    def _seen(self, name: str) -> SeenNode:
        node, devices = self._nodes[name], self._devices.get(name, ())
        pods = self._pods.get(name, {}).values()
        told = [use for each in pods for use in each.uses]
        # Of a device that a class gave, the pod's claim tells, too.
        known = {(use.device, use.pod) for use in told}
        of_claims = (
            use
            for each in devices
            for use in self._claimed.get(each.name, {}).values()
            if (use.device, use.pod) not in known
        )
        return SeenNode(
            node=node,
            pods=tuple(each.seen for each in pods),
            devices=devices,
            devices_by_claim=name in self._by_claim,
            uses=(*told, *of_claims),
            pins_cpus=self._pins_cpus(node),
        )

    def _pins_cpus(self, node: Node) -> bool | None:
        told = self._policies.get(node.metadata.name)
        if told:
            return True
        label = node.metadata.labels.get(PINS_CPUS)
        return label == "true" if label is not None else told

    def _read_devices(self, name: str) -> bool:
        """Whether they are others than before."""
        slices = self._slices.of(name)
        try:
            found = devices_of(self._sources[name], slices)
            refuse_unfit(root_name(self._cluster, name), found)
        except Malformed as error:
            # What was known of them stays: a slip of the pen must not take devices away.
            LOG.warning("devices not read", cluster=self._cluster, node=name, error=str(error))
            return False
        return self._index_devices(name, found, by_claim=any(slice_devices(name, slices)))

    def _index_devices(
        self, node: str, devices: tuple[Device, ...], *, by_claim: bool = False
    ) -> bool:
        before = self._devices.get(node, ())
        if devices == before and by_claim == (node in self._by_claim):
            return False
        self._by_claim.discard(node)
        if by_claim:
            self._by_claim.add(node)
        for each in before:
            self._nodes_with[each.name].discard(node)
            if not self._nodes_with[each.name]:
                del self._nodes_with[each.name]
        self._devices.pop(node, None)
        if devices:
            self._devices[node] = devices
        for each in devices:
            self._nodes_with.setdefault(each.name, set()).add(node)
        return True

    def _pod_on_node(self, pod: Pod) -> PodOnNode | None:
        """None: it takes no room, or nobody knows how much."""
        try:
            seen = observed_pod(pod)
        except Malformed as error:
            LOG.warning("pod not counted", cluster=self._cluster, pod=pod.key, error=str(error))
            return None
        return PodOnNode(seen, self._allocated(pod)) if seen is not None else None

    def _allocated(self, pod: Pod) -> tuple[DeviceUse, ...]:
        """Devices that Dovetail's scheduler gave to the pod."""
        try:
            allocation = read_allocation(pod.metadata.annotations)
        except DovetailError as error:
            LOG.warning("allocation not read", cluster=self._cluster, pod=pod.key, error=str(error))
            return ()
        if allocation is None or allocation.node != pod.spec.node_name:
            return ()
        uid = pod.metadata.uid or pod.key
        return tuple(DeviceUse(each.device, uid, each.units) for each in allocation.holdings)


def kept_of_pod(pod: Pod) -> Pod:
    """What the mirror reads of a pod: of most news, which are of its containers' states, nothing
    is left."""
    try:
        return pruned_pod(pod, (ALLOCATION,))
    except Malformed:
        return pod


def device_source(node: Node) -> Node:
    """What of a node its devices are read from."""
    meta, status = node.metadata, node.status
    written = meta.annotations.get(DEVICES)
    return Node(
        metadata=ObjectMeta(
            name=meta.name,
            labels=meta.labels,
            annotations={DEVICES: written} if written is not None else {},
        ),
        status=NodeStatus(capacity=status.capacity, allocatable=status.allocatable),
    )
