"""Observed state of machines: what informers and the ledger told, indexed for snapshots.

The operator's informers call the `on_` methods; controllers ask for snapshots. A change puts the
groups and nodes that have to be looked at again on their queues, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Generic, TypeVar

import structlog

from dovetail.core.errors import DovetailError
from dovetail.core.rows import Rows
from dovetail.kube.machines.acceptance import Accepted, AcceptedSpecs, read_record
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.machines.documents import Machine, MachineNodePool, MachineShape, PoolNode
from dovetail.machines.marks import is_marked_node
from dovetail.machines.names import MACHINE_GROUP, pool_name
from dovetail.machines.pods import group_of, is_guest, is_over, is_sleeper
from dovetail.machines.snapshot import MachineSnapshot, StockSettings, UnitRecord
from dovetail.podfit.objects import (
    ConfigMap,
    KubeObject,
    Namespace,
    Node,
    Pod,
    Service,
    StatefulSet,
)
from dovetail.podfit.pod_sum import ENDED_PHASES
from dovetail.podfit.table import NodeTable

LOG = structlog.get_logger("dovetail.kube.machines")

T = TypeVar("T", bound=KubeObject)


class OwnedObjects(Generic[T]):
    """Objects of one kind in the operator's namespace, by group and name."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, T]] = {}

    def change(self, old: T | None, new: T | None) -> set[str]:
        """The groups that are concerned."""
        for each in filter(None, (old, new)):
            self._by_group.get(label_of(each), {}).pop(each.metadata.name, None)
        if new is not None:
            self._by_group.setdefault(label_of(new), {})[new.metadata.name] = new
        return {label_of(each) for each in (old, new) if each is not None} - {""}

    def of(self, group: str) -> Mapping[str, T]:
        return self._by_group.get(group, {})


def label_of(found: KubeObject) -> str:
    return found.metadata.labels.get(MACHINE_GROUP, "")


class NodeOwner:
    """The Machine in whose pool a node is, and its entry there."""

    def __init__(self, machine: Machine, accepted: Accepted, entry: PoolNode) -> None:
        self.machine, self.accepted, self.entry = machine, accepted, entry


