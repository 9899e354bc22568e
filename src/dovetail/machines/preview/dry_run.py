"""Dry run: what would change if a specification were accepted; `dovetail machines plan` asks.

The plan is the operator's own (`plan_machine`), made of a snapshot in which the new specification
is in force and nodes carry the marks that it gives them. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from dovetail.core.quantity import BadQuantity
from dovetail.machines.documents import MachineNodePool, MachineShape
from dovetail.machines.marks import NodeMarks, change_of, marked, marks_of, own_taints, state_of
from dovetail.machines.names import MACHINE_GROUP, MAINTENANCE, READY
from dovetail.machines.objects import is_contained
from dovetail.machines.plan import MachinePlan, plan_machine
from dovetail.machines.pods import type_of
from dovetail.machines.preview.stock import StockPreview, stock_previews
from dovetail.machines.selling.standing import MachineStanding
from dovetail.machines.snapshot import MachineSnapshot
from dovetail.machines.validation import findings
from dovetail.machines.validation.world import FieldFault, World
from dovetail.podfit.objects import KubeObject, Node, Service, StatefulSet

CREATE, CHANGE, DELETE = "create", "change", "delete"


class ObjectChange(msgspec.Struct, frozen=True, kw_only=True):
    action: str
    kind: str
    name: str
    fields: tuple[str, ...] = ()
    """Of a change: which, from what to what."""


class NodeChange(msgspec.Struct, frozen=True, kw_only=True):
    """Marks that a node gets or loses, such as `label imperator.tenzen-y.io/node-pool=ready`."""

    name: str
    added: tuple[str, ...]
    removed: tuple[str, ...]


class KeptUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A guest that has a unit: it keeps it, whatever the specification says."""

    pod: str
    type: str
    node: str
    words: str = ""
    """What is out of the ordinary about it."""


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    faults: tuple[FieldFault, ...]
    """If there are any, nothing changes: what was accepted last stays in force."""
    objects: tuple[ObjectChange, ...] = ()
    nodes: tuple[NodeChange, ...] = ()
    stock: tuple[StockPreview, ...] = ()
    guests: tuple[KeptUnit, ...] = ()
    sold: tuple[KeptUnit, ...] = ()
    """Guests that wait, and would get their unit at once."""

    @property
    def is_accepted(self) -> bool:
        return not self.faults


def dry_run(snapshot: MachineSnapshot, world: World) -> DryRun:
    """`snapshot` has the new specification in force, `world` the nodes and what is in force now."""
    faults = findings(snapshot.machine, world)
    if faults:
        return DryRun(faults=faults)
    marks = wanted_marks(snapshot, world)
    with _marked(snapshot, marks, world) as then:
        standing = MachineStanding(then)
        plan = plan_machine(then)
        return DryRun(
            faults=(),
            objects=tuple(object_changes(then, plan)),
            nodes=tuple(node_changes(marks, world)),
            stock=stock_previews(standing),
            guests=tuple(kept_units(standing)),
            sold=tuple(
                KeptUnit(pod=each.pod.key, type=each.type, node=each.node)
                for sale in plan.sales
                for each in sale.orders
            ),
        )


# -- nodes -----------------------------------------------------------------------------------------


def wanted_marks(snapshot: MachineSnapshot, world: World) -> dict[str, NodeMarks | None]:
    """By node, of the pool and of those that were in it."""
    group = snapshot.machine.group
    found: dict[str, NodeMarks | None] = {
        name: None
        for name, node in world.nodes.items()
        if node.metadata.annotations.get(MACHINE_GROUP) == group
    }
    for entry in snapshot.spec.node_pool:
        node = world.nodes.get(entry.name)
        if node is not None:
            state = state_of(node, entry)
            found[entry.name] = marks_of(snapshot.spec, group, entry, state)
    return found


@contextmanager
def _marked(
    snapshot: MachineSnapshot, marks: Mapping[str, NodeMarks | None], world: World
) -> Iterator[MachineSnapshot]:
    """The snapshot with these marks on its nodes; its table has them for as long."""
    nodes = {name: marked(world.nodes[name], each) for name, each in marks.items()}
    try:
        for node in nodes.values():
            _put(snapshot, node)
        pool = {each.name for each in snapshot.spec.node_pool}
        yield replace(snapshot, nodes={n: each for n, each in nodes.items() if n in pool})
    finally:
        for name in nodes:
            _put(snapshot, world.nodes[name])


