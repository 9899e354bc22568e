"""Catalogue: device classes, and the devices of nodes, as the cluster publishes them.

The scheduler's state hands over what informers bring; every method says what it changed. The names
of what changed also go into two work queues, which the class controller works off. Devices and
classes are in one inventory, of which the scheduler and the extender choose. No I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from dovetail.core.device import Device
from dovetail.core.errors import Malformed
from dovetail.core.rows import Rows
from dovetail.devices.allocation.inventory import DeviceInventory
from dovetail.devices.allocation.request import ClassStatus
from dovetail.devices.classes import documents
from dovetail.devices.classes.hierarchy import problems_of
from dovetail.kube.classes.slices import SlicesByNode
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.podfit.objects import Node, ResourceClass, ResourceSlice

LOG = structlog.get_logger("dovetail.kube.scheduler")

LONGEST_BACKOFF_SECONDS = 30.0
"""Between tries to tell the ledger of a change."""

DevicesOf = Callable[[Node, Sequence[ResourceSlice]], tuple[Device, ...]]
"""Reads the devices of a node. Raises Malformed."""

ClassReport = tuple[ClassStatus, Sequence[str]]
"""The numbers of a class, and what keeps it from being used."""


class DeviceCatalogue:
    def __init__(self, rows: Rows, devices_of: DevicesOf) -> None:
        self.inventory = DeviceInventory(rows)
        self.devices: dict[str, tuple[Device, ...]] = {}
        """By node."""
        self.classes: dict[str, documents.DeviceClass] = {}
        """By name: those that can be read."""
        self.unreadable: dict[str, tuple[str, ...]] = {}
        """By name: what is wrong with those that cannot."""
        self.changed_nodes = WorkQueue("publish devices", cap=LONGEST_BACKOFF_SECONDS)
        self.changed_classes = WorkQueue("publish classes", cap=LONGEST_BACKOFF_SECONDS)
        self._devices_of = devices_of
        self._nodes: dict[str, Node] = {}
        self._slices = SlicesByNode()

    def has_node(self, name: str) -> bool:
        return name in self._nodes

    def set_node(self, node: Node) -> bool:
        """Take in a node that is new or may have changed; True if its devices are others now."""
        name = node.metadata.name
        before, self._nodes[name] = self._nodes.get(name), node
        return (before is None or not has_same_devices(before, node)) and self._read_devices(node)

    def drop_node(self, name: str) -> None:
        self._nodes.pop(name, None)
        self.devices.pop(name, None)
        self.inventory.drop_node(name)
        self.changed_nodes.add(name)

    def set_slice(self, old: ResourceSlice | None, new: ResourceSlice | None) -> list[str]:
        """A slice came (no old), changed or went (no new); the nodes whose devices are others."""
        names = sorted(self._slices.set_slice(old, new))
        known = (self._nodes[name] for name in names if name in self._nodes)
        return [node.metadata.name for node in known if self._read_devices(node)]

    def set_class(self, old: ResourceClass | None, new: ResourceClass | None) -> bool:
        """A class came (no old), changed or went (no new); True if it can be used now as it is."""
        written = new or old
        assert written is not None
        if new is not None and old is not None and old.spec == new.spec:
            return False
        name = written.metadata.name
        self.unreadable.pop(name, None)
        if self.classes.pop(name, None) is not None:
            self.inventory.drop_class(name)
        is_usable = new is not None and self._read_class(name, new)
        self.changed_classes.add(name)
        return is_usable

    def report(self, name: str) -> ClassReport:
        """What the status of a class says."""
        found = self.classes.get(name)
        if found is None:
            return ClassStatus(), self.unreadable.get(name, ("it is not read yet",))
        problems = tuple(map(str, problems_of(found, self.classes)))
        return self.inventory.status(name), problems

    def _read_class(self, name: str, written: ResourceClass) -> bool:
        try:
            self.classes[name] = documents.read(name, written.spec)
        except documents.BadClass as error:
            self.unreadable[name] = tuple(map(str, error.problems))
            LOG.warning("resource class not read", error=str(error))
            return False
        self.inventory.set_class(self.classes[name])
        return True

    def _read_devices(self, node: Node) -> bool:
        name = node.metadata.name
        try:
            devices = self._devices_of(node, self._slices.of(name))
        except Malformed as error:
            # What was known of them stays: a slip of the pen must not take devices from pods.
            LOG.warning("devices not read", node=name, error=str(error))
            return False
        if devices == self.devices.get(name):
            return False
        self.devices[name] = devices
        self.inventory.set_node(name, devices)
        self.changed_nodes.add(name)
        return True


def has_same_devices(before: Node, now: Node) -> bool:
    """As far as the node itself tells; slices are looked at when they change."""
    return (
        before.metadata.annotations == now.metadata.annotations
        and before.metadata.labels == now.metadata.labels
        and before.status.capacity == now.status.capacity
        and before.status.allocatable == now.status.allocatable
    )
