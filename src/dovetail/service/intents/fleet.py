"""Cache of registered clusters: one fleet snapshot per process, kept true to the ledger.

Whoever plans calls `fresh()` first. It returns a snapshot that includes every commit made before
the call: it follows the change log, and reads again only the nodes that changed. Calls that arrive
while a look is under way share the next one. Snapshots never change; each is the caller's to keep.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from dovetail.aio.single_flight import NextRun
from dovetail.aio.thread_results import result_of
from dovetail.core.device import Device
from dovetail.core.errors import Malformed
from dovetail.devices.classes import documents
from dovetail.devices.classes.documents import DeviceClass
from dovetail.intents.fleet import ClusterHealth, ClusterInventory, ClusterNode, FleetSnapshot
from dovetail.intents.names import ClusterName
from dovetail.ledger import Change, Cursor, Ledger, Transaction, devices
from dovetail.ledger.database.protocol import Log
from dovetail.ledger.devices import DEVICE_CLASS
from dovetail.ledger.intents import clusters, node_rows
from dovetail.ledger.intents.clusters import (
    ClusterRecord,
    ClusterSource,
    SeenCluster,
    UnreachablePolicy,
)
from dovetail.ledger.intents.node_rows import NodeRow
from dovetail.ledger.intents.observed import NODE_DECODER, PODS_DECODER
from dovetail.ledger.intents.others import is_pool
from dovetail.ledger.intents.resource_names import class_of_resource

SILENT_SECONDS = 90
"""A mirrored cluster of which nobody told for so long counts as away: the mirror may be gone."""
TREES = frozenset((Change.TREE, Change.USAGE))

HeldAmounts = Sequence[tuple[str, str, int]]
"""Provider, class and what is held of it."""


class SnapshotReader(Protocol):
    """Reads a posted snapshot: `kubectl get nodes,pods,resourceslices -A -o json`."""

    def __call__(self, document: Mapping[str, Any], cluster: ClusterName) -> SeenCluster:
        """Raises BadDocument with the place of what is wrong."""
        ...


class FleetChanges(msgspec.Struct, frozen=True):
    """What a look at the ledger found."""

    is_everything: bool
    nodes: Mapping[int, tuple[NodeRow, ClusterNode]]
    """By root."""
    gone: frozenset[int]
    clusters: Sequence[ClusterRecord]
    labels: Mapping[ClusterName, frozenset[str]]
    classes: Mapping[ClusterName, str]


class FleetKeeper:
    """Used on the event loop only."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        silent_seconds: int = SILENT_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ledger = ledger
        self._silent_seconds = silent_seconds
        self._clock = clock
        self._cursor: Cursor | None = None
        self._looks = NextRun(self._take_in)
        self._places: dict[int, tuple[ClusterName, str]] = {}
        """By root: cluster and node."""
        self._nodes: dict[ClusterName, dict[str, ClusterNode]] = {}
        self._inventories: dict[ClusterName, ClusterInventory] = {}
        self._classes: dict[ClusterName, tuple[str, Mapping[str, DeviceClass]]] = {}
        """Documents, and what they say."""
        self._version = 0

    async def fresh(self) -> FleetSnapshot:
        await self._looks.join()
        return FleetSnapshot(clusters=dict(self._inventories), taken_at=int(self._clock()))

    async def _take_in(self) -> None:
        cursor, found = await result_of(self._ledger.follow(self._cursor, look))
        self._cursor = cursor
        changed = self._take_nodes(found)
        before, self._inventories = self._inventories, {}
        for record in found.clusters:
            name = record.name
            known = before.get(name)
            new = self._inventory(record, known, found, has_changed=name in changed)
            if known is None or name in changed or not is_same_but_nodes(known, new):
                self._version += 1
                new = replace(new, version=self._version)
            self._inventories[name] = new

    def _take_nodes(self, found: FleetChanges) -> set[ClusterName]:
        """The clusters whose nodes are others now."""
        changed = set(self._nodes) if found.is_everything else set()
        if found.is_everything:
            self._nodes, self._places = {}, {}
        for root in found.gone:
            place = self._places.pop(root, None)
            if place is not None:
                self._nodes[place[0]].pop(place[1], None)
                changed.add(place[0])
        for root, (row, node) in found.nodes.items():
            self._places[root] = (row.cluster, row.name)
            self._nodes.setdefault(row.cluster, {})[row.name] = node
            changed.add(row.cluster)
        return changed

    def _inventory(
        self,
        record: ClusterRecord,
        known: ClusterInventory | None,
        found: FleetChanges,
        *,
        has_changed: bool,
    ) -> ClusterInventory:
        name = record.name
        state, why = health_of(record, self._clock(), self._silent_seconds)
        if known is None or has_changed:
            there = self._nodes.get(name, {})
            in_order = tuple(there[each] for each in sorted(there))
        else:
            in_order = known.nodes
        return ClusterInventory(
            name=name,
            nodes=in_order,
            labels=found.labels.get(name, frozenset()),
            classes=self._classes_of(name, found.classes.get(name, "{}")),
            state=state,
            why=why,
            observed_at=record.observed_at,
            version=known.version if known is not None else 0,
        )

    def _classes_of(self, cluster: ClusterName, document: str) -> Mapping[str, DeviceClass]:
        known = self._classes.get(cluster)
        if known is None or known[0] != document:
            known = self._classes[cluster] = document, device_classes(document)
        return known[1]