def _put(snapshot: MachineSnapshot, node: Node) -> None:
    # One whose amounts cannot be read takes no pods, marked or not.
    with suppress(BadQuantity):
        snapshot.table.set_node(node)


def node_changes(marks: Mapping[str, NodeMarks | None], world: World) -> Iterator[NodeChange]:
    for name, wanted in marks.items():
        node = world.nodes[name]
        if change_of(node, wanted) is not None:
            before, after = marks_on(node), marks_on(marked(node, wanted))
            yield NodeChange(
                name=name,
                added=tuple(each for each in after if each not in before),
                removed=tuple(each for each in before if each not in after),
            )


def marks_on(node: Node) -> list[str]:
    """As they are told: labels and taints of the domain, and the annotation."""
    prefix = MACHINE_GROUP.partition("/")[0]
    labels = {k: v for k, v in node.metadata.labels.items() if k.startswith(f"{prefix}/")}
    group = node.metadata.annotations.get(MACHINE_GROUP)
    found = [] if group is None else [f"annotation {MACHINE_GROUP}={group}"]
    found += [f"label {key}={value}" for key, value in labels.items()]
    found += [f"taint {key}={value}" for key, value in own_taints(node.spec.taints).items()]
    return found


# -- objects ---------------------------------------------------------------------------------------


def object_changes(snapshot: MachineSnapshot, plan: MachinePlan) -> Iterator[ObjectChange]:
    there: Mapping[type[KubeObject], Mapping[str, KubeObject]] = {
        StatefulSet: snapshot.stateful_sets,
        Service: snapshot.services,
        MachineShape: snapshot.shapes,
        MachineNodePool: {}
        if snapshot.pool is None
        else {snapshot.pool.metadata.name: snapshot.pool},
    }
    for put in plan.puts:
        found = there[put.kind].get(put.name)
        fields = () if found is None else tuple(differences(put.body, msgspec.to_builtins(found)))
        action = CREATE if found is None else CHANGE
        yield ObjectChange(action=action, kind=put.kind.API.kind, name=put.name, fields=fields)
    for drop in plan.drops:
        yield ObjectChange(action=DELETE, kind=drop.kind.API.kind, name=drop.name)


def differences(wanted: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Such as `spec.replicas: 3 -> 2`, of what is wanted; what else there is does not matter."""
    if is_contained(wanted, actual):
        return
    if isinstance(wanted, Mapping) and isinstance(actual, Mapping):
        for key, value in wanted.items():
            yield from differences(value, actual.get(key), f"{path}.{key}" if path else key)
    elif is_list(wanted) and is_list(actual) and len(wanted) == len(actual):
        for at, (one, other) in enumerate(zip(wanted, actual, strict=True)):
            yield from differences(one, other, f"{path}[{at}]")
    elif isinstance(wanted, Mapping) or is_list(wanted):
        yield f"{path} changes"
    else:
        yield f"{path}: {'nothing' if actual is None else actual} -> {wanted}"


def is_list(value: object) -> bool:
    return isinstance(value, list | tuple)


# -- guests ----------------------------------------------------------------------------------------


def kept_units(standing: MachineStanding) -> Iterator[KeptUnit]:
    entries = {each.name: each for each in standing.snapshot.spec.node_pool}
    kinds = {each.name: each for each in standing.snapshot.spec.machine_types}
    for pod in sorted(standing.survey.holders, key=lambda pod: pod.key):
        name, node = type_of(pod), standing.survey.places[pod.metadata.uid]
        words = ""
        if node not in entries:
            words = "its node leaves the pool"
        elif entries[node].mode == MAINTENANCE:
            words = "its node is in maintenance"
        elif state_of(standing.snapshot.nodes.get(node), entries[node]) != READY:
            words = "its node is not ready"
        elif name in kinds and standing.books[name].sold[name] > kinds[name].available:
            words = f"more units of {name} are sold than there would be"
        yield KeptUnit(pod=pod.key, type=name, node=node, words=words)