class MachineState:
    """All Machines of a cluster, and what their plans depend on."""

    def __init__(
        self,
        settings: StockSettings,
        *,
        groups: WorkQueue,
        nodes: WorkQueue,
        pools: WorkQueue,
    ) -> None:
        """Queues of what has to be looked at again, by name."""
        self.settings = settings
        self._group_queue, self._node_queue, self._pool_queue = groups, nodes, pools
        self.machines: dict[str, Machine] = {}
        self.pools: dict[str, MachineNodePool] = {}
        self.nodes: dict[str, Node] = {}
        self.namespaces: dict[str, Namespace] = {}
        self.table = NodeTable(Rows())
        self.accepted = AcceptedSpecs()
        self.owners: dict[str, NodeOwner] = {}
        """By node, of accepted specifications."""
        self.units: dict[str, dict[str, UnitRecord]] = {}
        """By group and uid: what the ledger has."""
        self.gpus_of_others: Mapping[str, int] = {}
        self.pods: dict[str, Pod] = {}
        """Guests and sleepers of all groups, by uid."""
        self._guests: dict[str, dict[str, Pod]] = {}
        self._sleepers: dict[str, dict[str, Pod]] = {}
        self._gone: set[str] = set()
        """Pods that held a unit when they were deleted."""
        self.deleted: set[tuple[str, str]] = set()
        """Kind and name of owned objects that were seen to go, and not to come again."""
        self.stateful_sets = OwnedObjects[StatefulSet]()
        self.services = OwnedObjects[Service]()
        self.shapes = OwnedObjects[MachineShape]()
        self.config_maps = OwnedObjects[ConfigMap]()

    # -- what controllers ask --------------------------------------------------------------------

    def machines_of(self, group: str) -> list[Machine]:
        """The oldest first: of several with one group, the others are not accepted."""
        found = [each for each in self.machines.values() if each.group == group]
        return sorted(
            found, key=lambda each: (each.metadata.creation_timestamp or "", each.metadata.uid)
        )

    def snapshot(self, machine: Machine, accepted: Accepted, now: datetime) -> MachineSnapshot:
        group, spec = machine.group, accepted.spec
        pool = (each.name for each in spec.node_pool)
        return MachineSnapshot(
            machine=machine,
            spec=spec,
            accepted_generation=accepted.generation,
            faults=self.accepted.faults_of(machine),
            settings=self.settings,
            now=now,
            table=self.table,
            nodes={name: self.nodes[name] for name in pool if name in self.nodes},
            guests=self.guests_of(group),
            sleepers=self._sleepers.get(group, {}),
            units=self.units.get(group, {}),
            gone=frozenset(self._gone),
            namespaces=self.namespaces,
            gpus_of_others=self.gpus_of_others,
            pool=self.pools.get(pool_name(machine.metadata.name)),
            stateful_sets=self.stateful_sets.of(group),
            services=self.services.of(group),
            shapes=self.shapes.of(group),
        )

    def guests_of(self, group: str) -> Mapping[str, Pod]:
        return self._guests.get(group, {})

    def owned_by(self, group: str) -> Iterator[tuple[type[KubeObject], Mapping[str, KubeObject]]]:
        """Objects of the group by kind and name."""
        yield StatefulSet, self.stateful_sets.of(group)
        yield Service, self.services.of(group)
        yield MachineShape, self.shapes.of(group)
        yield ConfigMap, self.config_maps.of(group)
        yield (
            MachineNodePool,
            {name: each for name, each in self.pools.items() if label_of(each) == group},
        )

    def wake(self, groups: Iterable[str]) -> None:
        for group in groups:
            self._group_queue.add(group)

    def wake_all(self) -> None:
        """Everything is looked at: a new leader does not know what others left undone."""
        self.wake({each.group for each in self.machines.values() if each.group})
        self.wake(group for group, guests in self._guests.items() if guests)
        self.wake(group for group, units in self.units.items() if units)
        self.wake(filter(None, map(label_of, self.pools.values())))
        for name in self.owners.keys() | {
            n for n, each in self.nodes.items() if is_marked_node(each)
        }:
            self._node_queue.add(name)
        for name in self.pools:
            self._pool_queue.add(name)

    # -- what the ledger tells -------------------------------------------------------------------

    def put_unit(self, group: str, uid: str, unit: UnitRecord) -> None:
        self.units.setdefault(group, {})[uid] = unit
        self._recount(uid)

    def drop_unit(self, group: str, uid: str) -> None:
        unit = self.units.get(group, {}).pop(uid, None)
        self._gone.discard(uid)
        self._recount(uid)
        if unit is not None and unit.node not in self.owners:
            self._node_queue.add(unit.node)  # The last one that was held kept it in the ledger.

    def set_units(self, units: Mapping[str, Mapping[str, UnitRecord]]) -> None:
        """All that the ledger has, by group."""
        before, self.units = self.units, {group: dict(each) for group, each in units.items()}
        for group in before.keys() | self.units.keys():
            old, new = before.get(group, {}), self.units.get(group, {})
            changed = {uid for uid in old.keys() | new.keys() if old.get(uid) != new.get(uid)}
            for uid in changed:
                self._recount(uid)
            if changed:
                self._group_queue.add(group)

    def set_gpus_of_others(self, held: Mapping[str, int]) -> None:
        before, self.gpus_of_others = self.gpus_of_others, held
        for node in before.keys() | held.keys():
            if before.get(node, 0) != held.get(node, 0):
                self._wake_owner(node)

    def holders_over(self, group: str) -> list[str]:
        """Holders of units that need them no more."""
        return [
            uid
            for uid in self.units.get(group, {})
            if uid in self._gone or (uid in self.pods and is_over(self.pods[uid]))
        ]

    def unknown_holders(self) -> set[str]:
        """Holders of units that no informer told of."""
        held = {uid for each in self.units.values() for uid in each}
        return held - self.pods.keys() - self._gone

    def give_up(self, uids: Iterable[str]) -> None:
        """These are no more, since they were looked for and not found."""
        for uid in uids:
            self._gone.add(uid)
            self.wake(group for group, units in self.units.items() if uid in units)

    def _unit_of(self, uid: str, group: str) -> UnitRecord | None:
        return self.units.get(group, {}).get(uid)

    def _recount(self, uid: str) -> None:
        pod = self.pods.get(uid)
        if pod is not None:
            self._count(pod)

    def _count(self, pod: Pod) -> None:
        """A pod counts where it is, or where its unit is."""
        unit = self._unit_of(pod.metadata.uid, group_of(pod))
        try:
            self.table.add_pod(pod, pod.spec.node_name or (unit.node if unit is not None else ""))
        except DovetailError as error:
            LOG.warning("pod not counted", pod=pod.key, error=str(error))

    # -- what informers tell ---------------------------------------------------------------------

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None:
            self._forget(old)
        if new is not None:
            self._remember(new)
        gone = old if new is None else None
        if gone is not None:
            self.table.remove_pod(gone.metadata.uid)
            if self._unit_of(gone.metadata.uid, group_of(gone)) is not None:
                self._gone.add(gone.metadata.uid)
        if old is None or new is None or not is_same_to_others(old, new):
            for each in filter(None, (old, new)):
                self._wake_owner(each.spec.node_name)

    def _forget(self, pod: Pod) -> None:
        uid, group = pod.metadata.uid, group_of(pod)
        if self.pods.pop(uid, None) is not None:
            self._guests.get(group, {}).pop(uid, None)
            self._sleepers.get(group, {}).pop(uid, None)
            self._group_queue.add(group)

    def _remember(self, pod: Pod) -> None:
        uid, group = pod.metadata.uid, group_of(pod)
        index = (
            self._guests
            if is_guest(pod)
            else self._sleepers
            if is_sleeper(pod, self.settings.namespace)
            else None
        )
        if index is not None:
            index.setdefault(group, {})[uid] = pod
            self.pods[uid] = pod
            self._group_queue.add(group)
        self._count(pod)

    def _wake_owner(self, node: str) -> None:
        owner = self.owners.get(node)
        if owner is not None:
            self._group_queue.add(owner.machine.group)

    def look_at_node(self, name: str) -> None:
        """Something about the node changed that the node itself does not tell."""
        node = self.nodes.get(name)
        if name in self.owners or (node is not None and is_marked_node(node)):
            self._node_queue.add(name)

    def on_node(self, old: Node | None, new: Node | None) -> None:
        found = new or old
        assert found is not None
        name = found.metadata.name
        if new is None:
            self.nodes.pop(name, None)
            self.table.drop_node(name)
        else:
            self.nodes[name] = new
            try:
                self.table.set_node(new)
            except DovetailError as error:
                LOG.warning("node not read", node=name, error=str(error))
        if name in self.owners or is_marked_node(found):
            self._node_queue.add(name)
        if name in self.owners:
            self._pool_queue.add(pool_name(self.owners[name].machine.metadata.name))
        self._wake_owner(name)
        if old is None or new is None:
            # A specification may wait for this node, or have been refused for want of it.
            self.wake(each.group for each in self.machines.values() if self._waits_for(each, name))

    def _waits_for(self, machine: Machine, node: str) -> bool:
        return not self.accepted.is_current(machine) and any(
            each.name == node for each in machine.spec.node_pool
        )

    def on_namespace(self, old: Namespace | None, new: Namespace | None) -> None:
        found = new or old
        assert found is not None
        name = found.metadata.name
        if new is not None:
            self.namespaces[name] = new
            self.table.set_namespace(new)
        else:
            self.namespaces.pop(name, None)
            self.table.drop_namespace(name)
        groups = {group_of(pod) for pod in self.pods.values() if pod.metadata.namespace == name}
        self.wake(groups)

    def on_machine(self, old: Machine | None, new: Machine | None) -> None:
        for each in filter(None, (old, new)):
            self.machines.pop(each.metadata.name, None)
        if new is not None:
            self.machines[new.metadata.name] = new
        elif old is not None:
            self.accepted.drop(old.metadata.name)
        if old is None or new is None or old.metadata.generation != new.metadata.generation:
            self.own_nodes()
            # One that was refused for what another had may be right by now.
            self.wake(
                each.group for each in self.machines.values() if not self.accepted.is_current(each)
            )
        self.wake({each.group for each in (old, new) if each is not None})

    def own_nodes(self) -> None:
        """Work out whose pool each node is in, after what is accepted has changed."""
        before = self.owners
        self.owners = {
            entry.name: NodeOwner(machine, accepted, entry)
            for machine in self.machines.values()
            if machine.metadata.deletion_timestamp is None
            for accepted in [self.accepted.of(machine)]
            if accepted is not None
            for entry in accepted.spec.node_pool
        }
        for name in before.keys() | self.owners.keys():
            old, new = before.get(name), self.owners.get(name)
            if old is None or new is None or old.accepted != new.accepted:
                self._node_queue.add(name)

    def on_pool(self, old: MachineNodePool | None, new: MachineNodePool | None) -> None:
        found = new or old
        assert found is not None
        self.pools.pop(found.metadata.name, None)
        self._note_deleted(old, new)
        if new is not None:
            self.pools[new.metadata.name] = new
            self._pool_queue.add(new.metadata.name)
        self.wake({label_of(each) for each in (old, new) if each is not None} - {""})

    def _note_deleted(self, old: KubeObject | None, new: KubeObject | None) -> None:
        if new is not None:
            self.deleted.discard((new.API.kind, new.metadata.name))
        elif old is not None:
            self.deleted.add((old.API.kind, old.metadata.name))

    def on_stateful_set(self, old: StatefulSet | None, new: StatefulSet | None) -> None:
        self._note_deleted(old, new)
        self.wake(self.stateful_sets.change(old, new))

    def on_service(self, old: Service | None, new: Service | None) -> None:
        self._note_deleted(old, new)
        self.wake(self.services.change(old, new))

    def on_shape(self, old: MachineShape | None, new: MachineShape | None) -> None:
        self._note_deleted(old, new)
        self.wake(self.shapes.change(old, new))

    def on_config_map(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        record = read_record(new) if new is not None else None
        if record is not None:
            self.accepted.put(*record)
            self.own_nodes()
        self._note_deleted(old, new)
        self.wake(self.config_maps.change(old, new))


def is_same_to_others(old: Pod, new: Pod) -> bool:
    """Whether nothing changed of the pod that makes or takes room on its node."""
    return (
        old.spec.node_name == new.spec.node_name
        and (old.status.phase in ENDED_PHASES) == (new.status.phase in ENDED_PHASES)
        and old.spec.containers == new.spec.containers
    )