def is_same_but_nodes(one: ClusterInventory, other: ClusterInventory) -> bool:
    """However old they are."""
    return (
        one.state is other.state
        and one.why == other.why
        and one.labels == other.labels
        and one.classes is other.classes
    )


def health_of(record: ClusterRecord, now: float, silent_seconds: int) -> tuple[ClusterHealth, str]:
    """How a cluster counts, and why; by its policy where it does not answer."""
    state, why = record.state, record.why
    if record.source is ClusterSource.NONE:
        return ClusterHealth.UNKNOWN, "it has neither a kubeconfig nor a snapshot"
    if state is ClusterHealth.UNKNOWN or not record.observed_at:
        return ClusterHealth.UNKNOWN, why or "nothing was heard of it yet"
    silent = int(now) - record.observed_at
    is_mirrored = record.source is ClusterSource.MIRROR
    if state is ClusterHealth.READY and is_mirrored and silent > silent_seconds:
        state, why = ClusterHealth.AWAY, f"nothing was heard of it for {silent_seconds} s"
    if state is ClusterHealth.AWAY and record.unreachable is UnreachablePolicy.LAST_KNOWN:
        return ClusterHealth.STALE, why
    return state, why


def device_classes(document: str) -> dict[str, DeviceClass]:
    """Those that can be read: a cluster's own controllers tell what is wrong with the others."""
    written = msgspec.json.decode(document, type=dict[str, dict[str, Any]])
    found = {}
    for name, spec in sorted(written.items()):
        try:
            found[name] = documents.read(name, spec)
        except Malformed:
            continue
    return found


# -- reading the ledger ----------------------------------------------------------------------------


def look(tx: Transaction, log: Log | None) -> FleetChanges:
    """In a thread of the ledger's: nodes are decoded here."""
    roots = None if log is None else {root for kind, root in log if kind in TREES}
    rows = {row.root_id: row for row in node_rows.of_roots(tx, roots) if not row.is_gone}
    held = node_rows.usage(tx, rows)
    return FleetChanges(
        is_everything=roots is None,
        nodes={root: (row, node_of(row, held.get(root, ()))) for root, row in rows.items()},
        gone=frozenset((roots or set()) - rows.keys()),
        clusters=clusters.listing(tx),
        labels=clusters.labels(tx),
        classes=clusters.classes(tx),
    )


def node_of(row: NodeRow, used: HeldAmounts) -> ClusterNode:
    seen, on_it = NODE_DECODER.decode(row.document), PODS_DECODER.decode(row.pods)
    root = row.root
    of_root = {name: units for provider, name, units in used if provider == root}
    of_devices = {provider: units for provider, name, units in used if name == DEVICE_CLASS}
    allocatable = {class_of_resource(name): name for name in seen.node.status.allocatable}
    free, held_devices = free_devices(root, seen.devices, of_root, of_devices)
    return ClusterNode(
        node=seen.node,
        pods=on_it.pods,
        devices=free,
        devices_by_claim=seen.devices_by_claim,
        held_devices=frozenset(held_devices),
        held={allocatable[name]: units for name, units in of_root.items() if name in allocatable},
        pins_cpus=seen.pins_cpus,
    )


def free_devices(
    root: str, all_devices: Iterable[Device], of_root: Mapping[str, int], used: Mapping[str, int]
) -> tuple[tuple[Device, ...], list[str]]:
    """Devices with so many units as are left of them, and the names of those with none left."""
    found, held = [], []
    for each in all_devices:
        if is_pool(each):
            units = of_root.get(class_of_resource(each.kind), 0)
        else:
            units = used.get(devices.provider_name(root, each.name), 0)
        left = each.units - units
        if left <= 0:
            held.append(each.name)
        found.append(replace(each, units=left) if units and left > 0 else each)
    return tuple(found), held
