"""Cases: a guest in a snapshot, as it is or as it would be; `judging` looks at one at a time.

What is supposed about holders and nodes goes into the snapshot's table for as long as a case is
looked at, and the table is as it was afterwards: copying a large cluster for every question that a
remedy asks would take longer than to answer it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import msgspec
from msgspec.structs import replace

from dovetail.core.quantity import BadQuantity
from dovetail.core.rows import Rows
from dovetail.machines.documents import MachineSpec
from dovetail.machines.marks import healed, marked, marks_of
from dovetail.machines.names import READY, UNIT_GROUP
from dovetail.machines.pods import is_bound, is_over, other_gates, unit_group_of
from dovetail.machines.selling.seller import group_lacking
from dovetail.machines.snapshot import MachineSnapshot
from dovetail.podfit.objects import Affinity, Node, Pod
from dovetail.podfit.table import NodeTable


class GuestCase(msgspec.Struct, frozen=True, kw_only=True):
    snapshot: MachineSnapshot
    pod: Pod
    gone: frozenset[str] = frozenset()
    """Guests that are supposed to have ended, by uid."""
    nodes: Mapping[str, Node] = {}
    """Nodes of the pool as they are supposed to be."""

    @property
    def spec(self) -> MachineSpec:
        return self.snapshot.spec

    def with_pod(self, pod: Pod) -> GuestCase:
        return replace(self, pod=pod)

    def with_spec(self, spec: MachineSpec) -> GuestCase:
        return replace(self, snapshot=replace(self.snapshot, spec=spec))

    def without(self, *holders: str) -> GuestCase:
        return replace(self, gone=self.gone | frozenset(holders))

    def members(self) -> list[Pod]:
        """The pods of its unit group that wait; itself alone, if it has none."""
        name = unit_group_of(self.pod)
        others = [
            each
            for uid, each in self.snapshot.guests.items()
            if name and unit_group_of(each) == name and uid != self.pod.metadata.uid
            if uid not in self.snapshot.units and not is_bound(each) and not is_over(each)
        ]
        return [self.pod, *others]


@contextmanager
def supposed(case: GuestCase) -> Iterator[MachineSnapshot]:
    """The snapshot as the case has it."""
    before, table = case.snapshot, case.snapshot.table
    places = {uid: table.node_of(uid) for uid in case.gone if uid in before.guests}
    guests = {uid: each for uid, each in before.guests.items() if uid not in case.gone}
    try:
        for uid in places:
            table.remove_pod(uid)
        for node in case.nodes.values():
            table.set_node(node)
        yield replace(
            before,
            guests={**guests, case.pod.metadata.uid: case.pod},
            units={uid: each for uid, each in before.units.items() if uid not in case.gone},
            nodes={**before.nodes, **case.nodes},
        )
    finally:
        for name in case.nodes:
            table.set_node(before.nodes[name])
        for uid, place in places.items():
            if place is not None:
                table.add_pod(before.guests[uid], place)


def ready_node(spec: MachineSpec, group: str, node: Node) -> Node:
    """The node of a pool as it is when it is ready, whatever it is now."""
    entry = next(each for each in spec.node_pool if each.name == node.metadata.name)
    return marked(healed(node), marks_of(spec, group, entry, READY))


def idle(case: GuestCase) -> GuestCase:
    """If nothing were in use: no other guests, no stock, no windows, and every node ready.

    What the pod demands of other pods is passed over: they may come and go, too.
    """
    before = case.snapshot
    spec = replace(
        case.spec,
        node_pool=tuple(replace(each, mode=READY) for each in case.spec.node_pool),
        machine_types=tuple(replace(each, windows=()) for each in case.spec.machine_types),
    )
    nodes = {
        name: ready_node(spec, before.machine.group, case.nodes.get(name, node))
        for name, node in before.nodes.items()
    }
    table = NodeTable(Rows())
    for node in nodes.values():
        # One whose amounts cannot be read takes no pods, idle or not.
        with suppress(BadQuantity):
            table.set_node(node)
    members = case.members()
    if unit_group_of(case.pod) and group_lacking(members, 0):
        members = [_alone(case.pod)]
    members = [_unbound(each) for each in members]
    return GuestCase(
        snapshot=replace(
            before,
            spec=spec,
            table=table,
            nodes=nodes,
            guests={each.metadata.uid: each for each in members},
            sleepers={},
            units={},
            gpus_of_others={},
        ),
        pod=members[0],
    )


def _alone(pod: Pod) -> Pod:
    labels = {key: value for key, value in pod.metadata.labels.items() if key != UNIT_GROUP}
    return replace(pod, metadata=replace(pod.metadata, labels=labels))


def _unbound(pod: Pod) -> Pod:
    others = other_gates(pod)
    gates = tuple(each for each in pod.spec.scheduling_gates if each.name not in others)
    affinity = pod.spec.affinity
    if affinity is not None:
        affinity = Affinity(node_affinity=affinity.node_affinity)
    containers = tuple(replace(each, ports=()) for each in pod.spec.containers)
    spec = replace(
        pod.spec,
        affinity=affinity,
        containers=containers,
        scheduling_gates=gates,
        topology_spread_constraints=(),
    )
    return replace(pod, spec=spec)
